import Foundation

/// A lock that a process holds on a part of a file, according to the kernel's list.
///
/// Asking the file itself would mean to open it, and closing it again would drop all locks of SQLite in the process.
struct FileLock: Hashable {
    let processID: Int32
    /// Whether no other process may hold a lock on the same bytes.
    let isExclusive: Bool
    private let inode: UInt64
    let bytes: ClosedRange<UInt64>

    /// The locks on the file at `path`; none if there is no such file, or if the system has no such list.
    static func all(on path: String) -> [FileLock] {
        var status = stat()
        guard stat(path, &status) == 0 else { return [] }
        let inode = UInt64(status.st_ino)
        // The kernel returns its list a page at a time, by position. If other locks are taken or released between two
        // pages, the rest of the list moves, and a lock that was held all the time may be missed. So the list is read
        // several times, and every lock that is found counts. On a busy machine three times are too few.
        var found: Set<FileLock> = []
        for _ in 0..<12 {
            guard let list = try? String(contentsOfFile: "/proc/locks", encoding: .utf8) else { break }
            found.formUnion(list.split(separator: "\n").compactMap { FileLock($0) }.filter { $0.inode == inode })
        }
        return Array(found)
    }

    /// Reads a line such as `1: POSIX  ADVISORY  WRITE 7268 fe:00:16277581 120 120`; `nil` unless the lock is held.
    ///
    /// The device is ignored: on stacked file systems the kernel and `stat` report different ones.
    private init?(_ line: Substring) {
        let words = line.split(separator: " ")
        // A lock that is only waited for has an arrow before its kind.
        guard words.count >= 8, words[3] == "WRITE" || words[3] == "READ", let process = Int32(words[4]), process > 0,
            let inode = words[5].split(separator: ":").last.flatMap({ UInt64($0) }),
            let first = UInt64(words[6]), let last = words[7] == "EOF" ? .max : UInt64(words[7]), first <= last
        else { return nil }
        processID = process
        isExclusive = words[3] == "WRITE"
        self.inode = inode
        bytes = first...last
    }
}
