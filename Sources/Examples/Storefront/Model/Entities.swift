import CoreData

/// Something that the shop sells.
@ManagedObject
package final class Product: NSManagedObject {
    /// The stock-keeping unit; it is unique.
    @Managed package var sku: String
    @Managed package var name: String
    @Managed package var priceCents: Int64
    /// The number of items that can be sold.
    @Managed package var stock: Int64
    /// The number of items that were ever delivered.
    ///
    /// It must be the sum of the sold and the remaining ones.
    @Managed package var delivered: Int64
    /// A picture, in a separate file beside the store.
    @Managed package var image: Data?
    @Managed package var lines: Set<OrderLine>
}

/// An order of a customer.
@ManagedObject
package final class Order: NSManagedObject {
    /// The number that the client has chosen; it is unique.
    @Managed package var number: UUID
    @Managed package var customer: String
    @Managed package var createdAt: Date
    /// The time when the order was last changed.
    @Managed package var updatedAt: Date
    @Managed package var state: State
    /// The sum of the lines, which the store computes.
    @Managed package var totalCents: Int64
    @Managed package var lines: Set<OrderLine>
    @Managed package var payment: Payment?
    /// The shipments of the workers that have shipped it: one, if all is well.
    @Managed package var shipments: Set<Shipment>

    /// The progress of an order.
    package enum State: Int16, Sendable {
        case placed
        case shipped

        package var name: String { self == .placed ? "placed" : "shipped" }
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

/// The payment of an order: by card or on account.
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

/// The record that an order was shipped, written in the same save that ends the order.
@ManagedObject
package final class Shipment: NSManagedObject {
    @Managed package var worker: String
    @Managed package var shippedAt: Date
    @Managed package var order: Order?
}
