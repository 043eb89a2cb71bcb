import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

#if FaultPoints
import StrataLocks
#endif

/// What a transaction has come to before it commits.
enum TransactionEnd<Answer, Result> {
    /// Nothing may be written.
    case refused(Answer)
    /// Everything is written; `isRecorded` says whether the history has the transaction's identifier.
    case written(Answer, Result, isRecorded: Bool, witness: WrittenRow?)
}

/// A row that a transaction has written, which tells afterwards whether it was committed.
struct WrittenRow {
    let table: SQLName
    let keyColumn: SQLName
    let key: Int64
}

extension OpenDatabase {
    /// How often a transaction is made again that the server has ended for the sake of others.
    private static let mostAttempts = 10

    /// Runs `body` with a connection that writes, once more with another one if its transaction is gone for certain: the connection was lost
    /// before COMMIT was sent, or the server knows that it did not come.
    ///
    /// - Parameters:
    ///   - requireWritable: Refuses a store that may not be written any more, by the time that there is a connection.
    ///   - body: Writes.
    /// - Returns: What `body` returns.
    /// - Throws: What both of them throw; ``PostgreSQLError``.
    func writing<R>(_ requireWritable: () throws -> Void, _ body: (Connection) throws -> R) throws -> R {
        do {
            return try writingOnce(requireWritable, body)
        } catch let error as PostgreSQLError
            where error.kind == .connection || error.sqlState == "40003" || error.sqlState == "25006"
        {
            // 25006: the server is a replica now.
            pool.closeIdle()
            return try writingOnce(requireWritable, body)
        }
    }

    private func writingOnce<R>(_ requireWritable: () throws -> Void, _ body: (Connection) throws -> R) throws -> R {
        try pool.withConnection { connection in
            connection.tellWait()
            try requireWritable()
            try requireSame(connection)
            return try body(connection)
        }
    }

    /// The keys of new rows: those that they have, or new ones.
    func keys(for rows: [Row], _ connection: Connection) throws -> [Int64] {
        var result = rows.map(\.key)
        // The positions of new rows by the number of their root entity; rows mostly come in runs of one hierarchy.
        var positions: [(root: Int, new: [Int])] = []
        var current = 0
        for (position, row) in rows.enumerated() where row.key < 0 {
            let root = row.layout.rootNumber
            if positions.isEmpty || positions[current].root != root {
                if let known = positions.firstIndex(where: { $0.root == root }) {
                    current = known
                } else {
                    current = positions.count
                    positions.append((root, []))
                }
            }
            positions[current].new.append(position)
        }
        for (root, new) in positions {
            var unused = new[...]
            for range in try keys.reserve(new.count, root: root, connection) {
                for (key, position) in zip(range, unused) { result[position] = key }
                unused = unused.dropFirst(range.count)
            }
            if let position = unused.first {
                throw CocoaError(
                    .persistentStoreSave,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            "The store \(place) does not hold entity \(rows[position].layout.name)."
                    ]
                )
            }
        }
        return result
    }

    /// What tells a transaction's number, and the server's process, as it begins.
    private enum Beginning {
        private static let plain = "SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.pg_backend_pid()"

        /// Settings for one transaction, all of whose rows are found by indexes.
        ///
        /// The server makes one plan of a statement for any number of keys, and keeps it. Left to itself it may make it while the table is
        /// small: a plan that goes through the whole table, and compares each row with each key. It would also plan anew for each save of a
        /// few rows, as it expects ten keys. What it has no index for it takes for so costly that it would compile it to machine code first.
        private static let lookUps =
            [("enable_seqscan", "off"), ("plan_cache_mode", "force_generic_plan"), ("jit", "off")]
            .map { ", pg_catalog.set_config('\($0)', '\($1)', true)" }.joined()

        /// Whether somebody has begun a history since the store was opened.
        private static let history = ", EXISTS (SELECT FROM strata_history)"

        private static let unrecorded = plain + history
        private static let recordedLookUps = plain + lookUps
        private static let unrecordedLookUps = plain + lookUps + history

        static func statement(looksUpKeys: Bool, recordsHistory: Bool) -> String {
            if recordsHistory { return looksUpKeys ? recordedLookUps : plain }
            return looksUpKeys ? unrecordedLookUps : unrecorded
        }
    }

    /// Carries out a transaction, again if the server has ended it for the sake of others, and finds out how a commit has ended that
    /// nobody has answered.
    ///
    /// - Parameters:
    ///   - connection: What writes.
    ///   - identifier: What the history knows the transaction by.
    ///   - looksUpKeys: Whether all that the transaction asks for is found by indexes.
    ///   - isLarge: Whether the first statements of `body` take longer to make than the server takes to wake up.
    ///   - body: Writes everything.
    ///   - commit: Called with what commits; may write more before.
    ///   - didCommit: Called once the transaction is durable.
    /// - Returns: The answer of `body`.
    /// - Throws: ``SaveInDoubt`` if nobody can tell whether it was committed.
    func transaction<Answer, Result>(
        _ connection: Connection,
        _ identifier: UUID,
        looksUpKeys: Bool,
        isLarge: Bool,
        _ body: (Connection) throws -> TransactionEnd<Answer, Result>,
        commit: (() throws -> Void) throws -> Void,
        didCommit: (Result) -> Void
    ) throws -> Answer {
        var attempt = 0
        while true {
            attempt += 1
            let recordsHistory = recordsHistory
            do {
                try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED")
                let begun = try connection.post(
                    Beginning.statement(looksUpKeys: looksUpKeys, recordsHistory: recordsHistory)
                )
                // The server wakes up, and begins, while the body makes its first statements.
                if isLarge { try connection.sendPosted() }
                switch try body(connection) {
                case .refused(let answer):
                    try connection.rollback()
                    return answer
                case .written(let answer, let result, let isRecorded, let witness):
                    // Before COMMIT is sent one has to know what to ask for if the connection breaks.
                    let begun = try connection.answer(begun)
                    if !recordsHistory, begun.rowCount > 0, begun[0].int64(begun.columnCount - 1) != 0 {
                        recordHistory()
                        try connection.rollback()
                        continue
                    }
                    let mark = CommitMark(begun, connection, identifier, isRecorded: isRecorded, witness)
                    try commit {
                        do {
                            #if FaultPoints
                            try connection.cut(at: .commitSending)
                            #endif
                            try connection.commit()
                            #if FaultPoints
                            try connection.cut(at: .commitAnswered)
                            #endif
                        } catch let error as PostgreSQLError
                            where [.connection, .deadline, .cancelled].contains(error.kind)
                        {
                            try mark.settle(self, error)
                        }
                    }
                    noteCommit()
                    didCommit(result)
                    return answer
                }
            } catch let error as PostgreSQLError where error.mayBeMadeAgain {
                // Gone for certain. A unique value that somebody else has taken meanwhile is found at the next look.
                guard attempt < (error.isStale ? 2 : Self.mostAttempts), !connection.isBroken else { throw error.told }
                try connection.rollback()
                if error.isStale { connection.forgetPrepared() }
                usleep(UInt32.random(in: 0..<UInt32(1000 << min(attempt, 6))))
            }
        }
    }
}

extension PostgreSQLError {
    /// Whether the transaction is gone for certain, and may find things otherwise when it is made once more.
    fileprivate var mayBeMadeAgain: Bool {
        isTransient || isUniqueViolation || isStale || hasFewerRows
    }

    /// Whether fewer rows were updated than were locked, as ``WriteShape`` tells it.
    private var hasFewerRows: Bool { sqlState == "22012" }

    /// The error in words that say what it means.
    fileprivate var told: PostgreSQLError {
        guard hasFewerRows else { return self }
        return PostgreSQLError(
            .server,
            sqlState: sqlState,
            "rows that are locked were not updated; a trigger or a rule of the database may keep them from it"
        )
    }
}

/// What tells afterwards whether a transaction was committed.
struct CommitMark {
    private let session: LostSession
    private let timeline: Int64?
    private let identifier: UUID
    private let isRecorded: Bool
    private let serverRun: ServerRun?
    private let witness: WrittenRow?

    /// - Parameters:
    ///   - begun: The number of the transaction, and of the server's process, as they were told when it began.
    ///   - connection: What writes.
    ///   - identifier: What the history knows the transaction by.
    ///   - isRecorded: Whether it does.
    ///   - witness: A row that it has written; `nil` if it has only deleted, or is a batch.
    init(
        _ begun: QueryResult,
        _ connection: Connection,
        _ identifier: UUID,
        isRecorded: Bool,
        _ witness: WrittenRow?
    ) {
        self.isRecorded = isRecorded
        self.witness = witness
        serverRun = connection.serverRun
        session = LostSession(
            process: begun.rowCount > 0 ? begun[0].int64(1) : 0,
            transaction: begun.rowCount > 0 ? begun[0].string(0) : ""
        )
        timeline = connection.timeline
        self.identifier = identifier
    }

    /// Finds out how the commit has ended, by another connection.
    ///
    /// - Throws: An error if nothing was committed: with the code 40003 for a connection that was lost, or the error itself if the server was
    ///   waited for in vain; ``SaveInDoubt`` if nobody can tell.
    func settle(_ database: OpenDatabase, _ error: PostgreSQLError) throws {
        #if FaultPoints
        if FaultGuard.doubtResolution.isOff {
            throw PostgreSQLError(.server, sqlState: "40003", "the transaction is taken for rolled back")
        }
        #endif
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
            // Made once more it would wait as long.
            if error.kind == .deadline, case .ended(waitedForLock: true)? = ending { throw error }
            throw PostgreSQLError(.server, sqlState: "40003", "the transaction was rolled back: \(error.message)")
        }
        throw SaveInDoubt(identifier: identifier, reason: last)
    }

    /// Asks whether the transaction was committed.
    ///
    /// - Parameters:
    ///   - database: The store.
    ///   - ending: How the session was ended; stays `nil` if that was not needed.
    /// - Returns: `nil` as long as the server has not ended it.
    /// - Throws: ``PostgreSQLError`` if the server does not answer, or cannot tell.
    private func ask(_ database: OpenDatabase, _ ending: inout LostSession.State?) throws -> Bool? {
        let connection = try database.pool.open(timeout: 5)
        let isCommitted = try look(database, connection, &ending)
        // It may have begun to wait for a standby just then.
        if isCommitted == true, ending != nil, try LostSession.mayWaitForStandby(connection) {
            throw LostSession.unconfirmed
        }
        return isCommitted
    }

    private func look(_ database: OpenDatabase, _ connection: Connection, _ ending: inout LostSession.State?) throws
        -> Bool?
    {
        // Another server has given the transaction's number to somebody else, or will.
        let isSameServer = connection.timeline == timeline
        let status = isSameServer ? try status(connection) : nil
        let isSameRun = serverRun.map { connection.serverRun?.isSame(as: $0) ?? false } ?? false
        if isSameServer, isSameRun, status == "committed" { return true }
        if isRecorded, status != "in progress" {
            // The proof that holds after a failover as well: another server gives the numbers of transactions to others.
            let found = try connection.query("SELECT 1 FROM strata_transaction WHERE id = $1", [.uuid(identifier)])
            return found.rowCount > 0
        }
        guard isSameServer else {
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
        // The server was started again, and has lost the transaction with its last moments.
        case Self.yetToCome?: return false
        default: throw PostgreSQLError(.server, "the server does not know the transaction any more")
        }
    }

    /// Whether a transaction was committed whose number was, by a server that may have crashed since.
    ///
    /// A transaction whose commit did not reach the disk is gone, and its number may be somebody else's by now. So the number proves nothing,
    /// only a row that has it.
    private func isWitnessed(_ connection: Connection) throws -> Bool {
        if let witness {
            let found = try connection.query(
                "SELECT xmin::text FROM \(witness.table) WHERE \(witness.keyColumn) = $1",
                [.int8(witness.key)]
            )
            let low = Int64(session.transaction).map { String($0 & 0xFFFF_FFFF) }
            if found.rowCount == 1, found[0].optionalString(0) == low { return true }
        }
        throw PostgreSQLError(
            .server,
            "the server was started again, and has given the number of the transaction to another"
        )
    }

    /// What stands for the status of a transaction whose number the server has not given yet.
    private static let yetToCome = "yet to come"

    /// What the server says of the transaction; `nil` if it has forgotten it.
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
