import Foundation
import StrataRows

// How a fetch goes up a tree. Each context folds its own unsaved changes into what the one above answers; only the root
// asks the stores. All scopes from the child to the root are held (`inChain`).

extension ContextFetch {
    /// What the parent answers to the same fetch, or to another part of it: with all that it has not saved.
    func askParent<Answer>(_ plan: FetchPlan, _ body: (ContextFetch) throws -> Answer) throws -> Answer {
        // Only asked for children.
        let parent = context.upward?.parent ?? context
        return try ConfinementScope.enter(parent) {
            parent.processPendingChanges()
            let stores = try stores.map { try parent.seen($0) }
            let quiet = QuietReads(parent)
            defer { quiet.end() }
            return try body(ContextFetch(parent, FetchSpecification(), plan, stores, prepared, quiet))
        }
    }

    /// The answer for a child, in order, offset and limit applied.
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

    /// The IDs of the answer for a child, in order, offset and limit applied.
    func idsForChild() throws -> [NSManagedObjectID] {
        if stores.count == 1, overlay == nil { return try ids() }
        return try objects().map(\.objectID)
    }

    /// What lies above the context: without its own unsaved changes, of which none matters here.
    private func upstream(_ store: OpenStore) throws -> [Snapshot] {
        if context.upward != nil { return try askParent(plan) { try $0.snapshotsForChild() } }
        let storeIndex = Int32(store.index)
        return try rows(in: store, plan).rows.map { context.snapshot($0.key, storeIndex, $0) }
    }
}
