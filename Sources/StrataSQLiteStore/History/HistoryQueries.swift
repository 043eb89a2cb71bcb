import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

/// Reads the history of one file, on a connection inside a read transaction.
struct HistoryQueries {
    let file: OpenSQLiteStore
    let history: HistoryMapping
    let connection: Connection

    /// The number of the last transaction, even if it was purged; 0 before the first.
    func lastNumber() throws -> Int64 { try HistoryCounters.last(.transaction, connection) }

    // MARK: - Transactions

    func records(_ query: HistoryQuery) throws -> [HistoryRecord] {
        if let number = query.after { try requireCovered(number) }
        var records = try transactions(query).map { HistoryRecord(transaction: $0) }
        if query.wantsChanges { try readChanges(&records) }
        return records
    }

    /// The number of transactions that a query matches, without its limit.
    func count(_ query: HistoryQuery) throws -> Int {
        let condition = Self.condition(of: query)
        let statement = try connection.statement(SQL("SELECT COUNT(*) FROM ATRANSACTION AS t\(condition.text)"))
        try statement.bind(condition.values)
        return try statement.step() ? Int(statement[0].int64) : 0
    }

    /// Refuses a number that is too old, because a transaction after it was purged, or too high.
    ///
    /// It makes no difference if its own transaction was purged, or if later ones were picked out.
    ///
    /// A number is too high if it has not been given yet. The store is an older copy then, in which other transactions
    /// will get the numbers that were read.
    func requireCovered(_ number: Int64) throws {
        guard try requireReached(number) > number else { return }
        let beginning = HistoryBeginning(connection: connection)
        guard try number < beginning.number() - 1 else { return }
        throw HistoryErrors.expired(number, oldest: try beginning.oldest(), of: file.metadata.uuid, at: file.url)
    }

    /// Refuses a number that has not been given yet.
    ///
    /// - Returns: The last number.
    @discardableResult
    func requireReached(_ number: Int64) throws -> Int64 {
        let last = try lastNumber()
        guard number <= last else {
            throw HistoryErrors.ahead(number, last: last, of: file.metadata.uuid, at: file.url)
        }
        return last
    }

    /// The condition for the transactions that a query matches, and its values.
    private static func condition(of query: HistoryQuery) -> (text: String, values: [SQLBinding]) {
        var conditions: [String] = []
        var values: [SQLBinding] = []
        if let number = query.after {
            conditions.append("t.Z_PK > ?")
            values.append(.integer(number))
        }
        if let number = query.until {
            conditions.append("t.Z_PK <= ?")
            values.append(.integer(number))
        }
        if let time = query.since {
            conditions.append("t.ZTIMESTAMP > ?")
            values.append(.double(time))
        }
        return (conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND "), values)
    }

    private func transactions(_ query: HistoryQuery) throws -> [HistoryTransactionRecord] {
        let condition = Self.condition(of: query)
        var values = condition.values
        var limit = ""
        if query.limit > 0 {
            limit = " LIMIT ?"
            values.append(.integer(Int64(query.limit)))
        }
        // In the first version of the format, the texts were in the transaction itself.
        let statement = try connection.statement(
            SQL(
                """
                SELECT t.Z_PK, t.ZTIMESTAMP, IFNULL(a.ZNAME, t.ZAUTHOR), IFNULL(b.ZNAME, t.ZBUNDLEID),
                IFNULL(c.ZNAME, t.ZCONTEXTNAME), IFNULL(p.ZNAME, t.ZPROCESSID) FROM ATRANSACTION AS t
                LEFT JOIN ATRANSACTIONSTRING AS a ON a.Z_PK = t.ZAUTHORTS
                LEFT JOIN ATRANSACTIONSTRING AS b ON b.Z_PK = t.ZBUNDLEIDTS
                LEFT JOIN ATRANSACTIONSTRING AS c ON c.Z_PK = t.ZCONTEXTNAMETS
                LEFT JOIN ATRANSACTIONSTRING AS p ON p.Z_PK = t.ZPROCESSIDTS\(condition.text) ORDER BY t.Z_PK\(limit)
                """
            )
        )
        try statement.bind(values)
        var transactions: [HistoryTransactionRecord] = []
        while try statement.step() {
            transactions.append(
                HistoryTransactionRecord(
                    number: statement[0].int64,
                    time: statement[1].double,
                    author: statement[2].optionalString,
                    bundleID: statement[3].optionalString,
                    contextName: statement[4].optionalString,
                    processID: statement[5].optionalString
                )
            )
        }
        return transactions
    }

    // MARK: - Changes

    /// Reads the changes of transactions that are in the order of their numbers.
    private func readChanges(_ records: inout [HistoryRecord]) throws {
        guard let first = records.first?.transaction.number, let last = records.last?.transaction.number else { return }
        let statement = try connection.statement(
            SQL(
                """
                SELECT ZTRANSACTIONID, Z_PK, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZCOLUMNS\(history.tombstoneColumns)
                FROM ACHANGE WHERE ZTRANSACTIONID BETWEEN ? AND ? ORDER BY ZTRANSACTIONID, Z_PK
                """
            )
        )
        try statement.bind(first, at: 1)
        try statement.bind(last, at: 2)
        var index = 0
        while try statement.step() {
            let number = statement.int64(0)
            while index < records.count, records[index].transaction.number < number { index += 1 }
            // A query by time may leave out transactions in between.
            guard index < records.count, records[index].transaction.number == number,
                let change = try change(statement)
            else { continue }
            records[index].changes.append(change)
        }
    }

    /// The change in the current row; `nil` for one of an entity that the store does not hold.
    private func change(_ statement: borrowing Statement) throws -> HistoryChangeRecord? {
        guard let kind = HistoryChangeKind(rawValue: Int(statement.int64(2))),
            let mapping = file.mapping.entity(storeNumber: statement.int64(3))
        else { return nil }
        let entity = history.entity(mapping)
        let columns = statement[5]
        return HistoryChangeRecord(
            id: statement.int64(1),
            kind: kind,
            layout: mapping.layout,
            key: statement.int64(4),
            updated: kind == .update && !columns.isNull ? HistoryMask(entity.places, columns.bytes) : nil,
            tombstone: kind == .delete ? try tombstone(statement, entity) : nil
        )
    }

    /// The kept values of a deleted object; `nil` if its entity keeps none.
    private func tombstone(_ statement: borrowing Statement, _ entity: HistoryEntity) throws -> [String: Any]? {
        guard !entity.kept.isEmpty else { return nil }
        var values: [String: Any] = [:]
        for (index, slot) in entity.kept.enumerated() {
            let value = statement[6 + index]
            guard !value.isNull else { continue }
            values[slot.name] = try keptValue(value, of: slot, in: entity)
        }
        return values
    }

    /// A kept value as key-value coding returns it; for a transformable attribute, the archive.
    private func keptValue(_ value: Value, of slot: Slot, in entity: HistoryEntity) throws -> Any? {
        let row = Row(layout: entity.mapping.layout, key: 0)
        switch slot.kind {
        case .int: row.setInt(value.int64, slot)
        case .double: row.setDouble(value.double, slot)
        case .string: row.setString(value.string, slot)
        case .uuid: value.uuid.map { row.setUUID($0, slot) }
        case .decimal: StoredDecimal.read(value).map { row.setDecimal($0, slot) }
        case .data:
            let data = entity.mapping.columns[slot.index].isTagged ? try file.queries.tagged(value) : value.data
            return data
        case .reference: return nil
        }
        return row.isNull(slot.index) ? nil : row.anyValue(slot)
    }
}

/// The errors of histories.
enum HistoryErrors {
    /// The error of a token that names a transaction after which others were purged.
    static func expired(_ number: Int64, oldest: Int64, of store: String, at url: URL?) -> CocoaError {
        let reason = "transactions after \(number) were purged, and the oldest one that is left is \(oldest)"
        return expired(
            because: reason,
            of: store,
            at: url,
            adding: [NSPersistentHistoryOldestTransactionNumberKey: oldest]
        )
    }

    /// The error of a token that names a transaction that the store does not have yet.
    static func ahead(_ number: Int64, last: Int64, of store: String, at url: URL?) -> CocoaError {
        let reason =
            "it is of transaction \(number), but the store is only at \(last), as if it had been set back to an older copy"
        return expired(because: reason, of: store, at: url, adding: [:])
    }

    private static func expired(because reason: String, of store: String, at url: URL?, adding more: [String: Any])
        -> CocoaError
    {
        var userInfo = more
        userInfo[NSLocalizedDescriptionKey] =
            """
            The history token is no good for the store \(store): \(reason). Read the data anew, and go on from \
            currentPersistentHistoryToken(fromStores:).
            """
        userInfo[NSStoreUUIDKey] = store
        userInfo[NSFilePathErrorKey] = url?.path
        return CocoaError.described(CocoaError.Code(rawValue: NSPersistentHistoryTokenExpiredError), userInfo: userInfo)
    }
}
