import Foundation
import StrataRows
import Synchronization

/// A store that a coordinator has opened, with what all contexts share of it: its rows and its IDs; or one version of
/// such a store, with the rows that the contexts pinned to it share.
final class OpenStore: Sendable {
    /// The store as the public API shows it.
    let store: NSPersistentStore
    /// What answers for the store: its engine, or a store of one's own itself.
    let rows: any RowStore
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
    let cache = RowCache()
    let ids: ObjectIDTable
    /// The position among all stores that the coordinator ever had, by which contexts tell objects of different stores.
    let index: Int
    /// A number that no other open store of the process has, never 0: predicates tell objects of different stores by it.
    let number: Int
    private let open = Atomic(true)
    /// The numbers of the entities that the store's configuration holds.
    let entityNumbers: Set<Int>

    /// The store itself, whose rows are the newest.
    var base: OpenStore { newest ?? self }

    /// Whether the store still belongs to its coordinator.
    var isOpen: Bool { newest?.isOpen ?? open.load(ordering: .acquiring) }

    /// Tells that the store was removed.
    func noteRemoval() { open.store(false, ordering: .releasing) }

    private static let lastNumber = Atomic<Int>(0)
    private static let lastVersion = Atomic<Int>(0)

    init(
        store: NSPersistentStore,
        _ rows: any RowStore,
        owner: NSPersistentStoreCoordinator,
        index: Int,
        entityNumbers: Set<Int>
    ) {
        self.store = store
        self.rows = rows
        custom = store as? any CustomStore
        reader = rows
        newest = nil
        version = 0
        ids = ObjectIDTable()
        self.owner = ObjectIdentifier(owner)
        self.index = index
        self.entityNumbers = entityNumbers
        number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    }

    /// One version of a store: the same objects under the same IDs, with rows of its own.
    init(_ base: OpenStore, readBy reader: any RowSource) {
        store = base.store
        rows = base.rows
        custom = base.custom
        self.reader = reader
        newest = base
        version = Self.lastVersion.add(1, ordering: .relaxed).newValue
        ids = base.ids
        owner = base.owner
        index = base.index
        number = base.number
        entityNumbers = base.entityNumbers
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
        if let custom { return try custom.save(changes, of: context, didCommit: didCommit) }
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
            throw CocoaError(error.code, userInfo: userInfo)
        }
    }

    /// The error for a batch that the store does not take.
    func refusal(of request: NSPersistentStoreRequest) -> CocoaError {
        CocoaError(
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
        if let custom { return custom.key(fromURIText: text, of: layout) }
        return Int64(text).flatMap { $0 > 0 ? $0 : nil }
    }
}
