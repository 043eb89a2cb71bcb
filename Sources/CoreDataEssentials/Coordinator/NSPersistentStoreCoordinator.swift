import Foundation
import StrataLocks
import StrataPredicates
import StrataRows
import Synchronization

/// The link between contexts and stores.
///
/// A coordinator knows the model, opens stores, passes requests to them, and keeps the rows that all contexts share.
///
/// Any thread may use it. Reads do not wait for one another, nor for a save.
///
/// **Lock order**, from top to bottom: a context's queue → a store's writer → a connection → the mutexes of the row
/// cache, the ID tables and the coordinator's state. These mutexes are leaves: no other code is called while one is
/// held. No lock is held while notifications, hooks, validation or handlers run.
///
/// See <doc:Processes>.
///
/// ```swift
/// let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
/// let store = try coordinator.addPersistentStore(type: .sqlite, at: url)
/// let context = NSManagedObjectContext(.privateQueue)
/// context.persistentStoreCoordinator = coordinator
/// ```
open class NSPersistentStoreCoordinator: NSObject, @unchecked Sendable {
    // @unchecked Sendable: all mutable state is in `state`; the other properties are constants.

    private struct State {
        var name: String?
        /// All stores that were ever opened, by their index.
        ///
        /// A removed store keeps its index, so that its objects never refer to another store and keep their IDs.
        var opened: [OpenStore] = []
        var open: [OpenStore] = []
        /// The stores that were migrated and replaced at their index; reads and IDs may still refer to them.
        var replaced: [OpenStore] = []
        var followers: [FollowerBox] = []
        var errorHandler: (@Sendable (any Error, String) -> Void)?
        var rowCacheLimit = RowCache.defaultLimit
    }

    private let state = Locked(State())
    /// The number of stores that were migrated.
    ///
    /// If the number grows during a read, then the read may have met a store that was closed.
    let moves = AtomicCell(0)
    /// The instrument that receives events.
    let instrumentation = Instrumentation()
    /// The operations that are running, and whether more may start.
    package let gate = CoordinatorGate()
    private let queue: DispatchQueue

    /// The model, which cannot be changed any more.
    public let managedObjectModel: NSManagedObjectModel
    package let frozenModel: FrozenModel

    /// Makes a coordinator and puts the model to use, which makes it immutable.
    ///
    /// If the model is not valid, then the program stops with a message that names the wrong entity and property.
    ///
    /// ```swift
    /// let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
    /// let context = NSManagedObjectContext(.privateQueue)
    /// context.persistentStoreCoordinator = coordinator
    /// ```
    ///
    /// - Parameter model: The model; it must not be changed after that.
    public init(managedObjectModel model: NSManagedObjectModel) {
        model.freeze()
        managedObjectModel = model
        frozenModel = model.frozen
        queue = DispatchQueue(label: "CoreData coordinator")
        super.init()
    }

    deinit {
        let open = state.withLock { state in
            defer { state.open = [] }
            return state.open
        }
        for entry in open {
            NotificationCenter.default.post(name: .NSPersistentStoreCoordinatorWillRemoveStore, object: entry.store)
            entry.store.willRemove(from: nil)
            entry.rows.close()
        }
    }

    /// A label for messages.
    ///
    /// Default nil.
    open var name: String? {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    /// The name and the stores.
    open override var description: String {
        let stores = persistentStores.map(\.description).joined(separator: ", ")
        return "<\(type(of: self)): \(name.map { "\"\($0)\"; " } ?? "")\(stores.isEmpty ? "no stores" : stores)>"
    }

    /// The stores, in the order in which they were added.
    ///
    /// ```swift
    /// print(coordinator.persistentStores.map { $0.url?.lastPathComponent ?? "" })
    /// ```
    open var persistentStores: [NSPersistentStore] { openStores.map { $0.store } }

    package var openStores: [OpenStore] { state.withLock { $0.open } }
    var hasSeveralStores: Bool { state.withLock { $0.open.count > 1 } }

    /// The store at an index, also after its removal: see ``OpenStore/isOpen``.
    func openStore(at storeIndex: Int) -> OpenStore? {
        state.withLock { $0.opened.indices.contains(storeIndex) ? $0.opened[storeIndex] : nil }
    }

    /// The store at an index, unless it was removed.
    func storeToWrite(at storeIndex: Int) -> OpenStore? {
        while let store = openStore(at: storeIndex) {
            if store.isOpen { return store }
            // Another store has just taken its place, if it was migrated.
            guard store.hasMoved else { return nil }
        }
        return nil
    }

    package func openStore(of store: NSPersistentStore) -> OpenStore? {
        openStores.first { $0.store === store }
    }

    /// The store for new objects of an entity: the first one that holds the entity and can be written.
    func storeForInsertion(of layout: EntityLayout) -> OpenStore? {
        openStores.first { !$0.store.isReadOnly && $0.entityNumbers.contains(layout.number) }
    }

    /// The maximum number of bytes that each store's cache uses for rows that no object uses.
    var rowCacheLimit: Int { state.withLock { $0.rowCacheLimit } }

    package func setRowCacheLimit(_ limit: Int) {
        let stores = state.withLock { state in
            state.rowCacheLimit = max(limit, 0)
            return state.opened
        }
        for store in stores { store.cache.limit = limit }
    }

    // MARK: - Adding and removing entries

    /// Gives a store its place, before other code can use it.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - rows: The engine, or the custom store, that answers requests.
    ///   - entityNumbers: The numbers of the entities that it holds.
    ///   - former: The store that it shall replace by ``replace(_:with:)``; `nil` for a new place.
    /// - Returns: The part of the store that contexts share.
    func makeEntry(
        _ store: NSPersistentStore,
        _ rows: any RowStore,
        entityNumbers: Set<Int>,
        replacing former: OpenStore? = nil
    ) -> OpenStore {
        state.withLock { state in
            let entry = OpenStore(
                store: store,
                rows,
                owner: self,
                index: former?.index ?? state.opened.count,
                entityNumbers: entityNumbers,
                replacing: former
            )
            entry.cache.limit = state.rowCacheLimit
            if former == nil { state.opened.append(entry) }
            return entry
        }
    }

    func enter(_ entry: OpenStore) {
        state.withLock { state in state.open.append(entry) }
    }

    /// Replaces a store by another one, which has the same rows under the same keys and in the same versions.
    ///
    /// Contexts keep their objects. A read from the old store finds the new one when it ends.
    func replace(_ old: OpenStore, with new: OpenStore) {
        old.giveWay(to: new)
        state.withLock { state in
            state.replaced.append(old)
            state.opened[old.index] = new
            if let place = state.open.firstIndex(where: { $0 === old }) { state.open[place] = new }
        }
        old.markAsRemoved()
        // Values that the new store computes itself, such as the time of a change, may differ.
        new.cache.removeAll()
        moves.add(1, ordering: .releasing)
    }

    /// Runs a read of open stores, and repeats it if a store was migrated meanwhile.
    ///
    /// That store was closed, and may have given an empty answer.
    package func followingMoves<R>(_ read: () throws -> R) throws -> R {
        while true {
            let before = moves.load(ordering: .acquiring)
            let result = Result { try read() }
            if moves.load(ordering: .acquiring) == before { return try result.get() }
        }
    }

    func markAsRemoved(_ entry: OpenStore) {
        entry.markAsRemoved()
        state.withLock { state in state.open.removeAll { $0 === entry } }
    }

    // MARK: - Saving

    /// Writes a context's change sets: each store's in one transaction, one store after the other.
    ///
    /// The plan records which stores have committed, even if a later one refused.
    ///
    /// - Returns: The conflicts. If a store has a conflict, then the stores after it were not written.
    /// - Throws: The store's error.
    func save(_ plan: SavePlan) throws -> [SavePlan.Conflict] {
        for (store, changes) in plan.stores {
            let conflicts: [StoreConflict]
            do {
                conflicts = try store.save(changes, of: plan.context) { result in
                    plan.willCommit(result, to: store, changes)
                } didCommit: { result in
                    FaultPoint.saveCommitted.pass()
                    plan.didCommit(result, to: store, changes)
                    FaultPoint.savePublished.pass()
                }
            } catch let doubt as SaveInDoubt {
                store.cache.forget(changes)
                throw plan.recordDoubt(doubt, of: store, changes: changes)
            }
            guard conflicts.isEmpty else {
                plan.didRefuse(store)
                return conflicts.map { SavePlan.Conflict(kind: $0, store: store) }
            }
        }
        return []
    }

    /// The reads of asynchronous fetches.
    package let asynchronousReads = ReadQueue()

    // MARK: - Following saves

    /// Notifies live queries of commits.
    package let commits = CommitFeed()

    private struct FollowerBox {
        weak var context: NSManagedObjectContext?
    }

    /// Lets a context merge the saves of other contexts.
    func follow(_ context: NSManagedObjectContext, _ follows: Bool) {
        let held = state.withLock { state in
            // A context must not end here, since its end takes the lock. So all are held until the lock is free.
            let held = state.followers.compactMap(\.context)
            state.followers.removeAll { $0.context == nil || $0.context === context }
            if follows { state.followers.append(FollowerBox(context: context)) }
            return held
        }
        withExtendedLifetime(held) {}
    }

    /// The contexts that merge the saves of other contexts.
    package var followingContexts: [NSManagedObjectContext] { state.withLock { $0.followers.compactMap(\.context) } }

    /// Notifies the contexts that follow of the changes that one context has saved.
    func announce(save message: ChangeMessage, from context: NSManagedObjectContext) {
        let collector = context.saving.collector
        let followers = followingContexts.filter { $0 !== context && collector?.serves($0) != true }
        collector?.add(message)
        commits.publish(message)
        context.observers.committed(message)
        for follower in followers { follower.enqueueMerge(message) }
    }

    /// Whether a live query or a context follows commits.
    var isFollowed: Bool { commits.hasSubscribers || !followingContexts.isEmpty }

    /// Notifies the live queries, and the other contexts that follow, of the changes by a context's batch.
    func announce(batch message: ChangeMessage, from context: NSManagedObjectContext) {
        commits.publish(message)
        for follower in state.withLock({ $0.followers.compactMap(\.context) }) where follower !== context {
            follower.enqueueMerge(message)
        }
    }

    // MARK: - Errors that cannot be thrown

    /// A handler for errors of stores that occur where no caller can receive them; the text says what was being done.
    ///
    /// Examples: reading a property whose fault cannot be filled, merging, and following the changes of other
    /// processes.
    ///
    /// Default nil: such an error writes a line to standard error. The handler is called on the thread that met the
    /// error, which may be one of a context's block or an internal one, and on several threads at once. No lock is held
    /// during the call. May be set and read on any thread.
    public var unreportableErrorHandler: (@Sendable (any Error, String) -> Void)? {
        get { state.withLock { $0.errorHandler } }
        set {
            // An object that only the former handler holds ends after the lock: its end may be code of the program.
            var handler = newValue
            state.withLock { swap(&$0.errorHandler, &handler) }
        }
    }

    package func report(_ error: any Error, _ doing: String) {
        if let handler = unreportableErrorHandler { return handler(error, doing) }
        FileHandle.standardError.write(Data("CoreData: error while \(doing): \(error.localizedDescription)\n".utf8))
    }

    // MARK: - Queue

    /// Runs `block` on the coordinator's queue and returns at once.
    ///
    /// The compiler does not check what the block captures: see ``NSManagedObjectContext/perform(_:)``.
    ///
    /// - Parameter block: The block to run.
    @available(*, deprecated, message: "Use the asynchronous form")
    public func perform(_ block: @escaping () -> Void) {
        // The block runs once, in its turn. The caller ensures that no other code uses what the block captures at that
        // time.
        let block = UncheckedBox(block)
        Schedule.async(on: queue) { ConfinementScope.enter(self, block.value) }
    }

    /// Runs `block` on the coordinator's queue and suspends until it has run.
    ///
    /// - Parameter block: The block to run. It is sent to the coordinator: what it captures must be `Sendable`, or must
    ///   not be used by other code afterwards.
    /// - Returns: The result of the block.
    /// - Throws: The error of the block.
    @_disfavoredOverload
    public func perform<T>(_ block: sending @escaping () throws -> sending T) async throws -> sending T {
        // The block is sent, so that no other code uses it.
        let block = UncheckedBox(block)
        let result: Result<UncheckedBox<T>, any Error> = await run { Result { UncheckedBox(try block.value()) } }
        return try result.get().value
    }

    /// The form for blocks that do not throw.
    ///
    /// - Parameter block: The block to run. It is sent to the coordinator: what it captures must be `Sendable`, or must
    ///   not be used by other code afterwards.
    /// - Returns: The result of the block.
    public func perform<T>(_ block: sending @escaping () -> sending T) async -> sending T {
        // The block is sent, so that no other code uses it.
        let block = UncheckedBox(block)
        let box = await run { UncheckedBox(block.value()) }
        return box.value
    }

    private func run<Outcome: Sendable>(_ block: @escaping @Sendable () -> Outcome) async -> Outcome {
        await withAnswer { answer in
            Schedule.async(on: queue) { answer(ConfinementScope.enter(self, block)) }
        }
    }

    /// Runs `block` on the coordinator's queue and waits for it; inline if the caller runs on that queue already.
    ///
    /// May be called on any thread. Errors of the block are rethrown. If a program declares such a method itself, then
    /// calls use the program's method.
    ///
    /// - Parameter block: The block to run. It is not kept.
    /// - Returns: The block's result.
    @_disfavoredOverload
    public func performAndWait<T>(_ block: () throws -> T) rethrows -> T { try wait(block) }

    /// The form for blocks that do not throw.
    ///
    /// - Parameter block: The block to run. It is not kept.
    /// - Returns: The block's result.
    public func performAndWait<T>(_ block: () -> T) -> T {
        // Like the same form of contexts, a program's own `performAndWait` calls this one, and it can be passed as a
        // function.
        wait(block)
    }

    private func wait<T>(_ block: () throws -> T) rethrows -> T {
        if ConfinementScope.contains(self) { return try block() }
        return try MainQueue.keepingTrack {
            let stack = ConfinementScope.stack
            return try WaitGraph.sync(on: queue, of: self, gate: nil, stack: stack) {
                try ConfinementScope.enter(self, within: stack, block)
            }
        }
    }

    // MARK: - IDs

    /// The ID that a URI names.
    ///
    /// ```swift
    /// let uri = venue.objectID.uriRepresentation()
    /// if let id = coordinator.managedObjectID(forURIRepresentation: uri) { print(id == venue.objectID) }
    /// ```
    ///
    /// - Parameter url: A result of ``NSManagedObjectID/uriRepresentation()``.
    /// - Returns: The ID. `nil` for a store or an entity that the coordinator does not have, and for a temporary ID of
    ///   another process. A row need not exist. If this coordinator has migrated the store, then the result is the ID
    ///   in the store that replaced it.
    open func managedObjectID(forURIRepresentation url: URL) -> NSManagedObjectID? {
        managedObjectID(for: url.absoluteString)
    }

    /// The ID that a URI in UTF-8 names, from a buffer that need not end with a zero.
    ///
    /// - Parameters:
    ///   - uri: The text of the URI; not read for a length of 0.
    ///   - len: The number of bytes.
    /// - Returns: The result of ``managedObjectID(forURIRepresentation:)``; `nil` for bytes that are not UTF-8.
    open func managedObjectID(fromUTF8String uri: UnsafePointer<CChar>, length len: Int) -> NSManagedObjectID? {
        guard len > 0 else { return nil }
        let bytes = UnsafeRawBufferPointer(start: uri, count: len)
        return String(validating: bytes, as: UTF8.self).flatMap { managedObjectID(for: $0) }
    }

    /// The ID that a URI's text names; this takes less time than with a URL.
    ///
    /// - Parameter uri: The text of a result of ``NSManagedObjectID/uriRepresentation()``.
    /// - Returns: The result of ``managedObjectID(forURIRepresentation:)``.
    open func managedObjectID(for uri: String) -> NSManagedObjectID? {
        guard let parts = ObjectURI(uri) else { return nil }
        guard let entity = frozenModel.entitiesByName[parts.entityName] else { return nil }
        if parts.isTemporary {
            guard let uuid = UUID(uuidString: String(parts.key)) else { return nil }
            return TemporaryIDs.id(uuid: uuid)
        }
        guard let store = namedStore(parts.store), store.entityNumbers.contains(entity.entityNumber),
            let key = store.key(fromURIText: parts.key, of: entity.layout)
        else { return nil }
        return store.latest.ids.id(key: key, layout: entity.layout, store: store.latest)
    }

    /// The open store with a UUID, or else a store with that UUID that was migrated.
    private func namedStore(_ uuid: Substring) -> OpenStore? {
        func isNamed(_ entry: OpenStore) -> Bool {
            entry.store.identifier.map { $0.utf8.elementsEqual(uuid.utf8) } ?? false
        }
        if let open = openStores.first(where: isNamed) { return open }
        return state.withLock { $0.replaced }.last { isNamed($0) && $0.latest.isOpen }
    }
}

extension RowCache {
    /// Forgets the rows that a save in doubt may have changed.
    func forget(_ changes: StoreChanges) {
        let rows = changes.updated.map { ($0.row.layout.rootNumber, $0.row.key) }
        let gone = changes.deleted.map { ($0.layout.rootNumber, $0.key) }
        for (root, rows) in Dictionary(grouping: rows + gone, by: \.0) { invalidate(rows.map(\.1), root: root) }
    }
}

extension SaveInDoubt {
    /// The error that the caller gets, with advice what to do.
    package func error(of store: OpenStore, _ advice: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Nobody can tell whether the transaction was committed to the store \(store.rows.place): the answer did not come. \(advice)",
                NSPersistentStoreSaveInDoubtKey: identifier,
                NSAffectedStoresErrorKey: [store.store],
                NSUnderlyingErrorKey: reason,
            ]
        )
    }
}
