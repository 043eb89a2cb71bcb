import CoreDataEssentials
import StrataPredicates
import StrataRows

extension FetchPlan {
    /// The IDs of the rows in the plan's window over several stores, by store.
    ///
    /// No store alone can decide which of its rows are among the first of all. The result has the rows that a fetch
    /// from the same stores would find. From each store no more rows are read than the window can hold.
    func idsInWindow(over stores: [OpenStore]) throws -> [[NSManagedObjectID]] {
        var candidates: [Candidate] = []
        for (position, store) in stores.enumerated() { candidates += try self.candidates(in: store, position) }
        // Equal candidates keep the order of the stores, and inside a store the order of the store.
        if let sort { candidates.sort { sort.compare($0.sortKeys, $1.sortKeys) == .orderedAscending } }
        var ids: [[NSManagedObjectID]] = stores.map { _ in [] }
        for candidate in window(candidates) {
            let (store, reference) = (stores[candidate.store], candidate.reference)
            let layout = layout.schema.entities[reference.entity - 1]
            ids[candidate.store].append(store.ids.id(key: reference.key, layout: layout, store: store))
        }
        return ids
    }

    /// A row that may be in the window.
    private struct Candidate {
        /// The position of its store.
        let store: Int
        let reference: ObjectReference
        let sortKeys: [PredicateValue]
    }

    private func candidates(in store: OpenStore, _ position: Int) throws -> [Candidate] {
        let part = firstPart.asked(ofStore: store.number)
        guard let sort else {
            return try store.reader.references(for: part).map {
                Candidate(store: position, reference: $0, sortKeys: [])
            }
        }
        let rows = try store.reader.rows(for: part)
        let reader = StoreRowReader(store.rows, rows, storeNumber: store.number)
        return try rows.map { row in
            Candidate(
                store: position,
                reference: ObjectReference(key: row.key, entity: row.layout.number),
                sortKeys: try sort.keys(of: row.buffer, reader: reader)
            )
        }
    }
}
