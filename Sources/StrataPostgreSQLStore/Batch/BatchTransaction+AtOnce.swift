import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

// A batch is one statement if the server can find its rows alone, and if it concerns nothing else. Then no row comes to
// the process. If others change rows meanwhile, then the statement waits for them and checks these rows again.
extension BatchTransaction {
    /// Updates all rows with one statement, if that is possible.
    ///
    /// - Returns: Whether the history has recorded something; `nil` if one statement is not enough, and nothing was
    ///   done.
    func updateAtOnce(_ update: BatchUpdate, identifier: UUID) throws -> Bool? {
        guard !update.slots.isEmpty, let entity = database.mapping.entity(update.rows.layout),
            update.slots.allSatisfy({ concernsRowAlone($0, entity) }),
            !update.constantSlots.contains(where: { cannotBeStored(update.constants, $0) }),
            !derivesFrom(entity.layout), !derives(entity.layout),
            let rows = try selection(of: update, entity)
        else { return nil }
        var values = rows.parameters + [.int8(RowVersion.mark(identifier))]
        let next = database.naming.nextVersion(of: "t0.\(database.naming.version)", mark: values.count)
        var assignments = ["\(database.naming.version) = \(next)"]
        for slot in update.constantSlots {
            let column = entity.columns[slot.index]
            guard let name = column.name else { return nil }
            // Null is written as a literal, whose type the column determines.
            guard !update.constants.isNull(slot.index) else {
                assignments += ([name] + column.folded.map(\.name)).map { "\($0) = NULL" }
                continue
            }
            values.append(PostgreSQLValue(update.constants, slot))
            assignments.append("\(name) = $\(values.count)")
            for folded in column.folded {
                values.append(.text(folded.folding.fold(update.constants.string(slot.word))))
                assignments.append("\(folded.name) = $\(values.count)")
            }
        }
        if let lease = update.lease, let name = entity.columns[lease.end.index].name {
            values.append(.float8(lease.seconds))
            assignments.append("\(name) = \(Self.now) + $\(values.count)")
        }
        var writer = ComputedUpdate(entity, values)
        for computed in update.computed {
            guard let name = entity.columns[computed.slot.index].name,
                let value = writer.value(of: computed.expression, for: computed.slot)
            else { return nil }
            assignments.append("\(name) = \(value)")
        }
        let sql = "UPDATE \(entity.table) AS t0 SET \(assignments.joined(separator: ", "))\(rows.sql)"
        // A claim waits for no other transaction.
        if update.lease?.isNew != true { try lockInOrder(rows, entity) }
        func change() throws -> Bool {
            try self.change(
                sql,
                binding: writer.parameters,
                listedIn: \.changed,
                of: entity,
                slots: update.slots,
                identifier: identifier
            )
        }
        guard !update.computed.isEmpty else { return try change() }
        // For a number that is too large, the process has a double or an error.
        return try queries.attempt(connection) {
            try change()
        } otherwise: {
            nil
        }
    }

    /// The time by the server's clock when the statement began, in seconds since the reference date.
    ///
    /// Unlike ``HistoryQueries/now`` it is the same for all rows of a statement, so an index can serve a comparison.
    private static let now: String = {
        let start = Int(Date.timeIntervalBetween1970AndReferenceDate)
        return "(pg_catalog.date_part('epoch', pg_catalog.statement_timestamp()) - \(start))"
    }()

    /// The time by the server's clock, for an update whose rows the process has to examine.
    func serverTime() throws -> TimeInterval {
        let result = try connection.query("SELECT \(Self.now)", [])
        return result[0].double(0)
    }

    /// The rows of an update, as the end of its statement; `nil` if the process has to examine them.
    private func selection(
        of update: BatchUpdate,
        _ entity: EntityMapping
    ) throws -> (sql: String, parameters: [PostgreSQLValue])? {
        guard let lease = update.lease, lease.isNew else { return try queries.condition(update.rows, entity) }
        guard let end = entity.columns[lease.end.index].name,
            let free = try queries.free(
                update.rows,
                entity,
                where: "t0.\(end) IS NULL OR t0.\(end) <= \(Self.now)",
                strength: earlier.strength
            )
        else { return nil }
        // An array is made once, before the first row changes. A query that is part of a join might run again, and would
        // lock more rows than were asked for.
        return (" WHERE t0.\(database.naming.key) = ANY(ARRAY(\(free.sql)))", free.parameters)
    }

    /// Deletes all rows with one statement, if that is possible: no relationship leads to them, and no values of them
    /// are kept.
    ///
    /// - Returns: The result as in ``updateAtOnce(_:identifier:)``.
    func deleteAtOnce(_ deletion: BatchDeletion, identifier: UUID) throws -> Bool? {
        let mapping = database.mapping
        guard let entity = mapping.entity(deletion.rows.layout), !derivesFrom(entity.layout),
            !mapping.needsWork(deleting: entity, isRecorded: database.recordsHistory),
            !(database.recordsHistory && HistoryRecorder.keepsValues(of: entity, mapping)),
            let rows = try queries.condition(deletion.rows, entity)
        else { return nil }
        try lockInOrder(rows, entity)
        return try change(
            "DELETE FROM \(entity.table) AS t0\(rows.sql)",
            binding: rows.parameters,
            listedIn: \.deleted,
            of: entity,
            slots: [],
            identifier: identifier
        )
    }

    /// Locks the rows in the order in which saves lock theirs, if an earlier attempt has ended in a deadlock.
    private func lockInOrder(_ rows: (sql: String, parameters: [PostgreSQLValue]), _ entity: EntityMapping) throws {
        guard earlier.haveDeadlocked else { return }
        let key = "t0.\(database.naming.key)"
        _ = try database.pool.letWork(connection) {
            try connection.query(
                """
                SELECT pg_catalog.count(*) FROM (SELECT 1 FROM \(entity.table) AS t0\(rows.sql) ORDER BY \(key) \(earlier.strength)) AS locked
                """,
                rows.parameters
            )
        }
    }

    /// Runs the statement of a batch, and lists the rows if they are needed.
    private func change(
        _ sql: String,
        binding values: [PostgreSQLValue],
        listedIn kind: WritableKeyPath<BatchChanges, [BatchRows]>,
        of entity: EntityMapping,
        slots: [Slot],
        identifier: UUID
    ) throws -> Bool {
        guard batch.listsRows || database.recordsHistory else {
            changes.count = try database.pool.letWork(connection) { try connection.query(sql, values).changeCount }
            if changes.count > 0 { changes.unlistedRoots.insert(entity.layout.rootNumber) }
            return false
        }
        let naming = database.naming
        let found = try database.pool.letWork(connection) {
            try connection.query("\(sql) RETURNING t0.\(naming.key), t0.\(naming.entity)", values)
        }
        changes.count = found.rowCount
        var rows: [BatchRows] = []
        for row in found.rows {
            guard let entity = database.mapping.entity(storeNumber: row.int64(1)) else { continue }
            rows.add(row.int64(0), entity.layout, properties: slots.propertyNames)
        }
        changes[keyPath: kind] += rows
        guard database.recordsHistory else { return false }
        let history = HistoryRecorder(
            database,
            author: batch.recorder.author,
            contextName: batch.recorder.contextName,
            identifier: identifier
        )
        for rows in rows {
            guard let entity = database.mapping.entity(rows.layout) else { continue }
            if kind == \.deleted {
                history.deleted(rows.keys, of: entity)
            } else {
                var changed = SlotSet()
                for slot in slots { if let own = rows.layout.slot(named: slot.name) { changed.insert(own.index) } }
                history.updated(rows.keys, of: entity, mask: history.places(entity).mask(changed))
            }
        }
        try history.finish(connection)
        return history.isWritten
    }

    // MARK: - What else a batch may concern

    /// Whether a new value of a slot concerns only the row that gets it.
    private func concernsRowAlone(_ slot: Slot, _ entity: EntityMapping) -> Bool {
        let column = entity.columns[slot.index]
        guard slot.kind != .reference, !column.isDerived, let name = column.name else { return false }
        return database.mapping.table(of: entity)?.constraints.contains { $0.columns.contains(name) } == false
    }

    /// Whether a value cannot be stored; the error for that is the one of a save.
    private func cannotBeStored(_ values: Row, _ slot: Slot) -> Bool {
        slot.kind == .string && !values.isNull(slot.index) && values.string(slot.word).utf8.contains(0)
    }

    /// Whether derived attributes of other rows are computed from such rows.
    private func derivesFrom(_ layout: EntityLayout) -> Bool {
        guard let derived = database.derived else { return false }
        let root = layout.rootNumber
        return derived.memberKeys[root] != nil || derived.copyKeys[root] != nil
            || derived.pairKeys.contains { $0.owners == root || $0.members == root }
    }

    /// Whether such rows have derived attributes themselves.
    private func derives(_ layout: EntityLayout) -> Bool {
        layout.subtree.contains { layout.schema.entities[$0 - 1].hasDerivedSlots }
    }
}
