import CoreData

/// Checks that the contents of the store are consistent.
package struct Audit: Sendable {
    /// The problems, a sentence each.
    package private(set) var faults: [String] = []
    package private(set) var orders = 0

    /// Checks a store to which no process writes.
    ///
    /// - Parameters:
    ///   - container: The container with the store.
    ///   - confirmed: The orders that the server has confirmed to clients; each has to be in the store.
    ///   - isDone: Whether all orders must be shipped.
    /// - Throws: Errors of reading.
    package init(_ container: NSPersistentContainer, confirmed: Set<UUID>, isDone: Bool) throws {
        let context = container.newBackgroundContext()
        (faults, orders) = try context.performAndWait {
            var faults = try Self.stock(context)
            let request = NSFetchRequest<Order>(entityName: "Order")
            request.fetchBatchSize = 500
            request.relationshipKeyPathsForPrefetching = ["lines", "payment", "shipments"]
            var missing = confirmed
            let orders = try context.batchedResults(for: request)
            for order in orders {
                missing.remove(order.number)
                let sum = order.lines.reduce(0) { $0 + $1.amountCents }
                if order.totalCents != sum { faults.append("an order's total is \(order.totalCents), not \(sum)") }
                if order.payment?.amountCents != sum { faults.append("an order of \(sum) is paid with something else") }
                let shipments = order.shipments.count
                if shipments != (order.state == .shipped ? 1 : 0) {
                    faults.append("an order that is \(order.state.name) was shipped \(shipments) times")
                }
                if isDone, order.state != .shipped { faults.append("an order was not shipped") }
            }
            if !missing.isEmpty { faults.append("\(missing.count) orders that were confirmed are not there") }
            return (faults, orders.count)
        }
    }

    /// Checks that the delivered number of each product is the sum of the remaining and the sold ones.
    private static func stock(_ context: NSManagedObjectContext) throws -> [String] {
        let request = NSFetchRequest<Product>(entityName: "Product")
        request.relationshipKeyPathsForPrefetching = ["lines"]
        return try context.fetch(request).compactMap { product in
            let sold = product.lines.reduce(0) { $0 + $1.quantity }
            guard product.stock + sold != product.delivered || product.stock < 0 else { return nil }
            return "of \(product.delivered) \(product.sku), \(sold) were sold and \(product.stock) are left"
        }
    }
}
