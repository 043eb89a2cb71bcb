import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

/// One batch, on a copy of the contents of an in-memory store.
struct InMemoryBatch {
    let batch: Batch
    var contents: InMemoryContents
    /// What has changed so far.
    var changes = BatchChanges()
    /// The rows in `changes.followed` and `changes.related`, each of which is listed once.
    private var noted: Set<Noted> = []
    /// Orders that are written anew at the end.
    var reordered = ReorderedOwners()

    private struct Noted: Hashable {
        let root: Int
        let key: Int64
        let isFollowed: Bool
    }

    init(_ batch: Batch, _ contents: InMemoryContents) {
        self.batch = batch
        self.contents = contents
    }

    /// The new rows of an insertion, all of them: this store keeps them in memory anyway.
    static func givenRows(of batch: Batch) throws -> [GivenRow] {
        guard case .insert(let insertion) = batch.work else { return [] }
        if let count = insertion.rows.count { insertion.making?.expect(count) }
        var rows: [GivenRow] = []
        var counter = RowCounter(insertion.making)
        while let given = try insertion.nextRow() {
            if let control = insertion.control, control.isCancelled { throw CancellationError() }
            rows.append(given)
            counter.count()
        }
        counter.finish()
        insertion.control?.expect(rows.count)
        return rows
    }

    /// Makes all changes.
    ///
    /// - Throws: What is refused.
    mutating func run(_ given: [GivenRow]) throws {
        switch batch.work {
        case .insert(let insertion): try insert(given, insertion)
        case .update(let update): try self.update(update)
        case .delete(let deletion): try delete(deletion)
        }
        reordered.write(to: &contents)
        noteDerived()
    }

    /// Brings derived attributes up to date, and lists the rows that are not listed already.
    private mutating func noteDerived() {
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

    mutating func put(_ row: Row) { contents.put(row, row.key, KeyMap()) }

    // MARK: - Owners and members

    /// Notes that a to-many relationship has changed: of an ordered one the owner gets a new version.
    mutating func noteMembers(of owner: Int64, _ relationship: Relationship) {
        let root = relationship.entity.rootNumber
        guard let row = row(owner, root: root) else { return }
        guard noted.insert(Noted(root: root, key: owner, isFollowed: relationship.isOrdered)).inserted else { return }
        if relationship.isOrdered {
            put(successor(of: row))
            changes.followed.add(owner, row.layout, properties: [relationship.name])
        } else {
            changes.related.add(owner, row.layout, properties: [relationship.name])
        }
    }

    /// The error for a relationship to a row that is gone.
    func requireTarget(_ reference: ObjectReference, _ slot: Slot) throws {
        guard let destination = slot.relationship?.destination,
            row(reference.key, root: destination.rootNumber) == nil
        else { return }
        throw CocoaError.missingBatchTarget(slot, reference.key, batch.layout)
    }
}
