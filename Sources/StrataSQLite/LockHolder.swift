import Foundation

/// The process that holds a lock on a database, for the message of a wait that was in vain.
package struct LockHolder: Sendable, Equatable {
    /// The process.
    package let processID: Int32
    /// The name of its program, as far as the system tells.
    package let program: String?

    /// Who writes to the database at `path` just now, other than this process.
    ///
    /// From the kernel's list of locks. Asking for a lock itself would mean to open the file, and closing it again would drop
    /// SQLite's locks of the whole process.
    ///
    /// - Returns: `nil` if nobody does any more, or where the system has no such list.
    static func writing(to path: String) -> LockHolder? {
        // In WAL mode the lock is on the index of the log, at SQLite's WAL_WRITE_LOCK; else on the file, at RESERVED_BYTE.
        let places = [(path + "-shm", 120 as UInt64), (path, 0x4000_0001)]
        guard let list = try? String(contentsOfFile: "/proc/locks", encoding: .utf8) else { return nil }
        let locks = list.split(separator: "\n").compactMap { Lock($0) }
        for (file, byte) in places {
            var status = stat()
            guard stat(file, &status) == 0 else { continue }
            let inode = UInt64(status.st_ino)
            guard let lock = locks.first(where: { $0.inode == inode && $0.bytes.contains(byte) }) else { continue }
            return lock.processID == getpid() ? nil : LockHolder(processID: lock.processID)
        }
        return nil
    }

    private init(processID: Int32) {
        self.processID = processID
        let name = try? String(contentsOfFile: "/proc/\(processID)/comm", encoding: .utf8)
        program = name?.trimmingCharacters(in: .newlines)
    }

    /// A line such as `1: POSIX  ADVISORY  WRITE 7268 fe:00:16277581 120 120`, if it is of a lock that somebody holds.
    ///
    /// The device is left aside: what the kernel says here and what `stat` says differs on stacked file systems.
    private struct Lock {
        let processID: Int32
        let inode: UInt64
        let bytes: ClosedRange<UInt64>

        init?(_ line: Substring) {
            let words = line.split(separator: " ")
            // A lock that is waited for has an arrow in front of its kind.
            guard words.count >= 8, words[3] == "WRITE", let process = Int32(words[4]), process > 0,
                let inode = words[5].split(separator: ":").last.flatMap({ UInt64($0) }),
                let first = UInt64(words[6]), let last = words[7] == "EOF" ? .max : UInt64(words[7]), first <= last
            else { return nil }
            processID = process
            self.inode = inode
            bytes = first...last
        }
    }
}

extension LockHolder: CustomStringConvertible {
    /// Such as `process 4711 (worker)`.
    package var description: String { "process \(processID)" + (program.map { " (\($0))" } ?? "") }
}
