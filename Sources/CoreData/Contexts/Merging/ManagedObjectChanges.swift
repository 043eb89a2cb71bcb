/// What has changed in the stores of a context, as ``NSManagedObjectContext/changes`` tells it.
///
/// Any thread may use it.
///
/// See <doc:FollowingChanges>.
///
/// ```swift
/// var messages = context.changes.makeAsyncIterator()
/// venue.price += 1
/// try context.save()
/// let message = await messages.next()
/// print(message?.updatedObjectIDs.count ?? 0)
/// ```
public struct ManagedObjectChanges: Sendable {
    /// The IDs of objects that are new.
    public let insertedObjectIDs: Set<NSManagedObjectID>
    /// The IDs of objects whose stored values have changed.
    public let updatedObjectIDs: Set<NSManagedObjectID>
    /// The IDs of objects that were deleted.
    public let deletedObjectIDs: Set<NSManagedObjectID>
    /// Whether anything may have changed: the context was reset, or there was more than a message names.
    ///
    /// The sets are empty then.
    public let affectsEverything: Bool

    init(_ message: ChangeMessage) {
        insertedObjectIDs = Set(message.inserted.map(\.id))
        updatedObjectIDs = Set(message.updated.map(\.id))
        deletedObjectIDs = Set(message.deleted.map(\.id))
        affectsEverything = false
    }

    private init() {
        insertedObjectIDs = []
        updatedObjectIDs = []
        deletedObjectIDs = []
        affectsEverything = true
    }

    /// Anything may have changed.
    static let everything = ManagedObjectChanges()
}

extension NSManagedObjectContext {
    /// What this context saves, and what it merges of others' saves, as it happens.
    ///
    /// ```swift
    /// let changes = context.changes
    /// let observing = Task { for await message in changes where !message.deletedObjectIDs.isEmpty { print("deleted") } }
    /// observing.cancel()
    /// ```
    ///
    /// A message comes when the context shows what it tells: after its own save, or after a merge. So a context that
    /// neither follows others (``automaticallyMergesChangesFromParent``) nor is given their changes tells of its own
    /// saves only. Messages come in order. Those that come while nobody asks for the next one are told as one: a row
    /// that changed twice is named once, one that came and went as deleted, and of more than 10,000 rows only that
    /// there were so many (``ManagedObjectChanges/affectsEverything``).
    ///
    /// Each loop observes for itself, from its start (from `makeAsyncIterator()`, to be exact), and takes no thread.
    /// The sequence does not keep the context alive. It ends when the context goes away, and when the task is
    /// cancelled.
    ///
    /// May be read on any thread.
    public var changes: Changes { Changes(self) }

    /// See ``NSManagedObjectContext/changes``.
    ///
    /// ```swift
    /// let changes = context.changes
    /// let observing = Task { for await message in changes { print(message.insertedObjectIDs) } }
    /// observing.cancel()
    /// ```
    public struct Changes: AsyncSequence, Sendable {
        /// One message.
        public typealias Element = ManagedObjectChanges
        /// It does not throw.
        public typealias Failure = Never

        private final class Observed: Sendable {
            weak let context: NSManagedObjectContext?

            init(_ context: NSManagedObjectContext) { self.context = context }
        }

        private let observed: Observed

        init(_ context: NSManagedObjectContext) { observed = Observed(context) }

        /// Starts to observe.
        ///
        /// - Returns: An observer of its own, for one task.
        public func makeAsyncIterator() -> AsyncIterator {
            let feed = ChangeFeed()
            if let context = observed.context { context.observers.add(feed) } else { feed.finish() }
            return AsyncIterator(feed: feed)
        }

        /// One observer.
        ///
        /// Use it in one task.
        ///
        /// ```swift
        /// var messages = context.changes.makeAsyncIterator()
        /// context.delete(venue)
        /// try context.save()
        /// print(await messages.next()?.deletedObjectIDs ?? [])
        /// ```
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let feed: ChangeFeed

            /// The next message; waits for one.
            ///
            /// - Returns: `nil` when the context has gone or the task was cancelled.
            public mutating func next() async -> ManagedObjectChanges? { await feed.next() }
        }
    }
}
