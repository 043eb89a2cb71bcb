import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// One batch, inside a transaction of READ COMMITTED that its caller begins, and commits or rolls back.
///
/// If one statement can do the work, then the batch is one statement. Otherwise it finds out which rows it changes and
/// how, and writes them as a save does, with the versions that it has read. So it notices changes that others have made
/// meanwhile. Then the whole batch is made again, and locks these rows before it reads them. In this form its memory
/// grows with the number of rows that it changes.
///
/// It is used once, by the thread that executes the request.
final class BatchTransaction {
    let batch: Batch
    let database: OpenPostgreSQLStore
    let connection: Connection
    let source: SnapshotSource
    let earlier: EarlierAttempts
    var changes = BatchChanges()
    /// The changes that are to be written.
    var store: StoreChanges
    /// The to-one relationships that have a new destination, for each update.
    ///
    /// If a member is given the owner that it already has, then it keeps its place in an ordered relationship.
    private var moved: [SlotSet] = []
    /// The positions of changed rows in `store.updated`, which has their new state in the order of their first change.
    private var updates: [RowName: Int] = [:]
    private var owners: [MembersName: Set<Int64>] = [:]

    var queries: RowQueries { database.queries }

    /// A to-many relationship by the entity that declares it, and its name.
    private struct MembersName: Hashable {
        let relationship: ObjectIdentifier
        let value: Unmanaged<Relationship>

        init(_ relationship: Relationship) {
            self.relationship = ObjectIdentifier(relationship)
            // Relationships are never deallocated.
            value = Unmanaged.passUnretained(relationship)
        }

        static func == (left: MembersName, right: MembersName) -> Bool { left.relationship == right.relationship }
        func hash(into hasher: inout Hasher) { hasher.combine(relationship) }
    }

    /// Makes the work of a batch.
    ///
    /// - Parameters:
    ///   - batch: The batch.
    ///   - database: The store.
    ///   - connection: The connection that writes.
    ///   - earlier: The attempts before this one; notes what this one finds.
    init(_ batch: Batch, in database: OpenPostgreSQLStore, on connection: Connection, after earlier: EarlierAttempts) {
        self.batch = batch
        self.earlier = earlier
        self.database = database
        self.connection = connection
        source = SnapshotSource(database.queries, connection)
        store = StoreChanges(author: batch.recorder.author, contextName: batch.recorder.contextName)
    }

    /// Makes all changes.
    ///
    /// - Parameters:
    ///   - given: The new rows of an insertion.
    ///   - identifier: The identifier of the transaction in the history.
    /// - Returns: Whether the history has recorded something.
    /// - Throws: The errors of rows, values and deletions that the batch may not have, and ``PostgreSQLError``.
    func run(_ given: [GivenRow], identifier: UUID) throws -> Bool {
        do {
            return try runOnce(given, identifier: identifier)
        } catch let error as PostgreSQLError where error.sqlState == "40P01" {
            earlier.markDeadlocked()
            throw error
        }
    }

    private func runOnce(_ given: [GivenRow], identifier: UUID) throws -> Bool {
        try earlier.lockContended(database, connection)
        switch batch.work {
        case .insert(let insertion): try insert(given, insertion)
        case .update(let update):
            guard let update = try update.withinQuota(count) else { return false }
            if let isRecorded = try updateAtOnce(update, identifier: identifier) { return isRecorded }
            try self.update(try update.leased(at: try serverTime()))
        case .delete(let deletion):
            if let isRecorded = try deleteAtOnce(deletion, identifier: identifier) { return isRecorded }
            try delete(deletion)
        }
        try listOwners()
        let keys = try database.keys(for: store.inserted, connection)
        let transaction = SaveTransaction(
            store,
            keys: keys,
            in: database,
            on: connection,
            identifier: identifier,
            copiesRows: true,
            moved: moved
        )
        if let conflict = try transaction.run().first {
            if case .version = conflict { earlier.addOvertaking(store) }
            // Another transaction may have taken the values since the batch has looked for the rows that have them.
            if case .constraint = conflict, earlier.mayHaveLostRace() { throw Self.overtaken }
            throw error(conflict)
        }
        for (row, key) in zip(store.inserted, keys) { changes.inserted.add(key, row.layout) }
        // These are rows that others have meanwhile related to deleted ones, and rows whose derived attributes follow.
        let inserted = transaction.result.reread.isEmpty ? [] : Set(keys)
        for row in transaction.result.reread where updates[RowName(row)] == nil {
            if inserted.contains(row.key), row.layout.rootNumber == batch.layout.rootNumber { continue }
            changes.followed.add(row.key, row.layout)
        }
        return transaction.history?.isWritten ?? false
    }

    /// Counts the rows of a quota, when all other transactions with it have ended.
    ///
    /// A claim passes by rows that others have locked. So without the lock two claims would count the same rows, and both would
    /// take the last place.
    private func count(_ quota: RowQuota) throws -> Int {
        if connection.isPortable {
            // Each transaction that writes shares a weaker lock of this row.
            try connection.post("SELECT 1 FROM strata_store FOR NO KEY UPDATE", mayWait: true)
        } else {
            try connection.post(
                "SELECT pg_catalog.pg_advisory_xact_lock(\(AdvisoryLocks.quota))",
                [.text(quota.name)],
                mayWait: true
            )
        }
        // In READ COMMITTED the next statement sees what they have committed.
        return try source.count(for: quota.rows)
    }

    /// The rows of the batch, found within the time limit of its request.
    func rows(for plan: FetchPlan) throws -> [Row] {
        do {
            return try plan.evaluating { try source.limited(to: plan.timeLimit, nil) { try source.rows(for: plan) } }
        } catch let error as RowsGone {
            earlier.addOvertaking(error.keys, root: plan.layout.rootNumber)
            throw Self.overtaken
        }
    }

    /// The error after which the batch is made again.
    static var overtaken: PostgreSQLError {
        PostgreSQLError(.server, sqlState: "40001", "others have changed rows of the batch")
    }

    private func error(_ conflict: StoreConflict) -> any Error {
        switch conflict {
        case .version: return Self.overtaken
        case .constraint(let entity, let attributes, _, _):
            return CocoaError.batchUpdateBreaksConstraint(on: attributes, of: entity)
        case .missing(let reference, let root):
            let slot = batch.layout.referenceSlots.first { $0.relationship?.destination?.rootNumber == root }
            guard let slot else { return CocoaError(.managedObjectReferentialIntegrity) }
            return CocoaError.missingBatchTarget(of: slot, key: reference.key, in: batch.layout)
        }
    }

    // MARK: - Changed rows

    /// The new state of a row, to be changed.
    func successor(of row: Row) -> Row {
        if let position = updates[RowName(row)] { return store.updated[position].row }
        let next = row.copy()
        updates[RowName(row)] = store.updated.count
        store.updated.append(RowUpdate(row: next, baseVersion: row.version, changed: SlotSet()))
        moved.append(SlotSet())
        return next
    }

    /// The new state of a row, or its stored state if it does not change.
    func stateToWrite(of row: Row) -> Row { updates[RowName(row)].map { store.updated[$0].row } ?? row }

    /// Marks the changed slots of a row that will be written.
    func markChanged(_ row: Row, _ slots: [Slot]) {
        guard let position = updates[RowName(row)] else { return }
        var changed = store.updated[position].changed
        for slot in slots { changed.insert(slot.index) }
        let update = store.updated[position]
        store.updated[position] = RowUpdate(row: update.row, baseVersion: update.baseVersion, changed: changed)
    }

    private func markMoved(_ row: Row, _ slot: Slot) {
        guard let position = updates[RowName(row)] else { return }
        moved[position].insert(slot.index)
    }

    /// Clears the to-one relationships of rows that lead to given rows, which no longer relate to them.
    func release(_ targets: [Int64], _ backlink: Relationship, unless isLeft: (Row) -> Bool = { _ in false }) throws {
        for row in try rows(leadingTo: targets, by: backlink) where !isLeft(row) {
            guard let slot = row.layout.slot(named: backlink.name) else { continue }
            successor(of: row).setReference(nil, slot)
            markChanged(row, [slot])
            markMoved(row, slot)
            changes.followed.add(row.key, row.layout, properties: [backlink.name])
        }
    }

    /// The rows whose to-one relationship leads to some of the keys.
    func rows(leadingTo targets: [Int64], by backlink: Relationship) throws -> [Row] {
        guard !targets.isEmpty, let entity = database.mapping.entity(modelNumber: backlink.entity.number),
            let column = entity.column(named: backlink.name)?.name
        else { return [] }
        let found = try connection.query(
            "SELECT \(database.naming.key) FROM \(entity.table) WHERE \(column) = ANY($1) ORDER BY 1",
            [.array(PostgreSQLArray(targets))]
        )
        return try queries.rows(found.rows.map { $0.int64(0) }, of: entity, on: connection)
    }

    // MARK: - Owners

    /// Adds a to-many relationship of an owner to those that change.
    func markMembersChanged(of owner: Int64, _ relationship: Relationship) {
        owners[MembersName(relationship), default: []].insert(owner)
    }

    func markMembersChanged(of owners: some Sequence<Int64>, _ relationship: Relationship) {
        var keys: Set<Int64> = []
        // Members usually come in runs with the same owner.
        var last: Int64?
        for owner in owners where owner != last {
            keys.insert(owner)
            last = owner
        }
        guard !keys.isEmpty else { return }
        self.owners[MembersName(relationship), default: []].formUnion(keys)
    }

    /// Lists the owners of changed to-many relationships.
    ///
    /// If a relationship is ordered, then its owner gets a new version.
    private func listOwners() throws {
        let deleted = Set(store.deleted.map { RowName(root: $0.layout.rootNumber, key: $0.key) })
        for (name, keys) in owners {
            let relationship = name.value.takeUnretainedValue()
            guard let entity = database.mapping.entity(modelNumber: relationship.entity.number) else { continue }
            for row in try queries.rows(keys.sorted(), of: entity, on: connection) where !deleted.contains(RowName(row))
            {
                guard let slot = row.layout.toMany(named: relationship.name) else { continue }
                let reference = ObjectReference(key: row.key, entity: row.layout.number)
                store.touched.append(TouchedOwner(owner: reference, relationships: [slot.index]))
                if relationship.isOrdered {
                    _ = successor(of: row)
                    changes.followed.add(row.key, row.layout, properties: [relationship.name])
                } else {
                    changes.related.add(row.key, row.layout, properties: [relationship.name])
                }
            }
        }
    }

    /// Updates the other side of a to-one relationship that was given a value.
    func move(_ row: Row, from: ObjectReference?, to: ObjectReference?, _ slot: Slot) throws {
        if from?.key != to?.key { markMoved(row, slot) }
        guard let inverse = slot.inverse else { return }
        guard inverse.isToMany else { return try release([row.key], inverse) }
        if let from, from.key != to?.key { markMembersChanged(of: from.key, inverse) }
        if let to { markMembersChanged(of: to.key, inverse) }
    }
}
