import StrataPostgreSQL
import StrataRows

/// The rows that a batch was to write when it found that others had changed some of them meanwhile.
///
/// The batch is made again, and locks them first: what it reads then stays as it is until it commits. Else a batch that others always
/// overtake would come to nothing. Only rows that it did not meet before can be changed under it once more; these are locked the next time.
///
/// Used by the thread that executes the batch.
final class ContendedRows {
    private var keys: [Int: Set<Int64>] = [:]
    private var deletes = false

    /// Notes what an attempt was to write.
    func note(_ changes: StoreChanges) {
        for update in changes.updated { keys[update.row.layout.rootNumber, default: []].insert(update.row.key) }
        for deletion in changes.deleted { keys[deletion.layout.rootNumber, default: []].insert(deletion.key) }
        if !changes.deleted.isEmpty { deletes = true }
    }

    /// Locks them with the next statement, in the order in which all savers lock rows.
    func lock(_ database: OpenDatabase, _ connection: Connection) throws {
        for (root, keys) in keys.sorted(by: { $0.key < $1.key }) {
            guard let entity = database.mapping.entity(modelNumber: root) else { continue }
            let naming = database.naming
            try connection.post(
                SaveTransaction.locking(
                    "\(naming.key)",
                    of: entity.table,
                    naming,
                    deletes ? "FOR UPDATE" : "FOR NO KEY UPDATE"
                ),
                [.array(PostgreSQLArray(keys.sorted()))],
                mayWait: true
            )
        }
    }
}
