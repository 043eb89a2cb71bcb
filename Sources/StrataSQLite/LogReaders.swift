import Foundation

/// The oldest version of a database that is being read, and that its log therefore has to keep.
package struct OldestReader: Sendable, Equatable {
    /// The number of frames of the log that belong to the version; 0 for the content of the database file itself.
    package let frames: Int
    /// The number of frames of the log for the newest version.
    package let newestFrames: Int
    /// The processes that read it.
    package let holders: [LockHolder]

    /// The oldest version of the database at `path` that another process reads.
    ///
    /// Only programs that do not have the database open may call it: it opens the index of the log, and closing that
    /// would drop SQLite's locks in the process.
    ///
    /// - Returns: `nil` if no process reads, or if there is no log.
    package static func find(at path: String) -> OldestReader? {
        let index = path + "-shm"
        let readers = FileLock.all(on: index).filter { !$0.isExclusive && $0.processID != getpid() }
        guard !readers.isEmpty, let file = FileHandle(forReadingAtPath: index) else { return nil }
        defer { try? file.close() }
        guard let bytes = try? file.read(upToCount: Layout.end), bytes.count == Layout.end else { return nil }
        func number(at offset: Int) -> Int {
            Int(bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) })
        }
        let marks = (0..<Layout.markCount).compactMap { mark -> (frames: Int, holders: [Int32])? in
            let byte = UInt64(Layout.firstReadLock + mark)
            let holders = readers.filter { $0.bytes.contains(byte) }.map(\.processID)
            return holders.isEmpty ? nil : (number(at: Layout.firstMark + 4 * mark), holders)
        }
        guard let oldest = marks.min(by: { $0.frames < $1.frames }) else { return nil }
        return OldestReader(
            frames: oldest.frames,
            newestFrames: number(at: Layout.newestFrame),
            holders: Set(oldest.holders).sorted().map { LockHolder(processID: $0) }
        )
    }

    /// The positions of the needed values in the index of the log, in the machine's byte order.
    ///
    /// They are a part of SQLite's file format.
    private enum Layout {
        /// The last committed frame.
        static let newestFrame = 16
        /// The last frame of each version that may be read.
        static let firstMark = 100
        static let markCount = 5
        /// The byte that readers of the first of these marks lock.
        static let firstReadLock = 123
        static let end = 136
    }
}
