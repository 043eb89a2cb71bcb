import Foundation
import StrataPostgreSQL

/// A connection of its own with a transaction that stays at one moment, for as long as it is held.
struct HeldSnapshot: Sendable {
    let connection: Connection
    /// What leads to the same server.
    let pool: ConnectionPool
    /// What lets other connections see the same moment; `nil` where nobody knows which server they would lead to, or the server
    /// cannot.
    let exported: ExportedSnapshot?
    let age: VersionAge?

    /// Keeps the transaction that is open, in which a statement has seen its moment already.
    ///
    /// - Parameters:
    ///   - connection: What has the transaction.
    ///   - pool: What leads to the same server.
    ///   - limit: After how many seconds it is given up; `nil` for never.
    ///   - isShared: Whether other connections shall see the same moment.
    ///   - begun: What was posted in the transaction before; that this fails does not mean that nothing can be shared. `nil` for nothing.
    /// - Throws: ``PostgreSQLError``; ``CannotBeShared`` if the server lets nobody share it, after which the transaction is of no use.
    init(
        _ connection: Connection,
        _ pool: ConnectionPool,
        for limit: Double?,
        isShared: Bool,
        _ begun: PostedStatement? = nil
    ) throws {
        self.connection = connection
        self.pool = pool
        // Before the server is told, so that whoever reads knows no later than the server that the time is over.
        age = limit.map(VersionAge.init)
        // The server's own limit is meant for transactions that write.
        let idle = PostgreSQLValue.text(String(age?.restInMilliseconds ?? 0))
        let isExported = isShared && !connection.isPooled
        let columns = isExported ? ", \(ExportedSnapshot.columns)" : ""
        let asked = try connection.post("SELECT \(Self.idling)\(columns)", [idle])
        try connection.post("SAVEPOINT \(Self.savepoint)", isKept: false)
        do {
            let told = try connection.answer(asked)
            exported = isExported && told.rowCount == 1 ? ExportedSnapshot(told[0], from: 1) : nil
        } catch let error as PostgreSQLError where isExported && error.isUnavailable && begun?.isDone != false {
            throw CannotBeShared()
        }
    }

    /// The server has no exported snapshots, or does not let the role use them.
    struct CannotBeShared: Error {}

    /// What to go back to if a read fails or is cancelled, which must not end the transaction.
    ///
    /// One is enough for all reads.
    static let savepoint = "strata"

    private static let idling = "pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)"
}

/// For how long a version may be held.
struct VersionAge: Sendable {
    /// In seconds.
    let limit: Double
    private let end: ContinuousClock.Instant

    /// Begins now.
    init(limit: Double) {
        self.limit = limit
        // A year stands for "for ever", as more cannot be added.
        end = .now + .seconds(min(limit, 31_536_000))
    }

    var isOver: Bool { ContinuousClock.now >= end }

    /// How long the server may wait for the next statement, in its settings' unit: at least one, as nothing means no limit there.
    var restInMilliseconds: Int { Int(max(1, min(((end - .now) / .milliseconds(1)).rounded(.up), 2e9))) }
}
