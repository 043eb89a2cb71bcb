import CoreDataBatches
import CoreDataEssentials
import Foundation
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
    /// Values or expressions that the same statement gives to other properties.
    var others: [AnyHashable: Any] = [:]

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
                work: .update(try update(rows, coordinator.frozenModel)),
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

    private func update(_ rows: FetchPlan, _ model: FrozenModel) throws -> BatchUpdate {
        var properties = others
        properties[slots.worker.name] = worker ?? NSNull()
        // The store sets the end of a lease.
        if lease == nil { properties[slots.end.name] = NSNull() }
        let planner = BatchPlanner(planner: FetchPlanner(model: model))
        let update = try planner.update(rows, setting: properties, action: "A claim").update
        return BatchUpdate(
            rows: update.rows,
            constants: update.constants,
            constantSlots: update.constantSlots,
            computed: update.computed,
            variableCount: update.variableCount,
            lease: lease
        )
    }
}
