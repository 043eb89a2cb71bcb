import Foundation

/// How much room a file system has.
package enum DiskSpace {
    /// The bytes that may still be written to the file system of a folder; `nil` if that cannot be told.
    package static func available(in folder: String) -> Int64? {
        var status = statvfs()
        guard statvfs(folder, &status) == 0 else { return nil }
        let (bytes, overflows) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(
            by: Int64(clamping: status.f_frsize)
        )
        return overflows ? .max : bytes
    }

    /// Refuses what cannot fit, before anything is written.
    ///
    /// - Parameters:
    ///   - bytes: How much is to be written.
    ///   - folder: Where.
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
