import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows

/// Work that a transaction carries out, from the beginning again if the transaction is lost.
protocol RepeatableWork {
    /// The answer that the caller gets.
    associatedtype Answer
    /// The result that is reported once the transaction is durable.
    associatedtype Result

    /// The settings under which the server plans the statements.
    var plans: PlanSettings { get }
    /// Whether the first statements take longer to make than the server takes to wake up.
    var isLarge: Bool { get }
    /// Whether the transaction also writes metadata that was set since the last save.
    var writesMetadata: Bool { get }

    /// Reads what all attempts on one connection need; no transaction has begun yet.
    mutating func prepare(_ database: OpenPostgreSQLStore, on connection: Connection) throws

    /// Carries out the work once, in the transaction that has begun.
    mutating func run(
        _ attempt: TransactionAttempt,
        in database: OpenPostgreSQLStore,
        on connection: Connection,
        identifier: UUID
    ) throws -> TransactionEnd<Answer, Result>
}

/// The outcome of a transaction before it commits.
enum TransactionEnd<Answer, Result> {
    /// Nothing may be written.
    case refused(Answer)
    /// Everything is written.
    ///
    /// `isRecorded` says whether the history has the transaction's identifier. `witness` is a row that the transaction
    /// has written. It shows afterwards whether the transaction was committed. It is `nil` if there is none, as for a
    /// batch.
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

/// One transaction of an engine that writes: a save or a batch.
///
/// The code follows the course of a write:
///
///     write → the gate of the writers → a connection → what all attempts need → begin → the work → commit → report
///                                      ↖ another connection,                  ↖ another attempt,     ↘ no answer:
///                                        if it was lost                         if the server gave     ask what has
///                                                                               way to others          become of it
///
/// In a block that locks rows, the transaction and its connection are there already, and a savepoint takes the place of
/// the beginning. If the connection is lost then, so are the locks, and there is no other attempt.
///
/// A value lives for one call of ``PostgreSQLEngine/save(_:willCommit:didCommit:)``, ``PostgreSQLEngine/execute(_:willCommit:didCommit:)`` or
/// ``LockingPostgreSQLTransaction/save(_:willCommit:didCommit:)``.
struct StoreWrite<Work: RepeatableWork> {
    private let engine: PostgreSQLEngine
    private let database: OpenPostgreSQLStore
    /// The identifier of the transaction in the history.
    private let identifier = UUID.random()
    private var work: Work
    /// The savepoint to which a failed attempt goes back, in a transaction that others have begun; `nil` if each attempt
    /// is a transaction.
    private var savepoint: String?

    init(of work: Work, by engine: PostgreSQLEngine, to database: OpenPostgreSQLStore) {
        self.work = work
        self.engine = engine
        self.database = database
    }

    /// Carries out the work.
    ///
    /// - Parameters:
    ///   - willCommit: Called before COMMIT is sent, in each attempt.
    ///   - didCommit: Called once the transaction is durable.
    /// - Returns: The answer of the work.
    /// - Throws: The errors of the work; `persistentStoreTimeout` (134090); ``SaveInDoubt`` if it cannot be found out
    ///   whether the transaction was committed.
    mutating func run(willCommit: (Work.Result) -> Void, didCommit: (Work.Result) -> Void) throws -> Work.Answer {
        try noticingDoubt { try engine.asWriter(to: database) { try runOnConnection(willCommit, didCommit) } }
    }

    /// Carries out the work in a transaction that is open, and commits it.
    ///
    /// After a refusal or an error, the transaction goes on as if the work had not begun, if the server permits that.
    ///
    /// - Parameters:
    ///   - connection: The connection of the transaction, whose user is in the gate of the writers.
    ///   - willCommit: Called before COMMIT is sent, in each attempt.
    ///   - didCommit: Called once the transaction is durable.
    /// - Returns: The answer of the work.
    /// - Throws: The errors of ``run(willCommit:didCommit:)``.
    mutating func run(
        inTransactionOf connection: Connection,
        willCommit: (Work.Result) -> Void,
        didCommit: (Work.Result) -> Void
    ) throws -> Work.Answer {
        let savepoint = "strata_locking"
        self.savepoint = savepoint
        return try noticingDoubt {
            try PostgreSQLBoundary.run(.saving, at: database.place) {
                try connection.command("SAVEPOINT \(savepoint)")
                do {
                    try work.prepare(database, on: connection)
                    return try runInAttempts(on: connection, willCommit, didCommit)
                } catch {
                    guard !connection.isBroken, !connection.isIdle else { throw error }
                    if case RowLockFailure.deadlock = error {
                        // Others wait for locks from before the savepoint.
                        try? connection.rollback()
                    } else {
                        try? takeBack(on: connection)
                    }
                    throw error
                }
            }
        }
    }

    private func noticingDoubt<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let doubt as SaveInDoubt {
            engine.ownTransactions.withLock { $0.forget(doubt.identifier) }
            engine.addChangesOfOthers()
            throw doubt
        }
    }

    /// Takes back what an attempt has done.
    private func takeBack(on connection: Connection) throws {
        guard let savepoint else { return try connection.rollback() }
        if connection.hasPosted { try? connection.readPostedAnswers() }
        try connection.command("ROLLBACK TO SAVEPOINT \(savepoint)")
    }

    // MARK: - Connections

    /// Carries out the work on a connection.
    ///
    /// If the transaction is certainly lost, then the work is carried out once more, on another connection.
    ///
    /// A transaction is certainly lost if the connection broke before COMMIT was sent, or if the server knows that
    /// COMMIT did not arrive.
    private mutating func runOnConnection(_ willCommit: (Work.Result) -> Void, _ didCommit: (Work.Result) -> Void)
        throws -> Work.Answer
    {
        try database.pool.withConnection(repeatedIf: \.hasLostTransaction) { connection in
            connection.reportWait()
            try engine.requireNotRetired()
            try database.requireSame(connection)
            try work.prepare(database, on: connection)
            return try runInAttempts(on: connection, willCommit, didCommit)
        }
    }

    // MARK: - Attempts

    /// Runs the transaction, again if the server has ended it in favour of others.
    ///
    /// No attempt begins after the time-out of the store has passed since the first one began.
    private mutating func runInAttempts(
        on connection: Connection,
        _ willCommit: (Work.Result) -> Void,
        _ didCommit: (Work.Result) -> Void
    ) throws -> Work.Answer {
        let end = ContinuousClock.now + .seconds(database.pool.timeout)
        var attempt = TransactionAttempt()
        while true {
            attempt.number += 1
            do {
                if let answer = try runOnce(attempt, on: connection, willCommit, didCommit) { return answer }
            } catch let error as PostgreSQLError where error.mayBeMadeAgain {
                try prepareNext(&attempt, after: error, on: connection, until: end)
            }
        }
    }

    /// Prepares the connection for another attempt, after one whose transaction is certainly lost.
    ///
    /// If another context has taken a unique value meanwhile, then the next attempt finds that.
    ///
    /// - Throws: The error, if no other attempt may succeed.
    private func prepareNext(
        _ attempt: inout TransactionAttempt,
        after error: PostgreSQLError,
        on connection: Connection,
        until end: ContinuousClock.Instant
    ) throws {
        if savepoint != nil {
            // Locks from before the savepoint stay, so another attempt would wait in the same circle.
            if error.isTransient { throw RowLockFailure.deadlock(error.explained) }
            // COMMIT itself has failed, and the savepoint is gone with the transaction.
            if connection.isIdle { throw error.explained }
        }
        let isKeyTaken = database.isKeyTaken(error)
        guard attempt.maySucceed(after: error, isKeyTaken: isKeyTaken), .now < end else { throw error.explained }
        if connection.isBroken {
            // The server has answered before, so the transaction is lost, and another connection may carry out the work.
            throw savepoint == nil ? PostgreSQLError(.rolledBack, error.message) : error.explained
        }
        try takeBack(on: connection)
        if error.isStale { connection.forgetPrepared() }
        if isKeyTaken { database.keys.forget() }
        attempt.needsKeys = isKeyTaken
        usleep(UInt32.random(in: 0..<UInt32(1000 << min(attempt.number, 6))))
    }

    /// Runs the transaction once.
    ///
    /// - Returns: The answer; `nil` if another process has begun a history meanwhile, which has to record the work too.
    private mutating func runOnce(
        _ attempt: TransactionAttempt,
        on connection: Connection,
        _ willCommit: (Work.Result) -> Void,
        _ didCommit: (Work.Result) -> Void
    ) throws -> Work.Answer? {
        let recordsHistory = database.recordsHistory
        let begun = try begin(on: connection, recordsHistory: recordsHistory)
        let receipt = database.lease?.newReceipt()
        try receipt?.post(on: connection)
        switch try work.run(attempt, in: database, on: connection, identifier: identifier) {
        case .refused(let answer):
            // The conflicting rows are read again anyway. A history reports the other changes a little later.
            engine.addChangesOfOthers(database.recordsHistory ? ChangedRows() : nil)
            try takeBack(on: connection)
            return answer
        case .written(let answer, let result, let isRecorded, let witness):
            if isRecorded { engine.ownTransactions.withLock { $0.add(identifier) } }
            // These numbers are needed if the connection breaks, so they are read before COMMIT is sent.
            let numbers = try begun.numbers.map { try connection.answer($0) }
            if try begun.findsHistory(connection) {
                database.recordHistory()
                try takeBack(on: connection)
                return nil
            }
            let mark = CommitMark(
                begun: numbers,
                on: connection,
                identifier: identifier,
                isRecorded: isRecorded,
                witness: witness,
                receipt: receipt
            )
            willCommit(result)
            try commitWithMetadata(result, on: connection, mark)
            if let receipt { database.lease?.settle(receipt) }
            database.countCommit()
            didCommit(result)
            engine.watcher.withLock { $0 }?.announce()
            return answer
        }
    }

    private func begin(on connection: Connection, recordsHistory: Bool) throws -> TransactionBeginning {
        if savepoint == nil { try connection.post("BEGIN ISOLATION LEVEL READ COMMITTED") }
        let begun = try TransactionBeginning(work.plans, recordsHistory: recordsHistory, database.form, on: connection)
        // The server wakes up, and begins, while the work makes its first statements.
        if work.isLarge { try connection.sendPosted() }
        return begun
    }

    // MARK: - Commit

    /// Writes new metadata if the work includes that, and commits.
    private func commitWithMetadata(_ result: Work.Result, on connection: Connection, _ mark: CommitMark) throws {
        guard work.writesMetadata, try engine.writeNewMetadata(on: connection) else {
            return try commit(result, on: connection, mark)
        }
        do { try commit(result, on: connection, mark) } catch {
            engine.keepMetadataUnwritten()
            throw error
        }
    }

    /// Commits, and finds out the result of a commit without an answer.
    private func commit(_ result: Work.Result, on connection: Connection, _ mark: CommitMark) throws {
        do {
            try connection.cut(at: .commitSending)
            try connection.commit()
            try connection.cut(at: .commitAnswered)
        } catch let error as PostgreSQLError where error.leavesCommitOpen {
            do {
                try mark.resolve(in: database, after: error)
            } catch var doubt as SaveInDoubt {
                // The context needs the result when it asks later.
                if let result = result as? StoreSaveResult { doubt.result = result }
                throw doubt
            }
        }
    }
}

extension PostgreSQLError {
    /// Whether the transaction is certainly lost, and another attempt may succeed.
    fileprivate var mayBeMadeAgain: Bool {
        isTransient || isUniqueViolation || isStale || hasFewerRows
    }

    /// Whether it is unknown after this error whether COMMIT has arrived.
    fileprivate var leavesCommitOpen: Bool {
        [.connection, .deadline, .cancelled].contains(kind) || leavesDoubt
    }

    /// Whether the transaction is certainly lost with the connection.
    fileprivate var hasLostTransaction: Bool {
        // 25006: the server is a replica now.
        kind == .connection || kind == .rolledBack || sqlState == "25006"
    }

    /// Whether fewer rows were updated than were locked, which the statement of ``WriteShape`` reports.
    private var hasFewerRows: Bool { sqlState == "22012" }

    /// The error with a message that explains what keeps the rows from being updated.
    fileprivate var explained: PostgreSQLError {
        guard hasFewerRows else { return self }
        return PostgreSQLError(
            .server,
            sqlState: sqlState,
            "rows that are locked were not updated; a trigger or a rule of the database may keep them from it"
        )
    }
}

extension UUID {
    /// A random UUID like that of `UUID()`, which opens a system file each time and so takes a large part of a small
    /// save.
    fileprivate static func random() -> UUID {
        var generator = SystemRandomNumberGenerator()
        var words = (generator.next(), generator.next())
        return withUnsafeMutableBytes(of: &words) { bytes in
            bytes[6] = bytes[6] & 0x0F | 0x40
            bytes[8] = bytes[8] & 0x3F | 0x80
            return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
        }
    }
}
