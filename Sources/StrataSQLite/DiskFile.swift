import CStrataSQLite
import Foundation

/// Files beside a database, on the file system that SQLite uses for the database.
///
/// So what is put in front of that, a disk that fails or one that keeps a record, has all files of a store before it.
///
/// Any thread may call any member. Nothing waits but for the disk.
package enum DiskFile {
    /// The most that is written with one call: no more than a page of a database has, as SQLite's own files take only that.
    private static let pieceSize = 1 << 16
    /// SQLite's kinds of files know what to do with locks and journals; this one is just a file.
    private static let plain = SQLITE_OPEN_READWRITE | SQLITE_OPEN_SUPER_JOURNAL

    /// Writes a new file, of a name that no other has.
    ///
    /// It may not survive a loss of power before ``synchronize(_:)``.
    ///
    /// - Throws: `cannotOpen` or `readOnly` if none can be made, `full` without space, `inputOutput`.
    package static func create(_ path: String, _ bytes: UnsafeRawBufferPointer) throws(SQLiteError) {
        try withFile(path, plain | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE) { file, methods in
            for start in stride(from: 0, to: bytes.count, by: pieceSize) {
                let piece = bytes[start..<min(start + pieceSize, bytes.count)]
                let address = UnsafeRawBufferPointer(rebasing: piece).baseAddress
                let code = methods.xWrite(file, address, Int32(piece.count), Int64(start))
                guard code == SQLITE_OK else { return code }
            }
            return SQLITE_OK
        }
    }

    /// Syncs a file, so that what was written survives a loss of power.
    ///
    /// - Throws: `cannotOpen` if it is not there, `inputOutput` if the disk fails.
    package static func synchronize(_ path: String) throws(SQLiteError) {
        try withFile(path, plain) { file, methods in methods.xSync(file, SQLITE_SYNC_NORMAL) }
    }

    /// Sees to it that a folder names its files as it does now after a loss of power.
    ///
    /// - Throws: `cannotOpen` if it is not there, `inputOutput` if the disk fails.
    package static func synchronize(folder path: String) throws(SQLiteError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw error(SQLITE_CANTOPEN, path) }
        defer { close(descriptor) }
        // Not every file system can; those that cannot say so.
        guard fsync(descriptor) == 0 || errno == EINVAL else { throw error(ResultCode.inputOutputSync.rawValue, path) }
    }

    /// Removes a file; that it is gone already, or cannot be removed, does not matter.
    package static func remove(_ path: String) {
        guard let system = sqlite3_vfs_find(nil) else { return }
        _ = path.withCString { system.pointee.xDelete(system, $0, 0) }
    }

    private static func withFile(
        _ path: String,
        _ flags: Int32,
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
