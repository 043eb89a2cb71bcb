import CStrataSQLite
import StrataLocks

// Given to `reader`, `read`, `writer` or `write` of the pool, a cancellation stops a running statement within about a thousand of
// SQLite's instructions, some microseconds; the operation then throws an error with the code `interrupt`.
//
// Why not `sqlite3_interrupt`: SQLite forgets an interrupt that falls between two statements, and one that comes late hits whoever
// has the connection next. A flag which the connection polls while the operation owns it has neither problem.

extension Cancellation {
    /// Makes the connection poll the flag.
    ///
    /// The connection keeps `self` alive until `uninstall`.
    func install(on handle: OpaquePointer) {
        sqlite3_progress_handler(
            handle,
            1000,
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
