import StrataLocks
import StrataPredicates

/// Reads the rows of any store for resolved expressions, and one by one the rows that these lead to.
///
/// It lives for one fetch.
package final class StoreRowReader: RowFinder {
    private let store: any RowSource
    package let storeNumber: Int
    /// Rows that the fetch has read.
    private var given: [PredicateIdentity: Row] = [:]
    /// The rows that were read for the evaluation.
    ///
    /// An identity has `nil` if its row is missing.
    private var known: [PredicateIdentity: Row?] = [:]

    /// - Parameters:
    ///   - store: The store.
    ///   - rows: Rows that were read already.
    ///   - storeNumber: The number by which predicates distinguish the store's objects from those of other stores.
    package init(_ store: any RowSource, _ rows: [Row], storeNumber: Int) {
        self.store = store
        self.storeNumber = storeNumber
        replaceRows(rows)
    }

    /// Puts the next rows of the fetch in the place of those that were read already.
    ///
    /// The rows that the former ones led to are kept, unless they are too many: the next rows may lead to them as well.
    package func replaceRows(_ rows: [Row]) {
        given.removeAll(keepingCapacity: true)
        for row in rows { given[identity(of: row.buffer)] = row }
        if known.count > WorkSize.evaluatedRows { known.removeAll() }
    }

    package func row(_ identity: PredicateIdentity, in layout: EntityLayout) throws -> Row? {
        if let row = given[identity] { return row }
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
