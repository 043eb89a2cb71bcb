import StrataPredicates

/// Reads the rows of any store for resolved expressions, and those that they lead to one after the other.
///
/// Lives for one fetch.
package final class StoreRowReader: RowFinder {
    private let store: any RowSource
    package let storeNumber: Int
    /// What was read; an identity whose row is missing has none.
    private var known: [PredicateIdentity: Row?] = [:]

    /// - Parameters:
    ///   - store: The store.
    ///   - rows: Rows that were read already.
    ///   - storeNumber: The number by which predicates tell the store's objects from others.
    package init(_ store: any RowSource, _ rows: [Row], storeNumber: Int) {
        self.store = store
        self.storeNumber = storeNumber
        for row in rows { known[identity(of: row.buffer)] = row }
    }

    package func row(_ identity: PredicateIdentity, in layout: EntityLayout) throws -> Row? {
        if let row = known[identity] { return row }
        let row = try store.row(forKey: identity.key, in: layout)
        known[identity] = .some(row)
        return row
    }

    private func row(_ reference: ObjectReference, _ relationship: PredicateRelationship) throws -> Row? {
        guard let layout = relationship.destination as? EntityLayout else { return nil }
        let identity = PredicateIdentity(store: storeNumber, entity: layout.rootNumber, key: reference.key)
        return try row(identity, in: layout)
    }

    // MARK: - PredicateReader

    package func subject(of relationship: PredicateRelationship, in subject: AnyObject) throws -> AnyObject? {
        try row(subject).reference(of: relationship).flatMap { try row($0, relationship)?.buffer }
    }

    package func subjects(of relationship: PredicateRelationship, in subject: AnyObject) throws -> [AnyObject] {
        try members(of: relationship, in: subject).compactMap { try row($0, relationship)?.buffer }
    }

    package func count(of relationship: PredicateRelationship, in subject: AnyObject) throws -> Int {
        try members(of: relationship, in: subject).count
    }

    private func members(of relationship: PredicateRelationship, in subject: AnyObject) throws -> [ObjectReference] {
        let row = row(subject)
        return try store.members(
            of: row.layout.toMany[relationship.slot],
            ownedBy: ObjectReference(key: row.key, entity: row.layout.number)
        )
    }
}
