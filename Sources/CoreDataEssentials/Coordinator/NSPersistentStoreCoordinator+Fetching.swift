import StrataRows

extension NSPersistentStoreCoordinator {
    /// The stores that a fetch reads: those that hold one of its entities, and are in `affected` if that is not `nil`.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if no store holds the entity.
    package func openStores(for plan: FetchPlan, _ affected: [NSPersistentStore]?) throws -> [OpenStore] {
        let stores = openStores.filter { open in
            plan.entityNumbers.contains { open.entityNumbers.contains($0) }
                && (affected?.contains { open.isMeant(by: $0) } ?? true)
        }
        guard stores.isEmpty, affected == nil else { return stores }
        throw FetchPlanner.refused(
            "No store of the coordinator holds entity \(plan.layout.entity.name ?? ""); add a store before you fetch."
        )
    }
}
