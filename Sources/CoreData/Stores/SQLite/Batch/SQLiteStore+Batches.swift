import Foundation
import StrataSQLite

#if FaultPoints
import StrataLocks
#endif

extension SQLiteStore {
    func execute(_ batch: Batch, didCommit: (BatchChanges) -> Void) throws {
        let file = try openFile()
        // What makes the rows is the user's code, which must not keep others from writing.
        let batch = try batch.withRowsMade(in: file.folder)
        let start = OperationTally.startTiming()
        defer { OperationTally.stopTiming(start) }
        guard let control = batch.control else { return try execute(batch, file, nil, didCommit) }
        let cancellation = Cancellation()
        try control.running(stoppedBy: { cancellation.cancel() }) {
            do {
                try execute(batch, file, cancellation, didCommit)
            } catch let error as CocoaError where error.code == .userCancelled && control.isCancelled {
                throw CancellationError()
            }
        }
    }

    private func execute(
        _ batch: Batch,
        _ file: OpenSQLiteFile,
        _ cancellation: Cancellation?,
        _ didCommit: (BatchChanges) -> Void
    ) throws {
        try SQLiteBoundary.run(.saving, url, for: batch.contextName) {
            let lease = try file.pool.writer(cancellation: cancellation)
            try requireInUse()
            let transaction = BatchTransaction(batch, file, lease.connection)
            do {
                #if FaultPoints
                try FaultPoint.batchBegan.reach()
                #endif
                try transaction.run()
                #if FaultPoints
                try FaultPoint.batchWritten.reach()
                #endif
                // All that the batch changes is known here, and not committed yet.
                let changes = transaction.changes
                try lease.commit { didCommit(changes) }
            } catch {
                transaction.discardFiles()
                throw error
            }
            transaction.removeObsoleteFiles()
        }
    }
}
