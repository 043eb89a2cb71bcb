import CStrataSQLite
import CoreData

/// The rows of nodes in the file, which SQLite reads without the framework and its row cache.
final class NodeFile {
    /// A row, with the serial numbers of nodes for keys.
    struct Row: Equatable {
        /// In the form of the oracle: the numbers, then the parent, 0 for none.
        var values: [Int64]
        /// How often the row was written.
        var version: Int64
    }

    /// A sabotage: the rows of the previous read, which are returned instead; `nil` for no sabotage.
    private var previous: [Int64: Row]?
    private var database: OpaquePointer?
    private var statement: OpaquePointer?

    /// Opens the file beside the framework.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - isLate: Whether to return the rows of the previous read, for a sabotage.
    /// - Throws: `StressError` if SQLite fails, which says nothing about the framework.
    init(_ url: URL, isLate: Bool) throws {
        previous = isLate ? [:] : nil
        // A node without a parent has 0, and one whose parent is missing has -1, a number that the oracle never has.
        let sql = """
            SELECT c.ZSERIAL, c.ZFIRST, c.ZSECOND, CASE WHEN c.ZPARENT IS NULL THEN 0 ELSE coalesce(p.ZSERIAL, -1) END, \
            c.Z_OPT FROM ZNODE c LEFT JOIN ZNODE p ON p.Z_PK = c.ZPARENT
            """
        guard sqlite3_open_v2(url.path, &database, SQLITE_OPEN_READONLY, nil) == SQLITE_OK,
            sqlite3_busy_timeout(database, 10_000) == SQLITE_OK,
            sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK
        else { throw StressError("\(url.path) cannot be read: \(String(cString: sqlite3_errmsg(database)))") }
    }

    /// Reads all rows in one transaction.
    ///
    /// - Returns: The rows by serial number.
    /// - Throws: `StressError` if SQLite fails.
    func rows() throws -> [Int64: Row] {
        defer { sqlite3_reset(statement) }
        var found: [Int64: Row] = [:]
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_DONE:
                guard let previous else { return found }
                self.previous = found
                return previous
            case SQLITE_ROW:
                let columns = (0..<5).map { sqlite3_column_int64(statement, $0) }
                found[columns[0]] = Row(values: Array(columns[1...3]), version: columns[4])
            default: throw StressError("rows cannot be read: \(String(cString: sqlite3_errmsg(database)))")
            }
        }
    }

    /// Closes the file, before the framework closes it.
    func close() {
        sqlite3_finalize(statement)
        sqlite3_close(database)
        (statement, database) = (nil, nil)
    }
}
