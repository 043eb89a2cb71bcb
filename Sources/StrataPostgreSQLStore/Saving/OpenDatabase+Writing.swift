import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The outcome of a transaction before it commits.
enum TransactionEnd<Answer, Result> {
    /// Nothing may be written.
    case refused(Answer)
    /// Everything is written; `isRecorded` says whether the history has the transaction's identifier.
    case written(Answer, Result, isRecorded: Bool, witness: WrittenRow?)
}

/// One of several attempts to carry out a transaction.
struct TransactionAttempt {
    /// The number of the attempt; the first one is 1.
    fileprivate(set) var number = 0
    /// Whether another process was found to have a key of a new row, so that all new rows need other keys.
    fileprivate(set) var needsKeys = false

    /// The most attempts of a transaction that the server has ended in favour of others.
    private static let most = 10
    /// The most attempts of a transaction whose prepared statements the server does not know any more.
    private static let mostIfStale = 2

    /// Whether another attempt may succeed after this one has failed.
    fileprivate func maySucceed(after error: PostgreSQLError, isKeyTaken: Bool) -> Bool {
        // Keys that the caller has given stay as they are.
        if isKeyTaken, needsKeys { return false }
        return number < (error.isStale ? Self.mostIfStale : Self.most)
    }
}

extension OpenDatabase {
    /// Runs `body` with a connection that writes.
    ///
    /// If its transaction is certainly lost, then it runs once more, with another connection.
    ///
    /// A transaction is certainly lost if the connection broke before COMMIT was sent, or if the server knows that
    /// COMMIT did not arrive.
    ///
    /// - Parameters:
    ///   - requireWritable: Refuses a store that may not be written any more; called when there is a connection.
    ///   - body: Writes.
    /// - Returns: The result of `body`.
    /// - Throws: The errors of both functions; ``PostgreSQLError``.
    func writing<R>(_ requireWritable: () throws -> Void, _ body: (Connection) throws -> R) throws -> R {
        // 25006: the server is a replica now.
        let isLost = { (error: PostgreSQLError) in
            error.kind == .connection || error.kind == .rolledBack || error.sqlState == "25006"
        }
        return try pool.withConnection(repeatedIf: isLost) { connection in
            connection.reportWait()
            try requireWritable()
            try requireSame(connection)
            return try body(connection)
        }
    }

    /// The keys of new rows: their own, or new ones for temporary keys.
    func keys(for rows: [Row], _ connection: Connection) throws -> [Int64] {
        var result = rows.map(\.key)
        // The positions of new rows by the number of their root entity; rows usually come in runs of one hierarchy.
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
                throw CocoaError.described(
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

    /// The statement at the beginning of a transaction, which reads its number and that of the server's process.
    private enum Beginning {
        private static let plain = "SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.pg_backend_pid()"

        /// Settings for one transaction, all of whose rows are found by indexes.
        ///
        /// The server makes one plan of a statement for any number of keys, and keeps it. By default it may make the
        /// plan while the table is small: such a plan reads the whole table, and compares each row with each key. It
        /// would also plan anew for each save of a few rows, because it expects ten keys. It considers queries without
        /// an index so costly that it would compile them to machine code first.
        private static let lookUps =
            [("enable_seqscan", "off"), ("plan_cache_mode", "force_generic_plan"), ("jit", "off")]
            .map { ", pg_catalog.set_config('\($0)', '\($1)', true)" }.joined()

        /// Whether another process has begun a history since the store was opened.
        private static let history = ", EXISTS (SELECT FROM strata_history)"

        private static let unrecorded = plain + history
        private static let recordedLookUps = plain + lookUps
        private static let unrecordedLookUps = plain + lookUps + history

        static func statement(looksUpKeys: Bool, recordsHistory: Bool) -> String {
            if recordsHistory { return looksUpKeys ? recordedLookUps : plain }
            return looksUpKeys ? unrecordedLookUps : unrecorded
        }
    }

    /// Runs a transaction, again if the server has ended it in favour of others, and finds out the result of a commit
    /// without an answer.
    ///
    /// No attempt begins after the time-out of the store has passed since the first one began.
    ///
    /// - Parameters:
    ///   - connection: The connection that writes.
    ///   - identifier: The identifier of the transaction in the history.
    ///   - looksUpKeys: Whether indexes find all rows of the transaction.
    ///   - isLarge: Whether the first statements of `body` take longer to make than the server takes to wake up.
    ///   - body: Writes everything.
    ///   - commit: Called with a function that commits; may write more before.
    ///   - didCommit: Called once the transaction is durable.
    /// - Returns: The answer of `body`.
    /// - Throws: ``SaveInDoubt`` if it cannot be found out whether it was committed.
    func transaction<Answer, Result>(
        _ connection: Connection,
        _ identifier: UUID,
        looksUpKeys: Bool,
        isLarge: Bool,
        _ body: (Connection, TransactionAttempt) throws -> TransactionEnd<Answer, Result>,
        commit: (() throws -> Void) throws -> Void,
        didCommit: (Result) -> Void
    ) throws -> Answer {
        let end = ContinuousClock.now + .seconds(pool.timeout)
        var attempt = TransactionAttempt()
        while true {
            attempt.number += 1
            let recordsHistory = recordsHistory
            do {
                try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED")
                let begun = try connection.post(
                    Beginning.statement(looksUpKeys: looksUpKeys, recordsHistory: recordsHistory)
                )
                // The server wakes up, and begins, while `body` makes its first statements.
                if isLarge { try connection.sendPosted() }
                switch try body(connection, attempt) {
                case .refused(let answer):
                    try connection.rollback()
                    return answer
                case .written(let answer, let result, let isRecorded, let witness):
                    // This number is needed if the connection breaks, so it is read before COMMIT is sent.
                    let begun = try connection.answer(begun)
                    if !recordsHistory, begun.rowCount > 0, begun[0].int64(begun.columnCount - 1) != 0 {
                        recordHistory()
                        try connection.rollback()
                        continue
                    }
                    let mark = CommitMark(begun, connection, identifier, isRecorded: isRecorded, witness)
                    try commit {
                        do {
                            try connection.cut(at: .commitSending)
                            try connection.commit()
                            try connection.cut(at: .commitAnswered)
                        } catch let error as PostgreSQLError
                            where [.connection, .deadline, .cancelled].contains(error.kind) || error.leavesDoubt
                        {
                            do {
                                try mark.settle(self, error)
                            } catch var doubt as SaveInDoubt {
                                // The context needs the result when it asks later.
                                if let result = result as? StoreSaveResult { doubt.result = result }
                                throw doubt
                            }
                        }
                    }
                    noteCommit()
                    didCommit(result)
                    return answer
                }
            } catch let error as PostgreSQLError where error.mayBeMadeAgain {
                // The transaction is certainly lost. If another context has taken a unique value meanwhile, then the
                // next attempt finds that.
                let isKeyTaken = isKeyTaken(error)
                guard attempt.maySucceed(after: error, isKeyTaken: isKeyTaken), .now < end, !connection.isBroken else {
                    throw error.told
                }
                try connection.rollback()
                if error.isStale { connection.forgetPrepared() }
                if isKeyTaken { keys.forget() }
                attempt.needsKeys = isKeyTaken
                usleep(UInt32.random(in: 0..<UInt32(1000 << min(attempt.number, 6))))
            }
        }
    }
}

extension OpenDatabase {
    /// Whether a new row was refused because another row has its key.
    ///
    /// A crash, or a failover, can set a sequence back, so that it gives a block to two processes.
    private func isKeyTaken(_ error: PostgreSQLError) -> Bool {
        guard error.isUniqueViolation, let constraint = error.constraint, let table = error.table else { return false }
        return PostgreSQLSchema.isPrimaryKey(constraint) && mapping.tables.contains { $0.name.raw == table }
    }
}

extension PostgreSQLError {
    /// Whether the transaction is certainly lost, and another attempt may succeed.
    fileprivate var mayBeMadeAgain: Bool {
        isTransient || isUniqueViolation || isStale || hasFewerRows
    }

    /// Whether fewer rows were updated than were locked, which the statement of ``WriteShape`` reports.
    private var hasFewerRows: Bool { sqlState == "22012" }

    /// The error with a message that explains it.
    fileprivate var told: PostgreSQLError {
        guard hasFewerRows else { return self }
        return PostgreSQLError(
            .server,
            sqlState: sqlState,
            "rows that are locked were not updated; a trigger or a rule of the database may keep them from it"
        )
    }
}
