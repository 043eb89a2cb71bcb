import CoreDataBatches
import CoreDataEssentials
import StrataRows

/// The request of a claim, a renewal or a release, as errors and stores name it.
final class ClaimRequest: NSPersistentStoreRequest {
    override var requestType: NSPersistentStoreRequestType { .batchUpdateRequestType }
}

/// One change of leases, in all stores that a plan concerns.
struct LeaseChange {
    let context: NSManagedObjectContext
    let request = ClaimRequest()
    /// The rows, within the limit for all stores together.
    let rows: FetchPlan
    /// The new worker; `nil` for none.
    let worker: String?
    let lease: RowLease?
    let slots: (worker: Slot, end: Slot)

    /// Changes the rows of the stores, one store after the other, and lists their IDs as soon as a store has them.
    ///
    /// The context merges the new values of the leases, with its unsaved changes on top.
    ///
    /// - Parameters:
    ///   - affected: The stores to change; `nil` for all that hold the entity.
    ///   - ids: The IDs of changed rows are added to it.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) for a custom store, `persistentStoreOperation` (134070) for
    ///   one that is read-only, and errors of the store.
    func make(in affected: [NSPersistentStore]?, ids: inout [NSManagedObjectID]) throws {
        guard let coordinator = context.coordinator else { throw context.noCoordinator(request) }
        let stores = try coordinator.openStores(for: rows, affected)
        // An incremental store would receive a request that it cannot know.
        if let store = stores.first(where: { $0.custom != nil }) { throw store.refusal(of: request) }
        try context.requireWritable(stores, request)
        var rest = rows.limit
        for store in stores {
            let rows = rows.with(predicate: rows.predicate, sort: rows.sort, limit: rest, offset: 0)
            let batch = Batch(
                request: request,
                work: .update(update(rows)),
                listsRows: true,
                recordedBy: context.recordedNames
            )
            let changed = try context.execute(batch, in: [store], mergesHere: true).ids([\.changed])
            ids += changed
            guard rest > 0 else { continue }
            rest -= changed.count
            if rest <= 0 { return }
        }
    }

    private func update(_ rows: FetchPlan) -> BatchUpdate {
        let constants = Row(layout: rows.layout, key: 0)
        constants.setNull(slots.end)
        if let worker { constants.setString(worker, slots.worker) } else { constants.setNull(slots.worker) }
        return BatchUpdate(
            rows: rows,
            constants: constants,
            // The store sets the end of a lease.
            constantSlots: lease == nil ? [slots.worker, slots.end] : [slots.worker],
            computed: [],
            variableCount: rows.predicate?.variableCount ?? 1,
            lease: lease
        )
    }
}
