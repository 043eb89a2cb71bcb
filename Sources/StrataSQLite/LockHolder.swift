import Foundation

/// The process that holds a lock on a database, for the message of a wait that has failed.
package struct LockHolder: Sendable, Equatable {
    /// The number of the process.
    package let processID: Int32
    /// The name of its program, if the system reports it.
    package let program: String?

    /// The process, other than this one, that is writing to the database at `path`.
    ///
    /// It is found in the kernel's list of locks: see ``FileLock``.
    ///
    /// - Returns: `nil` if no process writes any more, or if the system has no such list.
    static func writing(to path: String) -> LockHolder? {
        // In WAL mode the lock is on the index of the log, at SQLite's WAL_WRITE_LOCK; otherwise on the file, at
        // RESERVED_BYTE.
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
    /// A text such as `process 4711 (worker)`.
    package var description: String { "process \(processID)" + (program.map { " (\($0))" } ?? "") }
}
