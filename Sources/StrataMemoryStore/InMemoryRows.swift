import StrataPredicates
import StrataRows

/// A store that keeps all rows in memory, in ``InMemoryContents``.
///
/// Any thread may read. The store's mutex is held only while a read takes a copy of the contents. The cost of a copy
/// does not grow with the number of rows, and the read evaluates it outside the mutex.
package protocol InMemoryRows: RowStore {
    /// Runs `body` with the current contents, which do not change meanwhile.
    func withContents<T: Sendable>(_ body: (InMemoryContents) -> T) -> T
}

extension InMemoryRows {
    /// A copy of the contents, which shares its storage with them until they change.
    package var snapshot: InMemoryContents { withContents { $0 } }

    package func rows(for plan: FetchPlan) throws -> [Row] { try InMemoryFetch(plan, snapshot).rows() }

    package func references(for plan: FetchPlan) throws -> [ObjectReference] {
        try rows(for: plan).map { ObjectReference(key: $0.key, entity: $0.layout.number) }
    }

    package func count(for plan: FetchPlan) throws -> Int { try InMemoryFetch(plan, snapshot).count() }

    package func values(for plan: DictionaryPlan) throws -> FetchedValues {
        let fetch = InMemoryFetch(plan.rows, snapshot)
        return try plan.rows.evaluating {
            try DictionaryEvaluation(plan, fetch.reader).results(from: fetch.rows())
        }
    }

    package func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        withContents { $0.rows[layout.rootNumber]?[key] }
    }

    package func rows(forKeys keys: [Int64], in layout: EntityLayout, control: FetchControl?) throws -> [Row] {
        withContents { contents in keys.compactMap { contents.rows[layout.rootNumber]?[$0] } }
    }

    package func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        withContents { $0.members(of: relationship, ownedBy: owner.key) }
    }

    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], control: FetchControl?)
        throws
        -> Memberships
    {
        // All memberships are read at one moment, as by one query.
        let contents = snapshot
        let root = relationship.relationship.destination?.rootNumber ?? 0
        var result = Memberships()
        var seen = KeyMap<Bool>(minimumCapacity: owners.count)
        for owner in owners {
            let members = contents.members(of: relationship, ownedBy: owner.key)
            result.groups.append((owner.key, members))
            for member in members where seen[member.key] == nil {
                seen.set(true, for: member.key)
                if let row = contents.rows[root]?[member.key] { result.rows.append(row) }
            }
        }
        return result
    }
}
