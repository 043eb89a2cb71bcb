import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The work of a migration that is done before its transaction, in short transactions, while others read and save.
///
/// Only large tables are prepared. Each step can be repeated: a process that is killed leaves parts that the next
/// migration uses or removes. If the server refuses a step, then its table is left for the transaction as a whole, and the
/// request is notified.
///
/// It is used by one thread.
struct MigrationPreparation {
    /// The prepared tables.
    private(set) var tables: [PreparedTable] = []
    /// The triggers of prepared columns, as they were before rows were filled.
    private(set) var triggers: Set<PreparedParts.Part> = []
    private let request: PostgreSQLMigrationRequest
    private let target: ConnectionTarget
    private let connection: Connection
    /// The migration, as it was planned.
    private let migration: PostgreSQLMigration
    private let naming = SQLNaming.postgresql

    /// How many seconds a step waits for a table before others may proceed.
    static let wait = 0.25
    /// The part of the progress that belongs to the preparation.
    static let share = 0.9

    /// Prepares a migration.
    ///
    /// - Parameters:
    ///   - request: The store and the mapping of its model.
    ///   - target: Where the store is.
    ///   - connection: A connection without a transaction.
    /// - Returns: The prepared tables; `nil` if no table is large enough, or if nothing may be prepared because the
    ///   session belongs to a pooler or the tables are on another server.
    /// - Throws: `migration` (134110) if rows do not fit the new model. ``PostgreSQLError``: 55P03 if others keep a table
    ///   locked. The errors of `request.advance`.
    static func make(
        _ request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        on connection: Connection
    ) throws -> MigrationPreparation? {
        guard !connection.isPooled, let migration = try begin(request, at: target, on: connection),
            try ServerForm.find(behind: connection) == .oneNode
        else { return nil }
        let tables = try migration.plannedTables()
        guard !tables.isEmpty else { return nil }
        try migration.checkRows(at: request.url, place: target.place, mayDropValues: request.mayDropValues)
        var preparation = MigrationPreparation(request, at: target, on: connection, for: migration)
        guard tables.contains(where: \.hasSteps) else {
            preparation.tables = tables
            return preparation
        }
        try preparation.takeTurn()
        // Another process may have migrated the store meanwhile.
        guard try begin(request, at: target, on: connection) != nil else { return nil }
        try preparation.run(tables)
        return preparation
    }

    private init(
        _ request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        on connection: Connection,
        for migration: PostgreSQLMigration
    ) {
        self.request = request
        self.target = target
        self.connection = connection
        self.migration = migration
    }

    /// The migration, if the store has the version that it starts at, in the current form.
    private static func begin(
        _ request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        on connection: Connection
    ) throws -> PostgreSQLMigration? {
        guard let metadata = try StoreMetadata.read(connection, target.place), metadata.format == StoreFormat.current,
            request.migration.starts(at: metadata.versionHashes)
        else { return nil }
        return try PostgreSQLMigration(request, at: target, from: metadata, on: connection)
    }

    /// Waits until no other process prepares a migration of the store.
    ///
    /// It asks again and again: a statement that waits would keep indexes of the other process from being completed.
    private func takeTurn() throws {
        let end = ContinuousClock.now + .seconds(request.timeout)
        while true {
            let taken = try connection.query(
                "SELECT pg_catalog.pg_try_advisory_lock(\(AdvisoryLocks.preparation))",
                [.text(target.schema)]
            )
            if taken.firstInt64 != 0 { return }
            guard .now < end else {
                throw PostgreSQLError(.server, sqlState: "55P03", "another process prepares a migration of the store")
            }
            usleep(UInt32.random(in: 50_000..<200_000))
        }
    }

    // MARK: - The steps

    private mutating func run(_ planned: [PreparedTable]) throws {
        let patience = connection.patience
        connection.patience = max(request.timeout, PostgreSQLEngine.workPatience)
        defer { connection.patience = patience }
        // A statement that fills rows is a transaction, which must not fail because others have changed these rows.
        try connection.command(
            "SET statement_timeout = 0; SET lock_timeout = \(max(Int(request.timeout * 1000), 1)); SET default_transaction_isolation = 'read committed'"
        )
        do {
            try removeParts(except: Set(planned.flatMap(\.names)))
            for (number, table) in planned.enumerated() {
                let report = { [request] (part: Double) in
                    try request.advance((Double(number) + part) / Double(planned.count) * Self.share)
                }
                try report(0)
                if let prepared = try attempt(table, report) { tables.append(prepared) }
            }
            try request.advance(Self.share)
            try connection.command(
                "RESET enable_seqscan; RESET lock_timeout; RESET statement_timeout; RESET default_transaction_isolation"
            )
        } catch {
            // After a wait in vain the same migration is likely to come again, and uses the parts.
            if (error as? PostgreSQLError)?.sqlState != "55P03" { try? removeParts(except: []) }
            throw error
        }
    }

    /// Removes all that was made, after the transaction has failed.
    func abandon() { if !connection.isBroken { try? removeParts(except: []) } }

    /// Removes parts, and waits for their tables in turns.
    private func removeParts(except names: Set<SQLName>, of table: SQLName? = nil) throws {
        if !connection.isIdle { try connection.rollback() }
        let found = try PreparedParts(connection)
        guard !found.tables.isEmpty else { return }
        _ = try LockTurns(connection, timeout: request.timeout, wait: Self.wait).transaction {
            try found.remove(except: names, of: table)
            try connection.commit()
        }
    }

    /// Prepares a table; `nil` if the server refuses a step, and the table is left as it was.
    private mutating func attempt(_ table: PreparedTable, _ report: (Double) throws -> Void) throws -> PreparedTable? {
        do {
            return try prepare(table, report)
        } catch let error as PostgreSQLError
            where error.kind == .server && error.sqlState != "55P03" && !connection.isBroken
        {
            try removeParts(except: [], of: table.table)
            request.note("\(table.table.raw) was left for the transaction: \(Self.refusal(error))")
            return nil
        }
    }

    /// The reason of a refusal by the server, without values of rows.
    ///
    /// Messages of other classes of errors may contain values.
    private static func refusal(_ error: PostgreSQLError) -> String {
        let state = error.sqlState
        guard ["42", "53", "54", "55", "57"].contains(String(state.prefix(2))) else {
            return "the server has refused a step (\(state))"
        }
        return "\(error.message) (\(state))"
    }

    private mutating func prepare(_ planned: PreparedTable, _ report: (Double) throws -> Void) throws -> PreparedTable {
        var table = planned
        try makeColumns(table)
        // A trigger that is switched off from now on has another stamp at the end.
        triggers.formUnion(try PreparedParts(connection).triggers.filter { $0.table == table.table })
        try fill(table) { try report($0 * 0.8) }
        table.indexes = try table.indexes.filter { try make($0, of: table) }
        for index in table.misfitIndex where try !make(index, of: table) { table.misfits = nil }
        try report(0.9)
        for key in table.keys { try make(key, on: table) }
        return table
    }

    private func makeColumns(_ table: PreparedTable) throws {
        let parts = try PreparedParts(connection)
        let missing = table.columns.filter { column in
            let isThere = parts.has(column: column.name, of: table.table)
            guard column.computation != nil else { return !isThere }
            return !isThere || parts.trigger(column.name, of: table.table)?.isComplete != true
        }
        guard !missing.isEmpty else { return }
        _ = try LockTurns(connection, timeout: request.timeout, wait: Self.wait).transaction {
            try connection.command("LOCK TABLE \(table.table) IN ACCESS EXCLUSIVE MODE")
            for column in missing {
                try connection.command("ALTER TABLE \(table.table) DROP COLUMN IF EXISTS \(column.name)")
                try connection.command("DROP TRIGGER IF EXISTS \(column.name) ON \(table.table)")
                for statement in table.creation(of: column) { try connection.command(statement) }
            }
            try connection.commit()
        }
    }

    // MARK: - Filling

    /// The number of rows that are filled in one transaction.
    ///
    /// A save that needs one of them waits for the whole piece.
    static let piece = 200

    /// Fills the computed columns piece by piece.
    ///
    /// A row that another transaction has locked is left out, and filled when all others are.
    private func fill(_ table: PreparedTable, _ report: (Double) throws -> Void) throws {
        guard let statement = table.filling(naming) else { return }
        // Later rows get their values from the triggers.
        let found = try connection.query(
            "SELECT pg_catalog.count(*), COALESCE(pg_catalog.max(\(naming.key)), 0) FROM \(table.table)"
        )
        let (total, greatest) = (found[0].int64(0), found[0].int64(1))
        // A plan for all pieces is made before the server knows how few rows each has.
        try connection.command("SET enable_seqscan = off")
        var done: Int64 = 0
        // Each is a range of keys: after the first number, up to the second.
        var pending = [(after: Int64.min, upTo: greatest)]
        var end: ContinuousClock.Instant?
        while !pending.isEmpty {
            var open: [(after: Int64, upTo: Int64)] = []
            for range in pending {
                var key = range.after
                while key < range.upTo {
                    let began = ContinuousClock.now
                    let answer = try filled(statement, after: key)
                    let last = answer.last ?? range.upTo
                    if !answer.isFilled { open.append((key, last)) }
                    done += answer.count
                    try report(min(Double(done) / Double(max(total, 1)), 1))
                    key = last
                    // Others get the server as long as the piece has taken.
                    usleep(UInt32(min((ContinuousClock.now - began) / .microseconds(1), 100_000)))
                }
            }
            pending = open
            let limit = end ?? .now + .seconds(request.timeout)
            end = limit
            guard open.isEmpty || .now < limit else {
                throw PostgreSQLError(.server, sqlState: "55P03", "others keep rows of \(table.table.raw) locked")
            }
            if !open.isEmpty { usleep(10_000) }
        }
    }

    /// Fills one piece; after a deadlock it tries again.
    private func filled(_ statement: String, after key: Int64) throws -> (last: Int64?, count: Int64, isFilled: Bool) {
        let end = ContinuousClock.now + .seconds(request.timeout)
        while true {
            do {
                let row = try connection.query(statement, [.int8(key), .int8(Int64(Self.piece))])[0]
                return (row.isNull(0) ? nil : row.int64(0), row.int64(1), row.int64(2) != 0)
            } catch let error as PostgreSQLError where error.isTransient && !connection.isBroken && .now < end {
                usleep(UInt32.random(in: 1_000..<10_000))
            }
        }
    }

    // MARK: - Indexes and foreign keys

    /// Makes an index while others write.
    ///
    /// - Returns: Whether it exists. It does not if an old transaction of another session stays open for too long, or
    ///   if the index reads a column that is not there yet.
    /// - Throws: `migration` (134110) if rows break the constraint of the index. ``PostgreSQLError``.
    private func make(_ index: PreparedTable.Index, of table: PreparedTable) throws -> Bool {
        let found = try PreparedParts(connection).index(index.name)
        if found?.isComplete == true { return true }
        if found != nil { try connection.command("DROP INDEX CONCURRENTLY IF EXISTS \(index.name)") }
        do {
            try connection.command(index.sql)
        } catch let error as PostgreSQLError where error.kind == .server && !connection.isBroken {
            try connection.command("DROP INDEX CONCURRENTLY IF EXISTS \(index.name)")
            if error.isUniqueViolation, let (constraint, columns) = index.constraint,
                let failure = try migration.failure(
                    of: constraint,
                    in: table.table,
                    columns: columns,
                    entity: naming.entity
                )
            {
                throw failure
            }
            request.note("the index \(index.final.raw) was left for the transaction: \(Self.refusal(error))")
            return false
        }
        return try PreparedParts(connection).index(index.name)?.isComplete == true
    }

    private func make(_ key: PreparedTable.Key, on table: PreparedTable) throws {
        let found = try PreparedParts(connection).foreignKey(key.name, of: table.table)
        if found == nil {
            _ = try LockTurns(connection, timeout: request.timeout, wait: Self.wait).transaction {
                try connection.command("LOCK TABLE \(table.table), \(key.target) IN SHARE ROW EXCLUSIVE MODE")
                try connection.command(key.sql)
                try connection.commit()
            }
        }
        guard found?.isComplete != true else { return }
        try connection.command("ALTER TABLE \(table.table) VALIDATE CONSTRAINT \(key.name)")
    }
}
