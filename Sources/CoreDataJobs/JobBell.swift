import CoreData
import StrataLocks

/// Wakes a worker that waits for something to happen.
///
/// It counts what has happened. A worker that has found nothing to do waits for a count above the one before its look. So
/// nothing between look and wait is missed.
final class JobBell: Sendable {
    private let rings = WaitingTasks(0)
    private let alarm = Locked<Alarm?>(nil)

    /// The next time at which the bell rings by itself.
    private struct Alarm {
        let time: Date
        let task: Task<Void, Never>
    }

    deinit { alarm.withLock { $0?.task.cancel() } }

    /// How often the bell was rung.
    var count: Int { rings.value }

    func ring() { rings.update { $0 += 1 } }

    /// Waits until the count is above the given one, the clock shows a time, or the task is cancelled.
    func wait(beyond count: Int, until time: Date, by clock: any JobClock) async {
        guard rings.value <= count, clock.now < time else { return }
        setAlarm(time, clock)
        await rings.wait { $0 > count }
    }

    /// Sets the alarm, unless it is set to an earlier time.
    ///
    /// In that case the worker looks once more than needed.
    ///
    /// A busy worker waits after each job. So it would set and clear a timer for each.
    private func setAlarm(_ time: Date, _ clock: any JobClock) {
        alarm.withLock { alarm in
            if let alarm, alarm.time <= time { return }
            alarm?.task.cancel()
            let task = Task { [weak self] in
                try? await clock.sleep(until: time)
                if !Task.isCancelled { self?.ring(at: time) }
            }
            alarm = Alarm(time: time, task: task)
        }
    }

    private func ring(at time: Date) {
        alarm.withLock { if $0?.time == time { $0 = nil } }
        ring()
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
