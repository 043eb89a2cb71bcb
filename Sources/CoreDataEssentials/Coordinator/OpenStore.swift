import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// A store that a coordinator has opened, or one version of such a store.
///
/// It has the rows and the IDs that all contexts share. A version has the rows that the contexts pinned to it share.
package final class OpenStore: Sendable {
    /// The store as the public API shows it.
    package let store: NSPersistentStore
    /// The object that answers for the store: its engine, or the custom store itself.
    package let rows: any RowStore
    /// The store, if it is a custom store.
    package let custom: (any CustomStore)?
    /// The object that answers reads: the rows of the store or of the version.
    package let reader: any RowSource
    /// The store of which this is a version.
    private let newest: OpenStore?
    /// A number that no other version has; 0 for the store itself.
    let version: Int
    /// The coordinator that opened the store.
    let owner: ObjectIdentifier
    /// The newest rows.
    ///
    /// A store that replaces another takes over its cache, so that its counts continue.
    package let cache: RowCache
    package let ids: ObjectIDTable
    /// The position among all stores that the coordinator ever had; it distinguishes objects of different stores.
    package let index: Int
    /// A number, never 0, that no other open store of the process has; predicates distinguish objects of stores by it.
    ///
    /// Coordinators that have the same store open use the same number for it, so that an ID of one means the same
    /// object in a predicate for the other. The keys of a custom store have a meaning in one coordinator only.
    package let number: Int
    /// The UUID for which the number was taken; `nil` if the number does not belong to a UUID.
    private let uuid: String?
    private let holdsNumber = AtomicCell(true)
    private let open = AtomicCell(true)
    /// See ``successor``.
    private let place = OnceReference<OpenStore>()
    /// The stores that this one has replaced, as the public API shows them.
    private let formerStores: [NSPersistentStore]
    /// The numbers of the entities that the store's configuration holds.
    package let entityNumbers: Set<Int>

    /// The number of commits by others at the time when rows were last forgotten because of them.
    private let seenCommitsOfOthers: AtomicCell<UInt64>

    /// Forgets cached rows that others, mostly other processes, have overwritten since they were cached.
    ///
    /// Called before rows are taken from the cache, before a read that offers rows to it, and before rows are offered
    /// to it: the read itself may have reached another server, which does not have the cached rows. It has no effect in
    /// a version of a store, whose rows never change. Costs some tens of nanoseconds.
    @inline(__always)
    func forgetRowsOverwrittenByOthers() {
        let commits = newest == nil ? rows.commitsOfOthers : 0
        let seen = seenCommitsOfOthers.load(ordering: .acquiring)
        guard commits != seen else { return }
        if let rows = rows.rowsChangedByOthers(since: seen) { cache.invalidate(rows) } else { cache.removeAll() }
        // The number is stored last, so that a reader that finds the number finds no older row.
        seenCommitsOfOthers.store(commits, ordering: .releasing)
    }

    /// Reads the rows of a fetch, and offers them to the cache.
    ///
    /// Rows that the cache has in the version that the store has are not made anew.
    ///
    /// - Parameters:
    ///   - plan: The fetch, as asked of this store.
    ///   - read: The read, before which ``forgetRowsOverwrittenByOthers()`` was called.
    /// - Returns: The rows, each the newer one of the read and the cached row.
    /// - Throws: Errors of the store.
    func rows(for plan: FetchPlan, by read: RowCache.Access) throws -> [Row] {
        let root = plan.layout.rootNumber
        var plan = plan
        let known = KnownRows(cache, root: root)
        plan.known = known
        let commits = seenCommitsOfOthers.load(ordering: .acquiring)
        let position = plan.control?.position
        var rows = try reader.rows(for: plan)
        if known?.wasUsed == true, hasCommitsOfOthers(since: commits), !cache.hasKept(rows, root: root, since: read) {
            // Another program may have changed rows without giving them a new version.
            plan.known = nil
            if let position { plan.control?.goBack(to: position) }
            rows = try reader.rows(for: plan)
        }
        offer(&rows, root: root, read: read)
        return rows
    }

    /// Whether others have committed since a number of their commits was seen; if so, the overwritten rows are forgotten.
    private func hasCommitsOfOthers(since commits: UInt64) -> Bool {
        forgetRowsOverwrittenByOthers()
        return seenCommitsOfOthers.load(ordering: .acquiring) != commits
    }

    /// Offers the cache the rows of a read; each row is replaced in place by the row that won.
    @inline(__always)
    func offer(_ rows: inout [Row], root: Int, read: RowCache.Access) {
        forgetRowsOverwrittenByOthers()
        cache.offer(&rows, root: root, read: read)
    }

    /// The form for one row.
    @inline(__always)
    func offer(_ row: inout Row, root: Int, read: RowCache.Access) {
        forgetRowsOverwrittenByOthers()
        cache.offer(&row, root: root, read: read)
    }

    /// The form for the only row of a read, which ends with that.
    @inline(__always)
    func offer(_ row: inout Row, root: Int, ending read: RowCache.Access) {
        forgetRowsOverwrittenByOthers()
        cache.offer(&row, root: root, ending: read)
    }

    /// The store itself, whose rows are the newest.
    package var base: OpenStore { newest ?? self }

    /// Whether the store still belongs to its coordinator.
    var isOpen: Bool { newest?.isOpen ?? open.load(ordering: .acquiring) }

    /// Notes that the store was removed.
    func markAsRemoved() { open.store(false, ordering: .releasing) }

    // MARK: - Migrating

    /// The store that has replaced this one, with the same index, keys, and versions of rows; `nil` if not migrated.
    ///
    /// It is set before this store is closed.
    var successor: OpenStore? { place.load() }

    /// The store that has the objects now: this one, unless it was migrated.
    var latest: OpenStore {
        guard var latest = successor else { return self }
        while let next = latest.successor { latest = next }
        return latest
    }

    /// Whether the coordinator has another store at this one's index.
    var hasMoved: Bool { newest == nil && !open.load(ordering: .acquiring) && successor != nil }

    /// Lets another store take over the objects of this one: IDs then refer to that store.
    func giveWay(to new: OpenStore) {
        _ = place.storeIfNil(new)
        ids.lead(to: new)
        releaseNumber()
    }

    /// Whether a request that names a store means this one, which may have replaced the named store.
    package func isMeant(by store: NSPersistentStore) -> Bool {
        self.store === store || formerStores.contains { $0 === store }
    }

    /// Reads rows by their keys.
    ///
    /// If the store is migrated meanwhile, then the store that replaced it is read: this one may already be closed, and
    /// may have given an empty answer.
    func reading<R>(_ body: (any RowSource) throws -> R) throws -> R {
        guard newest == nil else { return try body(reader) }
        while true {
            let store = latest
            let result = Result { try body(store.reader) }
            if store.successor == nil { return try result.get() }
        }
    }

    private static let lastVersion = AtomicCell<Int>(0)

    init(
        store: NSPersistentStore,
        _ rows: any RowStore,
        owner: NSPersistentStoreCoordinator,
        index: Int,
        entityNumbers: Set<Int>,
        replacing former: OpenStore? = nil
    ) {
        self.store = store
        self.rows = rows
        custom = store as? any CustomStore
        reader = rows
        newest = nil
        version = 0
        ids = ObjectIDTable()
        cache = former?.cache ?? RowCache()
        formerStores = former.map { $0.formerStores + [$0.store] } ?? []
        self.owner = ObjectIdentifier(owner)
        self.index = index
        self.entityNumbers = entityNumbers
        uuid = custom == nil ? store.identifier ?? "" : nil
        number =
            uuid.map { uuid in
                former.map { StoreNumbers.inherit($0.number, by: uuid, from: $0.uuid) } ?? StoreNumbers.acquire(uuid)
            } ?? StoreNumbers.next()
        seenCommitsOfOthers = AtomicCell(rows.commitsOfOthers)
    }

    deinit { releaseNumber() }

    private func releaseNumber() {
        guard let uuid, holdsNumber.exchange(false, ordering: .acquiringAndReleasing) else { return }
        StoreNumbers.release(uuid)
    }

    /// One version of a store: the same objects under the same IDs, with rows of that version.
    init(_ base: OpenStore, readBy reader: any RowSource) {
        store = base.store
        rows = base.rows
        custom = base.custom
        self.reader = reader
        newest = base
        uuid = nil
        version = Self.lastVersion.add(1, ordering: .relaxed).newValue
        ids = base.ids
        cache = RowCache()
        formerStores = base.formerStores
        owner = base.owner
        index = base.index
        number = base.number
        entityNumbers = base.entityNumbers
        seenCommitsOfOthers = AtomicCell(0)
        cache.limit = base.cache.limit
    }
}

/// The numbers of open stores.
private enum StoreNumbers {
    private struct State {
        var last = 0
        /// The numbers of stores by their UUIDs, and how many coordinators have each store open.
        var held: [String: (number: Int, count: Int)] = [:]

        mutating func next() -> Int {
            last += 1
            return last
        }
    }

    private static let state = Locked(State())

    static func next() -> Int { state.withLock { $0.next() } }

    /// The number of the store with a UUID, for one more coordinator.
    static func acquire(_ uuid: String) -> Int {
        state.withLock { state in
            let number = state.held[uuid]?.number ?? state.next()
            state.held[uuid, default: (number, 0)].count += 1
            return number
        }
    }

    /// The number of the store with a UUID that replaces another store in a coordinator.
    ///
    /// If no other coordinator has either store open, then the number of the replaced store is used, because resolved
    /// predicates refer to its objects by that number.
    static func inherit(_ number: Int, by uuid: String, from former: String?) -> Int {
        state.withLock { state in
            let isShared = former.flatMap { state.held[$0]?.count }.map { $0 > 1 } ?? false
            let taken = state.held[uuid]?.number ?? (isShared ? state.next() : number)
            state.held[uuid, default: (taken, 0)].count += 1
            return taken
        }
    }

    /// Ends one coordinator's use of a number.
    static func release(_ uuid: String) {
        state.withLock { state in
            guard let held = state.held[uuid] else { return }
            state.held[uuid] = held.count > 1 ? (held.number, held.count - 1) : nil
        }
    }
}

// MARK: - Behaviour that differs in custom stores

extension OpenStore {
    /// Whether a fetch brings rows; otherwise each row is requested when its object's fault fires.
    var fetchesRows: Bool { custom?.fetchesRows ?? true }

    /// Whether a save passes objects to the store; these must have permanent IDs by then.
    var isNotifiedOfObjects: Bool { custom != nil }

    /// Reserves keys for new objects, in their order.
    func keys(for objects: [NSManagedObject]) throws -> [Int64] {
        if let custom { return try custom.keys(for: objects) }
        let counts = Dictionary(objects.map { ($0.layout.rootNumber, 1) }, uniquingKeysWith: +)
        var keys = try rows.reserveKeys(counts).mapValues { $0.joined().makeIterator() }
        return objects.compactMap { keys[$0.layout.rootNumber]?.next() }
    }

    /// Writes the change set of a context; see ``RowStore/save(_:willCommit:didCommit:)``.
    func save(
        _ changes: StoreChanges,
        of context: NSManagedObjectContext,
        willCommit: (StoreSaveResult) -> Void,
        didCommit: (StoreSaveResult) -> Void
    ) throws
        -> [StoreConflict]
    {
        if let custom {
            let conflicts = try custom.save(changes, of: context, didCommit: didCommit)
            // The store writes its metadata in the same save.
            if conflicts.isEmpty { custom.hasNewMetadata = false }
            return conflicts
        }
        return try naming {
            if let block = context.lockingBlock,
                let conflicts = try block.save(changes, to: self, willCommit: willCommit, didCommit: didCommit)
            {
                return conflicts
            }
            let conflicts = try rows.save(changes, willCommit: willCommit, didCommit: didCommit)
            if conflicts.isEmpty { context.lockingBlock?.didSaveOutside() }
            return conflicts
        }
    }

    /// Carries out a batch; see ``RowStore/execute(_:willCommit:didCommit:)``.
    package func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        if let request = batch.request as? NSPersistentStoreRequest, !rows.takesBatches { throw refusal(of: request) }
        try naming { try rows.execute(batch.asked(ofStore: number), willCommit: willCommit, didCommit: didCommit) }
    }

    /// Adds the store's name to errors of its engine, which does not know the name.
    func naming<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as CocoaError where error.code == .persistentStoreSave && error.affectedStores == nil {
            var userInfo = error.userInfo
            userInfo[NSAffectedStoresErrorKey] = [store]
            throw CocoaError.described(error.code, userInfo: userInfo)
        }
    }

    /// The error for a batch that the store does not take.
    package func refusal(of request: NSPersistentStoreRequest) -> CocoaError {
        CocoaError.described(
            .persistentStoreUnsupportedRequestType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Stores of type \(store.type) (\(type(of: store))) take no \(type(of: request)): fetch the objects, change them, and save.",
                NSAffectedStoresErrorKey: [store],
            ]
        )
    }

    /// The text that represents a key in a URI, after the `p`.
    func uriText(ofKey key: Int64, in layout: EntityLayout) -> String {
        custom?.uriText(ofKey: key, in: layout) ?? "\(key)"
    }

    /// The key that a URI means.
    func key(fromURIText text: Substring, of layout: EntityLayout) -> Int64? {
        if let custom {
            // A store that was migrated makes no new keys for URIs, because the store that replaced it assigns keys as
            // well.
            return successor == nil
                ? custom.key(fromURIText: text, of: layout) : custom.knownKey(fromURIText: text, of: layout)
        }
        return Int64(text).flatMap { $0 > 0 ? $0 : nil }
    }
}
