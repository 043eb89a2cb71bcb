import CStrataSQLite

extension Connection {
    // MARK: - Small queries

    /// The first column of the first row as an integer; `nil` without rows or for NULL.
    package func firstInt64(_ sql: SQL) throws(SQLiteError) -> Int64? {
        let statement = try statement(sql)
        return try statement.step() ? statement[0].optionalInt64 : nil
    }

    /// The first column of the first row as text; `nil` without rows or for NULL.
    package func firstString(_ sql: SQL) throws(SQLiteError) -> String? {
        let statement = try statement(sql)
        return try statement.step() ? statement[0].optionalString : nil
    }

    /// The first column of every row as text.
    package func strings(_ sql: SQL) throws(SQLiteError) -> [String] {
        let statement = try statement(sql)
        var strings: [String] = []
        while try statement.step() { strings.append(statement[0].string) }
        return strings
    }

    // MARK: - Pragmas

    /// The value of a pragma; `nil` if SQLite does not know it.
    package func pragma(_ name: String) throws(SQLiteError) -> String? {
        try firstString(SQL("PRAGMA \(Self.checkedPragmaName(name))"))
    }

    /// Sets a pragma, and returns SQLite's answer.
    ///
    /// - Throws: `misuse` if `name` is not a name, or if `value` is neither a name nor a number (this call quotes a
    ///   text).
    @discardableResult
    package func setPragma(_ name: String, _ value: String) throws(SQLiteError) -> String? {
        let name = try Self.checkedPragmaName(name)
        let isPlain = value.utf8.allSatisfy { Self.isNamePart($0) || $0 == 0x2D || $0 == 0x2E }
        let literal = isPlain && !value.isEmpty ? value : "'" + value.replacing("'", with: "''") + "'"
        // The statement runs to its end: SQLite answers with the new journal mode, and then commits it, which may fail.
        return try strings(SQL("PRAGMA \(name) = \(literal)")).first
    }

    private static func checkedPragmaName(_ name: String) throws(SQLiteError) -> String {
        guard !name.isEmpty, name.utf8.allSatisfy(isNamePart) else {
            throw SQLiteError(code: .misuse, message: "no name of a pragma: \(name)", operation: .configure)
        }
        return name
    }

    private static func isNamePart(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
        default: false
        }
    }

    // MARK: - Checking the database

    /// Reads the header and the schema, which shows whether the file is no database or was cut off.
    ///
    /// - Throws: `notADatabase`, `corrupt`, or errors of reading the file. A file of no bytes is an empty database.
    package func validate() throws(SQLiteError) {
        do {
            _ = try firstInt64("SELECT count(*) FROM sqlite_schema")
        } catch {
            throw openingError(error)
        }
    }

    /// The meaning of `error` if it occurs while the file is being opened.
    func openingError(_ error: SQLiteError) -> SQLiteError {
        let explanation: String
        switch error.code {
        case .notADatabase: explanation = "the file is not an SQLite database, or is encrypted"
        case .corrupt: explanation = "the database is damaged or was cut off"
        default: return error
        }
        let message = "\(explanation) (\(error.message)): \(path)"
        return SQLiteError(code: error.extendedCode, message: message, operation: .open)
    }

    /// The faults that SQLite finds in the whole file; empty if it is sound.
    ///
    /// This reads the whole file.
    ///
    /// - Parameter isQuick: Leaves out the comparison of each index with its table.
    /// - Returns: The faults, a line each.
    /// - Throws: Errors of reading the file, other than damage.
    package func integrityFaults(isQuick: Bool = false) throws(SQLiteError) -> [String] {
        let statement = try statement(isQuick ? "PRAGMA quick_check" : "PRAGMA integrity_check")
        var faults: [String] = []
        do {
            while try statement.step() { faults.append(statement[0].string) }
        } catch  where error.code == .corrupt {
            // Some kinds of damage end the check itself.
            faults.append(error.message)
        }
        return faults.filter { $0 != "ok" }
    }

    /// SQLite's plan for a statement: a line a step, indented by two spaces a level.
    package func queryPlan(_ sql: String) throws(SQLiteError) -> [String] {
        let statement = try statement(SQL("EXPLAIN QUERY PLAN " + sql))
        var depths: [Int64: Int] = [:]
        var lines: [String] = []
        while try statement.step() {
            let depth = depths[statement[1].int64].map { $0 + 1 } ?? 0
            depths[statement[0].int64] = depth
            lines.append(String(repeating: "  ", count: depth) + statement[3].string)
        }
        return lines
    }

    /// The memory for the pages that the connection caches, including those of temporary tables.
    package var cachedBytes: Int {
        var (now, highest): (Int32, Int32) = (0, 0)
        sqlite3_db_status(handle, SQLITE_DBSTATUS_CACHE_USED, &now, &highest, 0)
        return Int(now)
    }

    /// A number that changes if another connection, of this or another process, changes the database.
    package func dataVersion() throws(SQLiteError) -> Int64 {
        try firstInt64("PRAGMA data_version") ?? 0
    }
}
