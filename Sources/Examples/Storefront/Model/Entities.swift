import CoreData

/// Something that the shop sells.
@ManagedObject
package final class Product: NSManagedObject {
    /// Unique.
    @Managed package var sku: String
    @Managed package var name: String
    @Managed package var priceCents: Int64
    /// How many there are to be sold.
    @Managed package var stock: Int64
    /// How many were ever put on the shelf: what is sold and what is left have to add up to it.
    @Managed package var delivered: Int64
    /// A picture, in a file of its own beside the store.
    @Managed package var image: Data?
    @Managed package var lines: Set<OrderLine>
}

/// What a customer has ordered.
@ManagedObject
package final class Order: NSManagedObject {
    /// Unique.
    @Managed package var number: UUID
    @Managed package var customer: String
    @Managed package var createdAt: Date
    /// When the order was last changed.
    @Managed package var updatedAt: Date
    @Managed package var state: State
    /// The sum of the lines, which the store keeps by itself.
    @Managed package var totalCents: Int64
    /// Who packs the order, and until when nobody else may.
    @Managed package var packer: String?
    @Managed package var packedUntil: Date?
    @Managed package var lines: Set<OrderLine>
    @Managed package var payment: Payment?
    /// What those have left who have shipped it: one, if all is well.
    @Managed package var shipments: Set<Shipment>

    /// How far an order has come.
    package enum State: Int16, Sendable {
        case placed
        case packing
        case shipped

        package var name: String { ["placed", "packing", "shipped"][Int(rawValue)] }
    }
}

/// One product of an order.
@ManagedObject
package final class OrderLine: NSManagedObject {
    @Managed package var quantity: Int64
    /// Quantity times price, at the time of the order.
    @Managed package var amountCents: Int64
    @Managed package var order: Order?
    @Managed package var product: Product?
}

/// How an order is paid: by card or on account.
@ManagedObject
package class Payment: NSManagedObject {
    @Managed package var amountCents: Int64
    @Managed package var order: Order?
}

/// A payment by card.
@ManagedObject
package final class CardPayment: Payment {
    @Managed package var lastDigits: String
}

/// A payment on account.
@ManagedObject
package final class InvoicePayment: Payment {
    @Managed package var dueAt: Date
}

/// That an order was shipped, written in the same save that ends the order.
@ManagedObject
package final class Shipment: NSManagedObject {
    @Managed package var worker: String
    @Managed package var shippedAt: Date
    @Managed package var order: Order?
}
