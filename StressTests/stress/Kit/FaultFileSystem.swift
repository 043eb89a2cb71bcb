import CStrataSQLite
import CoreData
import StrataLocks

/// A file system for SQLite that passes everything on to the system's, and fails or dies at a chosen operation.
///
/// The plan says which operations count: those that change or secure a file, reads, locks, opens, or maps of a log's
/// index. To close a file never counts, nor does to give up a lock.
///
/// It is SQLite's default from the moment it is installed. So everything that is opened afterwards goes through it.
enum FaultFileSystem {
    /// The operations that count, and can fail.
    struct Operations: OptionSet {
        let rawValue: Int

        /// Writing, truncating, syncing and deleting.
        static let changes = Operations(rawValue: 1)
        static let reads = Operations(rawValue: 2)
        /// Taking a lock on a file, or on a part of the index of a log.
        static let locks = Operations(rawValue: 4)
        /// Reads of the system, beneath those of SQLite: they do not fail, but return half of what was asked for.
        static let pieces = Operations(rawValue: 8)
        /// Opening or creating a file.
        static let opens = Operations(rawValue: 16)
        /// Mapping a part of the index of a log.
        static let maps = Operations(rawValue: 32)
    }

    /// A fault: what happens, and when.
    struct Plan {
        /// The operation at which it happens, counted from 1; 0 for never.
        var point = 0
        /// Whether all later operations fail as well.
        var isSticky = false
        /// SQLite's code of the failure; `nil` to kill the process.
        var code: Int32? = SQLITE_IOERR
        /// The operations that count.
        var operations = Operations.changes
        /// A sabotage: an operation reports success, but does nothing.
        var lies = false

        /// Kills the process.
        static func killing(at point: Int, countsReads: Bool = false) -> Plan {
            Plan(point: point, code: nil, operations: countsReads ? [.changes, .reads] : .changes)
        }
    }

    private struct State {
        var plan = Plan()
        var count = 0
        var hits = 0
        /// The number of operations of each kind, whether the plan counts them or not.
        var seen: [Int: Int] = [:]
    }

    private static let state = Locked(State())
    // nonisolated(unsafe): written once, in `install`, before any file is opened, and constant afterwards.
    nonisolated(unsafe) private static var base: UnsafeMutablePointer<sqlite3_vfs>?
    // nonisolated(unsafe): as `base`. The structures are allocated for two reasons: SQLite keeps their addresses, and
    // the compiler gives a static variable of such a C structure too little room, as it leaves out the padding after
    // the first members.
    nonisolated(unsafe) private static let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    nonisolated(unsafe) private static let system = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    private static let isInstalled = Locked(false)
    /// The place of the system's own file, behind ours.
    private static let offset = 16

    /// Puts this file system in front of the system's, and sets a plan.
    static func install(_ plan: Plan) {
        isInstalled.withLock { isInstalled in
            if !isInstalled { register() }
            isInstalled = true
        }
        arm(plan)
    }

    /// Sets another plan, and counts from 1 again.
    static func arm(_ plan: Plan) { state.withLock { $0 = State(plan: plan) } }

    /// A sabotage: lets the next operation fail too.
    static func strikeAgain() { state.withLock { $0.plan.point = $0.count + 1 } }

    /// The number of operations, and how many of them failed.
    static var counts: (operations: Int, failures: Int) { state.withLock { ($0.count, $0.hits) } }

    /// The number of operations of some kinds.
    static func count(of operations: Operations) -> Int {
        state.withLock { state in
            state.seen.reduce(0) { operations.contains(Operations(rawValue: $1.key)) ? $0 + $1.value : $0 }
        }
    }

    /// Counts an operation, and returns whether it must fail.
    private static func counts(_ operation: Operations) -> (fails: Bool, plan: Plan) {
        state.withLock { state in
            let plan = state.plan
            state.seen[operation.rawValue, default: 0] += 1
            guard plan.operations.contains(operation) else { return (false, plan) }
            state.count += 1
            let fails = plan.point > 0 && (plan.isSticky ? state.count >= plan.point : state.count == plan.point)
            if fails { state.hits += 1 }
            return (fails, plan)
        }
    }

    /// The code with which the next operation fails: 0 if it does not, -1 if it must silently be left out.
    private static func next(_ operation: Operations = .changes) -> Int32 {
        let (fails, plan) = counts(operation)
        guard fails else { return SQLITE_OK }
        guard let code = plan.code else {
            kill(getpid(), SIGKILL)
            pause()
            return SQLITE_IOERR
        }
        return plan.lies ? -1 : code
    }

    /// The most bytes that the next read of the system returns.
    private static func piece(of count: Int) -> Int { counts(.pieces).fails ? max(count / 2, 1) : count }

    /// The code of a failure that fits an operation: SQLite distinguishes full disks from failing ones by it.
    private static func extended(_ code: Int32, _ operation: Int32) -> Int32 {
        code == SQLITE_IOERR ? SQLITE_IOERR | (operation << 8) : code
    }

    private static func real(_ file: UnsafeMutablePointer<sqlite3_file>?) -> UnsafeMutablePointer<sqlite3_file> {
        // SQLite hands over files that `open` below has set up. They are never nil.
        UnsafeMutableRawPointer(file!).advanced(by: offset).assumingMemoryBound(to: sqlite3_file.self)
    }

    private static func calls(_ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods {
        real(file).pointee.pMethods.pointee
    }

    // MARK: - Registering

    private static func register() {
        guard let found = sqlite3_vfs_find(nil) else { return }
        base = found
        methods.initialize(to: makeMethods())
        var system = found.pointee
        system.szOsFile = found.pointee.szOsFile + Int32(offset)
        system.pNext = nil
        system.zName = UnsafePointer(strdup("strata-fault"))
        system.xOpen = { _, name, file, flags, outFlags in
            guard let file, let base = FaultFileSystem.base else { return SQLITE_CANTOPEN }
            file.pointee.pMethods = nil
            let failure = FaultFileSystem.next(.opens)
            guard failure <= SQLITE_OK else { return failure }
            let code = base.pointee.xOpen(base, name, FaultFileSystem.real(file), flags, outFlags)
            if FaultFileSystem.real(file).pointee.pMethods != nil {
                file.pointee.pMethods = UnsafePointer(FaultFileSystem.methods)
            }
            return code
        }
        system.xDelete = { _, name, syncs in
            guard let base = FaultFileSystem.base else { return SQLITE_IOERR }
            switch FaultFileSystem.next() {
            case SQLITE_OK: return base.pointee.xDelete(base, name, syncs)
            case -1: return SQLITE_OK
            case let code: return FaultFileSystem.extended(code, 10)
            }
        }
        // The rest of the system's functions get the system's own file system.
        system.xAccess = { FaultFileSystem.base?.pointee.xAccess(FaultFileSystem.base, $1, $2, $3) ?? SQLITE_IOERR }
        system.xFullPathname = {
            FaultFileSystem.base?.pointee.xFullPathname(FaultFileSystem.base, $1, $2, $3) ?? SQLITE_IOERR
        }
        self.system.initialize(to: system)
        sqlite3_vfs_register(self.system, 1)
        shortenReads(of: found)
    }

    /// Replaces the functions with which the system's file system reads by ones whose reads can be short.
    private static func shortenReads(of base: UnsafeMutablePointer<sqlite3_vfs>) {
        let next: @convention(c) (Int32, UnsafeMutableRawPointer?, Int) -> Int = {
            read($0, $1, FaultFileSystem.piece(of: $2))
        }
        let there: @convention(c) (Int32, UnsafeMutableRawPointer?, Int, off_t) -> Int = {
            pread($0, $1, FaultFileSystem.piece(of: $2), $3)
        }
        // The system's file system uses one of these; which one depends on how it was compiled.
        _ = base.pointee.xSetSystemCall(base, "read", unsafeBitCast(next, to: sqlite3_syscall_ptr.self))
        for name in ["pread", "pread64"] {
            _ = base.pointee.xSetSystemCall(base, name, unsafeBitCast(there, to: sqlite3_syscall_ptr.self))
        }
    }

    private static func makeMethods() -> sqlite3_io_methods {
        var methods = sqlite3_io_methods()
        methods.iVersion = 2
        methods.xClose = { FaultFileSystem.calls($0).xClose(FaultFileSystem.real($0)) }
        methods.xRead = { file, buffer, count, at in
            let code = FaultFileSystem.next(.reads)
            guard code == SQLITE_OK else { return FaultFileSystem.extended(code, 1) }
            return FaultFileSystem.calls(file).xRead(FaultFileSystem.real(file), buffer, count, at)
        }
        methods.xWrite = { file, buffer, count, at in
            switch FaultFileSystem.next() {
            case SQLITE_OK: return FaultFileSystem.calls(file).xWrite(FaultFileSystem.real(file), buffer, count, at)
            case -1: return SQLITE_OK
            case let code:
                // Half of the write arrives, as when a disk fills up.
                _ = FaultFileSystem.calls(file).xWrite(FaultFileSystem.real(file), buffer, count / 2, at)
                return FaultFileSystem.extended(code, 3)
            }
        }
        methods.xTruncate = { file, size in
            let code = FaultFileSystem.next()
            guard code == SQLITE_OK else { return code == -1 ? SQLITE_OK : FaultFileSystem.extended(code, 6) }
            return FaultFileSystem.calls(file).xTruncate(FaultFileSystem.real(file), size)
        }
        methods.xSync = { file, flags in
            let code = FaultFileSystem.next()
            guard code == SQLITE_OK else { return code == -1 ? SQLITE_OK : FaultFileSystem.extended(code, 4) }
            return FaultFileSystem.calls(file).xSync(FaultFileSystem.real(file), flags)
        }
        methods.xFileSize = { FaultFileSystem.calls($0).xFileSize(FaultFileSystem.real($0), $1) }
        methods.xLock = { file, level in
            let code = FaultFileSystem.next(.locks)
            guard code <= SQLITE_OK else { return FaultFileSystem.extended(code, 15) }
            return FaultFileSystem.calls(file).xLock(FaultFileSystem.real(file), level)
        }
        methods.xUnlock = { FaultFileSystem.calls($0).xUnlock(FaultFileSystem.real($0), $1) }
        methods.xCheckReservedLock = { FaultFileSystem.calls($0).xCheckReservedLock(FaultFileSystem.real($0), $1) }
        methods.xFileControl = { FaultFileSystem.calls($0).xFileControl(FaultFileSystem.real($0), $1, $2) }
        methods.xSectorSize = { FaultFileSystem.calls($0).xSectorSize(FaultFileSystem.real($0)) }
        methods.xDeviceCharacteristics = {
            FaultFileSystem.calls($0).xDeviceCharacteristics(FaultFileSystem.real($0))
        }
        methods.xShmMap = { file, region, size, extends, memory in
            let code = FaultFileSystem.next(.maps)
            guard code <= SQLITE_OK else {
                memory?.pointee = nil
                return FaultFileSystem.extended(code, 21)
            }
            return FaultFileSystem.calls(file).xShmMap(FaultFileSystem.real(file), region, size, extends, memory)
        }
        methods.xShmLock = { file, first, count, flags in
            let code = flags & SQLITE_SHM_LOCK != 0 ? FaultFileSystem.next(.locks) : SQLITE_OK
            guard code <= SQLITE_OK else { return FaultFileSystem.extended(code, 20) }
            return FaultFileSystem.calls(file).xShmLock(FaultFileSystem.real(file), first, count, flags)
        }
        methods.xShmBarrier = { FaultFileSystem.calls($0).xShmBarrier(FaultFileSystem.real($0)) }
        methods.xShmUnmap = { FaultFileSystem.calls($0).xShmUnmap(FaultFileSystem.real($0), $1) }
        return methods
    }
}
