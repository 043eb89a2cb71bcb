import Foundation
import StrataLocks
import Synchronization

/// The connections of one store.
///
/// Any thread may call any method. Nobody waits longer than the time-out, neither for a connection nor for the server.
package final class ConnectionPool: Sendable {
    package let target: ConnectionTarget
    /// In seconds.
    package let timeout: Double
    /// For how many seconds one waits for a new connection, if that is less.
    private let openingTimeout: Double
    /// The most connections in use at a time.
    package let size: Int
    private let permits: FairSemaphore
    private let idle = Mutex<[Connection]>([])
    private let isClosed = Atomic(false)
    /// Made on each new connection.
    private let prepare: @Sendable (Connection) throws -> Void
    /// The latest timeline that a connection was on; `nil` before the first.
    private let timeline = Mutex<Int64?>(nil)
    /// The farthest that a connection has found the log of that timeline.
    private let logEnd = Mutex<(timeline: Int64, position: Int64)?>(nil)
    /// The cluster that the first connection led to; `nil` as long as none has told.
    private let system = Mutex<Int64?>(nil)
    private let hasConnected = Atomic(false)
    /// How often plans have become outdated.
    private let planAge = Atomic(0)
    /// Called when connections lead to another server than before.
    private let failedOver = Mutex<(@Sendable () -> Void)?>(nil)
    /// Where connections that were lent end their transactions.
    ///
    /// Not a queue that all share: there work of the program could keep them open.
    private let returns = DispatchQueue(label: "strata.postgresql.returns", qos: .utility)
    /// For how many seconds a connection is used, by and large, so that load moves to new servers.
    private let life: Double
    /// Tells the number of this process.
    private let process: @Sendable () -> pid_t
    /// For how many seconds connections are kept that nobody uses, all but one.
    private let rest: Double
    /// Whether somebody will look for those that nobody has used for so long.
    private let willRest = Atomic(false)

    /// A pool without connections.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - size: The most connections in use at a time.
    ///   - timeout: For how many seconds one waits for a connection or the server.
    ///   - openingTimeout: For how many seconds one waits for a new connection, if that is less.
    ///   - rest: For how many seconds connections are kept that nobody uses, all but one.
    ///   - life: For how many seconds a connection is used, by and large: each a fifth less or more.
    ///   - process: Tells the number of this process; tests have others.
    ///   - prepare: What a new connection has to be told first; notes on it which server it has come to.
    package init(
        _ target: ConnectionTarget,
        size: Int,
        timeout: Double,
        openingTimeout: Double = .infinity,
        rest: Double = 60,
        life: Double = 600,
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
        permits = FairSemaphore(permits: size)
    }

    /// Runs `body` with a connection of its own.
    ///
    /// A transaction that is still open afterwards is rolled back.
    package func withConnection<R>(
        cancellation: Cancellation? = nil,
        _ body: (Connection) throws -> R
    ) throws -> R {
        let connection = try take(cancellation)
        defer { give(back: connection) }
        return try body(connection)
    }

    /// As ``withConnection(cancellation:_:)``, once more if the connection turns out to be lost: only for what changes nothing.
    package func reading<R>(cancellation: Cancellation? = nil, _ body: (Connection) throws -> R) throws -> R {
        do {
            return try withConnection(cancellation: cancellation, body)
        } catch let error as PostgreSQLError where error.kind == .connection && error.sqlState != "25P03" {
            closeIdle()
            return try withConnection(cancellation: cancellation, body)
        }
    }

    /// A connection for longer, which has to be given back.
    ///
    /// - Parameters:
    ///   - cancellation: Ends the wait.
    ///   - limit: For how many seconds to wait while all are in use; `nil` for the time-out.
    ///   - openingLimit: For how many seconds to wait for a new one; `nil` for the time-out.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``: `.deadline` if all are in use for too long.
    package func take(
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

    /// A connection that nobody uses; `nil` if there is none that is good for anything.
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

    /// Keeps a connection for whoever comes next, if it is good for anything.
    private func keep(_ connection: Connection) {
        connection.settleCancel()
        if !connection.isBroken, !connection.isIdle { try? connection.rollback() }
        connection.patience = max(timeout, 1)
        // Whether it is worn is asked of whoever takes it.
        guard !connection.isBroken, connection.isIdle, isCurrent(connection), !isClosed.load(ordering: .acquiring)
        else { return }
        connection.restsSince = .now
        // Those that come back from long use are beyond the number that can be in use.
        let several = idle.withLock { idle in
            if idle.count < size { idle.append(connection) }
            return idle.count > 1
        }
        if isClosed.load(ordering: .acquiring) { closeIdle() }
        if several { closeRestingLater() }
    }

    /// Closes connections once nobody has used them for long: the server may have room for a few only, and others want some of them.
    private func closeRestingLater() {
        guard !willRest.load(ordering: .relaxed), !willRest.exchange(true, ordering: .acquiringAndReleasing) else {
            return
        }
        returns.asyncAfter(deadline: .now() + rest) { [weak self] in
            guard let self else { return }
            willRest.store(false, ordering: .releasing)
            let limit = ContinuousClock.now - .seconds(rest)
            // The last one to come back is the first to be taken. What is removed is closed outside of the lock.
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

    /// A connection for so long that it must not count among those in use: one that nobody uses, or a new one.
    ///
    /// - Returns: The connection, which ``takeBack(_:)`` takes, or which is closed when nobody holds it any more.
    /// - Throws: ``PostgreSQLError``.
    package func lend() throws -> Connection {
        let connection = try spare(opening: nil)
        connection.patience = max(timeout, 1)
        return connection
    }

    /// The same, which may take so many seconds to open a new one.
    func spare(opening limit: Double?) throws -> Connection {
        let start = ContinuousClock.now
        let limit = min(limit ?? timeout, openingTimeout)
        // What nobody uses may be silent, and what is new not.
        return try usable(until: start + .seconds(limit / 2)) ?? open(timeout: limit - (.now - start) / .seconds(1))
    }

    /// Takes a connection back that was lent.
    ///
    /// Returns at once, as whoever lets go of it last may be anybody: what is open on it is rolled back by another thread.
    package func takeBack(_ connection: Connection) {
        guard !connection.isBroken, !isClosed.load(ordering: .acquiring), idle.withLock({ $0.count < size }) else {
            return
        }
        returns.async { [self] in
            guard !isClosed.load(ordering: .acquiring) else { return }
            // Who stands still holds up the others that come back.
            connection.patience = min(timeout, Self.returnPatience)
            keep(connection)
        }
    }

    /// For how many seconds a connection that was lent may take to end its transaction.
    private static let returnPatience = 5.0

    /// How many are not in use.
    package var idleCount: Int { idle.withLock { $0.count } }

    /// How many are in use, but for those that are lent.
    package var usedCount: Int { max(size - permits.freeCount, 0) }

    /// How many threads wait for one.
    package var waiterCount: Int { permits.waiterCount }

    // MARK: - New ones

    /// A connection that does not belong to the pool, for those who listen or ask about another one.
    ///
    /// Once a server has accepted a connection, this waits for a server that cannot be reached, or for another one that
    /// takes its place. It also waits for one that starts, or has no room.
    package func open(timeout: Double? = nil) throws -> Connection {
        let limit = min(timeout ?? self.timeout, openingTimeout)
        let end = ContinuousClock.now + .seconds(limit)
        var busy: PostgreSQLError?
        var pause = Self.firstPause
        var turn = Self.firstTurn
        while true {
            do {
                let rest = max((end - .now) / .seconds(1), 0.1)
                // Read first, so that no log seems to have gone back because of connections that are opened side by
                // side.
                let logEnd = logEnd.withLock { $0 }
                // A silent server must not keep this from another one that is just taking its place.
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
                    try note(connection.timeline)
                    note(connection, since: logEnd)
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
                    // The last attempt may have had no time for an answer, which would have been the same.
                    throw error.kind == .deadline ? busy ?? error : error
                }
                // Many may wait for the same server.
                usleep(UInt32(pause * Double.random(in: 0.5...1.5)))
                pause = min(pause * 1.5, Self.longestPause)
                turn = min(turn * 2, Self.longestTurn)
            }
        }
    }

    /// For how many microseconds one waits before it tries to open a connection again.
    private static let firstPause = 50_000.0
    private static let longestPause = 500_000.0
    /// For how many seconds each of several hosts is waited for, the first time and at most.
    private static let firstTurn = 0.5
    private static let longestTurn = 10.0

    // MARK: - Plans

    /// Has the server plan each prepared statement anew, when it is used next: tables are much larger than they were.
    ///
    /// Connections learn of it when they are taken the next time.
    package func outdatePlans() { planAge.add(1, ordering: .relaxed) }

    /// Whether no statement has an outdated plan; takes a round trip if plans have to be dropped.
    ///
    /// If the server is silent so long, it is not asked by way of the other connections that are not in use.
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

    /// Calls a function whenever another server has taken the place of the one that connections have led to, or that one has lost something.
    package func onFailover(_ function: @escaping @Sendable () -> Void) { failedOver.withLock { $0 = function } }

    /// Whether a connection leads to the server that is written to now, as far as that is known.
    private func isCurrent(_ connection: Connection) -> Bool {
        connection.timeline == nil || connection.timeline == timeline.withLock { $0 }
    }

    /// The timeline of the server that is written to, as far as that is known.
    package var currentTimeline: Int64? { timeline.withLock { $0 } }

    /// The number of the cluster that connections lead to, as far as that is known.
    package var systemIdentifier: Int64? { system.withLock { $0 } }

    /// Refuses a server of another cluster: what is there may be a copy of the store, with its UUID, and other rows.
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

    /// Notes the timeline of a new connection.
    ///
    /// - Throws: ``PostgreSQLError`` for a server whose place another one has taken: what is written there is lost.
    private func note(_ new: Int64?) throws(PostgreSQLError) {
        guard let new else { return }
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
        guard new > known else { return }
        // Sessions of the old server may still be there, and all that they write is lost.
        closeIdle()
        failedOver.withLock { $0 }?()
    }

    /// Notes how far the log of the server of a new connection is.
    ///
    /// If the log is shorter than it was for an earlier connection, the server has lost its last moments, or was put
    /// back from a copy. The log that was written after that connection was opened is not counted, so not every such
    /// server is noticed.
    private func note(_ connection: Connection, since known: (timeline: Int64, position: Int64)?) {
        guard let timeline = connection.timeline, let position = connection.logPosition else { return }
        let hasGoneBack = known.map { $0.timeline == timeline && position < $0.position } ?? false
        logEnd.withLock { end in
            if let other = end, !hasGoneBack, (other.timeline, other.position) >= (timeline, position) { return }
            end = (timeline, position)
        }
        guard hasGoneBack else { return }
        closeIdle()
        failedOver.withLock { $0 }?()
    }

    /// Closes the connections that are not in use: the server has ended one, and probably others.
    package func closeIdle() { idle.withLock { $0.removeAll() } }

    /// Lets go of all connections; those in use are closed when they come back.
    package func close() {
        isClosed.store(true, ordering: .releasing)
        closeIdle()
    }
}
