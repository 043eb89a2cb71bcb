import CoreData

/// Wakes a worker that waits for something to happen.
///
/// It counts what has happened. A worker that has found nothing to do waits for a count above the one before its look. So
/// nothing between look and wait is missed.
final class JobBell: Sendable {
    private let rings = WaitingTasks(0)

    /// How often the bell was rung.
    var count: Int { rings.value }

    func ring() { rings.update { $0 += 1 } }

    /// Waits until the count is above the given one, the clock shows a time, or the task is cancelled.
    func wait(beyond count: Int, until time: Date, by clock: any JobClock) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.rings.wait { $0 > count } }
            group.addTask { try? await clock.sleep(until: time) }
            await group.next()
            group.cancelAll()
        }
    }
}

/// Rings a bell when jobs may have changed, by any context of the coordinator, and by any process if the store says so.
final class JobListener: @unchecked Sendable {
    // @unchecked Sendable: the references are set in the initialiser, and the objects behind them are thread-safe.
    private let observer: any NSObjectProtocol
    private let reader: Task<Void, Never>

    init(_ coordinator: NSPersistentStoreCoordinator, _ bell: JobBell) {
        observer = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: coordinator,
            queue: nil
        ) { _ in bell.ring() }
        // This context has no objects, so that a merge costs it little.
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.automaticallyMergesChangesFromParent = true
        var messages = context.changes.makeAsyncIterator()
        reader = Task {
            while let message = await messages.next() {
                if message.affectsEverything || message.insertedObjectIDs.contains(where: Self.isOfJobs)
                    || message.updatedObjectIDs.contains(where: Self.isOfJobs)
                {
                    bell.ring()
                }
            }
            // The context lives as long as this task reads.
            _ = context
        }
    }

    deinit { stop() }

    func stop() {
        NotificationCenter.default.removeObserver(observer)
        reader.cancel()
    }

    private static func isOfJobs(_ id: NSManagedObjectID) -> Bool {
        var entity: NSEntityDescription? = id.entity
        while let current = entity {
            if current.name == QueuedJob.entityName || current.name == "JobQueueState" { return true }
            entity = current.superentity
        }
        return false
    }
}
