import Foundation
import StrataLocks
import Synchronization

/// The connections of one store.
///
/// Any thread may call any method. No thread waits longer than the time-out, neither for a connection nor for the
/// server.
package final class ConnectionPool: Sendable {
    package let target: ConnectionTarget
    /// The most seconds to wait for a connection or for the server.
    package let timeout: Double
    /// The most seconds to wait for a new connection, if that is less.
    private let openingTimeout: Double
    /// The most connections in use at a time.
    package let size: Int
    private let permits: FairSemaphore
    private let idle = Locked<[Connection]>([])
    private let isClosed = Atomic(false)
    /// Runs on each new connection.
    private let prepare: @Sendable (Connection) throws -> Void
    /// The latest timeline of any connection; `nil` before the first connection.
    private let timeline = Locked<Int64?>(nil)
    /// The run of the server that the newest connection has reached; `nil` until a server has reported one.
    private let run = Locked<ServerRun?>(nil)
    /// The number of times that connections were found to lead to another server, or to another run of it.
    private let changes = Atomic(0)
    /// The farthest end of the log of that timeline that a connection has found.
    private let logEnd = Locked<(timeline: Int64, position: Int64)?>(nil)
    /// The cluster of the first connection; `nil` until a server has reported one.
    private let system = Locked<Int64?>(nil)
    private let hasConnected = Atomic(false)
    /// The number of times that plans have become outdated.
    private let planAge = Atomic(0)
    /// Called when connections lead to another server than before, or to another run of it.
    private let failedOver = Locked<(@Sendable () -> Void)?>(nil)
    /// The queue on which connections that were lent end their transactions.
    ///
    /// This is not a shared queue, because work of the program could block that one and keep the transactions open.
    private let returns = DispatchQueue(label: "strata.postgresql.returns", qos: .utility)
    /// About how many seconds a connection is used, so that load moves to new servers.
    private let life: Double
    /// Returns the number of this process.
    private let process: @Sendable () -> pid_t
    /// How many seconds unused connections are kept, except for one.
    private let rest: Double
    /// Whether a check for connections that were unused for so long is scheduled.
    private let willRest = Atomic(false)
    /// The connections that the stores of the server may have together; `nil` for no limit.
    package let budget: ConnectionBudget?

    /// A pool without connections.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - size: The most connections in use at a time.
    ///   - timeout: How many seconds to wait for a connection or for the server.
    ///   - openingTimeout: How many seconds to wait for a new connection, if that is less.
    ///   - rest: How many seconds unused connections are kept, except for one.
    ///   - life: About how many seconds a connection is used: each a fifth less or more.
    ///   - budget: The connections that the stores of the server may have together; `nil` for no limit.
    ///   - process: Returns the number of this process; tests pass other functions.
    ///   - prepare: Sets up a new connection, and notes on it which server it has reached.
    package init(
        _ target: ConnectionTarget,
        size: Int,
        timeout: Double,
        openingTimeout: Double = .infinity,
        rest: Double = 60,
        life: Double = 600,
        budget: ConnectionBudget? = nil,
        process: @escaping @Sendable () -> pid_t = { getpid() },
        prepare: @escaping @Sendable (Connection) throws -> Void
    ) {
        self.target = target
        self.timeout = timeout
        self.openingTimeout = openingTimeout
        self.rest = rest
        self.life = life
        self.process = process
        self.prepare = prepare
        self.size = size
        self.budget = budget
        permits = FairSemaphore(permits: size)
        budget?.register(self)
    }

    /// Runs `body` with a connection that no other caller has.
    ///
    /// A transaction that is still open afterwards is rolled back.
    package func withConnection<R>(
        cancellation: Cancellation? = nil,
        within limit: Double? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        let connection = try lease(cancellation, waiting: limit, opening: limit)
        defer { give(back: connection) }
        return try body(connection)
    }

    /// Runs `body` with a connection, and again if the connection turns out to be lost; only for work that changes
    /// nothing.
    package func reading<R>(cancellation: Cancellation? = nil, _ body: (Connection) throws -> R) throws -> R {
        try withConnection(
            cancellation: cancellation,
            repeatedIf: { $0.kind == .connection && $0.sqlState != "25P03" },
            body
        )
    }

    /// Runs `body` with a connection, and once more with another one if it fails with an error of a certain kind.
    ///
    /// If no connection could be opened, then the time-out is over, so the wait does not begin again.
    ///
    /// - Parameters:
    ///   - cancellation: Ends the wait for a connection.
    ///   - limit: How many seconds to wait for a connection; `nil` for the time-out.
    ///   - mayBeRepeated: Whether `body` may run again after an error.
    ///   - body: The work.
    /// - Returns: The result of `body`.
    /// - Throws: The errors of `body`; ``PostgreSQLError``.
    package func withConnection<R>(
        cancellation: Cancellation? = nil,
        within limit: Double? = nil,
        repeatedIf mayBeRepeated: (PostgreSQLError) -> Bool,
        _ body: (Connection) throws -> R
    ) throws -> R {
        var hadConnection = false
        do {
            return try withConnection(cancellation: cancellation, within: limit) { connection in
                hadConnection = true
                return try body(connection)
            }
        } catch let error as PostgreSQLError where hadConnection && mayBeRepeated(error) {
            closeIdle()
            return try withConnection(cancellation: cancellation, within: limit, body)
        }
    }

    /// Lends a connection for a longer time; the caller has to give it back.
    ///
    /// - Parameters:
    ///   - cancellation: Ends the wait.
    ///   - limit: How many seconds to wait while all are in use; `nil` for the time-out.
    ///   - openingLimit: How many seconds to wait for a new one; `nil` for the time-out.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``: `.deadline` if all are in use for too long.
    package func lease(
        _ cancellation: Cancellation? = nil,
        waiting limit: Double? = nil,
        opening openingLimit: Double? = nil
    ) throws -> Connection {
        let leaseWait: Double
        switch permits.acquire(timeout: limit ?? timeout, cancellation: cancellation) {
        case .acquired(let waited): leaseWait = waited
        case .cancelled: throw PostgreSQLError(.cancelled, "the request was cancelled")
        case .timedOut(let waited):
            throw PostgreSQLError(
                .deadline,
                "all connections of the pool were in use for \((waited * 10).rounded() / 10) s"
            )
        }
        do {
            if isClosed.load(ordering: .acquiring) { throw PostgreSQLError(.misuse, "the store is closed") }
            let connection = try spare(opening: openingLimit)
            connection.patience = max(timeout, 1)
            connection.leaseWait = leaseWait
            return connection
        } catch {
            permits.release()
            throw error
        }
    }

    /// An unused connection; `nil` if there is none that still works.
    private func usable(until end: ContinuousClock.Instant) -> Connection? {
        while let connection = idle.withLock({ $0.popLast() }) {
            if !connection.isWorn(after: life), isCurrent(connection), connection.isStillThere(),
                hasCurrentPlans(connection, until: end)
            {
                return connection
            }
        }
        return nil
    }

    /// Ends the use of a connection.
    package func give(back connection: Connection) {
        defer { permits.release() }
        connection.patience = max(timeout, 1)
        keep(connection)
    }

    /// Keeps a connection for the next caller, if it still works.
    private func keep(_ connection: Connection) {
        connection.awaitCancel()
        if !connection.isBroken, !connection.isIdle { try? connection.rollback() }
        connection.patience = max(timeout, 1)
        // The next caller checks whether it is worn.
        guard !connection.isBroken, connection.isIdle, isCurrent(connection), !isClosed.load(ordering: .acquiring)
        else { return }
        connection.restsSince = .now
        // Connections that come back from long use exceed the number that can be in use.
        let several = idle.withLock { idle in
            if idle.count < size { idle.append(connection) }
            return idle.count > 1
        }
        if isClosed.load(ordering: .acquiring) { closeIdle() }
        // A caller of another pool that came before has not found this connection.
        if budget?.isShort == true { closeOneIdle() }
        if several { closeRestingLater() }
    }

    /// Closes the connection that was not used for longest.
    ///
    /// - Returns: Whether there was one.
    @discardableResult
    func closeOneIdle() -> Bool {
        // It is closed outside of the lock.
        let closed = idle.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        return closed != nil
    }

    /// Closes connections that were not used for long, because the server may have room for few connections only.
    private func closeRestingLater() {
        guard !willRest.load(ordering: .relaxed), !willRest.exchange(true, ordering: .acquiringAndReleasing) else {
            return
        }
        returns.asyncAfter(deadline: .now() + rest) { [weak self] in
            guard let self else { return }
            willRest.store(false, ordering: .releasing)
            let limit = ContinuousClock.now - .seconds(rest)
            // The last connection that came back is the first that is taken. Removed connections are closed outside of
            // the lock.
            let (closed, several) = idle.withLock { idle in
                let count = min(idle.count { $0.restsSince <= limit }, max(idle.count - 1, 0))
                let closed = Array(idle.prefix(count))
                idle.removeFirst(count)
                return (closed, idle.count > 1)
            }
            withExtendedLifetime(closed) {}
            if several { closeRestingLater() }
        }
    }

    // MARK: - For long

    /// Lends a connection for so long that it must not count among those in use: an unused one, or a new one.
    ///
    /// - Returns: The connection. The caller gives it back with ``giveBackInBackground(_:)``; otherwise it is closed when it is
    ///   released.
    /// - Throws: ``PostgreSQLError``.
    package func lend() throws -> Connection {
        let connection = try spare(opening: nil)
        connection.patience = max(timeout, 1)
        return connection
    }

    /// The same, with a limit in seconds for opening a new one.
    func spare(opening limit: Double?) throws -> Connection {
        let start = ContinuousClock.now
        let limit = min(limit ?? timeout, openingTimeout)
        // An unused connection may turn out to be silent, and then time has to be left for a new one.
        if let usable = usable(until: start + .seconds(limit / 2)) { return usable }
        let place = try budget?.place(within: limit - (.now - start) / .seconds(1))
        let connection = try open(timeout: limit - (.now - start) / .seconds(1))
        connection.place = place
        return connection
    }

    /// Takes back a connection that was lent, without a wait.
    ///
    /// It returns at once, because any thread may release the connection last. Another thread rolls back the open
    /// transaction.
    package func giveBackInBackground(_ connection: Connection) {
        guard !connection.isBroken, !isClosed.load(ordering: .acquiring), idle.withLock({ $0.count < size }) else {
            return
        }
        returns.async { [self] in
            guard !isClosed.load(ordering: .acquiring) else { return }
            // A silent server delays the other connections that come back.
            connection.patience = min(timeout, Self.returnPatience)
            keep(connection)
        }
    }

    /// How many seconds a connection that was lent may take to end its transaction.
    private static let returnPatience = 5.0

    /// The number of connections that are not in use.
    package var idleCount: Int { idle.withLock { $0.count } }

    /// The number of connections in use, without those that are lent.
    package var usedCount: Int { max(size - permits.freeCount, 0) }

    /// The number of threads that wait for a connection.
    package var waiterCount: Int { permits.waiterCount }

    // MARK: - New ones

    /// Opens a connection that does not belong to the pool, for listeners and for questions about another connection.
    ///
    /// Once a server has accepted a connection, this waits for a server that cannot be reached, or for another one that
    /// takes its place. It also waits for a server that is starting, or that has no room.
    package func open(timeout: Double? = nil) throws -> Connection {
        let limit = min(timeout ?? self.timeout, openingTimeout)
        let end = ContinuousClock.now + .seconds(limit)
        var busy: PostgreSQLError?
        var pause = Self.firstPause
        var turn = Self.firstTurn
        while true {
            do {
                let rest = max((end - .now) / .seconds(1), 0.1)
                // This is read first, so that connections that are opened side by side do not make the log seem to have
                // gone back.
                let logEnd = logEnd.withLock { $0 }
                // While this waits for a silent server, another one may just be taking its place.
                let mayTurn = hasConnected.load(ordering: .relaxed)
                let connection = try Connection.open(
                    target,
                    timeout: rest,
                    most: mayTurn ? turn : nil,
                    process: process
                ) { connection in
                    connection.planAge = planAge.load(ordering: .relaxed)
                    try prepare(connection)
                    try requireSameCluster(connection.systemIdentifier)
                    try registerServer(of: connection, since: logEnd)
                }
                connection.patience = max(timeout ?? self.timeout, 1)
                explainWaits(of: connection)
                hasConnected.store(true, ordering: .relaxed)
                return connection
            } catch let error as PostgreSQLError where error.kind == .connection || error.kind == .deadline {
                let isKnown = hasConnected.load(ordering: .relaxed)
                let mayCome =
                    (error.isBusy && openingTimeout == .infinity)
                    || (isKnown && !error.isRefusal
                        && (error.sqlState == PostgreSQLError.cutOff || target.hasSeveralHosts
                            || (error.isUnreached && openingTimeout == .infinity)))
                if error.isBusy { busy = error }
                guard mayCome, ContinuousClock.now < end, !isClosed.load(ordering: .acquiring) else {
                    // The last attempt may have had no time for an answer; the earlier error is reported then, which
                    // would have been the same.
                    throw error.kind == .deadline ? busy ?? error : error
                }
                // Many processes may wait for the same server.
                usleep(UInt32(pause * Double.random(in: 0.5...1.5)))
                pause = min(pause * 1.5, Self.longestPause)
                turn = min(turn * 2, Self.longestTurn)
            }
        }
    }

    /// How many microseconds to wait before another attempt to open a connection.
    private static let firstPause = 50_000.0
    private static let longestPause = 500_000.0
    /// How many seconds to wait for each of several hosts, the first time and at most.
    private static let firstTurn = 0.5
    private static let longestTurn = 10.0

    // MARK: - Plans

    /// Makes the server plan each prepared statement anew at its next use, because tables have grown much.
    ///
    /// Connections do that when they are taken the next time.
    package func outdatePlans() { planAge.add(1, ordering: .relaxed) }

    /// Whether no statement has an outdated plan; takes a round trip if plans have to be dropped.
    ///
    /// If the server is silent for so long, then the other unused connections are closed without a question.
    private func hasCurrentPlans(_ connection: Connection, until end: ContinuousClock.Instant) -> Bool {
        let age = planAge.load(ordering: .relaxed)
        guard connection.planAge != age, !connection.isPooled else { return true }
        connection.planAge = age
        connection.patience = max((end - .now) / .seconds(1), 0.1)
        do {
            try connection.command("DISCARD PLANS")
            return true
        } catch {
            if (error as? PostgreSQLError)?.kind == .deadline { closeIdle() }
            return false
        }
    }

    // MARK: - Which server

    /// Sets a function that is called when another server has replaced the one that connections led to, or when that
    /// server may have lost changes.
    package func onFailover(_ function: @escaping @Sendable () -> Void) { failedOver.withLock { $0 = function } }

    /// The number of times that this has happened.
    package var serverChanges: Int { changes.load(ordering: .acquiring) }

    /// Whether a connection leads to the current primary, as far as that is known.
    private func isCurrent(_ connection: Connection) -> Bool {
        connection.timeline == nil || connection.timeline == timeline.withLock { $0 }
    }

    /// The timeline of the current primary, as far as that is known.
    package var currentTimeline: Int64? { timeline.withLock { $0 } }

    /// The number of the cluster that connections lead to, as far as that is known.
    package var systemIdentifier: Int64? { system.withLock { $0 } }

    /// Refuses a server of another cluster, which may have a copy of the store with the same UUID and other rows.
    private func requireSameCluster(_ new: Int64?) throws(PostgreSQLError) {
        guard let new else { return }
        let known = system.withLock { system in
            system = system ?? new
            return system
        }
        if let known, known != new {
            throw PostgreSQLError(
                .connection,
                "the server is of another cluster than before: its system identifier is \(new), and was \(known). If that is meant, remove the store, and add it again"
            )
        }
    }

    /// Registers the server that a new connection has reached, and forgets the sessions of any other one.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - logEnd: The farthest end of the log that was known before the connection was opened.
    /// - Throws: ``PostgreSQLError`` if another server has replaced this one.
    private func registerServer(of connection: Connection, since logEnd: (timeline: Int64, position: Int64)?)
        throws(PostgreSQLError)
    {
        let isLater = try isLater(connection.timeline)
        let isOtherRun = isOtherRun(connection)
        let hasGoneBack = hasGoneBack(connection, since: logEnd)
        if isLater || isOtherRun || hasGoneBack { serverHasChanged() }
    }

    private func serverHasChanged() {
        changes.add(1, ordering: .acquiringAndReleasing)
        // Sessions of the old server may still exist, and all that they write is lost.
        closeIdle()
        failedOver.withLock { $0 }?()
    }

    /// Registers what a connection has found out about its run since it was opened.
    package func registerRun(of connection: Connection) {
        if isOtherRun(connection) { serverHasChanged() }
    }

    /// Whether the timeline of a new connection is later than those of earlier connections.
    ///
    /// - Throws: ``PostgreSQLError`` if it is earlier: another server has replaced this one, and changes that are
    ///   written here are lost.
    private func isLater(_ new: Int64?) throws(PostgreSQLError) -> Bool {
        guard let new else { return false }
        let known = timeline.withLock { timeline in
            defer { timeline = max(new, timeline ?? new) }
            return timeline ?? new
        }
        if new < known {
            throw PostgreSQLError(
                .connection,
                "the server is one whose place another has taken: it is on timeline \(new), and \(known) was seen"
            )
        }
        return new > known
    }

    /// Whether a new connection has reached another run of the primary than the connection before.
    ///
    /// No connection outlives a run. A server that was started again on the same timeline may have lost its last
    /// commits (`synchronous_commit=off`), or may have been put back from a copy.
    private func isOtherRun(_ connection: Connection) -> Bool {
        if FaultGuard.runCheck.isOff { return false }
        // Connections to replicas may lead to several servers.
        guard connection.timeline != nil, let new = connection.serverRun else { return false }
        let known = run.withLock { run in
            defer { run = new.completed(by: run) }
            return run
        }
        return known.map { !$0.isSame(as: new) } ?? false
    }

    /// Whether the log of the server of a new connection is shorter than it was for an earlier connection.
    ///
    /// That happens if a whole machine is set back while the server runs. Log that was written after the earlier
    /// connection was opened is not counted, so not every such server is noticed.
    private func hasGoneBack(_ connection: Connection, since known: (timeline: Int64, position: Int64)?) -> Bool {
        guard let timeline = connection.timeline, let position = connection.logPosition else { return false }
        let hasGoneBack = known.map { $0.timeline == timeline && position < $0.position } ?? false
        logEnd.withLock { end in
            if let other = end, !hasGoneBack, (other.timeline, other.position) >= (timeline, position) { return }
            end = (timeline, position)
        }
        return hasGoneBack
    }

    /// Closes the unused connections, because the server has ended one and probably others.
    package func closeIdle() { idle.withLock { $0.removeAll() } }

    /// Closes all connections; those in use are closed when they come back.
    package func close() {
        isClosed.store(true, ordering: .releasing)
        closeIdle()
    }
}
