/// A source that passes each question on: an engine passes it to its newest data, a pinned version to its snapshot.
package protocol ForwardingRowSource: RowSource {
    /// The source that answers at this moment.
    ///
    /// - Throws: An error that says why no source can answer, for example because the store was closed.
    var reading: any RowReading { get throws }
}

extension ForwardingRowSource {
    package func rows(for plan: FetchPlan) throws -> [Row] { try reading.rows(for: plan) }

    package func references(for plan: FetchPlan) throws -> [ObjectReference] { try reading.references(for: plan) }

    package func count(for plan: FetchPlan) throws -> Int { try reading.count(for: plan) }

    package func cursor(for plan: FetchPlan) throws -> any RowCursor { try reading.cursor(for: plan) }

    package func values(for plan: DictionaryPlan) throws -> FetchedValues { try reading.values(for: plan) }

    package func count(for plan: DictionaryPlan) throws -> Int { try reading.count(for: plan) }

    package func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? {
        try reading.row(forKey: key, in: layout)
    }

    package func rows(forKeys keys: [Int64], in layout: EntityLayout) throws -> [Row] {
        try reading.rows(forKeys: keys, in: layout)
    }

    package func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        try reading.members(of: relationship, ownedBy: owner)
    }

    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference]) throws -> Memberships {
        try reading.memberships(of: relationship, ownedBy: owners)
    }

    package func rows(forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl) throws -> [Row] {
        try reading.rows(forKeys: keys, in: layout, control)
    }

    package func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], _ control: FetchControl)
        throws
        -> Memberships
    { try reading.memberships(of: relationship, ownedBy: owners, control) }
}
