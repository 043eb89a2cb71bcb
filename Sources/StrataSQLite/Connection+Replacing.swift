import CStrataSQLite

extension Connection {
    /// Replaces all of this database by another one, page by page, under the locks of both.
    ///
    /// Others that have this database open see the new content with their next transaction; with a failure it is as before.
    ///
    /// - Throws: `busy` if a lock was not free until the deadline; `readOnly`, `full` and errors of either file.
    package func copyAll(from source: Connection) throws(SQLiteError) {
        guard let backup = sqlite3_backup_init(handle, "main", source.handle, "main") else {
            throw failure(sqlite3_errcode(handle), .step, sql: nil)
        }
        var code = SQLITE_OK
        let deadline = BusyWait.now() &+ UInt64(max(busyWait.timeout, 0) * 1e9)
        repeat {
            // All pages in one step, so that nobody can write in between.
            code = sqlite3_backup_step(backup, -1)
            guard code == SQLITE_BUSY || code == SQLITE_LOCKED, BusyWait.now() < deadline else { break }
            sqlite3_sleep(5)
        } while true
        let finished = sqlite3_backup_finish(backup)
        if code != SQLITE_DONE { throw failure(finished == SQLITE_OK ? code : finished, .step, sql: nil) }
    }

    /// Makes the database an empty one, under its locks, even if it is damaged.
    ///
    /// - Throws: `busy` if others were using it until the deadline; `readOnly` and errors of the file.
    package func eraseAll() throws(SQLiteError) {
        strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_RESET_DATABASE, 1)
        defer { strata_sqlite3_set_switch(handle, SQLITE_DBCONFIG_RESET_DATABASE, 0) }
        try execute("VACUUM")
    }
}
