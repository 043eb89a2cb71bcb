import CStrataSQLite
import StrataLocks

// A cancellation is passed to `reader`, `read`, `writer` or `write` of the pool. It stops a running statement within
// about a thousand of SQLite's instructions, some microseconds. The operation then throws an error with the code
// `interrupt`.
//
// `sqlite3_interrupt` is not used: SQLite forgets an interrupt that comes between two statements, and a late one hits
// the next user of the connection. A flag that the connection polls while the operation owns it has neither problem.

extension Cancellation {
    /// Makes the connection poll the flag.
    ///
    /// The connection keeps `self` alive until `uninstall`.
    func install(on handle: OpaquePointer) {
        sqlite3_progress_handler(
            handle,
            WorkSize.polledInstructions,
            { context in
                guard let context else { return 0 }
                return Unmanaged<Cancellation>.fromOpaque(context).takeUnretainedValue().endsStatement ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    static func uninstall(from handle: OpaquePointer) {
        sqlite3_progress_handler(handle, 0, nil, nil)
    }
}
