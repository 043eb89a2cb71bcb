#if FaultPoints
import Synchronization

/// Named places in the library where tests can make an error be thrown, end the process, or wait.
///
/// Only builds with the package trait `FaultPoints` contain them; it is off unless asked for, as in
/// `swift build --traits FaultPoints`. Whoever reaches a point without a handler goes on at once.
package enum FaultPoint: String, CaseIterable, Sendable {
    /// The objects of a save are validated; no store was asked yet.
    case saveValidated = "save.validated"
    /// A save has the store's writer, and has written nothing.
    case saveBegan = "save.began"
    /// A save has written everything, and not committed.
    case saveWritten = "save.written"
    /// A save is committed, and the row cache does not know of it.
    case saveCommitted = "save.committed"
    /// The row cache knows of a save, and the context does not.
    case savePublished = "save.published"
    /// The context has taken its objects for saved, and nobody was told.
    case saveAnnouncing = "save.announcing"
    /// A batch has the store's writer, and has written nothing.
    case batchBegan = "batch.began"
    /// A batch insert is about to write another row.
    case batchRow = "batch.row"
    /// A batch has written everything, and not committed.
    case batchWritten = "batch.written"
    /// A batch is committed, and the row cache does not know of it.
    case batchCommitted = "batch.committed"
    /// The row cache knows of a batch, and contexts do not.
    case batchAnnouncing = "batch.announcing"
    /// The row of a fault is read, and the row cache does not have it.
    case faultRead = "fault.read"
    /// A commit is about to copy the log into the file.
    case checkpointBegan = "checkpoint.began"
    /// The log is copied into the file.
    case checkpointEnded = "checkpoint.ended"
    /// COMMIT is about to be sent to PostgreSQL: an error cuts the connection.
    case commitSending = "commit.sending"
    /// PostgreSQL has committed: an error cuts the connection, as if its answer had not come.
    case commitAnswered = "commit.answered"
    /// PostgreSQL is about to be asked what has become of a commit whose answer was lost: an error leaves that in doubt.
    case commitAsking = "commit.asking"
    /// Transactions of PostgreSQL's history have numbers, which nobody else sees yet.
    case historyNumbered = "history.numbered"

    /// A migration has the store's writer, and has written nothing.
    case migrationBegan = "migration.began"
    /// A migration has moved the rows, and neither indexes nor metadata.
    case migrationMoved = "migration.moved"
    /// A migration has written everything, and not committed.
    case migrationWritten = "migration.written"
    /// A migration is committed, and the store is not open yet.
    case migrationCommitted = "migration.committed"

    /// What is called at each point, on the thread that reaches it: it may throw where the point can fail, end the process,
    /// or wait.
    package typealias Handler = @Sendable (FaultPoint) throws -> Void

    private static let handler = Mutex<Handler?>(nil)

    /// Has `handler` called at each point from now on; `nil` for nothing.
    package static func handle(_ handler: Handler?) { Self.handler.withLock { $0 = handler } }

    /// Whether an error that is thrown there fails the operation; elsewhere it is ignored, as nothing can fail any more.
    package var canFail: Bool {
        switch self {
        case .saveValidated, .saveBegan, .saveWritten, .batchBegan, .batchRow, .batchWritten, .migrationBegan,
            .migrationMoved, .migrationWritten:
            true
        case .saveCommitted, .savePublished, .saveAnnouncing, .batchCommitted, .batchAnnouncing, .faultRead,
            .checkpointBegan, .checkpointEnded, .commitSending, .commitAnswered, .commitAsking, .historyNumbered,
            .migrationCommitted:
            false
        }
    }

    /// Calls the handler where the operation can fail.
    ///
    /// - Throws: What the handler throws.
    package func reach() throws {
        // Outside the lock: the handler may wait for somebody who reaches a point too.
        let handler = Self.handler.withLock { $0 }
        try handler?(self)
    }

    /// Calls the handler where nothing can fail any more.
    package func pass() { try? reach() }
}
#endif
