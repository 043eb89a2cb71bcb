import Foundation
import Synchronization

/// A store that a coordinator has opened, with what all contexts share of it: its rows and its IDs; or one version of
/// such a store, with the rows that the contexts pinned to it share.
final class OpenStore: Sendable {
    let store: any RowStore
    /// What answers reads: the store, or the version.
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

    init(store: any RowStore, owner: NSPersistentStoreCoordinator, index: Int, entityNumbers: Set<Int>) {
        self.store = store
        reader = store
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
