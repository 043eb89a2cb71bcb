import CStrataSQLite
import Foundation

/// Files beside a database, on the file system that SQLite uses for the database.
///
/// So a layer in front of that file system, such as a simulated failing disk, sees all files of a store.
///
/// Any thread may call any member. Calls wait only for the disk.
package enum DiskFile {
    /// The most bytes to write with one call: at most a page of a database, because SQLite's own files take no more.
    private static let pieceSize = 1 << 16
    /// SQLite has special kinds of files for locks and journals; this is a plain file.
    private static let plain = SQLITE_OPEN_READWRITE | SQLITE_OPEN_SUPER_JOURNAL

    /// Writes a new file with a unique name.
    ///
    /// It may be lost in a loss of power until ``synchronize(_:)`` is called.
    ///
    /// - Throws: `cannotOpen` or `readOnly` if none can be made, `full` without space, `inputOutput`.
    package static func create(_ path: String, _ bytes: UnsafeRawBufferPointer) throws(SQLiteError) {
        try withFile(path, flags: plain | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE) { file, methods in
            for start in stride(from: 0, to: bytes.count, by: pieceSize) {
                let piece = bytes[start..<min(start + pieceSize, bytes.count)]
                let address = UnsafeRawBufferPointer(rebasing: piece).baseAddress
                let code = methods.xWrite(file, address, Int32(piece.count), Int64(start))
                guard code == SQLITE_OK else { return code }
            }
            return SQLITE_OK
        }
    }

    /// Syncs a file, so that its content survives a loss of power.
    ///
    /// - Throws: `cannotOpen` if it is not there, `inputOutput` if the disk fails.
    package static func synchronize(_ path: String) throws(SQLiteError) {
        try withFile(path, flags: plain) { file, methods in methods.xSync(file, SQLITE_SYNC_NORMAL) }
    }

    /// Syncs a folder, so that its present file names survive a loss of power.
    ///
    /// - Throws: `cannotOpen` if it is not there, `inputOutput` if the disk fails.
    package static func synchronize(folder path: String) throws(SQLiteError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw error(SQLITE_CANTOPEN, path) }
        defer { close(descriptor) }
        // Not every file system can do so; those that cannot return this error.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw error(ResultCode.inputOutputSync.rawValue, path) }
    }

    /// Removes a file.
    ///
    /// It is no error if the file is already gone, or cannot be removed.
    package static func remove(_ path: String) {
        guard let system = sqlite3_vfs_find(nil) else { return }
        _ = path.withCString { system.pointee.xDelete(system, $0, 0) }
    }

    private static func withFile(
        _ path: String,
        flags: Int32,
        _ body: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) -> Int32
    ) throws(SQLiteError) {
        guard let system = sqlite3_vfs_find(nil) else { throw error(SQLITE_ERROR, path) }
        let size = Int(system.pointee.szOsFile)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        let file = memory.assumingMemoryBound(to: sqlite3_file.self)
        // SQLite keeps the address of the name for as long as the file is open.
        let code = path.withCString { name in
            let opened = system.pointee.xOpen(system, name, file, flags, nil)
            guard let methods = file.pointee.pMethods?.pointee else { return opened }
            let done = opened == SQLITE_OK ? body(file, methods) : opened
            let closed = methods.xClose(file)
            return done == SQLITE_OK ? closed : done
        }
        guard code == SQLITE_OK else { throw error(code, path) }
    }

    private static func error(_ code: Int32, _ path: String) -> SQLiteError {
        let reason = String(cString: sqlite3_errstr(code))
        return SQLiteError(code: ResultCode(rawValue: code), message: "\(path): \(reason)", operation: .write)
    }
}
