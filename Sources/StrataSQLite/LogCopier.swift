import CStrataSQLite
import Foundation
import StrataLocks
import Synchronization

/// Copies the write-ahead log of a pool's file into the file, on its own queue, so that no commit has to.
///
/// A run begins when a commit has made the log a step longer. It has two parts:
///
/// 1. **Copies beside writers.** They take none of the locks of writers. Another connection reads meanwhile: its mark keeps
///    the log from starting over, which is what may damage a file while a copy begins (see `ConnectionPool+Checkpoints`).
///    If all of the log was in the file already, then that connection reads the file alone. Then the log may start over,
///    but SQLite copies nothing, because nothing may be written to a file that is read so. Each copy leaves what was
///    committed during it to the next one, and that soon is little.
/// 2. **The end.** The log starts over only if all of it is in the file, and if no connection reads from it or writes. So the
///    rest is copied under the turn to write, and the write lock. The files are synced before that, beside writers. So this
///    takes as long as two syncs of a few pages, and as short reads. A short log is ended only if no thread writes or
///    waits to. A long log is ended in any case, before all writers that wait.
///
/// The length of the log is bounded by ``LogPace``. If a copy fails, nothing is lost, since the log still has all commits.
/// The next run opens new connections after an I/O error.
///
/// Any thread may call any member. The copier does not keep its pool alive.
final class LogCopier: @unchecked Sendable {
    // @unchecked Sendable: `upkeep`, `sign` and the connections are used only on `queue`. `stop` may interrupt a
    // connection, under the lock under which it is forgotten before it is closed.

    private enum Phase {
        case idle
        /// A run will copy, or copies. It has and wants no turn to write, so a writer may wait for it.
        case copying
        /// A run waits for the turn to write, or has it.
        case ending
    }

    private struct State {
        var phase = Phase.idle
        /// The length of the log after the newest commit of the pool.
        var pages: Int32 = 0
        /// The length when it was last copied.
        var copied: Int32 = 0
        /// The length when the first copy since the log started over was due; 0 if there was none.
        var first: Int32 = 0
        /// Whether the log has started over since the last run.
        var isNew = false
        /// The number of callers that keep copies from beginning.
        var holds = 0
        var isStopped = false
        /// The threads that wait for the end of the copies.
        var waiters: [Waiter] = []
        /// The connection that copies.
        var connection: Connection?
        /// The first error since ``takeFailure()`` was called.
        var failure: SQLiteError?
    }

    private let opening: DatabaseOpening
    private let turn: FileTurn
    private let pace: LogPace
    /// The longest wait of a writer, in seconds.
    private let timeout: Double
    private let queue = DispatchQueue(label: "CoreData log")
    private let state = Locked(State())
    private let stopping = Cancellation()
    /// The pinned snapshots of the pool.
    private let snapshotCount: SnapshotCount
    /// The time that copies have taken since ``takeTime()`` was called.
    private let nanoseconds = AtomicCell<UInt64>(0)
    /// The number of times that all of the log was copied while no connection read from it or could write, for tests.
    let ends = AtomicCell<Int>(0)

    private var upkeep = LogUpkeep()
    private let sign: WaitSign
    /// Reads beside the copies, and has the write lock during the end.
    private var guardian: Connection?
    private var synchronizes = true

    /// A copier that does nothing until a commit is reported.
    ///
    /// - Parameters:
    ///   - opening: Opens the connections of the copier when they are first needed.
    ///   - turn: The turn to write to the file.
    ///   - snapshotCount: The pinned snapshots of the pool.
    ///   - options: The sizes of the log.
    init(_ opening: DatabaseOpening, _ turn: FileTurn, _ snapshotCount: SnapshotCount, _ options: PoolOptions) {
        self.snapshotCount = snapshotCount
        self.opening = opening
        self.turn = turn
        pace = LogPace(step: options.checkpointPages, restart: options.restartPages)
        timeout = options.timeout
        sign = WaitSign(database: opening.path)
    }

    // MARK: - Writers

    /// Notes the length of the log after a commit, and starts a run if it is time.
    ///
    /// If commits come faster than they can be copied, then it waits, as ``LogPace`` says.
    ///
    /// Only the holder of the turn may call it.
    func noteCommit(_ pages: Int32) {
        let (isDue, wait): (Bool, (waiter: Waiter, seconds: Double)?) = state.withLock { state in
            if pages < state.pages { (state.copied, state.first, state.isNew) = (0, 0, true) }
            state.pages = pages
            let isDue =
                state.phase == .idle && state.holds == 0 && !state.isStopped && pages - state.copied >= pace.step
            if isDue {
                state.phase = .copying
                if state.first == 0 { state.first = pages }
            }
            guard state.phase == .copying, let seconds = pace.wait(pages, first: state.first, timeout) else {
                return (isDue, nil)
            }
            let waiter = Waiter()
            state.waiters.append(waiter)
            return (isDue, (waiter, seconds))
        }
        if isDue { Schedule.async(on: queue) { [self] in run() } }
        if let wait { sleep(wait.waiter, wait.seconds) }
    }

    private func sleep(_ waiter: Waiter, _ seconds: Double) {
        _ = waiter.sleep(timeout: seconds, cancellation: nil)
        state.withLock { $0.waiters.removeAll { $0 === waiter } }
    }

    /// Runs `body` while this copier copies nothing.
    ///
    /// A copy in progress is given up. Only the holder of the turn may call it.
    func paused<R>(_ body: () throws -> R) rethrows -> R {
        let waiter: Waiter? = state.withLock { state in
            state.holds += 1
            guard state.phase == .copying else { return nil }
            if let connection = state.connection { sqlite3_interrupt(connection.handle) }
            let waiter = Waiter()
            state.waiters.append(waiter)
            return waiter
        }
        defer { state.withLock { $0.holds -= 1 } }
        if let waiter { sleep(waiter, timeout) }
        return try body()
    }

    /// Ends the copies for good, and closes the connections.
    ///
    /// It waits for a call of the system that is in progress. A copy that is given up does no harm. The holder of the
    /// turn may call it. A second call does nothing.
    func stop() {
        stopping.cancel()
        state.withLock { state in
            state.isStopped = true
            if let connection = state.connection { sqlite3_interrupt(connection.handle) }
        }
        Schedule.sync(on: queue) { closeConnections() }
    }

    /// The time that copies have taken since the last call, in nanoseconds.
    func takeTime() -> Int64 {
        guard nanoseconds.load(ordering: .relaxed) > 0 else { return 0 }
        return Int64(nanoseconds.exchange(0, ordering: .relaxed))
    }

    /// Whether no run is in progress; this and the next two are for tests that script an interleaving.
    var isIdle: Bool { state.withLock { $0.phase == .idle } }

    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Whether a writer waits for the end of the copies.
    var isKeepingWriters: Bool { state.withLock { !$0.waiters.isEmpty } }

    /// The first error that has ended a run since the last call.
    func takeFailure() -> SQLiteError? {
        state.withLock { state in
            defer { state.failure = nil }
            return state.failure
        }
    }

    // MARK: - A run

    private func run() {
        do throws(SQLiteError) {
            try opening.files?.require(.checkpoint)
            var isEnded = false
            // If a long transaction comes before the end, then its pages are copied beside writers first.
            for _ in 0..<3 where !isEnded {
                guard let left = try copyBesideWriters() else { break }
                isEnded = try end(left)
            }
        } catch {
            // A copy is interrupted only by those who wait for its end.
            if error.code != .interrupt { state.withLock { $0.failure = $0.failure ?? error } }
            if guardian?.isBroken == true || guardian?.isInTransaction == true || isBroken { closeConnections() }
        }
        change(to: .idle)
    }

    private var mayGoOn: Bool { state.withLock { !$0.isStopped && $0.holds == 0 } }

    private var isBroken: Bool { state.withLock { $0.connection }?.isBroken ?? false }

    /// Changes the phase, and wakes those that have waited for the end of the copies.
    private func change(to phase: Phase) {
        let waiters = state.withLock { state in
            state.phase = phase
            defer { state.waiters = [] }
            return phase == .copying ? [] : state.waiters
        }
        for waiter in waiters { waiter.call() }
    }

    /// The part of the log that copies beside writers have left.
    private struct Rest {
        /// The pages of the log that are in the file.
        let copied: Int32
        /// Whether a reader keeps more than a few pages from being copied.
        let isHeld: Bool
    }

    /// Copies until little is left, and then syncs both files.
    ///
    /// - Returns: The rest; `nil` if the run is over, because it was stopped, or because another process copies.
    private func copyBesideWriters() throws(SQLiteError) -> Rest? {
        guard mayGoOn else { return nil }
        let start = BusyWait.now()
        defer { nanoseconds.add(BusyWait.now() &- start, ordering: .relaxed) }
        let (connection, guardian) = try openConnections()
        var (copied, failures): (Int32, Int) = (-1, 0)
        for _ in 0..<Self.mostCopies {
            let known = state.withLock { state in
                state.copied = state.pages
                return state.pages
            }
            guard mayGoOn else { return nil }
            guard let copy = try copyOnce(connection, guardian) else { return nil }
            // The log of a commit that is known may have started over since.
            let newest = copy.pagesInLog < known ? copy.pagesInLog : max(state.withLock { $0.pages }, copy.pagesInLog)
            failures = copy.pagesCopied == copied ? failures + 1 : 0
            copied = copy.pagesCopied
            guard newest - copied > pace.rest, failures < 2 else { break }
            // A read that is in the way may end soon.
            if failures > 0 { Schedule.sleep(microseconds: 5_000) }
        }
        guard failures < 2 else { return Rest(copied: copied, isHeld: true) }
        // The files are synced here, so that little is left to sync under the turn to write.
        if synchronizes {
            try connection.synchronizeLog()
            try connection.synchronizeFile()
        }
        return Rest(copied: copied, isHeld: false)
    }

    /// The most copies before the end, if commits come as fast as they are copied.
    private static let mostCopies = 4

    /// Makes one copy beside writers; `nil` if another process does so.
    private func copyOnce(
        _ connection: Connection,
        _ guardian: Connection
    ) throws(SQLiteError) -> ConnectionPool.CopiedPages? {
        FaultPoint.checkpointBegan.pass()
        defer { FaultPoint.checkpointEnded.pass() }
        guardian.busyWait.timeout = Self.lockPatience
        defer { if guardian.isInTransaction { try? guardian.run(.rollback) } }
        try guardian.run(.begin)
        // A transaction has no mark before it has read.
        _ = try guardian.firstInt64("SELECT 1 FROM sqlite_schema LIMIT 1")
        do throws(SQLiteError) {
            return try ConnectionPool.copy(connection, .passive)
        } catch {
            guard error.code == .busy else { throw error }
            return nil
        }
    }

    /// Copies the rest of the log while no connection can write, so that the next commit starts the log over.
    ///
    /// - Returns: Whether the run is over.
    private func end(_ left: Rest) throws(SQLiteError) -> Bool {
        change(to: .ending)
        let (pages, isNew) = state.withLock { state in
            defer { state.isNew = false }
            return (state.pages, state.isNew)
        }
        if isNew { upkeep = LogUpkeep() }
        var patience: Double?
        if snapshotCount.value == 0 {
            patience = upkeep.restartPatience(pages, limit: pace.restart, timeout: timeout)
        }
        guard !left.isHeld || patience != nil else { return true }
        do throws(SQLiteError) {
            let isLong = pages >= pace.long
            _ = try turn.take(timeout: isLong ? timeout : 0, cancellation: stopping, goesFirst: true)
        } catch {
            // The next run tries again.
            return true
        }
        defer { turn.giveBack() }
        guard mayGoOn else { return true }
        let isLittle = state.withLock { state in
            let isLittle = left.isHeld || state.pages - left.copied <= pace.mostRest
            // The pages of a transaction that came before the turn are copied without it.
            if !isLittle { state.phase = .copying }
            return isLittle
        }
        if isLittle { try copyUnderLock(patience: patience ?? Self.readPatience) }
        return isLittle
    }

    /// Copies the rest under the write lock, and waits until no connection reads from the log.
    private func copyUnderLock(patience: Double) throws(SQLiteError) {
        let start = BusyWait.now()
        defer { nanoseconds.add(BusyWait.now() &- start, ordering: .relaxed) }
        let (connection, guardian) = try openConnections()
        guardian.busyWait.timeout = Self.lockPatience
        guardian.busyWait.sign = sign
        defer {
            guardian.busyWait.sign = nil
            sign.takeDown()
        }
        do throws(SQLiteError) {
            try copyRest(connection, guardian)
            connection.busyWait.timeout = patience
            let copy = try ConnectionPool.copy(connection, .restart)
            state.withLock { $0.copied = max($0.copied, copy.pagesCopied) }
            ends.add(1, ordering: .relaxed)
        } catch {
            // Another process writes or copies, or a read takes long.
            guard error.code == .busy else { throw error }
        }
    }

    private func copyRest(_ connection: Connection, _ guardian: Connection) throws(SQLiteError) {
        try guardian.run(.beginImmediate)
        defer { if guardian.isInTransaction { try? guardian.run(.rollback) } }
        _ = try ConnectionPool.copy(connection, .passive)
    }

    /// The longest wait for the write lock of another process, in seconds, while the writers of this process wait.
    private static let lockPatience = 0.02
    /// The longest wait for readers of a log that is not too long.
    private static let readPatience = 0.01

    // MARK: - Connections

    private func openConnections() throws(SQLiteError) -> (Connection, Connection) {
        let known = state.withLock { $0.connection }
        if let known, let guardian { return (known, guardian) }
        let connection = try opening.openLogCopier()
        // A connection has no log before it has read.
        let level = try connection.firstInt64("PRAGMA synchronous") ?? 1
        try connection.validate()
        let other = if let guardian { guardian } else { try opening.openLogGuardian() }
        (connection.busyWait.cancellation, other.busyWait.cancellation) = (stopping, stopping)
        synchronizes = level > 0
        guardian = other
        state.withLock { $0.connection = connection }
        return (connection, other)
    }

    private func closeConnections() {
        let connection = state.withLock { state in
            defer { state.connection = nil }
            return state.connection
        }
        guardian?.close()
        guardian = nil
        connection?.close()
    }
}
