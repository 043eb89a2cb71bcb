import CStrataSQLite

extension Connection {
    /// Replaces all of this database by another one, page by page, under the locks of both.
    ///
    /// Connections that have this database open see the new content in their next transaction. If there is an error,
    /// the database is unchanged.
    ///
    /// - Parameters:
    ///   - source: The other database.
    ///   - condition: Called under the write lock of this database, before anything is written. If it returns false,
    ///     nothing is written.
    /// - Returns: Whether the database was replaced.
    /// - Throws: `busy` if a lock was not free until the deadline; `readOnly`, `full` and errors of either file.
    @discardableResult
    package func copyAll(from source: Connection, if condition: () -> Bool = { true }) throws(SQLiteError) -> Bool {
        guard let backup = sqlite3_backup_init(handle, "main", source.handle, "main") else {
            throw failure(sqlite3_errcode(handle), .step, sql: nil)
        }
        let deadline = BusyWait.now() &+ UInt64(max(busyWait.timeout, 0) * 1e9)
        // A step of no pages takes the lock and keeps it.
        var code = step(backup, pages: 0, until: deadline)
        if code == SQLITE_OK || code == SQLITE_DONE {
            guard condition() else {
                sqlite3_backup_finish(backup)
                return false
            }
            // All pages are copied in one step, so that no other connection can write in between.
            code = step(backup, pages: -1, until: deadline)
        }
        let finished = sqlite3_backup_finish(backup)
        if code != SQLITE_DONE { throw failure(finished == SQLITE_OK ? code : finished, .step, sql: nil) }
        return true
    }

    /// Runs one step of a backup, and retries until the deadline while others have a lock.
    private func step(_ backup: OpaquePointer, pages: Int32, until deadline: UInt64) -> Int32 {
        while true {
            let code = sqlite3_backup_step(backup, pages)
            guard code == SQLITE_BUSY || code == SQLITE_LOCKED, BusyWait.now() < deadline else { return code }
            sqlite3_sleep(5)
        }
    }

    /// Makes the database an empty one, under its locks, even if it is damaged.
    ///
    /// - Throws: `busy` if others were using it until the deadline; `readOnly` and errors of the file.
    package func eraseAll() throws(SQLiteError) {
        // A connection that has just turned a rollback journal into a log opens that log with its next read, but not
        // with one that takes the database for an empty one. It would erase as if there were no log, and wait until all
        // other connections are closed, also those of the same pool. A damaged database is erased too, so errors of
        // this read do not count.
        try? validate()
        strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_RESET_DATABASE, 1)
        defer { strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_RESET_DATABASE, 0) }
        try execute("VACUUM")
    }
}
