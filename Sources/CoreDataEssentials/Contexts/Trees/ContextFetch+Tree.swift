import Foundation
import StrataRows

// Fetches in a tree. Each context applies its own unsaved changes to the result of the context above; only the root
// reads from the stores. The scopes of all contexts from the child to the root are held (`inChain`).

extension ContextFetch {
    /// Runs `body` with the same fetch, or another part of it, in the parent; its unsaved changes are part of the
    /// result.
    func askParent<Answer>(_ plan: FetchPlan, _ body: (ContextFetch) throws -> Answer) throws -> Answer {
        // This is called for children only, so there is a parent.
        let parent = context.upward?.parent ?? context
        return try ConfinementScope.enter(parent) {
            parent.endEvent(isMerge: false)
            let stores = try stores.map { try parent.seen($0) }
            let quiet = QuietReads(parent)
            defer { quiet.end() }
            var announced = FetchSpecification()
            // The plan has the condition. This is for those who watch reads.
            announced.predicate = specification.predicate
            return try body(
                ContextFetch(
                    context: parent,
                    specification: announced,
                    plan: plan,
                    stores: stores,
                    prepared: prepared,
                    quiet: quiet
                )
            )
        }
    }

    /// The result for a child, in order, with offset and limit applied.
    func snapshotsForChild() throws -> [Snapshot] {
        if stores.count == 1, overlay == nil {
            return try upstream(stores[0]).compactMap { found in
                let layout = found.row.layout
                guard let known = context.registered(key: found.key, layout: layout, storeIndex: found.storeIndex),
                    !known.isFault
                else { return found }
                return try context.snapshot(of: known)
            }
        }
        return try objects().compactMap { try context.snapshot(of: $0) }
    }

    /// The IDs of the result for a child, in order, with offset and limit applied.
    func idsForChild() throws -> [NSManagedObjectID] {
        if stores.count == 1, overlay == nil { return try ids() }
        return try objects().map(\.objectID)
    }

    /// The result of the contexts and stores above, without this context's unsaved changes, which do not matter here.
    private func upstream(_ store: OpenStore) throws -> [Snapshot] {
        if context.upward != nil { return try askParent(plan) { try $0.snapshotsForChild() } }
        let storeIndex = Int32(store.index)
        return try rows(in: store, plan).rows.map { context.snapshot(key: $0.key, storeIndex: storeIndex, row: $0) }
    }
}
