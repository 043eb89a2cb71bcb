import CoreData
import Synchronization

/// The service: the shop, its feeds and its metrics behind an HTTP server.
package final class StorefrontServer: Sendable {
    package let container: NSPersistentContainer
    package let metrics = PrometheusInstrument()
    let (orders, queues) = (Feed(), Feed())
    private let server: HTTPServer
    private let following: [Task<Void, Never>]

    /// Opens the store and listens.
    ///
    /// - Parameters:
    ///   - url: The file of the store. If there is none, it is made.
    ///   - port: The port; 0 for any free one.
    /// - Throws: Errors of opening the store, and an error if the port is taken.
    package init(storeURL url: URL, port: Int) throws {
        container = try StorefrontStore.open(at: url)
        let coordinator = container.persistentStoreCoordinator
        coordinator.instrument = CoreDataInstruments(metrics, SlowEventLines(from: .milliseconds(500)))
        // There are 256 connections at most, each with a context, and the contexts of the feeds.
        coordinator.limits.contexts = 1000
        let isStopping = Flag()
        let routes = Routes(Shop(container), orders: orders, queues: queues, metrics: metrics) { isStopping.isSet }
        self.isStopping = isStopping
        server = try HTTPServer(port: port) { routes.answer($0, $1) }
        following = [
            Self.follow("the latest orders", orders, container, LatestOrders.follow),
            Self.follow("the queues of jobs", queues, container, QueueBoard.follow),
        ]
    }

    private static func follow(
        _ name: String,
        _ feed: Feed,
        _ container: NSPersistentContainer,
        _ work: @escaping @Sendable (NSPersistentContainer, Feed) async throws -> Void
    ) -> Task<Void, Never> {
        Task {
            do {
                try await work(container, feed)
            } catch is CancellationError {
            } catch {
                container.persistentStoreCoordinator.unreportableErrorHandler?(error, "following \(name)")
            }
        }
    }

    private let isStopping: Flag

    /// The port on which the server listens.
    package var port: Int { server.port }

    /// Stops in an orderly way: it answers present requests, accepts no new ones, lets saves end, and empties the log.
    package func stop() async throws {
        isStopping.set()
        orders.end()
        queues.end()
        await server.stop(within: 30)
        for task in following { task.cancel() }
        try await container.close(within: .seconds(60))
    }
}

/// A flag that is set once.
package final class Flag: Sendable {
    private let value = Atomic(false)

    package init() {}

    package var isSet: Bool { value.load(ordering: .relaxed) }

    package func set() { value.store(true, ordering: .relaxed) }
}
