import Foundation

/// The free space of a file system.
package enum DiskSpace {
    /// The sizes of a file system, in bytes.
    package struct Room: Sendable {
        /// The total size; 0 if the file system does not report it, such as some network file systems.
        package let size: Int64
        /// The bytes that may still be written.
        package let available: Int64

        package init(size: Int64, available: Int64) {
            self.size = size
            self.available = available
        }

        /// Whether a store cannot grow there.
        package var isUsedUp: Bool { size > 0 && available < DiskSpace.little }
    }

    /// The free space, in bytes, below which a volume counts as full: less than a page of each of SQLite's files needs.
    package static let little: Int64 = 64 << 10

    /// The sizes of the file system of a folder; `nil` if the system does not report them.
    package static func room(in folder: String) -> Room? {
        var status = statvfs()
        guard statvfs(folder, &status) == 0 else { return nil }
        let block = Int64(clamping: status.f_frsize)
        func bytes(_ blocks: Int64) -> Int64 {
            let (bytes, overflows) = blocks.multipliedReportingOverflow(by: block)
            return overflows ? .max : bytes
        }
        return Room(size: bytes(Int64(clamping: status.f_blocks)), available: bytes(Int64(clamping: status.f_bavail)))
    }

    /// The bytes that may still be written to the file system of a folder; `nil` if the system does not report them.
    package static func available(in folder: String) -> Int64? { room(in: folder)?.available }

    /// Refuses a write that cannot fit, before anything is written.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes to write.
    ///   - folder: The folder to write to.
    /// - Throws: `full`.
    package static func require(_ bytes: Int64, in folder: String) throws(SQLiteError) {
        guard let available = available(in: folder), available < bytes else { return }
        throw SQLiteError(
            code: .full,
            message: "\(bytes) bytes are needed in \(folder), and \(available) are free",
            operation: .write
        )
    }
}
