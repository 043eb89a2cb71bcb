import CStrataSQLite
import StrataLocks

/// Writes to the file of a place as another program does: with SQLite alone, and in no order of the library.
struct OtherProgram {
    struct Failure: Error { let message: String }

    private let path: String

    init(_ place: Place) { path = place.file.path }

    /// Runs a statement in a transaction of its own.
    func run(_ sql: String) throws {
        var handle: OpaquePointer?
        defer { sqlite3_close(handle) }
        guard sqlite3_open(path, &handle) == SQLITE_OK, let handle else {
            throw Failure(message: "cannot open \(path)")
        }
        // The triggers of the library need functions of its connections; the programs' model has none.
        sqlite3_busy_handler(handle, { _, _ in Schedule.pause() ? 1 : 0 }, nil)
        for statement in ["PRAGMA synchronous=OFF", "PRAGMA wal_autocheckpoint=0", "BEGIN IMMEDIATE", sql, "COMMIT"] {
            Schedule.point()
            guard sqlite3_exec(handle, statement, nil, nil, nil) == SQLITE_OK else {
                throw Failure(message: "\(statement): \(String(cString: sqlite3_errmsg(handle)))")
            }
        }
    }
}
