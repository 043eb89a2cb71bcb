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
    private let permits: FairSemaphore
    private let idle = Mutex<[Connection]>([])
    private let isClosed = Atomic(false)
    /// Made on each new connection.
    private let prepare: @Sendable (Connection) throws -> Void
    /// For how many seconds a connection is used at most, so that load moves to new servers.
    private static let life = 600.0

    /// A pool without connections.
    ///
    /// - Parameters:
    ///   - target: Where the database is.
    ///   - size: The most connections in use at a time.
    ///   - timeout: For how many seconds one waits for a connection or the server.
    ///   - prepare: What a new connection has to be told first.
    package init(
        _ target: ConnectionTarget,
        size: Int,
        timeout: Double,
        prepare: @escaping @Sendable (Connection) throws -> Void
    ) {
        self.target = target
        self.timeout = timeout
        self.prepare = prepare
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
    /// - Throws: ``PostgreSQLError``: `.deadline` if all are in use for too long.
    package func take(_ cancellation: Cancellation? = nil) throws -> Connection {
        switch permits.acquire(timeout: timeout, cancellation: cancellation) {
        case .acquired: break
        case .cancelled: throw PostgreSQLError(.cancelled, "the request was cancelled")
        case .timedOut(let waited):
            throw PostgreSQLError(
                .deadline,
                "all connections of the pool were in use for \((waited * 10).rounded() / 10) s"
            )
        }
        do {
            if isClosed.load(ordering: .acquiring) { throw PostgreSQLError(.misuse, "the store is closed") }
            while let connection = idle.withLock({ $0.popLast() }) {
                if !connection.isWorn(after: Self.life), connection.isStillThere() { return connection }
            }
            return try open()
        } catch {
            permits.release()
            throw error
        }
    }

    /// Ends the use of a connection.
    package func give(back connection: Connection) {
        defer { permits.release() }
        connection.settleCancel()
        connection.patience = max(timeout, 1)
        if !connection.isBroken, !connection.isIdle { _ = try? connection.command("ROLLBACK") }
        guard !connection.isBroken, connection.isIdle, !connection.isWorn(after: Self.life),
            !isClosed.load(ordering: .acquiring)
        else { return }
        idle.withLock { $0.append(connection) }
        if isClosed.load(ordering: .acquiring) { closeIdle() }
    }

    /// A connection that does not belong to the pool, for those who listen or ask about another one.
    package func open(timeout: Double? = nil) throws -> Connection {
        let connection = try Connection.open(target, timeout: timeout ?? self.timeout)
        connection.patience = max(timeout ?? self.timeout, 1)
        try prepare(connection)
        return connection
    }

    /// Closes the connections that nobody uses: the server has ended one, and probably others.
    package func closeIdle() { idle.withLock { $0.removeAll() } }

    /// Lets go of all connections; those in use are closed when they come back.
    package func close() {
        isClosed.store(true, ordering: .releasing)
        closeIdle()
    }
}
