import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// A store that a coordinator has opened, with what all contexts share of it: its rows and its IDs; or one version of
/// such a store, with the rows that the contexts pinned to it share.
package final class OpenStore: Sendable {
    /// The store as the public API shows it.
    package let store: NSPersistentStore
    /// What answers for the store: its engine, or a store of one's own itself.
    package let rows: any RowStore
    /// The store, if its class is not ours.
    let custom: (any CustomStore)?
    /// What answers reads: the store's rows, or those of the version.
    let reader: any RowSource
    /// The store of which this is a version.
    private let newest: OpenStore?
    /// A number that no other version has; 0 for the store itself.
    let version: Int
    /// The coordinator that opened the store.
    let owner: ObjectIdentifier
    /// The newest rows.
    ///
    /// A store that takes another's place has that one's cache, so that its counts go on.
    package let cache: RowCache
    let ids: ObjectIDTable
    /// The position among all stores that the coordinator ever had, by which contexts tell objects of different stores.
    let index: Int
    /// A number that no other open store of the process has, never 0: predicates tell objects of different stores by it.
    ///
    /// Coordinators that have the same store open know it by the same number, so that an ID of one means the same object in
    /// a predicate for the other. Keys of a custom store mean something to one coordinator only.
    let number: Int
    /// The UUID that the number was taken for; `nil` if it was not taken for one.
    private let uuid: String?
    private let holdsNumber = Atomic(true)
    private let open = Atomic(true)
    /// See ``successor``.
    private let place = OnceReference<OpenStore>()
    /// The stores in whose place this one is, as the public API shows them.
    private let formerStores: [NSPersistentStore]
    /// The numbers of the entities that the store's configuration holds.
    let entityNumbers: Set<Int>

    /// How often others were found to have committed when rows were last forgotten for it.
    private let seenCommitsOfOthers: Atomic<UInt64>

    /// Forgets the cached rows if others, another process above all, have written to the store since they were cached.
    ///
    /// Called before rows are taken from the cache, before a read that offers it rows, and before it is offered them:
    /// the read itself may have come to another server, which does not have what is cached. Without effect in a version
    /// of a store, whose rows never change. Costs some tens of nanoseconds.
    @inline(__always)
    func forgetRowsOverwrittenByOthers() {
        let commits = newest == nil ? rows.commitsOfOthers : 0
        let seen = seenCommitsOfOthers.load(ordering: .acquiring)
        guard commits != seen else { return }
        if let rows = rows.rowsChangedByOthers(since: seen) { cache.invalidate(rows) } else { cache.removeAll() }
        // Only now, so that a reader that finds the number finds no older row.
        seenCommitsOfOthers.store(commits, ordering: .releasing)
    }

    /// Offers the cache rows that a read brought; each is replaced, in place, by the row that won.
    @inline(__always)
    func offer(_ rows: inout [Row], root: Int, read: RowCache.Read) {
        forgetRowsOverwrittenByOthers()
        cache.offer(&rows, root: root, read: read)
    }

    /// As the other form, for one row.
    @inline(__always)
    func offer(_ row: inout Row, root: Int, read: RowCache.Read) {
        forgetRowsOverwrittenByOthers()
        cache.offer(&row, root: root, read: read)
    }

    /// The store itself, whose rows are the newest.
    var base: OpenStore { newest ?? self }

    /// Whether the store still belongs to its coordinator.
    var isOpen: Bool { newest?.isOpen ?? open.load(ordering: .acquiring) }

    /// Tells that the store was removed.
    func noteRemoval() { open.store(false, ordering: .releasing) }

    // MARK: - Migrating

    /// The store that has taken this one's place, with the same index, and with the same keys and versions of rows;
    /// `nil` unless this one was migrated.
    ///
    /// It is there before this one is closed.
    var successor: OpenStore? { place.load() }

    /// The store that has the objects now: this one unless it was migrated.
    var latest: OpenStore {
        guard var latest = successor else { return self }
        while let next = latest.successor { latest = next }
        return latest
    }

    /// Whether the coordinator has another store at this one's index.
    var hasMoved: Bool { newest == nil && !open.load(ordering: .acquiring) && successor != nil }

    /// Lets another store go on with the objects of this one: IDs lead there.
    func giveWay(to new: OpenStore) {
        _ = place.storeIfNil(new)
        ids.lead(to: new)
        releaseNumber()
    }

    /// Whether a request that names a store means this one, which may have taken that one's place.
    func isMeant(by store: NSPersistentStore) -> Bool {
        self.store === store || formerStores.contains { $0 === store }
    }

    /// Reads rows by their keys.
    ///
    /// If the store is migrated meanwhile, the one in its place is asked: this one may be closed by now, and have
    /// answered with nothing.
    func reading<R>(_ body: (any RowSource) throws -> R) throws -> R {
        guard newest == nil else { return try body(reader) }
        while true {
            let store = latest
            let result = Result { try body(store.reader) }
            if store.successor == nil { return try result.get() }
        }
    }

    private static let lastVersion = Atomic<Int>(0)

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
                former.map { StoreNumbers.inherit($0.number, by: uuid, from: $0.uuid) } ?? StoreNumbers.take(uuid)
            } ?? StoreNumbers.next()
        seenCommitsOfOthers = Atomic(rows.commitsOfOthers)
    }

    deinit { releaseNumber() }

    private func releaseNumber() {
        guard let uuid, holdsNumber.exchange(false, ordering: .acquiringAndReleasing) else { return }
        StoreNumbers.release(uuid)
    }

    /// One version of a store: the same objects under the same IDs, with rows of its own.
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
        seenCommitsOfOthers = Atomic(0)
        cache.limit = base.cache.limit
    }
}

/// The numbers of open stores.
private enum StoreNumbers {
    private struct State {
        var last = 0
        /// The numbers of stores by their UUIDs, with how many coordinators have them open.
        var held: [String: (number: Int, count: Int)] = [:]

        mutating func next() -> Int {
            last += 1
            return last
        }
    }

    private static let state = Mutex(State())

    static func next() -> Int { state.withLock { $0.next() } }

    /// The number of the store with a UUID, for one coordinator more.
    static func take(_ uuid: String) -> Int {
        state.withLock { state in
            let number = state.held[uuid]?.number ?? state.next()
            state.held[uuid, default: (number, 0)].count += 1
            return number
        }
    }

    /// The number of the store with a UUID that takes the place of another in a coordinator.
    ///
    /// It is the number of that one, as what was resolved before names its objects by it, unless other coordinators have
    /// either of the two open.
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

// MARK: - What only stores of one's own do in another way

extension OpenStore {
    /// Whether a fetch brings rows; otherwise each is asked for when its object's fault fires.
    var fetchesRows: Bool { custom?.fetchesRows ?? true }

    /// Whether a save is told in objects, which must have their permanent IDs by then.
    var isToldOfObjects: Bool { custom != nil }

    /// Reserves keys for new objects, in their order.
    func keys(for objects: [NSManagedObject]) throws -> [Int64] {
        if let custom { return try custom.keys(for: objects) }
        let counts = Dictionary(objects.map { ($0.layout.rootNumber, 1) }, uniquingKeysWith: +)
        var keys = try rows.reserveKeys(counts).mapValues { $0.joined().makeIterator() }
        return objects.compactMap { keys[$0.layout.rootNumber]?.next() }
    }

    /// Writes the change set of a context; see ``RowStore/save(_:didCommit:)``.
    func save(_ changes: StoreChanges, of context: NSManagedObjectContext, didCommit: (StoreSaveResult) -> Void) throws
        -> [StoreConflict]
    {
        if let custom {
            let conflicts = try custom.save(changes, of: context, didCommit: didCommit)
            // It writes its metadata in the same go.
            if conflicts.isEmpty { custom.hasNewMetadata = false }
            return conflicts
        }
        return try naming { try rows.save(changes, didCommit: didCommit) }
    }

    /// Carries out a batch; see ``RowStore/execute(_:didCommit:)``.
    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws {
        if let request = batch.request as? NSPersistentStoreRequest, !rows.takesBatches { throw refusal(of: request) }
        try naming { try rows.execute(batch.asked(ofStore: number), didCommit: didCommit) }
    }

    /// Names the store in errors of its engine, which does not know it.
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
    func refusal(of request: NSPersistentStoreRequest) -> CocoaError {
        CocoaError.described(
            .persistentStoreUnsupportedRequestType,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Stores of type \(store.type) (\(type(of: store))) take no \(type(of: request)): fetch the objects, change them, and save.",
                NSAffectedStoresErrorKey: [store],
            ]
        )
    }

    /// What stands for a key in a URI, after the `p`.
    func uriText(ofKey key: Int64, in layout: EntityLayout) -> String {
        custom?.uriText(ofKey: key, in: layout) ?? "\(key)"
    }

    /// The key that a URI means.
    func key(fromURIText text: Substring, of layout: EntityLayout) -> Int64? {
        if let custom {
            // One that was migrated names no more objects, as the one in its place gives keys as well.
            return successor == nil
                ? custom.key(fromURIText: text, of: layout) : custom.knownKey(fromURIText: text, of: layout)
        }
        return Int64(text).flatMap { $0 > 0 ? $0 : nil }
    }
}
