import CoreData

/// Ships orders, in a process of its own: claims some, packs them, and writes that they are shipped.
///
/// Who claims an order has it for some seconds; if the process dies, the next one takes it then. That no order is shipped twice rests
/// on the version of its row: who writes on a claim that has run out and was taken meanwhile meets a newer version, and starts over.
package struct Packer: Sendable {
    private let container: NSPersistentContainer
    private let name: String
    private let lease: TimeInterval

    /// - Parameters:
    ///   - container: With the shop's store.
    ///   - name: Who packs; no two processes have the same.
    ///   - lease: For how many seconds a claim holds.
    package init(_ container: NSPersistentContainer, name: String, lease: TimeInterval = 2) {
        (self.container, self.name, self.lease) = (container, name, lease)
    }

    /// Packs until `isOver` says so.
    package func run(until isOver: () -> Bool) async throws {
        while !isOver() {
            // Nobody tells of a claim that runs out, so look now and then.
            if try packSome() == 0 { try await Task.sleep(for: .milliseconds(20)) }
        }
    }

    /// Claims some orders, and ships them.
    ///
    /// - Returns: How many were claimed.
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
