import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Finds out afterwards whether a transaction was committed.
struct CommitMark {
    private let session: LostSession
    private let timeline: Int64?
    private let identifier: UUID
    private let isRecorded: Bool
    private let serverRun: ServerRun?
    private let witness: WrittenRow?
    /// The proof of a portable store, which needs no other; `nil` for other stores.
    private let receipt: CommitReceipt?

    /// Notes what is known before the commit.
    ///
    /// - Parameters:
    ///   - begun: The number of the transaction, and of the server's process, as the server reported them at the
    ///     beginning; `nil` for a portable store.
    ///   - connection: The connection that writes.
    ///   - identifier: The identifier of the transaction in the history.
    ///   - isRecorded: Whether the history contains it.
    ///   - witness: A row that it has written; `nil` if there is none, as for a batch.
    ///   - receipt: The receipt that it has written; `nil` if the store is not portable.
    init(
        begun: QueryResult?,
        on connection: Connection,
        identifier: UUID,
        isRecorded: Bool,
        witness: WrittenRow?,
        receipt: CommitReceipt? = nil
    ) {
        self.isRecorded = isRecorded
        self.receipt = receipt
        self.witness = witness
        serverRun = connection.serverRun
        session = LostSession(
            process: begun.flatMap { $0.rowCount > 0 ? $0[0].int64(1) : nil } ?? 0,
            transaction: begun.flatMap { $0.rowCount > 0 ? $0[0].string(0) : nil } ?? ""
        )
        timeline = connection.timeline
        self.identifier = identifier
    }

    /// Finds out how the commit has ended, through another connection.
    ///
    /// - Throws: An error if nothing was committed: one of the kind `rolledBack`, or the error itself if the
    ///   transaction has waited for a lock for too long. ``SaveInDoubt`` if the result cannot be found out.
    func resolve(in database: OpenPostgreSQLStore, after error: PostgreSQLError) throws {
        if FaultGuard.doubtResolution.isOff {
            throw PostgreSQLError(.rolledBack, "the transaction is taken for rolled back")
        }
        do { try FaultPoint.commitAsking.reach() } catch {
            throw SaveInDoubt(identifier: identifier, reason: error) { try isCommitted(database, error) }
        }
        let end = ContinuousClock.now + .seconds(max(min(database.pool.timeout, 30), 5))
        var last: any Error = error
        var ending: LostSession.State?
        while ContinuousClock.now < end {
            let isCommitted: Bool?
            do {
                isCommitted = try ask(database, &ending)
            } catch let other as PostgreSQLError {
                last = other
                usleep(100_000)
                continue
            }
            guard let isCommitted else {
                usleep(50_000)
                continue
            }
            if isCommitted { return }
            // Another attempt would wait as long.
            if error.kind == .deadline, case .ended(waitedForLock: true)? = ending { throw error }
            throw PostgreSQLError(.rolledBack, "the transaction was rolled back: \(error.message)")
        }
        throw SaveInDoubt(identifier: identifier, reason: last) { [last] in try isCommitted(database, last) }
    }

    /// Asks again, for as long as ``resolve(in:after:)`` does.
    ///
    /// - Throws: ``SaveInDoubt`` if the result cannot be found out.
    private func isCommitted(_ database: OpenPostgreSQLStore, _ reason: any Error) throws -> Bool {
        do {
            try resolve(
                in: database,
                after: reason as? PostgreSQLError ?? PostgreSQLError(.connection, "the connection was lost")
            )
        } catch is PostgreSQLError {
            return false
        }
        database.countCommit()
        return true
    }

    /// Asks whether the transaction was committed.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - ending: How the session was ended; stays `nil` if that was not needed.
    /// - Returns: Whether it was committed; `nil` as long as the server has not ended it.
    /// - Throws: ``PostgreSQLError`` if the server does not answer, or does not know the result.
    private func ask(_ database: OpenPostgreSQLStore, _ ending: inout LostSession.State?) throws -> Bool? {
        let connection = try database.pool.open(timeout: 5)
        if let receipt { return try receipt.isCommitted(connection) }
        let isCommitted = try outcome(in: database, askedOn: connection, ending: &ending)
        // The session may have begun to wait for a standby just then.
        if isCommitted == true, ending != nil, try LostSession.mayWaitForStandby(connection) {
            throw LostSession.unconfirmed
        }
        return isCommitted
    }

    private func outcome(
        in database: OpenPostgreSQLStore,
        askedOn connection: Connection,
        ending: inout LostSession.State?
    ) throws
        -> Bool?
    {
        // Another server has given the transaction's number to another transaction, or will do so.
        let isSameServer = connection.timeline == timeline
        let status = isSameServer ? try status(connection) : nil
        let isSameRun = serverRun.map { connection.serverRun?.isSame(as: $0) ?? false } ?? false
        if isSameServer, isSameRun, status == "committed" { return true }
        if isRecorded, status != "in progress" {
            // This proof holds after a failover too, when another server gives the numbers of transactions to others.
            let found = try connection.query(
                "SELECT EXISTS (SELECT FROM strata_transaction WHERE id = $1), pg_catalog.pg_is_in_recovery()",
                [.uuid(identifier)]
            )
            if found[0].int64(0) != 0 { return true }
            // A replica may not have the transaction yet, and may be promoted once it has.
            guard found[0].int64(1) == 0 else {
                throw PostgreSQLError(
                    .server,
                    "the server only follows another one, and has not heard of the transaction"
                )
            }
            return false
        }
        guard isSameServer else {
            // Other transactions may have changed the row by now.
            if let answer = try witness?.showsCommit(on: connection, isLost: true) { return answer }
            throw PostgreSQLError(.server, "another server has taken the place of the one that has the answer")
        }
        switch status {
        case "committed"?: return try isWitnessed(connection)
        case "aborted"?: return false
        case "in progress"?:
            switch try session.end(connection) {
            case .gone: break
            case .waitsForStandby: throw LostSession.unconfirmed
            case let ended: ending = ended
            }
            return nil
        // The server was restarted, and has lost the transaction together with its last changes.
        case Self.yetToCome?: return false
        default: throw PostgreSQLError(.server, "the server does not know the transaction any more")
        }
    }

    /// Whether the transaction was committed, when a server that may have crashed since reports a committed one with
    /// its number.
    ///
    /// If a commit did not reach the disk, then the transaction is lost, and another one may have its number by now. So
    /// the number proves nothing. Only a row with the version that the transaction has written proves the commit.
    private func isWitnessed(_ connection: Connection) throws -> Bool {
        if try witness?.showsCommit(on: connection, isLost: false) == true { return true }
        throw PostgreSQLError(
            .server,
            "the server was started again, and has given the number of the transaction to another"
        )
    }

    /// The status of a transaction whose number the server has not given yet.
    private static let yetToCome = "yet to come"

    /// The status of the transaction on the server; `nil` if the server has forgotten it.
    private func status(_ connection: Connection) throws -> String? {
        do {
            let result = try connection.query(
                "SELECT pg_catalog.pg_xact_status($1::text::xid8)",
                [.text(session.transaction)]
            )
            return result.rowCount > 0 ? result[0].optionalString(0) : nil
        } catch let error as PostgreSQLError where error.sqlState == "22023" {
            return Self.yetToCome
        }
    }
}

/// A row that a transaction has written, which shows afterwards whether the transaction was committed.
struct WrittenRow {
    /// The change that the transaction has made to the row.
    enum Deed { case inserted, updated, deleted }

    let table: SQLName
    let naming: SQLNaming
    let key: Int64
    let deed: Deed
    /// The version that the transaction has written; for a deletion, the version before it.
    let version: Int64

    /// Whether the row shows that its transaction was committed; `nil` if it shows nothing.
    ///
    /// - Parameters:
    ///   - connection: A connection to the server.
    ///   - isLost: Whether earlier transactions cannot be running on the server any more, so that missing changes were
    ///     lost.
    /// - Returns: Whether it was committed.
    /// - Throws: ``PostgreSQLError`` if the server is a replica, and may not have the row yet.
    func showsCommit(on connection: Connection, isLost: Bool) throws -> Bool? {
        let found = try connection.query(
            """
            SELECT (SELECT t.\(naming.version) FROM \(table) AS t WHERE t.\(naming.key) = $1), pg_catalog.pg_is_in_recovery()
            """,
            [.int8(key)]
        )
        guard found.rowCount == 1 else { return nil }
        let current = found[0].optionalInt64(0)
        if deed != .deleted, current == version { return true }
        guard found[0].int64(1) == 0 else {
            throw PostgreSQLError(.server, "the server only follows another one, and has not heard of the transaction")
        }
        guard isLost else { return nil }
        switch (deed, current) {
        // No other row had the key before. Others may have changed this row since.
        case (.inserted, let current): return current != nil
        // Versions only grow.
        case (.updated, let current?) where current >> RowVersion.markBits <= version >> RowVersion.markBits:
            return false
        case (.deleted, _?): return false
        default: return nil
        }
    }
}
