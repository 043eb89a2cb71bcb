/// A message about changes in the stores of a context, from ``NSManagedObjectContext/changes``.
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
    /// Whether anything may have changed: the context was reset, or more rows have changed than a message can name.
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
    /// The changes that this context saves or merges, as they happen.
    ///
    /// ```swift
    /// let changes = context.changes
    /// let observing = Task { for await message in changes where !message.deletedObjectIDs.isEmpty { print("deleted") } }
    /// observing.cancel()
    /// ```
    ///
    /// A message comes after the context's own save, or after a merge: by then the context shows the changes. If a
    /// context neither follows other contexts (``automaticallyMergesChangesFromParent``) nor merges changes in another
    /// way, it reports its own saves only. Messages come in order. If several come before the loop asks for the next
    /// one, they are combined. A row that changed twice is named once, and a row that was inserted and deleted is named
    /// as deleted. If there are more than 10,000 rows, the message only says so
    /// (``ManagedObjectChanges/affectsEverything``).
    ///
    /// Each loop observes for itself, from its start (more exactly, from `makeAsyncIterator()`), and takes no thread.
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
        /// The sequence does not throw.
        public typealias Failure = Never

        private final class Observed: Sendable {
            weak let context: NSManagedObjectContext?

            init(_ context: NSManagedObjectContext) { self.context = context }
        }

        private let observed: Observed

        init(_ context: NSManagedObjectContext) { observed = Observed(context) }

        /// Starts to observe.
        ///
        /// - Returns: A new observer, for one task.
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

            /// Returns the next message; waits if there is none yet.
            ///
            /// - Returns: `nil` after the context was released or the task was cancelled.
            public mutating func next() async -> ManagedObjectChanges? { await feed.next() }
        }
    }
}
