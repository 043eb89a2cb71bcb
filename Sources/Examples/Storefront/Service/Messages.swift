import Foundation

// These are the messages between client and server, as JSON.

/// A product, as clients see and send it.
package struct ProductMessage: Codable, Sendable, Equatable {
    package var sku: String
    package var name: String
    package var priceCents: Int64
    package var stock: Int64

    package init(sku: String, name: String, priceCents: Int64, stock: Int64) {
        (self.sku, self.name, self.priceCents, self.stock) = (sku, name, priceCents, stock)
    }
}

/// An order that a client places.
package struct OrderRequest: Codable, Sendable {
    package struct Line: Codable, Sendable {
        package var sku: String
        package var quantity: Int64

        package init(sku: String, quantity: Int64) { (self.sku, self.quantity) = (sku, quantity) }
    }

    /// The number that the client has chosen.
    ///
    /// If an order is sent again, it is not placed twice.
    package var number: UUID
    package var customer: String
    package var lines: [Line]
    /// The last digits of a card.
    ///
    /// Without them, the order is paid on account.
    package var card: String?

    package init(number: UUID = UUID(), customer: String, lines: [Line], card: String? = nil) {
        (self.number, self.customer, self.lines, self.card) = (number, customer, lines, card)
    }
}

/// An order, as clients see it.
package struct OrderMessage: Codable, Sendable {
    package struct Line: Codable, Sendable {
        package var sku: String
        package var quantity: Int64
        package var amountCents: Int64
    }

    package var number: UUID
    package var customer: String
    package var state: String
    package var totalCents: Int64
    package var payment: String
    package var lines: [Line]
}

/// The number of orders, by their state.
package struct OrderCounts: Codable, Sendable {
    package var placed: Int
    package var shipped: Int
}

/// The problem of a request, as clients see it.
struct Problem: Codable {
    var error: String
}
