import Foundation
import StrataLocks
import Synchronization

/// The sessions that nobody uses: those of one pool, or of all pools that share a budget.
///
/// A session serves one pool at a time. If the URLs of two pools differ only in the schema, then each can take over a session of the other. A caller
/// that finds no session, and for which the server has no room, waits here in the order of asking: the next session that comes back goes to the first
/// caller that can use it.
final class IdleSessions: Sendable {
    private struct State {
        /// The session that came back last is the last one.
        var sessions: [Connection] = []
        var seekers: [SessionSeeker] = []
    }

    private let state = Locked(State())
    /// The queue on which sessions are closed that nobody has used for long, and connections that were lent end their transactions.
    ///
    /// This is not a shared queue, because work of the program could block that one and keep the transactions open.
    let queue = DispatchQueue(label: "strata.postgresql.returns", qos: .utility)
    /// Whether a check for sessions that were unused for long is scheduled.
    private let willRest = AtomicCell(false)

    /// Takes a session for a pool: the last one that has served the pool or its schema, or else the one that nobody has used for longest.
    ///
    /// - Parameters:
    ///   - pool: The pool.
    ///   - most: The most sessions that may stay idle if there is no session for the pool, so that a new one has room. Superfluous ones are closed.
    /// - Returns: The session, which may have served another pool; `nil` if there is none with equal settings.
    func take(for pool: ConnectionPool, leavingAtMost most: () -> Int) -> Connection? {
        let settings = pool.target.settings
        let (found, closed) = state.withLock { state in
            func place(where isFit: (Connection) -> Bool) -> Int? {
                state.sessions.lastIndex { $0.settings == settings && isFit($0) }
            }
            let place =
                place { $0.servedPool == pool.number } ?? place { $0.schema == pool.target.schema }
                ?? state.sessions.firstIndex { $0.settings == settings }
            if let place { return (state.sessions.remove(at: place) as Connection?, [Connection]()) }
            let count = max(state.sessions.count - max(most(), 0), 0)
            let closed = Array(state.sessions.prefix(count))
            state.sessions.removeFirst(count)
            return (nil, closed)
        }
        // Sessions are closed outside of the lock.
        withExtendedLifetime(closed) {}
        return found
    }

    /// Puts a session back, or gives it to a caller that waits for one.
    ///
    /// - Parameters:
    ///   - session: The session, which no transaction uses.
    ///   - most: The most sessions that are kept.
    ///   - rest: How many seconds unused sessions are kept, except for one.
    func put(_ session: Connection, most: Int, rest: Double) {
        session.restsSince = .now
        let (seeker, several) = state.withLock { state in
            if let index = state.seekers.firstIndex(where: { $0.settings == session.settings }) {
                return (state.seekers.remove(at: index) as SessionSeeker?, false)
            }
            if state.sessions.count < most { state.sessions.append(session) }
            return (nil, state.sessions.count > 1)
        }
        seeker?.take(session)
        if several { closeRestingLater(rest) }
    }

    /// Closes all sessions that fulfil a condition.
    func close(where isUnwanted: (Connection) -> Bool) {
        let closed = state.withLock { state in
            let closed = state.sessions.filter(isUnwanted)
            state.sessions.removeAll(where: isUnwanted)
            return closed
        }
        withExtendedLifetime(closed) {}
    }

    /// Closes the session that nobody has used for longest, so that the server has room for another.
    func closeOldest() {
        let closed = state.withLock { $0.sessions.isEmpty ? nil : $0.sessions.removeFirst() }
        withExtendedLifetime(closed) {}
    }

    /// The number of sessions that fulfil a condition.
    func count(where isCounted: (Connection) -> Bool) -> Int { state.withLock { $0.sessions.count(where: isCounted) } }

    /// Closes sessions that nobody has used for long, because the server may have room for few sessions only.
    private func closeRestingLater(_ rest: Double) {
        guard !willRest.load(ordering: .relaxed), !willRest.exchange(true, ordering: .acquiringAndReleasing) else {
            return
        }
        queue.asyncAfter(deadline: .now() + rest) { [weak self] in
            guard let self else { return }
            willRest.store(false, ordering: .releasing)
            let limit = ContinuousClock.now - .seconds(rest)
            let (closed, several) = state.withLock { state in
                let old = state.sessions.filter { $0.restsSince <= limit }
                let closed = old.prefix(max(state.sessions.count - 1, 0))
                state.sessions.removeAll { session in closed.contains { $0 === session } }
                return (Array(closed), state.sessions.count > 1)
            }
            withExtendedLifetime(closed) {}
            if several { closeRestingLater(rest) }
        }
    }

    // MARK: - Callers that wait

    /// Lets a caller wait for the next session that comes back; the caller has to leave with ``leave(_:)``.
    func enter(for pool: ConnectionPool) -> SessionSeeker {
        let seeker = SessionSeeker(pool.target.settings)
        state.withLock { $0.seekers.append(seeker) }
        return seeker
    }

    /// The number of callers that wait.
    var seekerCount: Int { state.withLock { $0.seekers.count } }

    /// Ends the wait of a caller.
    ///
    /// - Returns: The session that it was given and has not taken; `nil` if there is none.
    func leave(_ seeker: SessionSeeker) -> Connection? {
        let wasWaiting = state.withLock { state in
            let count = state.seekers.count
            state.seekers.removeAll { $0 === seeker }
            return state.seekers.count < count
        }
        // Otherwise a session is on its way to it.
        return wasWaiting ? nil : try? seeker.wait(seconds: 5)
    }
}

/// A caller that waits for a session, because the server has no room for another.
final class SessionSeeker: Sendable {
    let settings: ConnectionTarget.Settings
    private let signal = FairSemaphore(permits: 0)
    private let session = Locked<Connection?>(nil)

    fileprivate init(_ settings: ConnectionTarget.Settings) { self.settings = settings }

    fileprivate func take(_ new: Connection) {
        session.withLock { $0 = new }
        signal.release()
    }

    /// Waits for a session.
    ///
    /// - Parameters:
    ///   - seconds: The longest wait.
    ///   - cancellation: Ends the wait.
    /// - Returns: The session; `nil` if none has come in that time, or if the session was returned before.
    /// - Throws: ``PostgreSQLError``: `.cancelled`.
    func wait(seconds: Double, _ cancellation: Cancellation? = nil) throws(PostgreSQLError) -> Connection? {
        switch signal.acquire(timeout: seconds, cancellation: cancellation) {
        case .acquired: break
        case .timedOut: return nil
        case .cancelled: throw PostgreSQLError(.cancelled, "the request was cancelled")
        }
        return session.withLock { session in
            defer { session = nil }
            return session
        }
    }
}
