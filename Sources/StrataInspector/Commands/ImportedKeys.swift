import StrataSQLite

/// What the keys of imported objects have become.
///
/// In a temporary table, which SQLite moves to a file once it is larger than a small cache: memory does not grow with the objects. The
/// file has no name, so it goes with the process however that ends; `TMPDIR` says where its space comes from.
///
/// Used by one thread.
final class ImportedKeys {
    private let connection: Connection

    init() throws(SQLiteError) {
        connection = try Connection(path: ":memory:", access: .readWriteCreate)
        // One transaction, which nobody ever commits.
        try connection.execute(
            """
            PRAGMA temp_store = FILE;
            CREATE TEMP TABLE keys (root TEXT, old INTEGER, new INTEGER, PRIMARY KEY (root, old)) WITHOUT ROWID;
            BEGIN;
            """
        )
    }

    /// Remembers what a key has become.
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

    /// What a key has become; `nil` if no line has it.
    func key(_ old: Int64, of root: String) throws(SQLiteError) -> Int64? {
        let statement = try connection.statement("SELECT new FROM temp.keys WHERE root = ? AND old = ?")
        try statement.bind(root, at: 1)
        try statement.bind(old, at: 2)
        return try statement.step() ? statement.int64(0) : nil
    }

    /// How much of the table is in memory.
    var bytesInMemory: Int { connection.cachedBytes }
}
