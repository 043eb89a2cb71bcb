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
    let openingTimeout: Double
    /// The most connections in use at a time.
    package let size: Int
    private let permits: FairSemaphore
    /// The connections that nobody uses, which other pools may use if they share a budget.
    let idle: IdleSessions
    /// The number of the pool; no other pool of the process has it.
    let number = ConnectionPool.numbers.add(1, ordering: .relaxed).newValue
    private static let numbers = AtomicCell(0)
    let isClosed = AtomicCell(false)
    /// Runs on each new connection.
    let prepare: @Sendable (Connection) throws -> Void
    let server = KnownServer()
    /// The number of times that connections were found to lead to another server, or to another run of it.
    private let changes = AtomicCell(0)
    let hasConnected = AtomicCell(false)
    /// The number of times that plans have become outdated.
    private let planAge = AtomicCell(0)
    /// Called when connections lead to another server than before, or to another run of it.
    private let failedOver = Locked<(@Sendable () -> Void)?>(nil)
    /// About how many seconds a connection is used, so that load moves to new servers.
    private let life: Double
    /// Returns the number of this process.
    let process: @Sendable () -> pid_t
    /// How many seconds unused connections are kept, except for one.
    private let rest: Double
    private let sharing: Sharing?

    /// The connections that the pools of a server have together.
    package struct Sharing: Sendable {
        let budget: ConnectionBudget
        /// Prepares a connection that another pool has used, whose settings are equal apart from the schema.
        let takeOver: @Sendable (Connection) throws -> Void

        package init(_ budget: ConnectionBudget, takeOver: @escaping @Sendable (Connection) throws -> Void) {
            self.budget = budget
            self.takeOver = takeOver
        }
    }

    /// A pool without connections.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - size: The most connections in use at a time.
    ///   - timeout: How many seconds to wait for a connection or for the server.
    ///   - openingTimeout: How many seconds to wait for a new connection, if that is less.
    ///   - rest: How many seconds unused connections are kept, except for one.
    ///   - life: About how many seconds a connection is used: each a fifth less or more.
    ///   - sharing: The connections that the pools of the server have together; `nil` if this pool has separate ones, without a limit for all pools.
    ///   - process: Returns the number of this process; tests pass other functions.
    ///   - prepare: Sets up a new connection, and notes on it which server it has reached.
    package init(
        _ target: ConnectionTarget,
        size: Int,
        timeout: Double,
        openingTimeout: Double = .infinity,
        rest: Double = 60,
        life: Double = 600,
        sharing: Sharing? = nil,
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
        self.sharing = sharing
        idle = sharing?.budget.idle ?? IdleSessions()
        permits = FairSemaphore(permits: size)
        sharing?.budget.register(self)
    }

    /// The connections that the stores of the server may have together; `nil` for no limit.
    package var budget: ConnectionBudget? { sharing?.budget }

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
    ///
    /// It also runs again if the server has ended its transaction in favour of others; some servers do that to reads as well.
    /// It runs once more if a prepared statement does not fit its tables any more, because an operator has changed them.
    package func reading<R>(cancellation: Cancellation? = nil, _ body: (Connection) throws -> R) throws -> R {
        func read() throws -> R {
            try repeatingConflicts {
                try withConnection(
                    cancellation: cancellation,
                    repeatedIf: { $0.kind == .connection && $0.sqlState != "25P03" },
                    body
                )
            }
        }
        do { return try read() } catch let error as PostgreSQLError where error.isStale { return try read() }
    }

    /// Runs `body` with a connection, and again if the server has ended its transaction in favour of others.
    ///
    /// - Parameter body: One transaction, which leaves nothing behind if it is rolled back.
    /// - Returns: The result of `body`.
    /// - Throws: The errors of `body`; ``PostgreSQLError``.
    package func writing<R>(_ body: (Connection) throws -> R) throws -> R {
        try repeatingConflicts { try withConnection(body) }
    }

    /// Runs `body`, and again, after a random pause, if the server has ended its transaction in favour of others; ten times in all, within the time-out.
    package func repeatingConflicts<R>(_ body: () throws -> R) throws -> R {
        let end = ContinuousClock.now + .seconds(timeout)
        var attempt = 1
        while true {
            do { return try body() } catch let error as PostgreSQLError
                where error.isTransient && attempt < Self.mostAttempts && .now < end
            {
                usleep(UInt32.random(in: 0..<UInt32(1000 << min(attempt, 6))))
                attempt += 1
            }
        }
    }

    /// The most attempts of a transaction that the server has ended in favour of others.
    private static let mostAttempts = 10

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
            let connection = try spare(opening: openingLimit, cancellation)
            connection.patience = max(timeout, 1)
            connection.leaseWait = leaseWait + (connection.use?.waited ?? 0)
            return connection
        } catch {
            permits.release()
            throw error
        }
    }

    /// An unused connection; `nil` if there is none that still works.
    func usable(until end: ContinuousClock.Instant) -> Connection? {
        while let connection = idle.take(for: self, leavingAtMost: { budget.map { $0.most - $0.usedCount } ?? .max }) {
            if isUsable(connection, until: end) { return connection }
        }
        return nil
    }

    /// Whether a connection that nobody has used for a while still works for this pool.
    func isUsable(_ connection: Connection, until end: ContinuousClock.Instant) -> Bool {
        guard !connection.isWorn(after: life), connection.isStillThere() else { return false }
        guard connection.servedPool == number || takesOver(connection, until: end) else { return false }
        return server.isCurrent(connection) && hasCurrentPlans(connection, until: end)
    }

    /// Makes a connection that another pool has used serve this one; takes a round trip.
    ///
    /// If the server is silent for so long, then the other unused connections are closed without a question.
    private func takesOver(_ connection: Connection, until end: ContinuousClock.Instant) -> Bool {
        guard let sharing else { return false }
        connection.patience = max((end - .now) / .seconds(1), 0.1)
        do {
            connection.leavePool()
            try sharing.takeOver(connection)
            connection.join(pool: number, schema: target.schema, planAge: currentPlanAge)
            try noteServer(of: connection)
            explainWaits(of: connection)
            hasConnected.store(true, ordering: .relaxed)
            return true
        } catch {
            if (error as? PostgreSQLError)?.kind == .deadline { idle.close { $0.settings == target.settings } }
            return false
        }
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
        guard !connection.isBroken, connection.isIdle, server.isCurrent(connection),
            !isClosed.load(ordering: .acquiring)
        else { return }
        // Another caller of the budget may use a connection as soon as this one is back, but no earlier.
        let use = connection.use
        connection.use = nil
        // Connections that come back from long use exceed the number that can be in use.
        idle.put(connection, most: budget?.most ?? size, rest: rest)
        if isClosed.load(ordering: .acquiring) { closeUnwanted() }
        withExtendedLifetime(use) {}
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

    /// The same, with a limit in seconds for the wait for the budget and for opening a new one.
    ///
    /// - Parameters:
    ///   - limit: The limit; `nil` for the time-out.
    ///   - cancellation: Ends the wait.
    ///   - countsInBudget: Whether the connection is one of those that the server's pools may use together.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``.
    func spare(
        opening limit: Double?,
        _ cancellation: Cancellation? = nil,
        countsInBudget: Bool = true
    ) throws -> Connection {
        let start = ContinuousClock.now
        let limit = min(limit ?? timeout, openingTimeout)
        let use = countsInBudget ? try budget?.use(within: limit, cancellation) : nil
        // An unused connection may turn out to be silent, and then time has to be left for a new one.
        let rest = limit - (.now - start) / .seconds(1)
        let connection =
            try usable(until: .now + .seconds(rest / 2)) ?? openForPool(until: start + .seconds(limit), cancellation)
        connection.use = use
        return connection
    }

    /// Takes back a connection that was lent, without a wait.
    ///
    /// It returns at once, because any thread may release the connection last. Another thread rolls back the open
    /// transaction.
    package func giveBackInBackground(_ connection: Connection) {
        guard !connection.isBroken, !isClosed.load(ordering: .acquiring), budget != nil || idleCount < size else {
            return
        }
        idle.queue.async { [self] in
            guard !isClosed.load(ordering: .acquiring) else { return }
            // A silent server delays the other connections that come back.
            connection.patience = min(timeout, Self.returnPatience)
            keep(connection)
        }
    }

    /// How many seconds a connection that was lent may take to end its transaction.
    private static let returnPatience = 5.0

    /// The number of connections that are not in use and have served this pool last.
    package var idleCount: Int { idle.count { $0.servedPool == number } }

    /// The number of connections in use, without those that are lent.
    package var usedCount: Int { max(size - permits.freeCount, 0) }

    /// The number of threads that wait for a connection.
    package var waiterCount: Int { permits.waiterCount }

    /// The number of callers that wait for a session because the server has no room for another.
    var seekerCount: Int { idle.seekerCount }

    // MARK: - Plans

    /// The age that current plans have.
    var currentPlanAge: Int { planAge.load(ordering: .relaxed) }

    /// Makes the server plan each prepared statement anew at its next use, because tables have grown much.
    ///
    /// Connections do that when they are taken the next time.
    package func outdatePlans() { planAge.add(1, ordering: .relaxed) }

    /// Whether no statement has an outdated plan; takes a round trip if plans have to be dropped.
    ///
    /// If the server is silent for so long, then the other unused connections are closed without a question.
    private func hasCurrentPlans(_ connection: Connection, until end: ContinuousClock.Instant) -> Bool {
        let age = currentPlanAge
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

    /// The timeline of the current primary, as far as that is known.
    package var currentTimeline: Int64? { server.timeline }

    /// The number of the cluster that connections lead to, as far as that is known.
    package var systemIdentifier: Int64? { server.system }

    /// Notes the server that a connection has reached, and forgets the sessions of any other one.
    ///
    /// - Throws: ``PostgreSQLError`` if another server has replaced this one.
    func noteServer(of connection: Connection) throws(PostgreSQLError) {
        if try server.note(connection) { serverHasChanged(before: connection) }
    }

    /// Registers what a connection has found out about its run since it was opened.
    package func registerRun(of connection: Connection) {
        if server.noteRun(of: connection) { serverHasChanged(before: connection) }
    }

    /// Closes the unused connections that may lead to the old server, and reports the change.
    ///
    /// - Parameter connection: A connection to the new server.
    private func serverHasChanged(before connection: Connection) {
        changes.add(1, ordering: .acquiringAndReleasing)
        // Sessions of the old server may still exist, and all that they write is lost. Those of other pools that were opened later are of the new one.
        closeIdle()
        idle.close { $0.settings == connection.settings && $0.openedAt < connection.openedAt }
        failedOver.withLock { $0 }?()
    }

    // MARK: - Closing

    /// Closes the unused connections that have served this pool, or its schema, last, because the server has ended one and probably others.
    ///
    /// A connection that has served another pool is tried before it serves this one.
    package func closeIdle() {
        idle.close { $0.settings == target.settings && ($0.servedPool == number || $0.schema == target.schema) }
    }

    /// Closes all connections that no other pool can use; those in use are closed when they come back.
    package func close() {
        isClosed.store(true, ordering: .releasing)
        closeUnwanted()
    }

    private func closeUnwanted() { if let budget { budget.forget(self) } else { closeIdle() } }
}
