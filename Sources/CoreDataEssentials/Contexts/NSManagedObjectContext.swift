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
/// ``perform(schedule:_:)`` of this context. The exceptions are those three methods and their forms that retry or lock,
/// the methods ``fetch(_:progress:)``, ``rows(for:batchSize:)`` and `results(for:)`, and the properties
/// ``concurrencyType``, ``name``, ``parent``, ``persistentStoreCoordinator``, ``userInfo`` and ``unownedExecutor``. A
/// context of the main queue may also be used directly on that queue. Making or dropping a context costs some
/// microseconds and no thread.
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
    private let isNamed = AtomicCell(false)
    /// Whether the program has submitted a block, or has used the context on the main queue.
    final let isInUse = AtomicCell(false)
    /// The storage of ``readsFromReplicas``.
    final let bearsReplicas = AtomicCell(false)
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
    @exclusivity(unchecked) package final var coordinator: NSPersistentStoreCoordinator? {
        didSet { instrumentation = coordinator.map { Unmanaged.passUnretained($0.instrumentation) } }
    }
    /// The coordinator's instrumentation, which lives as long as the coordinator.
    ///
    /// It is unmanaged, so that frequent use counts no references.
    final private(set) var instrumentation: Unmanaged<Instrumentation>?
    /// The block that runs and may lock rows; `nil` if it may not.
    @exclusivity(unchecked) package final var lockingBlock: (any LockingBlock)?
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
    /// The relationship changes of which a refresh has discarded one side.
    final var discardedSides = DiscardedSides()
    /// The reads that have failed.
    @exclusivity(unchecked) final var failedReads = FailedReads()
    /// The set of an ordered relationship that was made last, until the block ends.
    ///
    /// It has all members. A loop that asks for it again and again would make it anew each time.
    final var lastOrderedSet: RelationshipOrderedSet?
    /// The changes of the current event, for undo.
    @exclusivity(unchecked) final var undoLog = UndoLog()
    /// The progress of the current save.
    final var saving = SaveState()
    /// Stops the fetch that an asynchronous request makes on this queue after other saves have kept overtaking it.
    @exclusivity(unchecked) final var fetchControl: FetchControl?
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
    /// any thread before the context is used, and as long as it has no objects.
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
    public final var userInfo: NSMutableDictionary {
        madeUserInfo.load() ?? madeUserInfo.storeIfNil(NSMutableDictionary())
    }
    /// The dictionary of the program; made when it is first asked for, as most contexts of servers have none.
    private let madeUserInfo = OnceReference<NSMutableDictionary>()

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
        for case let table? in identityMap.tables {
            // All objects of a table are in one store. It makes the ID of an object that other code still holds, if the
            // object is ever asked for it.
            var store: OpenStore?
            table.forEachHeldElsewhere { object in
                if store == nil { store = openStore(at: object.storeIndex) }
                if let store { object.rememberStore(store) } else { object.knowID(from: self) }
            }
            table.forEach { $0.outliveContext() }
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

    /// The new objects that are deleted, of which the next save writes nothing.
    ///
    /// - Complexity: O(number of changed objects).
    package final var discardedObjects: Set<NSManagedObject> {
        changedObjects { $0.isSuperset(of: [.inserted, .deleted]) }
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

    // MARK: - Members that subclasses may override

    // Swift lets a subclass override only what the body of its class declares. The framework itself calls the
    // functions behind these members, except where an addition such as `save(retrying:)` stands for `save()`.

    /// Submits `block` to run inside the context's scope, and returns at once.
    ///
    /// The block never runs directly, not even if the caller is inside the scope. It is one user event: when it has
    /// returned, pending changes are processed, so objects-did-change is posted on this queue. May be called on any
    /// thread. The context lives on until the block has run.
    ///
    /// ```swift
    /// let worker = container.newBackgroundContext()
    /// await worker.perform { print(worker.registeredObjects.count) }
    /// ```
    ///
    /// As on Apple's platforms, the compiler does not check what the block captures. Code from there captures things
    /// that it was given, such as a completion or the payload of a notification. If such a value is not `Sendable`,
    /// then no other code may use it at the same time. In code of an actor, such as the main actor, the compiler takes
    /// the block for a part of the actor, though it runs on the queue of the context. So write `{ @Sendable in … }`
    /// there, or use ``perform(schedule:_:)``, whose block is checked.
    ///
    /// - Parameter block: The block to run.
    open func perform(_ block: @escaping () -> Void) { submitCall(block) }

    /// Saves all changes: to the stores, with one transaction for each store, or from a child into its parent.
    ///
    /// A save of a child writes nothing to a store and leaves temporary IDs as they are; the save of the root does
    /// both. The child's save runs inside the parent's scope, so it waits until the parent has finished what it is
    /// doing. Its cost grows with the number of changes, not with the number of objects that the parent has registered.
    ///
    /// When the save of a context on the coordinator returns, the changes survive the end of the process. When it
    /// throws, all changes are still unsaved, except those in stores that had committed before another one failed
    /// (134040, `persistentStoreIncompleteSave`), or whose commit is in doubt. Changes by `willSave()` stay. The same
    /// save succeeds once the cause is gone.
    ///
    /// If there are no changes, the save posts will-save and did-save with empty sets. It also writes metadata that was
    /// set for stores since the last save (``NSPersistentStoreCoordinator/setMetadata(_:for:)``). That costs next to
    /// nothing. If there are changes, the save writes the metadata of those stores that have changes.
    ///
    /// If the last save ended in doubt (134030 with `NSPersistentStoreSaveInDoubtKey`), the context first asks the
    /// store whether that save was committed. If it was, its changes count as saved, the notifications of a save are
    /// posted for them, and they are not stored a second time.
    ///
    /// Call it inside the context's scope. See <doc:Saving>.
    ///
    /// ```swift
    /// venue.price += 1
    /// if context.hasChanges { try context.save() }
    /// ```
    ///
    /// - Complexity: O(*n*), where *n* is the number of changed objects and their changed relationships.
    /// - Throws: Validation errors (1550–1699; several in 1560). If the merge policy throws conflicts (for a child: the
    ///   ``parentConflictPolicy``), `managedObjectMerge` (133020) and `managedObjectConstraintMerge` (133021). Errors
    ///   of the store (134000–134999). `persistentStoreTimeout` (134090) is the one for other writers that keep the
    ///   store locked for too long. `persistentStoreIncompleteSave` (134040) says that some stores had committed before
    ///   another one failed. `persistentStoreSave` (134030) has `NSPersistentStoreSaveInDoubtKey` as long as it is not
    ///   known whether the last save was committed. Also `managedObjectMerge` (133020) if the save in doubt was
    ///   committed, but this context has dropped its new objects since.
    open func save() throws {
        assertCurrent(#function)
        try saveChanges()
    }

    /// Carries out an asynchronous fetch, a batch request or a history request.
    ///
    /// An asynchronous fetch returns its result object at once. The object is filled later, and has an error as its
    /// `operationError`. A batch insert, update or delete has been committed when this returns, with one transaction in
    /// each store. Objects of this context and of others stay as they were, unless the contexts follow
    /// (``automaticallyMergesChangesFromParent``). Must be called inside the context's scope.
    ///
    /// ```swift
    /// let delete = NSBatchDeleteRequest(objectIDs: [id])
    /// delete.resultType = .resultTypeCount
    /// let result = try context.execute(delete) as? NSBatchDeleteResult
    /// ```
    ///
    /// - Parameter request: An ``NSAsynchronousFetchRequest``, ``NSBatchInsertRequest``, ``NSBatchUpdateRequest``,
    ///   ``NSBatchDeleteRequest`` or ``NSPersistentHistoryChangeRequest``.
    /// - Returns: The result that belongs to the request, such as an ``NSBatchUpdateResult`` or an
    ///   ``NSPersistentHistoryResult``.
    /// - Throws: `persistentStoreOperation` (134070) for a fetch or save request (use ``fetch(_:)`` or ``save()``), for
    ///   a store that is read-only, and for operations that a batch cannot do, with a text that names the property. A
    ///   batch also throws `managedObjectConstraintMerge` (133021) with the conflicting rows,
    ///   `managedObjectReferentialIntegrity` (133000) for a relationship to a row that does not exist, and
    ///   `managedObjectExternalRelationship` (133010) for one into another store. It throws
    ///   `validationRelationshipDeniedDelete` (1600) and `validationMissingMandatoryProperty` (1570) for a deletion
    ///   that delete rules forbid, `persistentStoreUnsupportedRequestType` (134091) for a store that takes no batches,
    ///   and errors of the store (134000–134999). A store that refuses a batch keeps nothing of it. Changes made in
    ///   other stores before that are kept. The error names those stores under `NSBatchChangedStoresErrorKey`. If the
    ///   rows were listed, the error also has their IDs, in the form that ``mergeChanges(fromRemoteContextSave:into:)``
    ///   takes.
    @discardableResult
    open func execute(_ request: NSPersistentStoreRequest) throws -> NSPersistentStoreResult {
        assertCurrent(#function)
        return try carryOut(request)
    }

    /// Inserts an object: the next save stores it.
    ///
    /// If the object is to be deleted, then inserting it takes the deletion back. Delete rules that had removed it from
    /// relationships are taken back too, but not those that had deleted other objects.
    ///
    /// The objects without a context that its relationships lead to, directly or through others, are inserted with it.
    ///
    /// ```swift
    /// let venue = Venue(entity: entity, insertInto: nil)
    /// context.insert(venue)
    /// ```
    ///
    /// - Parameter object: An object that was made without a context, of an entity of this context's model.
    /// - Complexity: O(number of objects that are inserted), or of related objects if a deletion is taken back.
    open func insert(_ object: NSManagedObject) {
        assertCurrent(#function)
        insertObject(object)
    }

    /// Deletes an object: the next save removes its row, and its delete rules are applied at the end of the event.
    ///
    /// ```swift
    /// context.delete(venue)
    /// try context.save()
    /// ```
    ///
    /// - Parameter object: An object of this context.
    /// - Complexity: O(1). Delete rules are applied to related objects at the end of the event.
    open func delete(_ object: NSManagedObject) {
        assertCurrent(#function)
        deleteObject(object)
    }

    /// Chooses the store that an unsaved object is saved into.
    ///
    /// By default an object goes to the first store that is not read-only and whose configuration has the entity. The
    /// call stops the program if the object is already stored, or if the store cannot hold it.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// context.assign(venue, to: coordinator.persistentStores[0])
    /// ```
    ///
    /// - Parameters:
    ///   - object: An object that was never saved.
    ///   - store: A store of the context's coordinator whose configuration has the entity.
    open func assign(_ object: Any, to store: NSPersistentStore) {
        assertCurrent(#function)
        chooseStore(store, for: object)
    }

    /// Includes an unchanged object in the version check of the next save.
    ///
    /// If another context or process has changed the object meanwhile, then the save fails, or its merge policy
    /// decides.
    ///
    /// ```swift
    /// context.detectConflicts(for: city)  // the save conflicts if the city is changed elsewhere meanwhile
    /// venue.price += 1
    /// try context.save()
    /// ```
    ///
    /// - Parameter object: An object of this context.
    open func detectConflicts(for object: NSManagedObject) {
        assertCurrent(#function)
        checkVersion(of: object)
    }

    /// Ends the current event: applies delete rules, closes the undo step, and posts objects-did-change.
    ///
    /// `perform`, fetches and saves call this method themselves. In a context of the main queue, changes made in any
    /// other way are processed in a block of the main queue. That block runs before all blocks that were submitted
    /// after the first change.
    ///
    /// ```swift
    /// context.delete(city)
    /// context.processPendingChanges()  // delete rules have been applied
    /// print(context.deletedObjects.count)
    /// ```
    ///
    /// - Complexity: O(number of objects that the event has changed). Delete rules may read relationships from the
    ///   store.
    open func processPendingChanges() {
        assertCurrent(#function)
        endEvent(isMerge: false)
    }

    /// Brings an object up to date.
    ///
    /// If the store cannot be read, then an object with changes keeps its values. The error goes to the coordinator's
    /// ``NSPersistentStoreCoordinator/unreportableErrorHandler``. A later save still finds a conflict.
    ///
    /// A refresh that drops changes drops one side of changed relationships. The objects at the other ends keep their
    /// changes until the next save, which first makes both sides agree: see <doc:Differences>.
    ///
    /// ```swift
    /// context.refresh(venue, mergeChanges: true)  // the newest values, with unsaved changes on top
    /// ```
    ///
    /// - Parameters:
    ///   - object: An object of this context.
    ///   - flag: With `true`, the stored values are read anew and the object's changes are put back on top. A later
    ///     save does not conflict with the values that were merged. An unsaved object is left alone. With `false`,
    ///     the changes are dropped and the object becomes a fault. An unsaved object then loses its insertion: it is
    ///     not saved, and the fault finds no row when it fires.
    /// - Complexity: Only an object whose changes are put back on top needs a read: that of its newest row.
    open func refresh(_ object: NSManagedObject, mergeChanges flag: Bool) {
        assertCurrent(#function)
        bringUpToDate(object, mergeChanges: flag)
    }

    /// Brings every registered object up to date and keeps unsaved changes.
    ///
    /// Objects-did-change lists the objects of ``registeredObjects`` that had values, under `NSRefreshedObjectsKey`.
    ///
    /// O(number of registered objects).
    ///
    /// ```swift
    /// context.refreshAllObjects()  // everything is read anew when it is used
    /// ```
    open func refreshAllObjects() {
        assertCurrent(#function)
        bringAllUpToDate()
    }

    /// Drops all unsaved changes and the undo stack: values return to those last fetched or saved, without a fetch.
    ///
    /// ```swift
    /// venue.price = 0
    /// context.rollback()
    /// print(context.hasChanges)
    /// ```
    ///
    /// - Complexity: O(number of changed objects).
    open func rollback() {
        assertCurrent(#function)
        dropChanges()
    }

    /// Forgets every object, every change, and the undo stack.
    ///
    /// If it is in doubt whether the last save was committed, then the next save does not find that out any more.
    /// Objects-did-change names the IDs of all ``registeredObjects`` under `NSInvalidatedAllObjectsKey`. Objects from
    /// before the reset may not be used any more: they are faults that read nil, zero or empty.
    ///
    /// ```swift
    /// context.reset()  // objects from before are not to be used any more
    /// print(context.registeredObjects.count)
    /// ```
    ///
    /// - Complexity: O(number of registered objects).
    open func reset() {
        assertCurrent(#function)
        forgetObjects()
    }

    /// Gives unsaved objects permanent IDs without saving them.
    ///
    /// Objects whose IDs are permanent keep them. A temporary ID that was captured before stays temporary, and still
    /// leads to the object.
    ///
    /// ```swift
    /// let venue = Venue(context: context)
    /// try context.obtainPermanentIDs(for: [venue])
    /// print(venue.objectID.isTemporaryID)
    /// ```
    ///
    /// - Parameter objects: Objects of this context; those whose IDs are permanent are ignored.
    /// - Throws: An error of the store; `persistentStoreOperation` (134070) if no open store can hold an object, and
    ///   inside a block that has locked rows of the store. In all cases nothing has changed.
    open func obtainPermanentIDs(for objects: [NSManagedObject]) throws {
        assertCurrent(#function)
        try givePermanentIDs(to: objects)
    }

    /// The object with an ID, if the context has it.
    ///
    /// Reads nothing.
    ///
    /// ```swift
    /// print(context.registeredObject(for: id) == nil ? "not here" : "here")
    /// ```
    ///
    /// - Parameter objectID: An ID of this coordinator.
    /// - Returns: The object, or `nil`. O(1); no store is asked.
    open func registeredObject(for objectID: NSManagedObjectID) -> NSManagedObject? {
        assertCurrent(#function)
        return knownObject(for: objectID)
    }

    /// The object with an ID: the registered object, or else a fault.
    ///
    /// The method reads nothing and never returns nil. If the ID is of another coordinator, then it stands for the
    /// same row here, provided that this context's coordinator has opened that store as well (by its UUID). Otherwise
    /// the program stops.
    ///
    /// If there is no such row, then this shows when the fault is realised. Use ``existingObject(with:)`` to know at
    /// once.
    ///
    /// ```swift
    /// let venue = context.object(with: id)  // a fault; nothing is read, so its row may not exist
    /// ```
    ///
    /// - Parameter objectID: An ID of this coordinator.
    /// - Returns: The object. O(1); no store is asked.
    open func object(with objectID: NSManagedObjectID) -> NSManagedObject {
        assertCurrent(#function)
        return objectOrFault(with: objectID)
    }

    /// The object with an ID, with its values loaded.
    ///
    /// ```swift
    /// if let venue = try context.existingObject(with: id) as? Venue { print(venue.name) }
    /// ```
    ///
    /// - Parameter objectID: An ID of this coordinator.
    /// - Returns: The object, which is not a fault.
    /// - Throws: `managedObjectReferentialIntegrity` (133000) if there is no such row, or if the ID is of another
    ///   coordinator and this context's coordinator has not opened its store; an error of the store.
    /// - Complexity: O(1). Reads the row from the store if neither the context nor the row cache has it.
    open func existingObject(with objectID: NSManagedObjectID) throws -> NSManagedObject {
        assertCurrent(#function)
        return try readObject(with: objectID)
    }

    /// Merges the changes that a notification reports.
    ///
    /// The notification is the did-save notification of another context (with objects or with IDs), or that of a
    /// transaction of the history (``NSPersistentHistoryTransaction/objectIDNotification()``).
    ///
    /// Registered objects are refreshed, and unsaved changes are kept on top. Deleted objects are marked as deleted,
    /// and inserted ones become reachable. Must be called inside this context's scope; the notification's objects are
    /// used by ID only. If a context on another coordinator has saved the changes, then they are read from the store,
    /// with any ``stalenessInterval``.
    ///
    /// ```swift
    /// let observer = NotificationCenter.default.addObserver(
    ///     forName: .NSManagedObjectContextDidSave, object: nil, queue: nil
    /// ) { note in
    ///     context.performAndWait { context.mergeChanges(fromContextDidSave: note) }
    /// }
    /// NotificationCenter.default.removeObserver(observer)
    /// ```
    ///
    /// - Parameter notification: A did-save notification, with objects or with IDs.
    open func mergeChanges(fromContextDidSave notification: Notification) {
        assertCurrent(#function)
        mergeSave(of: notification)
    }

    /// Undoes the changes of the last event, if there is an undo manager.
    ///
    /// If a change was saved meanwhile, then the former values become an unsaved change. If the deletion of an object
    /// was saved meanwhile, then the object comes back as a new insertion, under a new ID.
    ///
    /// ```swift
    /// context.undoManager = UndoManager()
    /// venue.price = 0
    /// context.undo()
    /// ```
    open func undo() {
        assertCurrent(#function)
        undoManager?.undo()
    }

    /// Redoes the changes that were undone last.
    ///
    /// ```swift
    /// context.undoManager = UndoManager()
    /// venue.price = 0
    /// context.undo()
    /// context.redo()
    /// ```
    open func redo() {
        assertCurrent(#function)
        undoManager?.redo()
    }
}
