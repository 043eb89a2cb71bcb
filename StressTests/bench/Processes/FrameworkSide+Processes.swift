import CoreData
import Synchronization

extension FrameworkSide {
    // MARK: - From a commit to another process

    private static func clockPath(_ folder: String) -> String { folder + "/framework-clock.sqlite" }

    static var sharing: [AnyHashable: Any] {
        [NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }

    /// The time from just before each save in another process until an object of this process shows the change.
    static func remoteChanges(in folder: String) throws -> Sample {
        let path = clockPath(folder)
        defer { removeDatabase(at: path) }
        let stack = try Stack(path, model, options: sharing)
        defer { stack.close() }
        let times = try remoteChanges(stack) { try BenchChild(.frameworkWriter, in: folder) }
        return Sample(duration: .nanoseconds(Int64(times.reduce(0, +))), checksum: times.count)
    }

    /// Measures the same on a stack.
    ///
    /// - Parameters:
    ///   - stack: The stack that follows the changes; its store is empty.
    ///   - start: Starts the other process, which runs ``writeWhenAsked(_:)``.
    /// - Returns: The time of each save, in nanoseconds.
    /// - Throws: ``BenchError`` if a change does not arrive; errors of the store.
    static func remoteChanges(_ stack: Stack, _ start: () throws -> BenchChild) throws -> [Double] {
        let context = stack.context
        let venue = try context.performAndWait {
            let venue = Venue(context: context)
            venue.name = "Clock"
            venue.price = 1
            venue.distance = 0
            venue.createdAt = Date()
            venue.favorite = false
            try context.save()
            return Unchecked(venue)
        }
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        let child = try start()
        let times = Mutex<[Double]>([])
        let arrival = DispatchSemaphore(value: 0)
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didMergeChangesObjectIDsNotification,
            object: context,
            queue: nil
        ) { _ in
            // This runs on the context's queue.
            let stamp = venue.value.distance
            guard stamp > 0 else { return }
            times.withLock { $0.append(sharedClock() - stamp) }
            arrival.signal()
        }
        defer { NotificationCenter.default.removeObserver(token) }
        for _ in 0..<Scale.remoteChanges {
            try child.ask()
            guard arrival.wait(timeout: .now() + 10) == .success else { throw BenchError("A change was not merged") }
        }
        try child.end()
        follower.stop()
        return times.withLock { $0 }
    }

    static func writeWhenAsked(in folder: String) throws {
        try writeWhenAsked(try Stack(clockPath(folder), model, options: sharing))
    }

    /// Commits the time whenever it is asked to.
    static func writeWhenAsked(_ stack: Stack) throws {
        let context = stack.context
        let venue = try context.performAndWait {
            Unchecked(try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")).first)
        }
        try BenchChild.isReady()
        while try BenchChild.isAsked() {
            try context.performAndWait {
                venue.value?.distance = sharedClock()
                try context.save()
            }
        }
    }

    /// Carries an object of a context between blocks of that context.
    private struct Unchecked<Value>: @unchecked Sendable {
        // @unchecked Sendable: it is used inside the scope of one context only.
        let value: Value
        init(_ value: Value) { self.value = value }
    }
}
