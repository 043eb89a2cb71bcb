import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import Synchronization

/// The servers that follow the primary, and answer reads which accept slightly old data.
///
/// A replica answers once it has replayed everything that this process has saved, or knows of. So deleted rows do not
/// return from a replica into cached data. One replica is used until it fails, because two of them need not agree about
/// the order of saves. Any thread may use it.
final class Replicas: Sendable {
    /// One server.
    private final class Member: Sendable {
        let pool: ConnectionPool
        /// The time until which the server is not asked, in seconds of the system's clock; and a hash of the metadata
        /// that it had last.
        let state = Locked((restsUntil: 0.0, metadata: String?.none))

        init(_ pool: ConnectionPool) { self.pool = pool }
    }

    /// The position that replicas have to reach.
    private struct Demand {
        /// The number of commits that this process knows of, and the number of those that `position` covers.
        ///
        /// Commits from before the store was opened count as one.
        var commits: UInt64 = 1
        var covered: UInt64 = 0
        /// The end of the primary's log when it was last asked.
        var position: Int64 = 0
    }

    private let members: [Member]
    private let primary: ConnectionPool
    /// How many seconds to wait for a replica.
    private let wait: Double
    private let demand = Locked(Demand())
    private let chosen: AtomicCell<Int>

    /// How many seconds a server that has failed is not asked again.
    private static let rest = 5.0
    /// How many seconds to wait for a server that does not accept a connection.
    private static let openingLimit = 5.0

    init(_ targets: [ConnectionTarget], of primary: ConnectionPool, _ request: PostgreSQLStoreRequest) {
        members = targets.map { target in
            Member(
                OpenPostgreSQLStore.pool(
                    target,
                    size: request.maximumConnections,
                    timeout: request.timeout,
                    openingTimeout: Self.openingLimit,
                    budget: request.serverConnections.map { ConnectionBudget.shared(for: target, most: $0) }
                )
            )
        }
        self.primary = primary
        wait = request.replicas.wait
        // The processes of a program are distributed over the replicas.
        chosen = AtomicCell(Int.random(in: 0..<max(targets.count, 1)))
    }

    func close() {
        for member in members { member.pool.close() }
    }

    /// Notes that something was committed, which later reads have to see.
    func countCommit() { demand.withLock { $0.commits += 1 } }

    /// Forgets the log position of a former primary.
    func forgetPosition() { demand.withLock { $0 = Demand(commits: $0.commits + 1) } }

    // MARK: - Reading

    /// Runs `body` in a transaction that sees one moment of a replica, and changes nothing.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - control: Stops the waits for a connection and for the replica to catch up.
    ///   - body: Reads.
    /// - Returns: The result of `body`; `nil` if no replica has answered, so that the primary has to.
    /// - Throws: The errors of `body`, except for those that the server has caused.
    func readFromReplica<R>(
        of database: OpenPostgreSQLStore,
        control: FetchControl?,
        _ body: (Connection) throws -> R
    ) throws -> R? {
        try onMember { member in
            try member.pool.withConnection(cancellation: control?.cancellation) { connection in
                guard try begin(with: member, in: database, on: connection, control: control) else { return nil }
                let result = try body(connection)
                try connection.command("COMMIT")
                return result
            }
        } unless: {
            control?.cancellation.isCancelled ?? false
        }
    }

    /// A connection to a replica, with a transaction that stays at one moment; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - limit: The number of seconds after which the transaction ends; `nil` for never.
    /// - Returns: The connection, and the snapshot for others.
    /// - Throws: Errors that the replicas have not caused.
    func heldSnapshot(_ database: OpenPostgreSQLStore, for limit: Double?) throws -> PinnedSnapshot? {
        try onMember { member in
            let connection = try member.pool.lend()
            guard try begin(with: member, in: database, on: connection, control: nil) else {
                member.pool.giveBackInBackground(connection)
                return nil
            }
            return try PinnedSnapshot(
                on: connection,
                pool: member.pool,
                for: limit,
                isShared: database.sharesVersions.load(ordering: .relaxed)
            )
        } unless: {
            false
        }
    }

    /// Runs `body` with the replica that is in use, or with the next one that does not fail.
    private func onMember<R>(_ body: (Member) throws -> R?, unless isGivenUp: () -> Bool) throws -> R? {
        let first = chosen.load(ordering: .relaxed)
        for offset in members.indices {
            let index = (first + offset) % members.count
            let member = members[index]
            guard member.state.withLock({ $0.restsUntil }) <= Self.now else { continue }
            do {
                guard let result = try body(member) else { continue }
                chosen.store(index, ordering: .relaxed)
                return result
            } catch let error as PostgreSQLError where !isGivenUp() {
                // The replica has cancelled the snapshot, or is gone. The next one, or the primary, answers instead.
                guard error.kind == .connection || error.kind == .deadline else { continue }
                member.pool.closeIdle()
                member.state.withLock { $0.restsUntil = Self.now + Self.rest }
            }
        }
        // The primary answers now, and the next replica has to show what it shows.
        countCommit()
        return nil
    }

    private static var now: Double { ProcessInfo.processInfo.systemUptime }

    // MARK: - How far a replica is

    /// Begins a transaction on a replica that has caught up.
    ///
    /// - Returns: Whether it has caught up, and is a replica of this store. If not, nothing is begun.
    private func begin(
        with member: Member,
        in database: OpenPostgreSQLStore,
        on connection: Connection,
        control: FetchControl?
    )
        throws -> Bool
    {
        // A server that is reachable answers this at once.
        let patience = connection.patience
        connection.patience = min(patience, Self.openingLimit)
        defer { connection.patience = patience }
        guard let position = try position(), try followsPrimary(connection),
            try waitFor(position, on: connection, control: control)
        else { return false }
        try StoreMetadata.beginReading(connection)
        // The check is part of the snapshot, so no other process can migrate the store between it and the reads.
        let found = try connection.query(
            "SELECT pg_catalog.md5(metadata), pg_catalog.pg_is_in_recovery() FROM strata_store"
        )
        guard found.rowCount == 1, found[0].int64(1) != 0 else {
            try connection.command("ROLLBACK")
            return false
        }
        let hash = found[0].string(0)
        if member.state.withLock({ $0.metadata }) == hash { return true }
        do {
            try database.requireSame(try StoreMetadata.read(connection, database.place))
        } catch is CocoaError {
            // The primary reports the state of the store.
            try connection.command("ROLLBACK")
            return false
        }
        member.state.withLock { $0.metadata = hash }
        return true
    }

    /// Whether a replica follows the current primary.
    ///
    /// After a promotion another replica may still follow the old primary. Its log has another timeline, so its
    /// positions mean nothing here. When a replica changes its primary, roles that may read the state of its receiver
    /// see that at once, and other roles see it at the next checkpoint. A replica of another cluster may follow a copy
    /// of the store.
    private func followsPrimary(_ connection: Connection) throws -> Bool {
        if let own = primary.systemIdentifier, let other = connection.systemIdentifier, own != other { return false }
        guard let timeline = primary.currentTimeline else { return true }
        if connection.followedTimeline == timeline { return true }
        let found = try connection.query(
            """
            SELECT GREATEST(c.timeline_id, (SELECT received_tli FROM pg_catalog.pg_stat_wal_receiver))::bigint
            FROM pg_catalog.pg_control_checkpoint() AS c
            """
        )
        guard found.firstInt64 == timeline else { return false }
        connection.followedTimeline = timeline
        return true
    }

    /// The position in the log that a replica must have reached; `nil` if the primary does not report it.
    private func position() throws -> Int64? {
        let (commits, covered, position) = demand.withLock { ($0.commits, $0.covered, $0.position) }
        guard commits != covered else { return position }
        let asked = try? primary.reading { connection in
            try connection.query(Self.endOfLog)
        }
        guard let asked, asked.rowCount == 1 else { return nil }
        let newest = Self.lastByte(asked[0].int64(0), segment: asked[0].int64(1), page: asked[0].int64(2))
        demand.withLock { demand in
            guard demand.covered < commits else { return }
            demand.covered = commits
            demand.position = newest
        }
        return newest
    }

    private static let endOfLog = """
        SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::bigint,
        pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')),
        pg_catalog.current_setting('wal_block_size')::bigint
        """

    /// The end of the data in the log, computed from the position of the next record.
    ///
    /// The next record comes after the header of its page. If the page contains nothing else, then a replica waits
    /// before the header until a record arrives.
    private static func lastByte(_ next: Int64, segment: Int64, page: Int64) -> Int64 {
        if next % segment == longHeader { return next - longHeader }
        return next % page == header ? next - header : next
    }

    /// The sizes in bytes of a page's header, and of the header of a segment's first page.
    private static let (header, longHeader): (Int64, Int64) = (24, 40)

    private func waitFor(_ position: Int64, on connection: Connection, control: FetchControl?) throws -> Bool {
        let end = ContinuousClock.now + .seconds(wait)
        var pause: UInt32 = 500
        while control?.cancellation.isCancelled != true {
            let state = try connection.query(
                """
                SELECT pg_catalog.pg_is_in_recovery(),
                COALESCE(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0') >= $1, false)
                """,
                [.int8(position)]
            )
            // A promoted server is independent of the old primary.
            guard state[0].int64(0) != 0 else { throw PostgreSQLError(.connection, "the server is no replica") }
            if FaultGuard.replicaWait.isOff { return true }
            if state[0].int64(1) != 0 { return true }
            guard ContinuousClock.now < end else { return false }
            usleep(pause)
            pause = min(pause * 2, 20_000)
        }
        return false
    }
}
