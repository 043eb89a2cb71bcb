import Foundation
import StrataLocks

/// The identities of the files of a database and its log, to notice if they are removed or replaced while they are in
/// use.
///
/// A connection keeps the file that it has opened, even if the path leads to another one now. It then writes to a file
/// that cannot be opened by its path, or to the log of another database. SQLite keeps the files of a log as long as a
/// connection has them open, so they stay the same ones, too.
struct FilesInPlace: Sendable {
    /// A file, by its device and its number on the device.
    private struct File: Equatable, Sendable {
        let device: UInt64
        let number: UInt64

        /// Reads the identity of the file at the path; `nil` if there is none.
        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = UInt64(status.st_dev)
            number = UInt64(status.st_ino)
        }
    }

    private let files: [(path: String, file: File)]

    /// Reads the identities of the files of an open database.
    ///
    /// - Parameters:
    ///   - path: The database.
    ///   - hasLog: Whether it has a write-ahead log, which is open too.
    init(_ path: String, hasLog: Bool) {
        let paths = hasLog ? [path, path + "-wal", path + "-shm"] : [path]
        files = paths.compactMap { path in File(path).map { (path, $0) } }
    }

    /// Refuses to go on if a file is not in its place.
    ///
    /// - Throws: `readOnlyMoved` with the present state.
    func require(_ operation: SQLiteError.Operation) throws(SQLiteError) {
        if FaultGuard.filePlaceCheck.isOff { return }
        for (path, file) in files {
            let found = File(path)
            guard found != file else { continue }
            let name = path == files[0].path ? "the file" : "\(path), which has the last commits,"
            let what = found == nil ? "was removed" : "was replaced by another file"
            let message = "\(name) \(what) while it was in use"
            throw SQLiteError(code: .readOnlyMoved, message: message, operation: operation)
        }
    }

    /// Whether the database was removed or replaced, while its log is still at the path.
    ///
    /// The log would be taken for that of the file that is there now.
    var isLogStranded: Bool {
        guard let database = files.first, File(database.path) != database.file else { return false }
        return files.count > 1 && files.dropFirst().allSatisfy { File($0.path) == $0.file }
    }

    /// Whether all files are in their places.
    var areThere: Bool { files.allSatisfy { File($0.path) == $0.file } }
}
