import StrataLocks

/// The changes of one event of a context, in the form for observers of results.
///
/// It lives until the end of the event has been handled, on the context's queue.
package struct ContextEvent {
    /// All objects that were inserted, changed, deleted or refreshed.
    package let objects: [NSManagedObject]
    /// Merged changes of objects that the context has not registered.
    package let unregistered: [ChangeMessage.Change]
    /// The roots of the entities whose objects changed in any way, apart from new objects.
    package private(set) var changedRoots: Set<Int> = []
    /// The same roots, without those whose objects changed only in to-many relationships.
    package private(set) var changedRowRoots: Set<Int> = []

    /// Makes the description of an event; this must happen before the objects' event ends.
    init(_ objects: [NSManagedObject], unregistered: [ChangeMessage.Change]) {
        self.objects = objects
        self.unregistered = unregistered
        for object in objects where object.flags.isDisjoint(with: .eventInserted) {
            let root = object.layout.rootNumber
            changedRoots.insert(root)
            let onlyRelationships =
                object.flags.isDisjoint(with: [.eventRefreshed, .eventDeleted]) && object.extras?.eventBase == nil
            if !onlyRelationships { changedRowRoots.insert(root) }
        }
    }
}

/// The observers of a context: of values, controllers of fetched results, live queries, and feeds of changes.
///
/// Only the context owns this object, so the end of the context ends the live queries. It keeps no observer alive.
package final class ContextObservers: @unchecked Sendable {
    // @unchecked Sendable: `values`, `controllers` and `unregistered` are touched only inside the context's scope. The others
    // are locked.

    private struct Controller {
        weak var observer: EventObserver?
    }

    private struct Query {
        weak var observer: CommitObserver?
    }

    private struct Feed {
        weak var feed: ChangeFeed?
    }

    /// The observer of values for a layer above; `nil` if there is none.
    // Unchecked: each change of a relationship looks here, and no access lasts while other code runs.
    @exclusivity(unchecked) package var values: ValueObserver?
    private var controllers: [Controller] = []
    /// The merged changes of the current event whose objects the context does not have.
    private var unregistered: [ChangeMessage.Change] = []
    /// The observers that any thread may add.
    private struct Shared {
        var queries: [Query] = []
        var feeds: [Feed] = []
    }

    private let shared = Locked(Shared())
    private var queries: [Query] { shared.withLock { $0.queries } }
    private var feeds: [Feed] { shared.withLock { $0.feeds } }

    init() {}

    deinit {
        let (queries, feeds) = shared.withLock { ($0.queries, $0.feeds) }
        for entry in queries { entry.observer?.contextEnded() }
        for entry in feeds { entry.feed?.finish() }
    }

    // MARK: - Controllers

    package func add(_ observer: EventObserver) {
        controllers.removeAll { $0.observer == nil }
        controllers.append(Controller(observer: observer))
    }

    /// Notes a merged change of an object that the context does not have, since no event will report it.
    func addUnregistered(_ change: ChangeMessage.Change) {
        guard !controllers.isEmpty else { return }
        unregistered.append(change)
    }

    /// The event to report to the controllers when it ends; `nil` if there is nothing to report.
    ///
    /// It must be called before the objects' event ends.
    func makeEvent(of objects: [NSManagedObject]) -> ContextEvent? {
        guard !controllers.isEmpty, !objects.isEmpty || !unregistered.isEmpty else { return nil }
        defer { unregistered = [] }
        return ContextEvent(objects, unregistered: unregistered)
    }

    /// Reports an event to the controllers.
    func eventEnded(_ event: ContextEvent) {
        for controller in controllers { controller.observer?.eventEnded(event) }
    }

    /// Notifies the controllers and the feeds that the context has forgotten all objects.
    func contextWasReset() {
        unregistered = []
        for controller in controllers { controller.observer?.contextWasReset() }
        for entry in feeds { entry.feed?.add(nil) }
    }

    /// Notifies the controllers and the feeds that the stores have changed in an unknown way.
    func storesMayHaveChanged() {
        for controller in controllers { controller.observer?.storesMayHaveChanged() }
        for entry in feeds { entry.feed?.add(nil) }
    }

    // MARK: - Feeds

    /// Adds a feed, which receives what the context saves and merges until the context ends.
    ///
    /// Any thread may call this.
    func add(_ feed: ChangeFeed) {
        let held = shared.withLock { shared in
            // No feed ends here, where the lock is taken: all are held until it is free.
            let held = shared.feeds.compactMap(\.feed)
            shared.feeds.removeAll { $0.feed == nil }
            shared.feeds.append(Feed(feed: feed))
            return held
        }
        withExtendedLifetime(held) {}
    }

    /// Whether any feed wants to know what the context saves and merges.
    var hasFeeds: Bool { !shared.withLock { $0.feeds.compactMap(\.feed) }.isEmpty }

    /// Reports changes that the context has saved or merged to the feeds.
    func committed(_ message: ChangeMessage) {
        for entry in feeds { entry.feed?.add(message) }
    }

    // MARK: - Live queries

    /// Adds a live query, which ends when the context ends.
    ///
    /// Any thread may call this.
    package func add(_ observer: CommitObserver) {
        let held = shared.withLock { shared in
            // As for feeds.
            let held = shared.queries.compactMap(\.observer)
            shared.queries.removeAll { $0.observer == nil }
            shared.queries.append(Query(observer: observer))
            return held
        }
        withExtendedLifetime(held) {}
    }

    /// Reports changes that were made outside this coordinator to the live queries.
    func storesChangedElsewhere(_ message: ChangeMessage) {
        for entry in queries { entry.observer?.committed(message) }
    }
}
