import Foundation
import Synchronization

/// A store that a coordinator has opened, with what all contexts share of it: its rows and its IDs.
final class OpenStore: Sendable {
    let store: any RowStore
    /// The coordinator that opened the store.
    let owner: ObjectIdentifier
    let cache = RowCache()
    let ids = ObjectIDTable()
    /// The position among all stores that the coordinator ever had, by which contexts tell objects of different stores.
    let slot: Int
    /// A number that no other open store of the process has, never 0: predicates tell objects of different stores by it.
    let number: Int
    private let open = Atomic(true)
    /// The numbers of the entities that the store's configuration holds.
    let entityNumbers: Set<Int>

    /// Whether the store still belongs to its coordinator.
    var isOpen: Bool { open.load(ordering: .acquiring) }

    /// Tells that the store was removed.
    func noteRemoval() { open.store(false, ordering: .releasing) }

    private static let lastNumber = Atomic<Int>(0)

    init(store: any RowStore, owner: NSPersistentStoreCoordinator, slot: Int, entityNumbers: Set<Int>) {
        self.store = store
        self.owner = ObjectIdentifier(owner)
        self.slot = slot
        self.entityNumbers = entityNumbers
        number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    }
}
