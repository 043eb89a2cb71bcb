import CStrataSQLite
import Foundation
import StrataLocks
import TestSupport

/// Makes operations on the files of one store fail, as a disk would, and records them.
///
/// All other files work as usual. From the first use on it stands before SQLite's file system, until the process ends.
enum FailingDisk {
    private struct State {
        /// The path of the database whose files fail.
        var path = ""
        var count = 0
        /// The operation that fails, from 1 on; 0 for none.
        var point = 0
        var isForGood = false
        var events: [Event] = []
        var observer: Observer?
    }

    /// Called before each write and each sync of a file that may fail, on the thread that does it; if it returns true, then
    /// the operation fails.
    ///
    /// It may wait.
    typealias Observer = @Sendable (Event) -> Bool

    /// An operation that a file has carried out.
    struct Event: Equatable {
        enum Kind { case write, sync, delete }
        let kind: Kind
        let path: String
    }

    // nonisolated(unsafe): used inside `state.withLock` only. It outlives files that were opened under another path.
    nonisolated(unsafe) private static var names: [String] = []

    private static let state = Locked(State())
    /// The start of the system's file: after the pointer to the methods, and the mark for files that may fail.
    private static let offset = 16
    // nonisolated(unsafe): written once, before SQLite can use them, and constant afterwards.
    nonisolated(unsafe) private static let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    nonisolated(unsafe) private static let system = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    nonisolated(unsafe) private static let base: UnsafeMutablePointer<sqlite3_vfs>? = install()

    /// Fails the `point`-th operation on the files of `path`, and with `forGood` all later ones too; 0 fails none.
    static func fail(_ path: String, at point: Int, forGood: Bool = false) {
        _ = base
        state.withLock { $0 = State(path: path, point: point, isForGood: forGood) }
    }

    /// Calls `observer` before operations on files whose path begins with `path`, until ``fail(_:at:forGood:)`` is called.
    static func observe(_ path: String, _ observer: @escaping Observer) {
        _ = base
        state.withLock { $0 = State(path: path, observer: observer) }
    }

    /// The number of operations since then.
    static var operations: Int { state.withLock { $0.count } }

    /// The operations since then on files whose path begins with the one that was given.
    static var events: [Event] { state.withLock { $0.events } }

    /// The number of a file that may fail; 0 for other files.
    private static func number(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Int {
        file.map { UnsafeRawPointer($0).load(fromByteOffset: 8, as: Int.self) } ?? 0
    }

    private static func fails(_ file: UnsafeMutablePointer<sqlite3_file>?, _ kind: Event.Kind? = nil) -> Bool {
        let number = number(file)
        guard number > 0 else { return false }
        if let kind, let observer = state.withLock({ $0.observer }) {
            let path = state.withLock { _ in names[number - 1] }
            if observer(Event(kind: kind, path: path)) { return true }
        }
        return next()
    }

    private static func note(_ code: Int32, _ kind: Event.Kind, _ file: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
        let number = number(file)
        guard code == SQLITE_OK, number > 0 else { return code }
        state.withLock { $0.events.append(Event(kind: kind, path: names[number - 1])) }
        return code
    }

    private static func next() -> Bool {
        state.withLock { state in
            state.count += 1
            return state.point > 0 && (state.isForGood ? state.count >= state.point : state.count == state.point)
        }
    }

    private static func isMeant(_ name: UnsafePointer<CChar>?) -> Bool {
        guard let name else { return false }
        let text = String(cString: name)
        return state.withLock { !$0.path.isEmpty && text.hasPrefix($0.path) }
    }

    private static func added(_ name: String) -> Int {
        state.withLock { _ in
            names.append(name)
            return names.count
        }
    }

    private static func real(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<sqlite3_file> {
        // SQLite passes files that `open` has set up, and never nil.
        UnsafeMutableRawPointer(file!).advanced(by: offset).assumingMemoryBound(to: sqlite3_file.self)
    }

    private static func calls(_ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods {
        real(file).pointee.pMethods.pointee
    }

    private static func install() -> UnsafeMutablePointer<sqlite3_vfs>? {
        guard let found = sqlite3_vfs_find(nil) else { return nil }
        methods.initialize(to: makeMethods())
        var system = found.pointee
        system.szOsFile += Int32(offset)
        system.pNext = nil
        system.zName = UnsafePointer(strdup("strata-failing"))
        system.xOpen = { _, name, file, flags, outFlags in
            guard let file, let base = FailingDisk.base else { return SQLITE_CANTOPEN }
            file.pointee.pMethods = nil
            let mark = name.map { FailingDisk.isMeant($0) ? FailingDisk.added(String(cString: $0)) : 0 } ?? 0
            UnsafeMutableRawPointer(file).storeBytes(of: mark, toByteOffset: 8, as: Int.self)
            let code = base.pointee.xOpen(base, name, FailingDisk.real(file), flags, outFlags)
            if FailingDisk.real(file).pointee.pMethods != nil {
                file.pointee.pMethods = UnsafePointer(FailingDisk.methods)
            }
            return code
        }
        system.xDelete = { _, name, syncs in
            if FailingDisk.isMeant(name), FailingDisk.next() { return SQLITE_IOERR | (10 << 8) }
            let code = FailingDisk.base?.pointee.xDelete(FailingDisk.base, name, syncs) ?? SQLITE_IOERR
            if code == SQLITE_OK, let name, FailingDisk.isMeant(name) {
                let path = String(cString: name)
                FailingDisk.state.withLock { $0.events.append(Event(kind: .delete, path: path)) }
            }
            return code
        }
        // The system's other functions get their own file system.
        system.xAccess = { FailingDisk.base?.pointee.xAccess(FailingDisk.base, $1, $2, $3) ?? SQLITE_IOERR }
        system.xFullPathname = { FailingDisk.base?.pointee.xFullPathname(FailingDisk.base, $1, $2, $3) ?? SQLITE_IOERR }
        self.system.initialize(to: system)
        sqlite3_vfs_register(self.system, 1)
        return found
    }

    private static func makeMethods() -> sqlite3_io_methods {
        var methods = sqlite3_io_methods()
        methods.iVersion = 2
        methods.xClose = { FailingDisk.calls($0).xClose(FailingDisk.real($0)) }
        methods.xRead = {
            if FailingDisk.fails($0) { return SQLITE_IOERR | (1 << 8) }
            return FailingDisk.calls($0).xRead(FailingDisk.real($0), $1, $2, $3)
        }
        methods.xWrite = {
            if FailingDisk.fails($0, .write) { return SQLITE_IOERR | (3 << 8) }
            return FailingDisk.note(FailingDisk.calls($0).xWrite(FailingDisk.real($0), $1, $2, $3), .write, $0)
        }
        methods.xTruncate = {
            if FailingDisk.fails($0) { return SQLITE_IOERR | (6 << 8) }
            return FailingDisk.calls($0).xTruncate(FailingDisk.real($0), $1)
        }
        methods.xSync = {
            if FailingDisk.fails($0, .sync) { return SQLITE_IOERR | (4 << 8) }
            return FailingDisk.note(FailingDisk.calls($0).xSync(FailingDisk.real($0), $1), .sync, $0)
        }
        methods.xFileSize = { FailingDisk.calls($0).xFileSize(FailingDisk.real($0), $1) }
        methods.xLock = { FailingDisk.calls($0).xLock(FailingDisk.real($0), $1) }
        methods.xUnlock = { FailingDisk.calls($0).xUnlock(FailingDisk.real($0), $1) }
        methods.xCheckReservedLock = { FailingDisk.calls($0).xCheckReservedLock(FailingDisk.real($0), $1) }
        methods.xFileControl = { FailingDisk.calls($0).xFileControl(FailingDisk.real($0), $1, $2) }
        methods.xSectorSize = { FailingDisk.calls($0).xSectorSize(FailingDisk.real($0)) }
        methods.xDeviceCharacteristics = { FailingDisk.calls($0).xDeviceCharacteristics(FailingDisk.real($0)) }
        methods.xShmMap = { FailingDisk.calls($0).xShmMap(FailingDisk.real($0), $1, $2, $3, $4) }
        methods.xShmLock = { FailingDisk.calls($0).xShmLock(FailingDisk.real($0), $1, $2, $3) }
        methods.xShmBarrier = { FailingDisk.calls($0).xShmBarrier(FailingDisk.real($0)) }
        methods.xShmUnmap = { FailingDisk.calls($0).xShmUnmap(FailingDisk.real($0), $1) }
        return methods
    }
}
