import StrataLocks
import Synchronization

/// What a pool knows of the server that its connections lead to: its cluster, its timeline, its run and the end of its log.
///
/// Any thread may call any method.
final class KnownServer: Sendable {
    private struct Facts {
        /// The latest timeline of any connection; `nil` before the first connection.
        var timeline: Int64?
        /// The run of the server that the newest connection has reached; `nil` until a server has reported one.
        var run: ServerRun?
        /// The farthest end of the log that a connection has found, and when.
        var logEnd: LogEnd?
        /// The cluster of the first connection; `nil` until a server has reported one.
        var system: Int64?
    }

    private struct LogEnd {
        let timeline: Int64
        let position: Int64
        let found: ContinuousClock.Instant
    }

    private let facts = Locked(Facts())

    /// The timeline of the current primary, as far as that is known.
    var timeline: Int64? { facts.withLock { $0.timeline } }

    /// The number of the cluster, as far as that is known.
    var system: Int64? { facts.withLock { $0.system } }

    /// Whether a connection leads to the current primary, as far as that is known.
    func isCurrent(_ connection: Connection) -> Bool {
        connection.timeline == nil || connection.timeline == timeline
    }

    /// Notes the server of a connection that is new, or was taken over from another pool.
    ///
    /// - Returns: Whether another server has replaced the known one, or the known one may have lost changes.
    /// - Throws: ``PostgreSQLError`` if it is of another cluster, or if another server has replaced it.
    func note(_ connection: Connection) throws(PostgreSQLError) -> Bool {
        try requireSameCluster(connection.systemIdentifier)
        let isLater = try isLater(connection.timeline)
        let isOtherRun = noteRun(of: connection)
        let hasGoneBack = hasGoneBack(connection)
        return isLater || isOtherRun || hasGoneBack
    }

    /// Refuses a server of another cluster, which may have a copy of the store with the same UUID and other rows.
    private func requireSameCluster(_ new: Int64?) throws(PostgreSQLError) {
        guard let new else { return }
        let known = facts.withLock { facts in
            facts.system = facts.system ?? new
            return facts.system
        }
        if let known, known != new {
            throw PostgreSQLError(
                .connection,
                "the server is of another cluster than before: its system identifier is \(new), and was \(known). If that is meant, remove the store, and add it again"
            )
        }
    }

    /// Whether the timeline of a connection is later than those of earlier connections.
    ///
    /// - Throws: ``PostgreSQLError`` if it is earlier: another server has replaced this one, and changes that are
    ///   written here are lost.
    private func isLater(_ new: Int64?) throws(PostgreSQLError) -> Bool {
        guard let new else { return false }
        let known = facts.withLock { facts in
            defer { facts.timeline = max(new, facts.timeline ?? new) }
            return facts.timeline ?? new
        }
        if new < known {
            throw PostgreSQLError(
                .connection,
                "the server is one whose place another has taken: it is on timeline \(new), and \(known) was seen"
            )
        }
        return new > known
    }

    /// Notes the run that a connection has reached.
    ///
    /// No connection outlives a run. A server that was started again on the same timeline may have lost its last
    /// commits (`synchronous_commit=off`), or may have been put back from a copy.
    ///
    /// - Returns: Whether it is another run of the primary than that of the connection before.
    func noteRun(of connection: Connection) -> Bool {
        if FaultGuard.runCheck.isOff { return false }
        // Connections to replicas may lead to several servers.
        guard connection.timeline != nil, let new = connection.serverRun else { return false }
        let known = facts.withLock { facts in
            defer { facts.run = new.completed(by: facts.run) }
            return facts.run
        }
        return known.map { !$0.isSame(as: new) } ?? false
    }

    /// Whether the log of the server of a connection is shorter than it was for an earlier connection.
    ///
    /// That happens if a whole machine is set back while the server runs. Log that was found after the connection was opened is not compared, because
    /// connections that are opened side by side would make the log seem to have gone back. So not every such server is noticed.
    private func hasGoneBack(_ connection: Connection) -> Bool {
        guard let timeline = connection.timeline, let position = connection.logPosition else { return false }
        return facts.withLock { facts in
            let known = facts.logEnd
            let hasGoneBack =
                known.map { $0.found < connection.openedAt && $0.timeline == timeline && position < $0.position }
                ?? false
            if let known, !hasGoneBack, (known.timeline, known.position) >= (timeline, position) { return false }
            facts.logEnd = LogEnd(timeline: timeline, position: position, found: .now)
            return hasGoneBack
        }
    }
}
