import CStrataSQLite
import CoreData
import StrataLocks

/// A file system for SQLite that passes everything on to the system's, and records the operations that must reach the
/// disk.
enum RecordingFileSystem {
    /// The current recording.
    ///
    /// To ignore syncs is a sabotage.
    private struct Recording {
        var log: DiskLog?
        var folder = ""
        var ignoresSyncs = false
        /// The names of the opened files; a file's number is its place in this list, from 1 on.
        var names: [String] = []
        var syncCount = 0
    }

    private static let recording = Locked(Recording())
    // nonisolated(unsafe): written once, in `register`, before any file is opened, and constant afterwards.
    nonisolated(unsafe) private static var base: UnsafeMutablePointer<sqlite3_vfs>?
    // nonisolated(unsafe): as `base`. The structures are allocated for two reasons: SQLite keeps their addresses, and
    // the compiler gives a static variable of such a C structure too little room, as it leaves out the padding after
    // the first members.
    nonisolated(unsafe) private static let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    nonisolated(unsafe) private static let system = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    private static let isRegistered = Locked(false)
    /// The places, within our file, of the file's number and of the system's own file.
    private static let numberOffset = 8
    private static let offset = 16

    /// Records the operations on the files of a folder until `body` returns.
    ///
    /// - Parameters:
    ///   - folder: The folder.
    ///   - ignoresSyncs: A sabotage: whether syncs are left out.
    ///   - body: The code that opens, writes and closes files.
    /// - Returns: All operations.
    /// - Throws: Errors of `body`.
    static func record(_ folder: URL, ignoresSyncs: Bool, _ body: (DiskLog) throws -> Void) throws -> DiskLog {
        let log = DiskLog()
        isRegistered.withLock { isRegistered in
            if !isRegistered { register() }
            isRegistered = true
        }
        recording.withLock { $0 = Recording(log: log, folder: folder.path, ignoresSyncs: ignoresSyncs) }
        sqlite3_vfs_register(system, 1)
        defer {
            recording.withLock { $0.log = nil }
            sqlite3_vfs_register(base, 1)
        }
        try body(log)
        return log
    }

    private static func number(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<Int> {
        UnsafeMutableRawPointer(file).advanced(by: numberOffset).assumingMemoryBound(to: Int.self)
    }

    private static func real(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<sqlite3_file> {
        // SQLite hands over files that `open` below has set up. They are never nil.
        UnsafeMutableRawPointer(file!).advanced(by: offset).assumingMemoryBound(to: sqlite3_file.self)
    }

    private static func calls(_ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods {
        real(file).pointee.pMethods.pointee
    }

    /// Records an operation, if it has succeeded.
    private static func note(
        _ code: Int32,
        _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ entry: (String) -> DiskLog.Entry
    ) -> Int32 {
        guard code == SQLITE_OK, let file else { return code }
        let place = number(file).pointee
        recording.withLock { recording in
            guard place > 0, place <= recording.names.count else { return }
            let entry = entry(recording.names[place - 1])
            recording.log?.add(entry)
        }
        return code
    }

    /// Records a sync, and where it began.
    private static func sync(_ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32) -> Int32 {
        let number: Int? = recording.withLock { recording in
            recording.syncCount += 1
            return recording.ignoresSyncs ? nil : recording.syncCount
        }
        if let number { _ = note(SQLITE_OK, file) { .syncBegins($0, number) } }
        let code = calls(file).xSync(real(file), flags)
        guard let number else { return code }
        return note(code, file) { .sync($0, number) }
    }

    /// The name of a file in the recorded folder.
    private static func name(_ path: UnsafePointer<CChar>?) -> String? {
        guard let path else { return nil }
        let text = String(cString: path)
        return recording.withLock { recording in
            guard recording.log != nil, text.hasPrefix(recording.folder) else { return nil }
            return String(text.dropFirst(recording.folder.count + 1))
        }
    }

    // MARK: - Registering

    private static func register() {
        guard let found = sqlite3_vfs_find(nil) else { return }
        base = found
        methods.initialize(to: makeMethods())
        var system = found.pointee
        system.szOsFile = found.pointee.szOsFile + Int32(offset)
        system.pNext = nil
        system.zName = UnsafePointer(strdup("strata-recording"))
        system.xOpen = { _, path, file, flags, outFlags in
            guard let file, let base = RecordingFileSystem.base else { return SQLITE_CANTOPEN }
            file.pointee.pMethods = nil
            RecordingFileSystem.number(file).pointee = 0
            let isNew = path.map { access($0, F_OK) != 0 } ?? false
            let code = base.pointee.xOpen(base, path, RecordingFileSystem.real(file), flags, outFlags)
            if RecordingFileSystem.real(file).pointee.pMethods != nil {
                file.pointee.pMethods = UnsafePointer(RecordingFileSystem.methods)
            }
            guard code == SQLITE_OK, let name = RecordingFileSystem.name(path) else { return code }
            RecordingFileSystem.number(file).pointee = RecordingFileSystem.recording.withLock { recording in
                if isNew { recording.log?.add(.create(name)) }
                recording.names.append(name)
                return recording.names.count
            }
            return code
        }
        system.xDelete = { _, path, syncs in
            guard let base = RecordingFileSystem.base else { return SQLITE_IOERR }
            let code = base.pointee.xDelete(base, path, syncs)
            if code == SQLITE_OK, let name = RecordingFileSystem.name(path) {
                RecordingFileSystem.recording.withLock { $0.log?.add(.delete(name, isDurable: syncs != 0)) }
            }
            return code
        }
        // The rest of the system's functions get the system's own file system.
        system.xAccess = {
            RecordingFileSystem.base?.pointee.xAccess(RecordingFileSystem.base, $1, $2, $3) ?? SQLITE_IOERR
        }
        system.xFullPathname = {
            RecordingFileSystem.base?.pointee.xFullPathname(RecordingFileSystem.base, $1, $2, $3) ?? SQLITE_IOERR
        }
        self.system.initialize(to: system)
    }

    private static func makeMethods() -> sqlite3_io_methods {
        var methods = sqlite3_io_methods()
        methods.iVersion = 2
        methods.xClose = { RecordingFileSystem.calls($0).xClose(RecordingFileSystem.real($0)) }
        methods.xRead = { RecordingFileSystem.calls($0).xRead(RecordingFileSystem.real($0), $1, $2, $3) }
        methods.xWrite = { file, buffer, count, at in
            let code = RecordingFileSystem.calls(file).xWrite(RecordingFileSystem.real(file), buffer, count, at)
            return RecordingFileSystem.note(code, file) {
                .write($0, at: Int(at), Array(UnsafeRawBufferPointer(start: buffer, count: Int(count))))
            }
        }
        methods.xTruncate = { file, size in
            let code = RecordingFileSystem.calls(file).xTruncate(RecordingFileSystem.real(file), size)
            return RecordingFileSystem.note(code, file) { .truncate($0, to: Int(size)) }
        }
        methods.xSync = { RecordingFileSystem.sync($0, $1) }
        methods.xFileSize = { RecordingFileSystem.calls($0).xFileSize(RecordingFileSystem.real($0), $1) }
        methods.xLock = { RecordingFileSystem.calls($0).xLock(RecordingFileSystem.real($0), $1) }
        methods.xUnlock = { RecordingFileSystem.calls($0).xUnlock(RecordingFileSystem.real($0), $1) }
        methods.xCheckReservedLock = {
            RecordingFileSystem.calls($0).xCheckReservedLock(RecordingFileSystem.real($0), $1)
        }
        methods.xFileControl = { RecordingFileSystem.calls($0).xFileControl(RecordingFileSystem.real($0), $1, $2) }
        methods.xSectorSize = { RecordingFileSystem.calls($0).xSectorSize(RecordingFileSystem.real($0)) }
        methods.xDeviceCharacteristics = {
            RecordingFileSystem.calls($0).xDeviceCharacteristics(RecordingFileSystem.real($0))
        }
        methods.xShmMap = { RecordingFileSystem.calls($0).xShmMap(RecordingFileSystem.real($0), $1, $2, $3, $4) }
        methods.xShmLock = { RecordingFileSystem.calls($0).xShmLock(RecordingFileSystem.real($0), $1, $2, $3) }
        methods.xShmBarrier = { RecordingFileSystem.calls($0).xShmBarrier(RecordingFileSystem.real($0)) }
        methods.xShmUnmap = { RecordingFileSystem.calls($0).xShmUnmap(RecordingFileSystem.real($0), $1) }
        return methods
    }
}
