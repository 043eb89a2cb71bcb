import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The size of a store, and the readers that keep it from getting smaller.
package struct StoreFigures: Sendable {
    /// The size of the database, in bytes.
    package let fileSize: Int
    /// The size of the write-ahead log, in bytes; 0 without one.
    package let logSize: Int
    /// The number of files of external data, including those that no row names.
    package let externalFiles: Int
    /// The size of these files, in bytes.
    package let externalSize: Int
    /// The contents of the history; `nil` if the store has none.
    package let history: History?
    /// The oldest version that another process reads, which the log has to keep.
    package let oldestReader: OldestReader?

    /// The contents of a store's history.
    package struct History: Sendable {
        /// The number of transactions.
        package let count: Int
        /// The numbers of the oldest and the newest of them; `nil` if all were purged.
        package let numbers: ClosedRange<Int64>?
        /// The readers of the history.
        package let consumers: [Consumer]
    }

    /// A reader of a store's history.
    package struct Consumer: Sendable {
        package let record: HistoryConsumerRecord
        /// The number of present transactions that it has not read.
        package let unread: Int
    }

    /// Measures the store at `url`, which this process must not have open.
    ///
    /// - Throws: Errors of opening and reading the file, as for ``SQLiteEngine/metadata(at:)``.
    package init(of url: URL) throws {
        // This comes before the file is opened, which makes files beside it and takes locks.
        oldestReader = OldestReader.find(at: url.path)
        fileSize = Self.size(of: url.path)
        logSize = Self.size(of: url.path + "-wal")
        let external = ExternalData(storePath: url.path)
        let sizes = external.names().map { name in
            external.folder.map { Self.size(of: $0.appendingPathComponent(name).path) } ?? 0
        }
        externalFiles = sizes.count
        externalSize = sizes.reduce(0, +)
        history = try SQLiteBoundary.run(.opening, at: url) {
            try SQLiteEngine.withFile(url, access: .readOnly) { database in
                try database.pool.read { try Self.history($0) }
            }
        }
    }

    static func size(of path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? NSNumber)?.intValue ?? 0
    }

    private static func history(_ connection: Connection) throws -> History? {
        guard try SQLCatalog(connection).hasTable("ATRANSACTION") else { return nil }
        let count = try connection.firstInt64("SELECT COUNT(*) FROM ATRANSACTION") ?? 0
        var numbers: ClosedRange<Int64>?
        if let first = try connection.firstInt64("SELECT MIN(Z_PK) FROM ATRANSACTION"),
            let last = try connection.firstInt64("SELECT MAX(Z_PK) FROM ATRANSACTION"), first <= last
        {
            numbers = first...last
        }
        let consumers = try HistoryConsumers(connection: connection).all().map { record -> Consumer in
            let statement = try connection.statement(SQL("SELECT COUNT(*) FROM ATRANSACTION WHERE Z_PK > ?"))
            try statement.bind(record.number, at: 1)
            return Consumer(record: record, unread: try statement.step() ? Int(statement[0].int64) : 0)
        }
        return History(count: Int(count), numbers: numbers, consumers: consumers)
    }
}
