/// The queue that a context's blocks run on.
///
/// ```swift
/// let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
/// context.persistentStoreCoordinator = coordinator
/// ```
public enum NSManagedObjectContextConcurrencyType: UInt, Sendable {
    /// A serial queue that belongs to the context.
    case privateQueueConcurrencyType = 1
    /// The main queue.
    case mainQueueConcurrencyType = 2
}

extension NSManagedObjectContext {
    /// The queue that a context's blocks run on.
    ///
    /// ```swift
    /// let context = NSManagedObjectContext(.privateQueue)
    /// context.persistentStoreCoordinator = coordinator
    /// ```
    public struct ConcurrencyType: RawRepresentable, Hashable, Sendable {
        /// The value in the older spelling.
        public var rawValue: NSManagedObjectContextConcurrencyType

        /// Makes a type from the older spelling.
        ///
        /// - Parameter rawValue: The type, as the older initialiser takes it.
        public init(rawValue: NSManagedObjectContextConcurrencyType) { self.rawValue = rawValue }

        /// A serial queue that belongs to the context.
        public static let privateQueue = ConcurrencyType(rawValue: .privateQueueConcurrencyType)
        /// The main queue.
        public static let mainQueue = ConcurrencyType(rawValue: .mainQueueConcurrencyType)
    }

    /// The time at which the block of ``perform(schedule:_:)`` runs.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// let count = try await worker.perform(schedule: .enqueued) {
    ///     try worker.count(for: NSFetchRequest<Venue>(entityName: "Venue"))
    /// }
    /// ```
    public enum ScheduledTaskType: Hashable, Sendable {
        /// At once if the caller is already inside the context's scope, otherwise in turn; the default.
        case immediate
        /// Always in turn, after all blocks that were submitted before.
        case enqueued
    }
}
