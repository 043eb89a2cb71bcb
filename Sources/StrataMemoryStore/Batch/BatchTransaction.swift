import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

/// One batch, on a copy of the contents of an in-memory store.
struct BatchTransaction {
    let batch: Batch
    var contents: InMemoryContents
    /// The changes so far.
    var changes = BatchChanges()
    /// The rows in `changes.followed` and `changes.related`, each of which is listed once.
    private var listed: Set<Listed> = []
    /// The orders that are written anew at the end.
    var reordered = ReorderedOwners()

    private struct Listed: Hashable {
        let row: RowName
        let isFollowed: Bool
    }

    init(_ batch: Batch, _ contents: InMemoryContents) {
        self.batch = batch
        self.contents = contents
    }

    /// All new rows of an insertion at once, because this store keeps them in memory anyway.
    static func givenRows(of batch: Batch) throws -> [GivenRow] {
        guard case .insert(let insertion) = batch.work else { return [] }
        if let count = insertion.rows.count { insertion.making?.expect(count) }
        var rows: [GivenRow] = []
        var counter = RowCounter(insertion.making)
        while let given = try insertion.nextRow() {
            try insertion.control?.cancellation.check()
            rows.append(given)
            counter.count()
        }
        counter.finish()
        insertion.control?.expect(rows.count)
        return rows
    }

    /// Makes all changes.
    ///
    /// - Throws: The errors of rows, values and deletions that the batch may not have.
    mutating func run(_ given: [GivenRow]) throws {
        switch batch.work {
        case .insert(let insertion): try insert(given, insertion)
        case .update(let update):
            let before = contents
            guard let update = try update.withinQuota({ try InMemoryFetch($0.rows, before).count() }) else { break }
            try self.update(update.leased(at: Date().timeIntervalSinceReferenceDate))
        case .delete(let deletion): try delete(deletion)
        }
        reordered.write(to: &contents)
        updateDerived()
    }

    /// Brings derived attributes up to date, and lists the rows that are not listed already.
    private mutating func updateDerived() {
        let rows = contents.updateDerived()
        guard !rows.isEmpty else { return }
        var known: [Int: Set<Int64>] = [:]
        for rows in [changes.inserted, changes.changed, changes.followed].joined() {
            known[rows.layout.rootNumber, default: []].formUnion(rows.keys)
        }
        for row in rows where known[row.layout.rootNumber]?.contains(row.key) != true {
            changes.related.add(row.key, row.layout)
        }
    }

    // MARK: - Rows

    func row(_ key: Int64, root: Int) -> Row? { contents.rows[root]?[key] }

    /// A copy of a row with the next version, to be changed and put back.
    func successor(of row: Row) -> Row {
        let next = row.copy()
        next.setVersion(row.version + 1)
        next.setStamp(CoarseClock.now)
        return next
    }

    mutating func put(_ row: Row) { contents.put(row, key: row.key, permanent: PermanentKeys()) }

    // MARK: - Owners and members

    /// Lists the owner of a to-many relationship that has changed.
    ///
    /// If it is ordered, then the owner gets a new version.
    mutating func markMembersChanged(of owner: Int64, _ relationship: Relationship) {
        let root = relationship.entity.rootNumber
        guard let row = row(owner, root: root) else { return }
        let change = Listed(row: RowName(row), isFollowed: relationship.isOrdered)
        guard listed.insert(change).inserted else { return }
        if relationship.isOrdered {
            put(successor(of: row))
            changes.followed.add(owner, row.layout, properties: [relationship.name])
        } else {
            changes.related.add(owner, row.layout, properties: [relationship.name])
        }
    }

    /// Throws an error if a relationship leads to a row that does not exist.
    func requireTarget(_ reference: ObjectReference, _ slot: Slot) throws {
        guard let destination = slot.relationship?.destination,
            row(reference.key, root: destination.rootNumber) == nil
        else { return }
        throw CocoaError.missingBatchTarget(of: slot, key: reference.key, in: batch.layout)
    }
}
