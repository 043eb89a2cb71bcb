import Foundation

/// A lock that some process holds on a part of a file, from the kernel's list.
///
/// Asking for a lock itself would mean to open the file, and closing it again would drop SQLite's locks of the whole process.
struct FileLock: Hashable {
    let processID: Int32
    /// Whether nobody else may hold a lock on the same bytes.
    let isExclusive: Bool
    private let inode: UInt64
    let bytes: ClosedRange<UInt64>

    /// The locks on the file at `path`; none if there is no such file, or where the system has no such list.
    static func all(on path: String) -> [FileLock] {
        var status = stat()
        guard stat(path, &status) == 0 else { return [] }
        let inode = UInt64(status.st_ino)
        // The kernel hands out its list a page at a time, by position. What others lock and unlock between two pages moves the rest of the
        // list, and a lock that was held all the time may be passed over: so there are several looks, and what one of them saw counts.
        var found: Set<FileLock> = []
        for _ in 0..<3 {
            guard let list = try? String(contentsOfFile: "/proc/locks", encoding: .utf8) else { break }
            found.formUnion(list.split(separator: "\n").compactMap { FileLock($0) }.filter { $0.inode == inode })
        }
        return Array(found)
    }

    /// A line such as `1: POSIX  ADVISORY  WRITE 7268 fe:00:16277581 120 120`, if it is of a lock that somebody holds.
    ///
    /// The device is left aside: what the kernel says here and what `stat` says differs on stacked file systems.
    private init?(_ line: Substring) {
        let words = line.split(separator: " ")
        // A lock that is waited for has an arrow in front of its kind.
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
