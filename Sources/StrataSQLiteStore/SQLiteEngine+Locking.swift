import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

extension SQLiteEngine: LockingStore {
    package func beginLocking(
        _ conduct: RowLocking.Conduct,
        _ time: LockingTime,
        holder: AnyObject & Sendable
    ) throws -> (any LockingTransaction)? {
        let file = try openFile()
        try requireWritable(file)
        guard case .file = file.pool.location else {
            // Its one connection would be in use by the block, which could then read nothing but locked rows.
            throw CocoaError.refused(
                "Rows of \(place) cannot be locked, because a database in memory has one connection. Use a file, or a store of type NSInMemoryStoreType."
            )
        }
        do {
            return try SQLiteBoundary.run(.saving, at: file.url, for: SQLiteBoundary.waiter) {
                let lease = try beginWriting(
                    to: file,
                    timeout: time.wait(conduct),
                    cancellation: time.cancellation
                )
                return LockingSQLiteTransaction(self, file, lease)
            }
        } catch let error as CocoaError {
            try time.cancellation.check()
            guard error.code == .persistentStoreTimeout, conduct != .wait else { throw error }
            return nil
        }
    }
}

/// A write transaction that has written nothing yet: as long as a block has it, no row of the file changes.
final class LockingSQLiteTransaction: LockingTransaction, SQLiteSource, @unchecked Sendable {
    // @unchecked Sendable: one thread uses it at a time.
    private let engine: SQLiteEngine
    private let file: OpenSQLiteStore
    private let connection: Connection
    private var lease: WriteLease?
    private(set) var isOver = false

    init(_ engine: SQLiteEngine, _ file: OpenSQLiteStore, _ lease: consuming WriteLease) {
        self.engine = engine
        self.file = file
        connection = lease.connection
        // The cancellation that ends a wait must not stop a save.
        lease.forgetLimits()
        self.lease = .some(lease)
    }

    var reading: SQLiteReading { SQLiteReading(file, inTransactionOf: connection) }

    func rows(for plan: FetchPlan, _ locking: RowLocking) throws -> [Row] {
        do { return try rows(for: plan) } catch {
            // SQLite ends the transaction after some errors, such as one of the disk, and with it the locks.
            if connection.isBroken || !connection.isInTransaction { rollBack() }
            throw error
        }
    }

    func save(_ changes: StoreChanges, willCommit: (StoreSaveResult) -> Void, didCommit: (StoreSaveResult) -> Void)
        throws -> [StoreConflict]
    {
        try engine.requireWritable(file)
        let start = OperationTally.startTiming()
        defer { engine.stopTiming(start, file) }
        return try SQLiteBoundary.run(.saving, at: file.url, for: changes.contextName) {
            try connection.run("SAVEPOINT strata_locking")
            do {
                let written = try engine.write(changes, to: file, on: connection)
                guard written.conflicts.isEmpty else {
                    try takeBack()
                    return written.conflicts
                }
                // A commit that fails rolls back.
                isOver = true
                do {
                    willCommit(written.result)
                    try lease.commit {
                        engine.noteCommit(of: written, to: file)
                        didCommit(written.result)
                    }
                } catch {
                    engine.abandon(written)
                    throw error
                }
                written.files.didCommit()
                return []
            } catch {
                if !isOver { try takeBack() }
                throw error
            }
        }
    }

    /// Takes back what a save has written, and keeps the transaction.
    private func takeBack() throws {
        do {
            try connection.run("ROLLBACK TO strata_locking")
            try connection.run("RELEASE strata_locking")
        } catch {
            // SQLite has rolled back the whole transaction, as it does if the disk is full.
            rollBack()
        }
    }

    func rollBack() {
        isOver = true
        lease = nil
    }
}
