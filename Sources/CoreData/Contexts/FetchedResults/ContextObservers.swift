import Synchronization

/// What one event of a context changed, as those see it who follow results.
///
/// Lives for the end of one event, on the context's queue.
struct ContextEvent {
    /// All objects that were inserted, changed, deleted or refreshed.
    let objects: [NSManagedObject]
    /// Changes that were merged of objects which the context has not registered.
    let unregistered: [ChangeMessage.Change]
    /// The roots of the entities of objects, other than new ones, that changed in any way.
    private(set) var changedRoots: Set<Int> = []
    /// The same, without those of which only to-many relationships changed.
    private(set) var changedRowRoots: Set<Int> = []

    /// Must be made before the objects' event ends.
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

/// Who follows a context: controllers of fetched results, live queries, and feeds of changes.
///
/// Owned by the context alone, so that its end ends the live queries. Holds nobody who follows.
final class ContextObservers: @unchecked Sendable {
    // @unchecked Sendable: `controllers` and `unregistered` are touched only inside the context's scope, the rest is
    // locked.

    private struct Controller {
        weak var tracker: ResultsTracker?
    }

    private struct Query {
        weak var query: LiveQuery?
    }

    private struct Feed {
        weak var feed: ChangeFeed?
    }

    private var controllers: [Controller] = []
    /// Merged changes of the current event whose objects the context does not have.
    private var unregistered: [ChangeMessage.Change] = []
    private let queries = Mutex<[Query]>([])
    private let feeds = Mutex<[Feed]>([])

    init() {}

    deinit {
        for entry in queries.withLock({ $0 }) { entry.query?.finish() }
        for entry in feeds.withLock({ $0 }) { entry.feed?.finish() }
    }

    // MARK: - Controllers

    func add(_ tracker: ResultsTracker) {
        controllers.removeAll { $0.tracker == nil }
        controllers.append(Controller(tracker: tracker))
    }

    /// Notes a merged change of an object that the context does not have, and that no event will tell of.
    func noteUnregistered(_ change: ChangeMessage.Change) {
        guard !controllers.isEmpty else { return }
        unregistered.append(change)
    }

    /// What to tell the controllers of the event that ends; `nil` for nothing.
    ///
    /// Called before the objects' event ends.
    func takeEvent(_ objects: [NSManagedObject]) -> ContextEvent? {
        guard !controllers.isEmpty, !objects.isEmpty || !unregistered.isEmpty else { return nil }
        defer { unregistered = [] }
        return ContextEvent(objects, unregistered: unregistered)
    }

    /// Tells the controllers of an event.
    func eventEnded(_ event: ContextEvent) {
        for controller in controllers { controller.tracker?.eventEnded(event) }
    }

    /// Tells the controllers that the context has forgotten all objects.
    func contextWasReset() {
        unregistered = []
        for controller in controllers { controller.tracker?.contextWasReset() }
        for entry in feeds.withLock({ $0 }) { entry.feed?.note(nil) }
    }

    /// Tells all who follow that the stores have changed, when nobody knows in what.
    func storesMayHaveChanged() {
        for controller in controllers { controller.tracker?.storesMayHaveChanged() }
        for entry in feeds.withLock({ $0 }) { entry.feed?.note(nil) }
    }

    // MARK: - Feeds

    /// Lets a feed know what the context saves and merges, until the context ends.
    ///
    /// Any thread may call this.
    func add(_ feed: ChangeFeed) {
        feeds.withLock { feeds in
            feeds.removeAll { $0.feed == nil }
            feeds.append(Feed(feed: feed))
        }
    }

    /// Whether anybody wants to know what the context saves and merges.
    var hasFeeds: Bool { feeds.withLock { $0.contains { $0.feed != nil } } }

    /// Tells the feeds of changes that the context has saved or merged.
    func committed(_ message: ChangeMessage) {
        for entry in feeds.withLock({ $0 }) { entry.feed?.note(message) }
    }

    // MARK: - Live queries

    /// Lets the end of the context end a query.
    ///
    /// Any thread may call this.
    func add(_ query: LiveQuery) {
        queries.withLock { queries in
            queries.removeAll { $0.query == nil }
            queries.append(Query(query: query))
        }
    }

    /// Tells the live queries of changes that were made outside this coordinator.
    func storesChangedElsewhere(_ message: ChangeMessage) {
        for entry in queries.withLock({ $0 }) { entry.query?.note(message) }
    }
}
