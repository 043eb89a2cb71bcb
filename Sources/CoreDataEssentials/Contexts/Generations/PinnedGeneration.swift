import StrataLocks
import StrataRows
import Synchronization

/// One version of a coordinator's stores, which exists as long as a context or a token holds it.
///
/// The first read by any context that is pinned to it decides which version that is. Any thread may use it.
package final class PinnedGeneration: Sendable {
    let coordinator: NSPersistentStoreCoordinator
    /// Distinguishes the generation from others of the process.
    let number: Int
    private let pinned = Locked<PinnedStores?>(nil)

    private static let lastNumber = AtomicCell<Int>(0)

    /// Whether stores may be read from replicas.
    private let mayBeReplica: Bool

    init(_ coordinator: NSPersistentStoreCoordinator, mayBeReplica: Bool) {
        self.coordinator = coordinator
        self.mayBeReplica = mayBeReplica
        number = Self.lastNumber.add(1, ordering: .relaxed).newValue
    }

    /// The stores that are read in their current state; before the first read, those that will be if none is added.
    var unpinnedStores: [NSPersistentStore] {
        if let known = pinned.withLock({ $0 }) { return known.unpinned }
        return coordinator.openStores.filter { !$0.rows.keepsVersions }.map { $0.store as NSPersistentStore }
    }

    /// The stores of the generation; made by the first call.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if a store keeps too many versions already; errors of the stores.
    package func stores() throws -> PinnedStores {
        if let known = pinned.withLock({ $0 }) { return known }
        // This is outside the lock, as transactions begin here. If several threads come first, one result is used.
        let made = Result { try PinnedStores(coordinator, mayBeReplica) }
        return try pinned.withLock { pinned in
            let stores = try pinned ?? made.get()
            pinned = stores
            return stores
        }
    }
}

/// The stores that a coordinator had when a generation was first read, each at one version.
///
/// Any thread may use it.
package final class PinnedStores: Sendable {
    /// The stores by index; `nil` for those that were not open.
    ///
    /// A store that keeps no versions is in the array itself.
    private let versions: [OpenStore?]
    /// Whether any store is at a version.
    let isPinned: Bool

    /// The stores that are read in their current state, if they are still open.
    var unpinned: [NSPersistentStore] {
        versions.compactMap { $0 }.filter { $0 === $0.base }.map(\.latest).filter(\.isOpen).map {
            $0.store as NSPersistentStore
        }
    }

    fileprivate init(_ coordinator: NSPersistentStoreCoordinator, _ mayBeReplica: Bool) throws {
        var versions: [OpenStore?] = []
        for store in coordinator.openStores {
            while versions.count <= store.index { versions.append(nil) }
            let version = try store.rows.pinnedVersion(mayBeReplica: mayBeReplica)
            versions[store.index] = version.map { OpenStore(store, readBy: $0) } ?? store
        }
        self.versions = versions
        isPinned = versions.contains { $0 !== $0?.base }
    }

    /// A store as this generation sees it; a store that was added later is empty.
    func version(of store: OpenStore) -> OpenStore {
        // A store that is read in its current state may have been migrated since.
        if store.index < versions.count, let version = versions[store.index] { return version.latest }
        return OpenStore(store.base, readBy: NoRows())
    }

    /// The stores that a fetch reads: those that hold one of its entities, restricted to `affected` if that is not
    /// `nil`.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if one of them was removed, or there is none.
    package func stores(for plan: FetchPlan, _ affected: [NSPersistentStore]?) throws -> [OpenStore] {
        let stores = versions.compactMap { $0?.latest }.filter { version in
            plan.entityNumbers.contains { version.entityNumbers.contains($0) }
                && (affected?.contains { version.isMeant(by: $0) } ?? true)
        }
        if let removed = stores.first(where: { !$0.isOpen }) {
            throw FetchPlanner.refused(
                "The store \(removed.store.url?.placeName ?? "") was removed, or migrated, since the context was pinned; call setQueryGenerationFrom(_:) to see the stores that there are."
            )
        }
        guard stores.isEmpty, affected == nil else { return stores }
        throw FetchPlanner.refused(
            "No store that the context is pinned to holds entity \(plan.layout.entity.name ?? ""); stores that were added later are seen after setQueryGenerationFrom(_:)."
        )
    }
}
