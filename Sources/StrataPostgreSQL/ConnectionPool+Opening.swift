import Foundation
import StrataLocks
import Synchronization

extension ConnectionPool {
    /// Opens a connection that does not belong to the pool, for listeners and for questions about another connection.
    ///
    /// Once a server has accepted a connection, this waits for a server that cannot be reached, or for another one that
    /// takes its place. It also waits for a server that is starting, or that has no room.
    package func open(timeout: Double? = nil) throws -> Connection {
        let limit = min(timeout ?? self.timeout, openingTimeout)
        return try open(until: .now + .seconds(limit), patience: timeout) { pause in
            // This connection is none of those that the pool gives out, so it cannot be one of them.
            idle.closeOldest()
            usleep(UInt32(pause * 1e6))
            return nil
        }
    }

    /// Opens a connection of the pool, or takes one that comes back while the server has no room.
    func openForPool(until end: ContinuousClock.Instant, _ cancellation: Cancellation?) throws -> Connection {
        var seeker: SessionSeeker?
        defer { if let left = seeker.flatMap({ idle.leave($0) }) { giveBackInBackground(left) } }
        return try open(until: end, patience: nil) { pause in
            // Connections of other settings cannot serve this pool, and take up room.
            idle.close { $0.settings != target.settings }
            let waiting = seeker ?? idle.enter(for: self)
            seeker = waiting
            // One may have come back before this caller has entered the queue.
            if let found = usable(until: end) { return found }
            guard let found = try waiting.wait(seconds: pause, cancellation) else { return nil }
            seeker = nil
            return isUsable(found, until: end) ? found : nil
        }
    }

    /// Opens a connection.
    ///
    /// - Parameters:
    ///   - end: When to give up.
    ///   - patience: How many seconds the new connection waits for the server; `nil` for the time-out.
    ///   - makeRoom: Called when the server has no room for another connection: makes room, waits for about so many seconds, and may return a connection
    ///     that is there already.
    /// - Returns: The connection.
    /// - Throws: ``PostgreSQLError``.
    private func open(
        until end: ContinuousClock.Instant,
        patience: Double?,
        _ makeRoom: (_ pause: Double) throws -> Connection?
    ) throws -> Connection {
        let start = ContinuousClock.now
        var busy: PostgreSQLError?
        var pause = Self.firstPause
        var turn = Self.firstTurn
        while true {
            do {
                let rest = max((end - .now) / .seconds(1), 0.1)
                // While this waits for a silent server, another one may just be taking its place.
                let mayTurn = hasConnected.load(ordering: .relaxed)
                let connection = try Connection.open(
                    target,
                    timeout: rest,
                    most: mayTurn ? turn : nil,
                    process: process
                ) { connection in
                    connection.join(pool: number, schema: target.schema, planAge: currentPlanAge)
                    try prepare(connection)
                    try noteServer(of: connection)
                }
                connection.patience = max(patience ?? self.timeout, 1)
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
                    let last = error.kind == .deadline ? busy ?? error : error
                    throw last.afterWaiting((.now - start) / .seconds(1))
                }
                // Many processes may wait for the same server.
                let seconds = pause * Double.random(in: 0.5...1.5)
                if error.hasNoRoom {
                    if let found = try makeRoom(seconds) { return found }
                } else {
                    usleep(UInt32(seconds * 1e6))
                }
                pause = min(pause * 1.5, Self.longestPause)
                turn = min(turn * 2, Self.longestTurn)
            }
        }
    }

    /// How many seconds to wait before another attempt to open a connection.
    private static let firstPause = 0.05
    private static let longestPause = 0.5
    /// How many seconds to wait for each of several hosts, the first time and at most.
    private static let firstTurn = 0.5
    private static let longestTurn = 10.0
}
