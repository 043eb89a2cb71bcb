import StrataSQLite

/// The new keys of imported objects.
///
/// They are in a temporary table. SQLite moves it to a file if it exceeds a small cache, so memory does not grow with
/// the number of objects. The file has no name, so it disappears with the process, however that ends. `TMPDIR` sets its
/// place.
///
/// One thread uses it.
final class ImportedKeys {
    private let connection: Connection

    init() throws(SQLiteError) {
        connection = try Connection(path: ":memory:", access: .readWriteCreate)
        // There is one transaction, which is never committed.
        try connection.execute(
            """
            PRAGMA temp_store = FILE;
            CREATE TEMP TABLE keys (root TEXT, old INTEGER, new INTEGER, PRIMARY KEY (root, old)) WITHOUT ROWID;
            BEGIN;
            """
        )
    }

    /// Remembers the new key of an object.
    ///
    /// - Parameters:
    ///   - old: The key in the lines.
    ///   - new: The key in the store.
    ///   - root: The root entity: keys are unique below it.
    /// - Returns: Whether `old` was not there yet.
    /// - Throws: An error of SQLite, such as a full disk.
    func add(_ old: Int64, _ new: Int64, of root: String) throws(SQLiteError) -> Bool {
        let statement = try connection.statement("INSERT INTO temp.keys VALUES (?, ?, ?)")
        try statement.bind(root, at: 1)
        try statement.bind(old, at: 2)
        try statement.bind(new, at: 3)
        do { try statement.run() } catch  where error.code.primary == .constraint { return false }
        return true
    }

    /// The new key of an object; `nil` if no line has the old one.
    func key(_ old: Int64, of root: String) throws(SQLiteError) -> Int64? {
        let statement = try connection.statement("SELECT new FROM temp.keys WHERE root = ? AND old = ?")
        try statement.bind(root, at: 1)
        try statement.bind(old, at: 2)
        return try statement.step() ? statement.int64(0) : nil
    }

    /// The number of bytes of the table that are in memory.
    var bytesInMemory: Int { connection.cachedBytes }
}
