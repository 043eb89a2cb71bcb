import Foundation
import StrataPostgreSQL

/// A separate connection with a transaction that stays at one moment, as long as it is held.
struct PinnedSnapshot: Sendable {
    let connection: Connection
    /// The connections to the same server.
    let pool: ConnectionPool
    /// The snapshot through which other connections see the same moment.
    ///
    /// It is `nil` if they might lead to another server, or if the server cannot export snapshots.
    let exported: PinnedSnapshotName?
    let age: PinnedVersionAge?

    /// Keeps the open transaction, in which a statement has already fixed the moment.
    ///
    /// - Parameters:
    ///   - connection: The connection that has the transaction.
    ///   - pool: The connections to the same server.
    ///   - limit: The number of seconds after which the version ends; `nil` for never.
    ///   - isShared: Whether other connections have to see the same moment.
    ///   - begun: The statement that was posted in the transaction before; its failure does not mean that the moment
    ///     cannot be shared. `nil` for none.
    /// - Throws: ``PostgreSQLError``; ``CannotBeShared`` if the server does not export the snapshot. The transaction
    ///   cannot be used after that.
    init(
        on connection: Connection,
        pool: ConnectionPool,
        for limit: Double?,
        isShared: Bool,
        begun: PostedStatement? = nil
    ) throws {
        self.connection = connection
        self.pool = pool
        // This comes before the server gets its limit, so that readers notice the end of the time no later than the
        // server does.
        age = limit.map(PinnedVersionAge.init)
        // The server's own limit is meant for transactions that write.
        let idle = PostgreSQLValue.text(String(age?.restInMilliseconds ?? 0))
        let isExported = isShared && !connection.isPooled
        let columns = isExported ? ", \(PinnedSnapshotName.columns)" : ""
        let asked = try connection.post("SELECT \(Self.idling)\(columns)", [idle])
        try connection.post("SAVEPOINT \(Self.savepoint)", isKept: false)
        do {
            let answer = try connection.answer(asked)
            exported = isExported && answer.rowCount == 1 ? PinnedSnapshotName(answer[0], from: 1) : nil
        } catch let error as PostgreSQLError where isExported && error.isUnavailable && begun?.isDone != false {
            throw CannotBeShared()
        }
    }

    /// The server has no exported snapshots, or does not let the role use them.
    struct CannotBeShared: Error {}

    /// The savepoint to return to if a read fails or is cancelled, so that the transaction does not end.
    ///
    /// One savepoint is enough for all reads.
    static let savepoint = "strata"

    private static let idling = "pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)"
}

/// The time for which a version may be held.
struct PinnedVersionAge: Sendable {
    /// The limit in seconds.
    let limit: Double
    private let end: ContinuousClock.Instant

    /// Begins the time now.
    init(limit: Double) {
        self.limit = limit
        // A year stands for "for ever", because the clock cannot add much larger numbers.
        end = .now + .seconds(min(limit, 31_536_000))
    }

    var isOver: Bool { ContinuousClock.now >= end }

    /// How long the server may wait for the next statement, in the unit of its settings.
    ///
    /// It is at least one, because zero means no limit there.
    var restInMilliseconds: Int { Int(max(1, min(((end - .now) / .milliseconds(1)).rounded(.up), 2e9))) }
}
