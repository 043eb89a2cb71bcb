import CoreData

/// Ships orders, in a separate process: it claims some, packs them, and records that they are shipped.
///
/// A worker has a claim on an order for some seconds. If the process dies, another worker takes the order after that.
/// The version of the order's row ensures that no order is shipped twice. If a claim has run out and another worker has
/// taken the order meanwhile, a write meets a newer version, and the worker starts over.
package struct Packer: Sendable {
    private let container: NSPersistentContainer
    private let name: String
    private let lease: TimeInterval

    /// - Parameters:
    ///   - container: The container with the shop's store.
    ///   - name: The name of the worker; no two processes have the same.
    ///   - lease: The duration of a claim, in seconds.
    package init(_ container: NSPersistentContainer, name: String, lease: TimeInterval = 2) {
        (self.container, self.name, self.lease) = (container, name, lease)
    }

    /// Packs until `isOver` returns true.
    package func run(until isOver: () -> Bool) async throws {
        while !isOver() {
            // There is no notification when a claim runs out, so the store is checked from time to time.
            if try packSome() == 0 { try await Task.sleep(for: .milliseconds(20)) }
        }
    }

    /// Claims some orders, and ships them.
    ///
    /// - Returns: The number of claimed orders.
    package func packSome() throws -> Int {
        let context = container.newBackgroundContext()
        (context.name, context.transactionAuthor) = (name, name)
        let claimed = try context.performAndWait(retrying: 50) {
            let request = NSFetchRequest<Order>(entityName: "Order")
            request.predicate = NSPredicate(
                format: "state == %d OR (state == %d AND packedUntil < %@)",
                Int(Order.State.placed.rawValue),
                Int(Order.State.packing.rawValue),
                Date() as NSDate
            )
            request.sortDescriptors = [NSSortDescriptor(key: "createdAt", ascending: true)]
            request.fetchLimit = 20
            return try context.fetch(request).map { order in
                order.state = .packing
                order.packer = name
                order.packedUntil = Date(timeIntervalSinceNow: lease)
                order.updatedAt = Date()
                return order
            }
        }
        guard !claimed.isEmpty else { return 0 }
        let ids = context.performAndWait { claimed.map(\.objectID) }
        for id in ids { try ship(id, in: context) }
        return ids.count
    }

    private func ship(_ id: NSManagedObjectID, in context: NSManagedObjectContext) throws {
        try context.performAndWait(retrying: 50) {
            guard let order = try context.existingObject(with: id) as? Order, order.state == .packing,
                order.packer == name
            else { return }
            order.state = .shipped
            order.updatedAt = Date()
            let shipment = Shipment(context: context)
            shipment.worker = name
            shipment.shippedAt = order.updatedAt
            shipment.order = order
        }
    }
}
