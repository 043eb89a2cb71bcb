import Foundation
import StrataPostgreSQL
import StrataRows

/// A save, whose attempts are a ``SaveTransaction`` each.
struct RepeatableSave: RepeatableWork {
    private let changes: StoreChanges
    /// The keys of the new rows.
    private var keys: [Int64] = []

    init(_ changes: StoreChanges) { self.changes = changes }

    var plans: PlanSettings { .lookUps }
    var isLarge: Bool { changes.isLarge }
    var writesMetadata: Bool { true }

    mutating func prepare(_ database: OpenPostgreSQLStore, on connection: Connection) throws {
        keys = try database.keys(for: changes.inserted, connection)
    }

    mutating func run(
        _ attempt: TransactionAttempt,
        in database: OpenPostgreSQLStore,
        on connection: Connection,
        identifier: UUID
    ) throws -> TransactionEnd<[StoreConflict], StoreSaveResult> {
        if attempt.needsKeys { keys = try database.keys(for: changes.inserted, connection) }
        let transaction = SaveTransaction(
            changes,
            keys: keys,
            in: database,
            on: connection,
            identifier: identifier,
            locksOrders: attempt.number > 1
        )
        let conflicts = try transaction.run()
        guard conflicts.isEmpty else { return .refused(conflicts) }
        let isRecorded = transaction.history?.isWritten == true
        return .written([], transaction.result, isRecorded: isRecorded, witness: transaction.witness)
    }
}
