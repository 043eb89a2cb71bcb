import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Reads the history, on a connection inside a transaction of one snapshot; it sees only transactions that have a
/// number.
struct HistoryQueries {
    let database: OpenPostgreSQLStore
    let connection: Connection

    /// The time by the server's clock, which all machines share, in seconds since the reference date.
    static let now =
        "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) - \(Int(Date.timeIntervalBetween1970AndReferenceDate)))"

    // MARK: - Numbers

    /// Gives a number to every committed transaction that has none, in a separate transaction.
    ///
    /// A number is given after the commit, by a process that wants to read. So a transaction that becomes visible later
    /// has a higher number, tokens skip nothing, and saves do not wait for one another.
    ///
    /// The transactions of a portable store have their numbers already.
    static func number(_ connection: Connection) throws {
        if connection.isPortable { return }
        // Most often there is nothing to do.
        let waiting = try connection.query("SELECT 1 FROM strata_transaction WHERE number IS NULL LIMIT 1")
        guard waiting.rowCount > 0 else { return }
        do { try numberAll(connection) } catch let error as PostgreSQLError
            where ["42501", "25006"].contains(error.sqlState) && !connection.isBroken
        {
            // The role may only read, or the server is a replica. Numbered transactions can be read; a process that may
            // write numbers the rest.
            try connection.rollback()
        }
    }

    /// Sends all statements together, so that a client that stops after that does not block others from the history.
    private static func numberAll(_ connection: Connection) throws {
        try begin(connection, isAlone: !FaultGuard.numberingLock.isOff)
        // If a crash could undo a number, it would be given again, and tokens would skip a transaction.
        try connection.post("SELECT pg_catalog.set_config('synchronous_commit', 'on', true)")
        // This is a separate statement, so that its view of the rows begins after the lock was taken.
        try connection.post(
            """
            WITH numbered AS (
                UPDATE strata_transaction AS t SET number = n.number FROM (
                    SELECT seq, (SELECT last FROM strata_history) + pg_catalog.row_number() OVER (ORDER BY seq) AS number
                    FROM strata_transaction WHERE number IS NULL
                ) AS n WHERE t.seq = n.seq RETURNING t.number
            )
            UPDATE strata_history SET last = GREATEST(last, (SELECT pg_catalog.max(number) FROM numbered))
            WHERE EXISTS (SELECT FROM numbered)
            """,
            mayWait: true
        )
        if FaultPoint.areBuiltIn {
            try connection.readPostedAnswers()
            FaultPoint.historyNumbered.pass()
        }
        try connection.commit()
    }

    /// Posts the beginning of a transaction that keeps other writers from the history's tables, but not processes that
    /// record or read.
    ///
    /// If its client stops, then the server ends the transaction after some seconds, because others wait for it.
    static func begin(_ connection: Connection, isAlone: Bool = true) throws {
        try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED")
        try connection.post(
            "SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', '\(longestPause)s', true)"
        )
        guard isAlone else { return }
        if connection.isPortable {
            try connection.post("SELECT 1 FROM strata_history FOR UPDATE", mayWait: true)
            return
        }
        try connection.post("SELECT pg_catalog.pg_advisory_xact_lock(\(AdvisoryLocks.numbering))", mayWait: true)
    }

    /// How many seconds a client may be idle while others wait for it.
    private static let longestPause = 5

    /// The number of the last transaction, including purged ones; 0 before the first.
    func lastNumber() throws -> Int64 { try connection.query("SELECT last FROM strata_history").firstInt64 ?? 0 }

    /// The same, with the identifier of the transaction unless it was purged.
    func lastPlace() throws -> HistoryPlace {
        let found = try connection.query(
            "SELECT last, (SELECT id FROM strata_transaction WHERE number = last) FROM strata_history"
        )
        return found.rowCount > 0
            ? HistoryPlace(number: found[0].int64(0), transaction: found[0].uuid(1)) : HistoryPlace(number: 0)
    }

    /// The number at which the history begins.
    ///
    /// A purge removes all old transactions, so the oldest remaining one shows how far it went. Transactions that were
    /// picked out may include the oldest. So `purged` then keeps the number from which on nothing was purged; before
    /// that it is 0.
    ///
    /// - Returns: The number from which on no transaction was purged, and that of the oldest remaining one, or of the
    ///   next one if there is none.
    func beginning() throws -> (number: Int64, oldest: Int64) {
        let found = try connection.query(
            """
            SELECT COALESCE((SELECT pg_catalog.min(number) FROM strata_transaction), last + 1), purged
            FROM strata_history
            """
        )
        guard found.rowCount > 0 else { return (1, 1) }
        let (oldest, kept) = (found[0].int64(0), found[0].int64(1))
        return (kept > 0 ? min(kept, oldest) : oldest, oldest)
    }

    // MARK: - Transactions

    func records(_ query: HistoryQuery) throws -> [HistoryRecord] {
        if let number = query.after { try requireCovered(number, query.afterTransaction) }
        var records = try transactions(query).map { HistoryRecord(transaction: $0) }
        if query.wantsChanges { try readChanges(&records) }
        return records
    }

    /// The number of transactions that match a query, without its limit.
    func count(_ query: HistoryQuery) throws -> Int {
        let condition = Self.condition(of: query)
        let found = try connection.query(
            "SELECT pg_catalog.count(*) FROM strata_transaction WHERE \(condition.text)",
            condition.values
        )
        return Int(found.firstInt64 ?? 0)
    }

    /// Refuses a number that is too old, because a later transaction was purged.
    ///
    /// It makes no difference whether the transaction of the number itself was purged, or whether later ones were
    /// picked out.
    ///
    /// This also refuses a number that was not given yet. In that case the store is an older copy, in which other
    /// transactions will get the numbers that were read. It also refuses a number that another transaction has now.
    func requireCovered(_ number: Int64, _ transaction: UUID? = nil) throws {
        guard try requireReached(number, transaction) > number else { return }
        let left = try beginning()
        guard number < left.number - 1 else { return }
        throw expired(
            "transactions after \(number) were purged, and the oldest one that is left is \(left.oldest)",
            left.oldest
        )
    }

    /// Refuses a number that was not given yet, or that belongs to another transaction than the expected one, if that
    /// is known.
    ///
    /// - Returns: The last number.
    @discardableResult
    func requireReached(_ number: Int64, _ transaction: UUID? = nil) throws -> Int64 {
        let found = try connection.query(
            "SELECT last, (SELECT id FROM strata_transaction WHERE number = $1) FROM strata_history",
            [.int8(number)]
        )
        let last = found.firstInt64 ?? 0
        guard number <= last else {
            throw expired(
                "it is of transaction \(number), but the store is only at \(last), as if it had been set back to an older copy",
                nil
            )
        }
        if let transaction, found.rowCount > 0, let other = found[0].uuid(1), other != transaction {
            throw expired(
                "number \(number) is another transaction's now, as if the store had been set back to an older copy",
                nil
            )
        }
        return last
    }

    private func expired(_ reason: String, _ oldest: Int64?) -> CocoaError {
        let store = database.metadata.uuid
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey:
                "The history token is no good for the store \(store): \(reason). Read the data anew, and go on from currentPersistentHistoryToken(fromStores:).",
            NSStoreUUIDKey: store,
        ]
        userInfo[NSPersistentHistoryOldestTransactionNumberKey] = oldest
        return CocoaError.described(CocoaError.Code(rawValue: NSPersistentHistoryTokenExpiredError), userInfo: userInfo)
    }

    /// The condition for the transactions that match a query, and its values.
    private static func condition(of query: HistoryQuery) -> (text: String, values: [PostgreSQLValue]) {
        var conditions = ["number IS NOT NULL"]
        var values: [PostgreSQLValue] = []
        func add(_ condition: String, _ value: PostgreSQLValue) {
            values.append(value)
            conditions.append("\(condition) $\(values.count)")
        }
        if let number = query.after { add("number >", .int8(number)) }
        if let number = query.until { add("number <=", .int8(number)) }
        if let time = query.since { add("time >", .float8(time)) }
        return (conditions.joined(separator: " AND "), values)
    }

    private func transactions(_ query: HistoryQuery) throws -> [HistoryTransactionRecord] {
        let condition = Self.condition(of: query)
        var values = condition.values
        var limit = ""
        if query.limit > 0 {
            values.append(.int8(Int64(query.limit)))
            limit = " LIMIT $\(values.count)"
        }
        let found = try connection.query(
            "SELECT number, time, author, bundle, context, process, id FROM strata_transaction WHERE \(condition.text) ORDER BY number\(limit)",
            values
        )
        return found.rows.map { row in
            HistoryTransactionRecord(
                number: row.int64(0),
                time: row.double(1),
                author: row.optionalString(2),
                bundleID: row.optionalString(3),
                contextName: row.optionalString(4),
                processID: row.optionalString(5),
                identifier: row.uuid(6)
            )
        }
    }

    // MARK: - Changes

    /// The rows that transactions have changed or deleted; `nil` if they are many, or if some were purged meanwhile.
    ///
    /// - Parameters:
    ///   - transactions: The transactions, by their places in the sequence.
    ///   - database: The store.
    ///   - connection: The connection that reads.
    /// - Returns: The rows of hierarchies that the store holds.
    /// - Throws: ``PostgreSQLError``.
    static func changedRows(of transactions: [Int64], _ database: OpenPostgreSQLStore, _ connection: Connection) throws
        -> ChangedRows?
    {
        guard transactions.count <= mostTransactions else { return nil }
        let places: [PostgreSQLValue] = [.array(PostgreSQLArray(transactions))]
        let found = try connection.query(
            "SELECT entity, keys, kind FROM strata_change WHERE seq = ANY($1) LIMIT \(mostChanges + 1)",
            places
        )
        // This is read afterwards, because a purge removes a transaction together with its changes.
        let left = try connection.query(
            "SELECT pg_catalog.count(*) FROM strata_transaction WHERE seq = ANY($1)",
            places
        )
        guard found.rowCount <= mostChanges, left.firstInt64 == Int64(transactions.count) else { return nil }
        var rows = ChangedRows()
        for row in found.rows where row.int64(2) != Int64(HistoryChangeKind.insert.rawValue) {
            guard let entity = database.mapping.entity(storeNumber: row.int64(0)) else { continue }
            rows.add(row.int64s(1), root: entity.layout.rootNumber)
        }
        return rows.count > ChangesOfOthers.mostKeys ? nil : rows
    }

    /// The most transactions, and the most rows of the table of changes, that are examined one by one.
    private static let (mostTransactions, mostChanges) = (1000, 2000)

    /// Reads the changes of transactions that are in the order of their numbers.
    private func readChanges(_ records: inout [HistoryRecord]) throws {
        guard !records.isEmpty else { return }
        let positions = Dictionary(
            records.enumerated().map { ($1.transaction.number, $0) },
            uniquingKeysWith: { first, _ in first }
        )
        let found = try connection.query(
            """
            SELECT t.number, c.place, c.kind, c.entity, c.keys, c.mask, c.tombstone FROM strata_transaction AS t
            JOIN strata_change AS c ON c.seq = t.seq WHERE t.number = ANY($1) ORDER BY t.number, c.place
            """,
            [.array(PostgreSQLArray(records.map(\.transaction.number)))]
        )
        for row in found.rows {
            guard let position = positions[row.int64(0)] else { continue }
            appendChanges(row, to: &records[position].changes)
        }
    }

    /// Appends the changes in a row of the table; none if the store does not hold the entity.
    private func appendChanges(_ row: ResultRow, to changes: inout [HistoryChangeRecord]) {
        guard let kind = HistoryChangeKind(rawValue: Int(row.int64(2))),
            let entity = database.mapping.entity(storeNumber: row.int64(3))
        else { return }
        let isUpdate = kind == .update && !row.isNull(5)
        let mask = isUpdate ? HistoryMask(database.places.places(entity), row.bytes(5)) : nil
        let keepsValues = kind == .delete && !entity.layout.keptSlots.isEmpty
        let tombstone = keepsValues ? Tombstone.values(row.isNull(6) ? Data() : row.data(6), entity.layout) : nil
        for (index, key) in row.int64s(4).enumerated() {
            changes.append(
                HistoryChangeRecord(
                    // A place is counted within its transaction.
                    id: row.int64(0) << 32 + row.int64(1) + Int64(index),
                    kind: kind,
                    layout: entity.layout,
                    key: key,
                    updated: mask,
                    tombstone: tombstone
                )
            )
        }
    }
}
