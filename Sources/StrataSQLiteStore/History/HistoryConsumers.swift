import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The progress of named consumers, in a table of ours beside those of the history.
///
/// The first consumer creates the table. Apple's framework ignores it.
struct HistoryConsumers {
    let connection: Connection

    private static let table = "ASTRATACONSUMER"

    /// All consumers, by name.
    func all() throws -> [HistoryConsumerRecord] {
        guard try isPresent() else { return [] }
        let statement = try connection.statement(
            SQL("SELECT ZNAME, ZTRANSACTIONID, ZTIMESTAMP FROM \(Self.table) ORDER BY ZNAME")
        )
        var consumers: [HistoryConsumerRecord] = []
        while try statement.step() {
            consumers.append(
                HistoryConsumerRecord(
                    name: statement[0].string,
                    number: statement[1].int64,
                    lastSeen: statement[2].double
                )
            )
        }
        return consumers
    }

    /// Whether a consumer is known: it has reported its progress, and was not forgotten since.
    func isKnown(_ name: String) throws -> Bool {
        guard try isPresent() else { return false }
        let statement = try connection.statement(SQL("SELECT 1 FROM \(Self.table) WHERE ZNAME = ?"))
        try statement.bind(name, at: 1)
        return try statement.step()
    }

    /// Notes how far a consumer has read.
    ///
    /// The number never decreases, because several readers may share the name, and one may be slower.
    func set(_ name: String, to number: Int64) throws {
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS \(Self.table) ( ZNAME VARCHAR PRIMARY KEY, ZTRANSACTIONID INTEGER, \
            ZTIMESTAMP FLOAT )
            """
        )
        let statement = try connection.statement(
            SQL(
                """
                INSERT INTO \(Self.table) (ZNAME, ZTRANSACTIONID, ZTIMESTAMP) VALUES (?, ?, ?)
                ON CONFLICT (ZNAME) DO UPDATE SET ZTRANSACTIONID = MAX(ZTRANSACTIONID, excluded.ZTRANSACTIONID),
                ZTIMESTAMP = MAX(ZTIMESTAMP, excluded.ZTIMESTAMP)
                """
            )
        )
        try statement.bind(name, at: 1)
        try statement.bind(number, at: 2)
        try statement.bind(Date().timeIntervalSinceReferenceDate, at: 3)
        try statement.run()
    }

    func remove(_ name: String) throws {
        guard try isPresent() else { return }
        let statement = try connection.statement(SQL("DELETE FROM \(Self.table) WHERE ZNAME = ?"))
        try statement.bind(name, at: 1)
        try statement.run()
    }

    /// Forgets the consumers last seen before a time, and then removes the transactions that all others have read.
    ///
    /// - Returns: The number of removed transactions; 0 if there are no consumers.
    func purge(liveSince time: Double) throws -> Int {
        guard try isPresent() else { return 0 }
        do {
            let statement = try connection.statement(SQL("DELETE FROM \(Self.table) WHERE ZTIMESTAMP < ?"))
            try statement.bind(time, at: 1)
            try statement.run()
        }
        guard let number = try connection.firstInt64(SQL("SELECT MIN(ZTRANSACTIONID) FROM \(Self.table)")) else {
            return 0
        }
        return try HistoryPurge(connection: connection).purge(before: .number(number))
    }

    private func isPresent() throws -> Bool {
        try connection.firstInt64(SQL("SELECT 1 FROM sqlite_schema WHERE name = '\(Self.table)'")) != nil
    }
}
