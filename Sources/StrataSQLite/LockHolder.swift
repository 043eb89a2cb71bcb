import Foundation

/// The process that holds a lock on a database, for the message of a wait that was in vain.
package struct LockHolder: Sendable, Equatable {
    /// The process.
    package let processID: Int32
    /// The name of its program, as far as the system tells.
    package let program: String?

    /// Who writes to the database at `path` just now, other than this process.
    ///
    /// From the kernel's list of locks: see ``FileLock``.
    ///
    /// - Returns: `nil` if nobody does any more, or where the system has no such list.
    static func writing(to path: String) -> LockHolder? {
        // In WAL mode the lock is on the index of the log, at SQLite's WAL_WRITE_LOCK; else on the file, at RESERVED_BYTE.
        let places = [(path + "-shm", 120 as UInt64), (path, 0x4000_0001)]
        for (file, byte) in places {
            guard let lock = FileLock.all(on: file).first(where: { $0.isExclusive && $0.bytes.contains(byte) }) else {
                continue
            }
            return lock.processID == getpid() ? nil : LockHolder(processID: lock.processID)
        }
        return nil
    }

    init(processID: Int32) {
        self.processID = processID
        let name = try? String(contentsOfFile: "/proc/\(processID)/comm", encoding: .utf8)
        program = name?.trimmingCharacters(in: .newlines)
    }
}

extension LockHolder: CustomStringConvertible {
    /// Such as `process 4711 (worker)`.
    package var description: String { "process \(processID)" + (program.map { " (\($0))" } ?? "") }
}
