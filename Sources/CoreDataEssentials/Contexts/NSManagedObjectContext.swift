import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import Synchronization

/// A unit of work: a set of objects, and the changes made to them since they were fetched or saved.
///
/// See <doc:Concurrency>.
///
/// ```swift
/// let context = container.newBackgroundContext()
/// try await context.perform {
///     let request = NSFetchRequest<Venue>(entityName: "Venue")
///     request.predicate = NSPredicate(format: "price < %d", 20)
///     for venue in try context.fetch(request) { venue.price += 1 }
///     try context.save()
/// }
/// ```
///
/// A context is confined to its queue: use its members only inside ``perform(_:)``, `performAndWait(_:)` or
/// ``perform(schedule:_:)`` of this context. The exceptions are those three methods, ``fetch(_:progress:)`` and
/// ``rows(for:batchSize:)``, and the properties ``concurrencyType``, ``name``, ``parent``,
/// ``persistentStoreCoordinator``, ``userInfo`` and ``unownedExecutor``. A context of the main queue may also be used
/// directly on that queue. Making or dropping a context costs some microseconds and no thread.
open class NSManagedObjectContext: NSObject, @unchecked Sendable {
    // @unchecked Sendable: stored state is touched only inside the context's scope, and only one thread at a time is
    // in it. State that may be read elsewhere is constant or behind `shared`.

    /// State that any thread may read.
    private struct Shared {
        var name: String?
        var coordinator: NSPersistentStoreCoordinator?
        var parent: NSManagedObjectContext?
        var generation: PinnedGeneration?
    }

    private let shared: Locked<Shared>
    /// Whether a name was ever set.
    ///
    /// Events ask for it often.
    private let isNamed = Atomic(false)
    /// The storage of ``readsFromReplicas``.
    final let bearsReplicas = Atomic(false)
    /// The queue that the context's blocks run on.
    final let contextQueue: ContextQueue

    /// Whether the context has its own queue or belongs to the main queue.
    ///
    /// It never changes, and may be read on any thread.
    public let concurrencyType: NSManagedObjectContextConcurrencyType

    // MARK: - Registered objects

    /// The objects, by key.
    // Unchecked, like the properties below: it is used for every to-one that is read and every fault that is
    // realised. It is confined to one thread at a time, and no access lasts while other code runs.
    @exclusivity(unchecked) final var identityMap = IdentityMap()
    /// The rows that reads have brought before they were asked for.
    @exclusivity(unchecked) final var rowsInAdvance = RowsInAdvance()
    /// The version of the stores that the context sees: the newest, or the one that it is pinned to.
    @exclusivity(unchecked) final var pinnedVersion = PinnedVersion()
    /// The coordinator, for code inside the scope; unlike ``persistentStoreCoordinator`` it takes no lock.
    package final var coordinator: NSPersistentStoreCoordinator? {
        didSet { instrumentation = coordinator.map { Unmanaged.passUnretained($0.instrumentation) } }
    }
    /// The coordinator's instrumentation, which lives as long as the coordinator.
    ///
    /// It is unmanaged, so that frequent use counts no references.
    final private(set) var instrumentation: Unmanaged<Instrumentation>?
    /// The block that runs and may lock rows; `nil` if it may not.
    package final var lockingBlock: (any LockingBlock)?
    /// The watch of the reads of the block that runs; `nil` if it is not watched.
    @exclusivity(unchecked) package final var blockWatch: (any ReadWatch)?
    /// The property that is being read, while a block is watched.
    package final var lazyRead: LazyRead?
    /// The number of blocks until one is watched without rules; below 0 at first.
    final var blocksUntilWatch = -1
    /// Whether the coordinator counts the context among those that have no parent.
    private final var countsAsRoot = false
    /// Whether the coordinator already had its maximum number of contexts when it was set on this one.
    final var isOneTooMany = false
    /// The coordinator's model.
    @exclusivity(unchecked) final var contextModel = ContextModel()
    /// The links to the parent and to the children.
    final let tree = TreeLink()

    // MARK: - Unsaved work

    /// The changes to be saved, and the changes of the current event.
    // Unchecked for the same reason as `identityMap`: each change of an object enters it.
    @exclusivity(unchecked) final var changeTracker = ChangeTracker()
    /// The reads that have failed.
    final var failedReads = FailedReads()
    /// The set of an ordered relationship that was made last, until the block ends.
    ///
    /// It has all members. A loop that asks for it again and again would make it anew each time.
    final var lastOrderedSet: RelationshipOrderedSet?
    /// The changes of the current event, for undo.
    @exclusivity(unchecked) final var undoLog = UndoLog()
    /// The progress of the current save.
    final var saving = SaveState()
    /// Stops the fetch that an asynchronous request makes on this queue after other saves have kept overtaking it.
    final var fetchControl: FetchControl?
    /// The changes from elsewhere that this context has not merged yet.
    final let inbox = MergeInbox()
    /// The observers of the results of fetches in this context.
    package final let observers = ContextObservers()

    // MARK: - Settings

    // Unchecked for the same reason as `identityMap`: a fault that is realised asks how old its row may be.
    @exclusivity(unchecked) final var settings = ContextSettings()

    /// How a save treats conflicts.
    ///
    /// Default ``NSMergePolicy/error``: the save throws.
    ///
    /// The value must be an ``NSMergePolicy``; any other value stops the program. Like all settings, it may be set on
    /// any thread as long as the context has no objects.
    ///
    /// ```swift
    /// context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
    /// ```
    open var mergePolicy: Any {
        get { settings.mergePolicy }
        set {
            assertCurrentOrUnused(#function)
            guard let policy = newValue as? NSMergePolicy else {
                fatalError("CoreData: mergePolicy takes an NSMergePolicy, not \(Swift.type(of: newValue)).")
            }
            settings.mergePolicy = policy
        }
    }

    /// How a save into ``parent`` treats objects that the parent has changed or deleted since this context read them.
    ///
    /// Default nil, as in Apple's framework: the last save wins, property by property, and no conflict is reported.
    /// With a policy, the objects of such conflicts are treated as ``mergePolicy`` treats conflicts with a store: an
    /// error policy makes the save throw 133020 with the conflicts. Without a parent the property has no effect.
    ///
    /// See <doc:Trees>.
    ///
    /// ```swift
    /// let draft = NSManagedObjectContext(.privateQueue)
    /// draft.parent = container.viewContext
    /// draft.parentConflictPolicy = NSMergePolicy.error
    /// ```
    public final var parentConflictPolicy: NSMergePolicy? {
        get { settings.parentConflictPolicy }
        set { settings.parentConflictPolicy = newValue }
    }

    /// Whether unchanged objects are kept as long as the context lives.
    ///
    /// Default false: an unchanged object is released when no code holds it.
    open var retainsRegisteredObjects: Bool {
        get { settings.retainsRegisteredObjects }
        set { settings.retainsRegisteredObjects = newValue }
    }

    /// Whether delete rules are applied at the end of the event (the default) or only during a save.
    open var propagatesDeletesAtEndOfEvent: Bool {
        get { settings.propagatesDeletesAtEndOfEvent }
        set { settings.propagatesDeletesAtEndOfEvent = newValue }
    }

    /// Whether an object whose row has gone counts as deleted, with properties that read nil, zero or empty.
    ///
    /// Default true. See ``inaccessibleFaultHandler`` for false.
    open var shouldDeleteInaccessibleFaults: Bool {
        get { settings.shouldDeleteInaccessibleFaults }
        set { settings.shouldDeleteInaccessibleFaults = newValue }
    }

    /// A handler that is called when a fault's row has gone and ``shouldDeleteInaccessibleFaults`` is false.
    ///
    /// Apple's framework raises an exception in this case, which would end a server. Here the property reads nil,
    /// zero or empty after the handler has run. Throwing calls such as ``existingObject(with:)`` throw 133000 in any
    /// case.
    public final var inaccessibleFaultHandler: ((NSManagedObject) -> Void)? {
        get { settings.inaccessibleFaultHandler }
        set { settings.inaccessibleFaultHandler = newValue }
    }

    /// The number of seconds for which a fault accepts a cached row.
    ///
    /// Default -1: cached rows are accepted for ever. With 0, every fault reads the store.
    ///
    /// ```swift
    /// context.stalenessInterval = 0  // each fault is read from the store
    /// ```
    open var stalenessInterval: TimeInterval {
        get { settings.stalenessInterval }
        set { settings.stalenessInterval = newValue }
    }

    /// The undo manager that registers changes; all changes of one event are one undo step.
    ///
    /// Default nil: changes are not registered. A context with an undo manager loads a to-many relationship before it
    /// changes it.
    ///
    /// ```swift
    /// context.undoManager = UndoManager()
    /// context.undoManager?.levelsOfUndo = 20
    /// ```
    open var undoManager: UndoManager? {
        get { undoLog.manager }
        set {
            undoLog.manager = newValue
            undoManager?.follow(self)
        }
    }

    /// The author of this context's saves, for the persistent history.
    ///
    /// Default nil.
    ///
    /// ```swift
    /// let context = container.newBackgroundContext()
    /// context.transactionAuthor = "importer"  // the history says so of each save
    /// ```
    open var transactionAuthor: String? {
        get { settings.transactionAuthor }
        set { settings.transactionAuthor = newValue }
    }

    /// A dictionary for values of the program.
    ///
    /// It may be used from any thread, but no lock protects it.
    ///
    /// ```swift
    /// context.userInfo["request"] = "GET /venues"
    /// ```
    public let userInfo = NSMutableDictionary()

    /// A label for messages and the history.
    ///
    /// Default nil. It may be read and set on any thread.
    ///
    /// ```swift
    /// let context = container.newBackgroundContext()
    /// context.name = "GET /venues"  // instruments, logs and messages name it
    /// ```
    open var name: String? {
        get { isNamed.load(ordering: .acquiring) ? shared.withLock { $0.name } : nil }
        set {
            shared.withLock { $0.name = newValue }
            isNamed.store(true, ordering: .releasing)
        }
    }

    /// The same as ``name``, but without a call if no name was ever set, since each event asks for it.
    @inline(__always)
    final var nameIfAny: String? { isNamed.load(ordering: .acquiring) ? name : nil }

    /// The coordinator that the context fetches from and saves to; a child has that of its root.
    ///
    /// It may be read on any thread. Set it once, before the context is used, and do not set it for a child.
    ///
    /// ```swift
    /// let context = NSManagedObjectContext(.privateQueue)
    /// context.persistentStoreCoordinator = coordinator
    /// ```
    open var persistentStoreCoordinator: NSPersistentStoreCoordinator? {
        get { shared.withLock { $0.coordinator } }
        set {
            guard newValue !== coordinator else { return }
            checkCoordinator()
            coordinator?.follow(self, false)
            use(newValue, nil)
        }
    }

    /// The context that this one fetches from and saves to; `nil`, the default, for a context on the coordinator.
    ///
    /// Fetches see the parent's unsaved changes. A save moves changes one level up, into the parent; only a save of
    /// the root writes to the stores. The property may be read on any thread. Set it once, before the context is
    /// used, to a context that has a coordinator or a parent; anything else stops the program. The child keeps its
    /// parent alive.
    ///
    /// See <doc:Trees>.
    ///
    /// ```swift
    /// let draft = NSManagedObjectContext(.privateQueue)
    /// draft.parent = container.viewContext
    /// ```
    open var parent: NSManagedObjectContext? {
        get { shared.withLock { $0.parent } }
        set {
            guard newValue !== upward?.parent else { return }
            checkParent(newValue)
            upward?.parent.downward.follow(self, false)
            use(newValue?.persistentStoreCoordinator, newValue)
            newValue?.downward.markAsParent()
        }
    }

    private func use(_ newCoordinator: NSPersistentStoreCoordinator?, _ parent: NSManagedObjectContext?) {
        contextQueue.setDepth(parent.map { $0.contextQueue.depth + 1 } ?? 0)
        shared.withLock { shared in
            shared.coordinator = newCoordinator
            shared.parent = parent
        }
        tree.upward = parent.map { ParentLink($0) }
        coordinator?.gate.removeContext(isRoot: countsAsRoot)
        countsAsRoot = parent == nil
        isOneTooMany = newCoordinator?.gate.addContext(isRoot: countsAsRoot) == true
        coordinator = newCoordinator
        followParent(inbox.isFollowing)
        contextModel = ContextModel(newCoordinator?.frozenModel)
        identityMap.use(contextModel.frozen)
        pinnedVersion.forgetSeen()
        rowsInAdvance.forgetPrefetches()
    }

    /// Lets other threads know which version the context is pinned to.
    final func share(_ generation: PinnedGeneration?) {
        // The former version is released outside the lock, since a transaction may end with it.
        let former = shared.withLock { shared in
            defer { shared.generation = generation }
            return shared.generation
        }
        _ = consume former
    }

    /// The version that the context is pinned to; `nil` if it sees the newest.
    ///
    /// Any thread may read it.
    package final var sharedGeneration: PinnedGeneration? { shared.withLock { $0.generation } }

    // MARK: - Making

    /// Makes a context with its own queue, or a context of the main queue.
    ///
    /// ```swift
    /// let child = NSManagedObjectContext(.privateQueue)
    /// child.parent = context
    /// ```
    ///
    /// - Parameter type: ``ConcurrencyType/privateQueue`` or ``ConcurrencyType/mainQueue``.
    public convenience init(_ type: ConcurrencyType) {
        self.init(concurrencyType: type.rawValue)
    }

    /// Makes a context with its own queue, or a context of the main queue.
    ///
    /// ```swift
    /// let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
    /// context.persistentStoreCoordinator = coordinator
    /// ```
    ///
    /// - Parameter concurrencyType: The kind of queue that the context is confined to.
    public init(concurrencyType: NSManagedObjectContextConcurrencyType) {
        self.concurrencyType = concurrencyType
        shared = Locked(Shared())
        contextQueue = ContextQueue(isMain: concurrencyType == .mainQueueConcurrencyType)
        super.init()
        LiveContexts.enter(self)
    }

    deinit {
        changeTracker.forgetAll()
        notifyStoresOfReset()
        for table in identityMap.tables {
            // Only an object that other code still holds can be asked for its ID, and it cannot make the ID without
            // us.
            table?.forEachHeldElsewhere { $0.knowID(from: self) }
            table?.forEach { $0.outliveContext() }
        }
        identityMap.temporaryObjects.forEach { $0.outliveContext() }
        LiveContexts.leave(self)
        coordinator?.gate.removeContext(isRoot: countsAsRoot)
    }

    /// Decides how to treat a fault whose row has gone.
    ///
    /// The context calls this method. A subclass may override it to react.
    ///
    /// - Parameters:
    ///   - fault: The object whose row has gone.
    ///   - oid: Its ID.
    ///   - property: The property that was read; `nil` if it was no particular one.
    /// - Returns: Whether the object shall count as deleted, with properties that read nil, zero or empty.
    open func shouldHandleInaccessibleFault(
        _ fault: NSManagedObject,
        for oid: NSManagedObjectID,
        triggeredByProperty property: NSPropertyDescription?
    ) -> Bool { shouldDeleteInaccessibleFaults }

    /// The type, the name, and the parent or the coordinator's stores.
    ///
    /// Inside the context's scope the text also gives the number of objects and of unsaved changes. The property may
    /// be read on any thread.
    open override var description: String {
        var parts = [describedName]
        if let parent {
            parts.append("child of \(parent.describedName)")
        } else {
            let stores = persistentStoreCoordinator?.persistentStores.map(\.description)
            parts.append(stores.map { $0.isEmpty ? "no stores" : $0.joined(separator: ", ") } ?? "no coordinator")
        }
        if isInScope {
            let flags = changeTracker.objects.map(\.flags)
            let inserted = flags.count { $0.contains(.inserted) && !$0.contains(.deleted) }
            let updated = flags.count { $0.intersection(.changed) == .updated }
            let deleted = flags.count { $0.contains(.deleted) && !$0.contains(.inserted) }
            parts.append("\(inserted) inserted, \(updated) updated, \(deleted) deleted")
            parts.append("\(identityMap.storedCount + identityMap.temporaryObjects.count) registered")
        }
        return "<\(Swift.type(of: self)): \(parts.joined(separator: "; "))>"
    }

    /// The context's name in messages.
    package final var describedName: String {
        let kind = concurrencyType == .mainQueueConcurrencyType ? "main-queue context" : "private-queue context"
        if let name { return "\(kind) \"\(name)\"" }
        return "\(kind) \(ObjectIdentifier(self).hashValue.magnitude % 0xFFFF)"
    }

    /// Whether the context has anything to save.
    ///
    /// Changes of the current event count.
    ///
    /// The result may be true although a save would write nothing, for example after a value was set back.
    ///
    /// ```swift
    /// venue.price += 1
    /// if context.hasChanges { try context.save() }
    /// ```
    ///
    /// - Complexity: O(number of changed objects) at most; the first object with changes ends the search.
    open var hasChanges: Bool {
        assertCurrent(#function)
        return changeTracker.objects.contains { $0.hasChanges }
    }

    /// Whether a save would write anything: new objects that are deleted do not count.
    ///
    /// - Complexity: O(number of changed objects) at most.
    package final var hasChangesForStores: Bool {
        changeTracker.objects.contains { $0.hasChanges && !$0.flags.isSuperset(of: [.inserted, .deleted]) }
    }

    /// The objects that the next save inserts.
    ///
    /// O(number of changes).
    ///
    /// ```swift
    /// _ = Venue(context: context)
    /// print(context.insertedObjects.count)
    /// ```
    open var insertedObjects: Set<NSManagedObject> {
        assertCurrent(#function)
        return changedObjects { $0.intersection([.inserted, .deleted]) == .inserted }
    }

    /// The stored objects that have changes, without the objects to be deleted.
    ///
    /// The set may contain objects whose values were set back. O(number of changes).
    ///
    /// ```swift
    /// venue.price += 1
    /// print(context.updatedObjects.contains(venue))
    /// ```
    open var updatedObjects: Set<NSManagedObject> {
        assertCurrent(#function)
        return changedObjects { $0.intersection(.changed) == .updated }
    }

    /// The stored objects that the next save deletes, and objects whose deletion elsewhere was merged in this event.
    ///
    /// O(number of changes).
    ///
    /// ```swift
    /// context.delete(venue)
    /// print(context.deletedObjects.contains(venue))
    /// ```
    open var deletedObjects: Set<NSManagedObject> {
        assertCurrent(#function)
        return changedObjects { $0.intersection([.inserted, .deleted]) == .deleted }
            .union(changeTracker.recentlyDeleted)
    }

    private func changedObjects(where isWanted: (ObjectFlags) -> Bool) -> Set<NSManagedObject> {
        var result: Set<NSManagedObject> = []
        for object in changeTracker.objects where isWanted(object.flags) { result.insert(object) }
        return result
    }

    /// The objects of the context that code holds or that have changes, and all objects that their loaded values lead
    /// to.
    ///
    /// Objects whose loaded relationships form a ring stay registered until they are refreshed or the context is
    /// reset, as in Apple's framework. There is one exception. When the context has at least 4,096 objects, and twice
    /// as many as after its last check, it releases all unchanged ones that no code holds, rings included. So an
    /// import of any size needs no refreshes.
    ///
    /// With ``retainsRegisteredObjects`` all objects stay. O(number of objects and of their loaded relationships).
    ///
    /// ```swift
    /// let held = try context.fetch(request)
    /// print(context.registeredObjects.count >= held.count)
    /// ```
    open var registeredObjects: Set<NSManagedObject> {
        assertCurrent(#function)
        return Set(reachableObjects())
    }
}

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
