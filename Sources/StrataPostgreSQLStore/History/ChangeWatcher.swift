import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import Synchronization

/// Notices that a store's history has grown, and wakes up other processes after commits of this one.
///
/// It has a separate thread, and a separate connection unless the stores of the server have a budget. Wake-ups arrive by NOTIFY, at most every 10 ms. They are sent outside of
/// saves, because a NOTIFY inside a save would make all commits of the database wait for one another. Wake-ups may get
/// lost, so the thread also looks every second.
final class ChangeWatcher: @unchecked Sendable {
    // @unchecked Sendable: the connection belongs to the thread; the rest is constant, atomic, or protected by a mutex.
    private let engine: @Sendable () -> PostgreSQLEngine?
    private let database: OpenPostgreSQLStore
    /// The connection that the watchers of all stores of the server use in turn; `nil` if this one has a separate connection.
    private let shared: SharedWatchConnection?
    private let isStopped = AtomicCell(false)
    private let isAnnounced = AtomicCell(false)
    private let handler = Locked<(@Sendable () -> Void)?>(nil)
    /// The pipe that wakes the thread: the end to read from, and the end to write to.
    private let wakeUp: (read: Int32, write: Int32)
    /// The last number that was seen; the property after it is the timeline of the server that had it.
    private var last: Int64
    private var timeline: Int64?
    /// The run of that server.
    private var serverRun: ServerRun?
    /// The changes of the server that were known when the connection was opened.
    private var serverChanges = 0
    private var mayNotify: Bool
    private let seen = Locked(ContinuousClock.now)

    /// How many milliseconds pass before it looks without a wake-up.
    let interval = AtomicCell(1_000)
    /// The number of times that it has looked.
    let looks = AtomicCell(0)

    /// The time since when others may have saved without its knowledge.
    var lastSeen: ContinuousClock.Instant { seen.withLock { $0 } }

    /// The most seconds that the server may be silent, or that opening a connection may take: cached rows become
    /// outdated meanwhile.
    private static let longestSilence = 10.0
    /// The least time in milliseconds between two wake-ups that it sends, and between two looks.
    private static let pause = 10.0

    init(_ database: OpenPostgreSQLStore, last: Int64, _ engine: @escaping @Sendable () -> PostgreSQLEngine?) {
        self.database = database
        self.engine = engine
        self.last = last
        mayNotify = database.form != .portable
        shared = database.pool.budget == nil ? nil : SharedWatchConnection.of(database.pool.target)
        var ends: [Int32] = [-1, -1]
        pipe(&ends)
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        wakeUp = (ends[0], ends[1])
    }

    deinit {
        Foundation.close(wakeUp.read)
        Foundation.close(wakeUp.write)
    }

    /// Sets a function that is called whenever transactions have been added, by this process or another.
    func setHandler(_ function: @escaping @Sendable () -> Void) { handler.withLock { $0 = function } }

    func start() {
        let thread = Thread { [self] in run() }
        thread.name = "Strata changes"
        thread.start()
    }

    func stop() {
        isStopped.store(true, ordering: .releasing)
        wake()
    }

    /// Wakes up other processes, soon, because something was committed.
    func announce() {
        guard !isAnnounced.exchange(true, ordering: .acquiringAndReleasing) else { return }
        wake()
    }

    func wake() {
        var one: UInt8 = 1
        _ = write(wakeUp.write, &one, 1)
    }

    // MARK: - On the thread

    private func run() {
        var connection: Connection?
        while !isStopped.load(ordering: .acquiring) {
            let wakesOthers = isAnnounced.exchange(false, ordering: .acquiringAndReleasing)
            do {
                if let shared {
                    let start = try shared.withConnection(to: database) { try round($0, wakesOthers) }
                    try wait(nil, since: start)
                    continue
                }
                if serverChanges != database.pool.serverChanges { connection = nil }
                let current = try connection ?? listen()
                connection = current
                try wait(current, since: try round(current, wakesOthers))
            } catch {
                // The server is away. The thread looks for it again, and the history then reports what has happened.
                connection = nil
                if wakesOthers { isAnnounced.store(true, ordering: .releasing) }
                sleep(milliseconds: 1_000)
            }
        }
    }

    /// Looks once.
    ///
    /// - Returns: When the look began.
    private func round(_ connection: Connection, _ wakesOthers: Bool) throws -> ContinuousClock.Instant {
        if database.form == .portable { try database.requireSame(connection) }
        if shared != nil { try noteServer(of: connection, changes: database.pool.serverChanges) }
        let start = ContinuousClock.now
        try database.pool.letWork(connection) {
            // Numbers are given first, so that the processes that are woken up need not give them.
            try number(connection)
            if wakesOthers { try wakeUpOthers(connection) }
            try look(connection)
        }
        seen.withLock { $0 = start }
        return start
    }

    /// The name of the wake-ups: a digest of the schema's name, which every process knows that has the store open.
    ///
    /// PostgreSQL cuts off names that are too long, and then delivers no wake-ups under them.
    static func channel(of schema: String) -> String {
        let digest = SHA2.sha256(Data(schema.utf8)).prefix(16)
        return "strata_" + digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    private var channel: String { Self.channel(of: database.pool.target.schema) }

    private func listen() throws -> Connection {
        // This is read first: the connection may lead to the server before a later change.
        let changes = database.pool.serverChanges
        let connection = try database.pool.open(timeout: min(database.pool.timeout, Self.longestSilence))
        if database.form == .portable { try database.requireSame(connection) }
        // Behind a pooler the connection does not receive the notifications of a session, so the thread only looks.
        if !connection.isPooled {
            try connection.command("SET synchronous_commit = off")
            // The thread listens before it looks, so that nothing between the two is lost.
            do { try connection.command("LISTEN \"\(channel)\"") } catch let error as PostgreSQLError
                where error.isUnavailable && !connection.isBroken
            {
                // A replica, or a server without LISTEN, sends no notifications. The thread only looks.
            }
        }
        try noteServer(of: connection, changes: changes)
        mayNotify = database.form != .portable
        return connection
    }

    /// Notes which server a connection leads to, and that the history may have gone back if it is another one.
    private func noteServer(of connection: Connection, changes: Int) throws {
        let isOtherRun = serverRun.flatMap { known in connection.serverRun.map { !known.isSame(as: $0) } } ?? false
        if isOtherRun || (timeline != nil && timeline != connection.timeline) {
            // The new server, or the new run of it, may lack the last transactions, and gives their numbers to others.
            let newest = try connection.query("SELECT last FROM strata_history").firstInt64
            last = min(last, newest ?? 0)
            engine()?.countSetBack()
            handler.withLock { $0 }?()
        }
        timeline = connection.timeline
        serverRun = connection.serverRun?.completed(by: serverRun) ?? serverRun
        serverChanges = changes
    }

    private func wakeUpOthers(_ connection: Connection) throws {
        if FaultGuard.wakeUp.isOff { return }
        guard mayNotify else { return }
        do {
            try connection.query("SELECT pg_catalog.pg_notify($1, '')", [.text(channel)])
        } catch let error as PostgreSQLError where error.isUnavailable && !connection.isBroken {
            // The server has no NOTIFY, or does not allow it to the role. Others look every second.
            mayNotify = false
        }
    }

    private func number(_ connection: Connection) throws {
        if FaultGuard.changeWatching.isOff { return }
        try HistoryQueries.number(connection)
    }

    private func look(_ connection: Connection) throws {
        guard let engine = engine() else { return stop() }
        if FaultGuard.changeWatching.isOff { return }
        looks.add(1, ordering: .relaxed)
        guard let newest = try connection.query("SELECT last FROM strata_history").firstInt64, newest != last else {
            return
        }
        guard newest > last else {
            // The database was set back, for instance to a backup.
            engine.countSetBack()
            last = newest
            handler.withLock { $0 }?()
            return
        }
        let found = try connection.query(
            "SELECT seq, id FROM strata_transaction WHERE number > $1 AND number <= $2 ORDER BY number",
            [.int8(last), .int8(newest)]
        )
        // Each number was given once. So a missing transaction was purged, or picked out, before this process has
        // looked.
        let wasPurged = Int64(found.rowCount) < newest - last
        let transactions = found.rows.map { (place: $0.int64(0), identifier: $0.uuid(1)) }
        let others = engine.ownTransactions.withLock { own in
            transactions.filter { $0.identifier.map { !own.contains($0) } ?? true }.map(\.place)
        }
        if wasPurged {
            engine.addChangesOfOthers()
        } else if !others.isEmpty {
            engine.addChangesOfOthers(try HistoryQueries.changedRows(of: others, database, connection))
        }
        // This comes last, so that after an error the thread looks again.
        last = newest
        handler.withLock { $0 }?()
    }

    private func wait(_ connection: Connection?, since start: ContinuousClock.Instant) throws {
        let seconds = Double(interval.load(ordering: .acquiring)) / 1000
        if let connection {
            try connection.waitForNotification(orFor: wakeUp.read, seconds: seconds)
        } else {
            var descriptor = pollfd(fd: wakeUp.read, events: Int16(POLLIN), revents: 0)
            poll(&descriptor, 1, Int32(seconds * 1000))
        }
        var bytes = [UInt8](repeating: 0, count: 64)
        _ = read(wakeUp.read, &bytes, 64)
        // One wake-up announces all commits of this pause, and one look covers all wake-ups of it.
        let isAnnounced = isAnnounced.load(ordering: .acquiring)
        sleep(milliseconds: isAnnounced ? Self.pause : Self.pause - (.now - start) / .milliseconds(1))
    }

    private func sleep(milliseconds: Double) {
        guard milliseconds > 0 else { return }
        poll(nil, 0, Int32(milliseconds.rounded(.up)))
    }
}

extension PostgreSQLEngine {
    /// Starts to watch for changes, if the store keeps a history.
    ///
    /// Without one, nothing reports changes.
    ///
    /// - Parameter isLate: Whether others may have written since rows were cached; the rows are read again then.
    /// - Throws: Errors of reading the history.
    package func watchForChanges(isLate: Bool = false) throws {
        let database = try openDatabase()
        guard database.recordsHistory else { return }
        // This gives no numbers to transactions without one, because another process may be slow at that just now. The
        // watcher gives them later.
        let last = try lastNumberSoFar()
        // This must not come earlier: changes in between would be missed.
        if isLate { addChangesOfOthers() }
        let new = ChangeWatcher(database, last: last) { [weak self] in self }
        if let handler = changeHandler.withLock({ $0 }) { new.setHandler(handler) }
        // The watcher may be waiting for a server that another one has replaced.
        database.onFailover.withLock { $0 = { [weak new] in new?.wake() } }
        let old = watcher.withLock { current in
            defer { current = new }
            return current
        }
        old?.stop()
        new.start()
    }

    /// Counts that the history went back: any row may have changed, and known numbers are given again.
    func countSetBack() {
        setBacks.add(1, ordering: .acquiringAndReleasing)
        addChangesOfOthers()
    }

    /// Watches for changes from now on, if a save has found that another process has begun a history.
    ///
    /// If this fails, then the next save tries again.
    func followHistory(of database: OpenPostgreSQLStore) {
        guard database.recordsHistory, watcher.withLock({ $0 == nil }) else { return }
        // Nothing reports what others have saved before.
        do { try watchForChanges(isLate: true) } catch { addChangesOfOthers() }
        // The store may have been closed meanwhile.
        if (try? openDatabase()) == nil { watcher.withLock { $0 }?.stop() }
    }

    /// Sets a function that is called whenever the history has grown, by this process or another.
    ///
    /// - Parameter handler: Called on the thread of the watcher.
    package func onChanges(_ handler: @escaping @Sendable () -> Void) {
        // A watcher may begin later, together with the history.
        changeHandler.withLock { $0 = handler }
        watcher.withLock { $0 }?.setHandler(handler)
    }
}
