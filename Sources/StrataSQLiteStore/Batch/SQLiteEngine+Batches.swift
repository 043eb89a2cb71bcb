import Foundation
import StrataKeys
import StrataLocks
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

extension SQLiteEngine {
    package var takesBatches: Bool { true }

    package func execute(_ batch: Batch, willCommit: (BatchChanges) -> Void, didCommit: (BatchChanges) -> Void) throws {
        let file = try openFile()
        // The user's code makes the rows. It must not keep other contexts from writing.
        let batch = try batch.withRowsMade(in: file.folder)
        let start = OperationTally.startTiming()
        defer { stopTiming(start, file) }
        guard let control = batch.control else {
            guard let rows = batch.rows else {
                return try execute(batch, in: file, cancellation: nil, willCommit: willCommit, didCommit: didCommit)
            }
            // A batch that takes longer than the limit is stopped, because all other contexts wait for the writer.
            return try rows.evaluating {
                try execute(
                    batch,
                    in: file,
                    cancellation: Cancellation(orWhen: EvaluationBudget.end),
                    willCommit: willCommit,
                    didCommit: didCommit
                )
            }
        }
        do {
            try execute(
                batch,
                in: file,
                cancellation: control.cancellation,
                willCommit: willCommit,
                didCommit: didCommit
            )
        } catch let error as CocoaError where error.code == .userCancelled && control.cancellation.isCancelled {
            throw CancellationError()
        }
    }

    private func execute(
        _ batch: Batch,
        in file: OpenSQLiteStore,
        cancellation: Cancellation?,
        willCommit: (BatchChanges) -> Void,
        didCommit: (BatchChanges) -> Void
    ) throws {
        try SQLiteBoundary.run(.saving, at: file.url, for: batch.recorder.contextName) {
            let lease = try file.pool.writer(cancellation: cancellation)
            addWait(lease)
            try requireNotRetired()
            try file.modelGuard.requireSame(lease.connection)
            try requireNoOtherHistory(of: file, lease.connection)
            let transaction = BatchTransaction(batch, in: file, on: lease.connection)
            do {
                try FaultPoint.batchBegan.reach()
                try transaction.run()
                file.lastMembers.removeAll()
                try FaultPoint.batchWritten.reach()
                // All changes of the batch are known here, and not committed yet.
                let changes = transaction.changes
                let number = transaction.history?.number
                try transaction.files.willCommit(lease.connection)
                willCommit(changes)
                try lease.commit {
                    if let number { addOwnTransaction(number) }
                    didCommit(changes)
                }
            } catch {
                transaction.files.abandon()
                throw error
            }
            transaction.files.didCommit()
        }
    }
}
