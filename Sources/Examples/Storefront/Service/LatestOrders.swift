import CoreData

/// The orders that were changed last.
enum LatestOrders {
    /// Sends them to a feed as JSON, and again whenever any process changes them, until the task is cancelled.
    static func follow(_ container: NSPersistentContainer, into feed: Feed) async throws {
        let context = container.newBackgroundContext()
        context.name = "feed"
        context.automaticallyMergesChangesFromParent = true
        for try await snapshot in context.results(for: Shop.latest(20)) {
            let text = try await context.perform {
                let orders = try snapshot.objects(in: context).map(\.message)
                return String(decoding: try JSONEncoder().encode(orders), as: UTF8.self)
            }
            feed.tell(text)
        }
    }
}
