import Foundation

// How a fetch goes up a tree. Each context folds its own unsaved changes into what the one above answers; only the root asks
// the stores. All scopes from the child to the root are held (`inChain`).

extension ContextFetch {
    /// What the parent answers to the same fetch, or to another part of it: with all that it has not saved.
    func askParent<Answer>(_ plan: FetchPlan, _ body: (ContextFetch) throws -> Answer) throws -> Answer {
        // Only asked for children.
        let parent = context.upward?.parent ?? context
        return try ConfinementScope.enter(parent) {
            parent.processPendingChanges()
            let stores = try stores.map { try parent.seen($0) }
            return try body(ContextFetch(parent, FetchSpecification(), plan, stores, prepared))
        }
    }

    /// The answer for a child, in order, offset and limit applied.
    func snapshotsForChild() throws -> [Snapshot] {
        if stores.count == 1, overlay == nil {
            return try upstream(stores[0]).compactMap { found in
                let layout = found.row.layout
                guard let known = context.registered(key: found.key, layout: layout, storeSlot: found.storeSlot),
                    !known.isFault
                else { return found }
                return try context.snapshot(of: known)
            }
        }
        return try passing { try context.snapshot(of: $0) }
    }

    /// The IDs of the answer for a child, in order, offset and limit applied.
    func idsForChild() throws -> [NSManagedObjectID] {
        if stores.count == 1, overlay == nil { return try ids() }
        return try passing { $0.objectID }
    }

    /// What `body` makes of each object of the answer; faults that were made for that are let go of again.
    private func passing<Result>(_ body: (NSManagedObject) throws -> Result?) throws -> [Result] {
        var faults: [FaultName] = []
        let results = try collect(body, &faults)
        context.forgetUnheld(faults)
        return results
    }

    /// The part that holds the objects.
    @inline(never)
    private func collect<Result>(
        _ body: (NSManagedObject) throws -> Result?,
        _ faults: inout [FaultName]
    ) throws -> [Result] {
        try objects().compactMap { object in
            if object.isFault, object.key > 0, object.isDisposable, object.extras == nil {
                faults.append(FaultName(key: object.key, root: object.layout.rootNumber, storeSlot: object.storeSlot))
            }
            return try body(object)
        }
    }

    /// What lies above the context: without its own unsaved changes, of which none matters here.
    private func upstream(_ store: OpenStore) throws -> [Snapshot] {
        if context.upward != nil { return try askParent(plan) { try $0.snapshotsForChild() } }
        let slot = Int32(store.slot)
        return try rows(in: store, plan).rows.map { context.snapshot($0.key, slot, $0) }
    }
}

/// Where a fault is filed.
private struct FaultName {
    let key: Int64
    let root: Int
    let storeSlot: Int32
}

extension NSManagedObjectContext {
    /// Lets go of faults that nobody needs.
    ///
    /// O(number of faults named), whatever else is registered.
    fileprivate final func forgetUnheld(_ faults: [FaultName]) {
        guard !retainsRegisteredObjects else { return }
        for fault in faults {
            let table = table(storeSlot: fault.storeSlot, root: fault.root)
            guard !table.isHeldElsewhere(fault.key), let object = table.remove(fault.key) else { continue }
            registeredCount -= 1
            if tellsStores { tellStore(of: object, isRegistered: false) }
        }
    }
}
