import CStrataSQLite

extension Connection {
    /// Syncs the database file, as a checkpoint does at its end.
    ///
    /// - Throws: `inputOutput` if the disk fails.
    func synchronizeFile() throws(SQLiteError) { try synchronize(SQLITE_FCNTL_FILE_POINTER) }

    /// Syncs the file of the write-ahead log, as a checkpoint does before it copies.
    ///
    /// - Throws: `inputOutput` if the disk fails.
    func synchronizeLog() throws(SQLiteError) { try synchronize(SQLITE_FCNTL_JOURNAL_POINTER) }

    /// Syncs one of the files that SQLite has open.
    ///
    /// The file is not opened for it: closing it again would drop SQLite's locks in the process.
    private func synchronize(_ file: Int32) throws(SQLiteError) {
        var found: UnsafeMutablePointer<sqlite3_file>?
        let asked = sqlite3_file_control(handle, nil, file, &found)
        guard asked == SQLITE_OK else { throw failure(asked, .checkpoint, sql: nil) }
        guard let found, let methods = found.pointee.pMethods else { return }
        let code = methods.pointee.xSync(found, SQLITE_SYNC_NORMAL)
        guard code == SQLITE_OK else { throw failure(code, .checkpoint, sql: nil) }
    }
}
