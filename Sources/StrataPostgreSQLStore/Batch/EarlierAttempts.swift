import StrataPostgreSQL
import StrataRows

/// What a batch that is made again knows of its earlier attempts.
///
/// Rows that it was to write when others had changed some of them are locked before it reads anything: what it reads then stays as it is until
/// it commits. Else a batch that others always overtake would come to nothing. Only rows that it did not meet before can be changed under it
/// once more; these are locked the next time.
///
/// Used by the thread that executes the batch.
final class EarlierAttempts {
    /// The strength of the locks that the batch needs.
    let strength: String
    /// The keys of the rows by the number of their root entity.
    private var contended: [Int: Set<Int64>] = [:]
    /// Whether one has waited for who waited for it.
    ///
    /// A statement that changes many rows locks them in the order in which it finds them.
    private(set) var haveDeadlocked = false

    init(of batch: Batch) {
        if case .delete = batch.work {
            strength = SaveTransaction.lockStrength(isDeleting: true)
        } else {
            strength = SaveTransaction.lockStrength(isDeleting: false)
        }
    }

    /// Notes what an attempt was to write.
    func note(_ changes: StoreChanges) {
        for update in changes.updated { note([update.row.key], root: update.row.layout.rootNumber) }
        for deletion in changes.deleted { note([deletion.key], root: deletion.layout.rootNumber) }
    }

    /// Notes rows of one hierarchy.
    func note(_ keys: [Int64], root: Int) { contended[root, default: []].formUnion(keys) }

    func noteDeadlock() { haveDeadlocked = true }

    /// Locks the rows with the next statement, in the order in which all savers lock rows.
    func lockContended(_ database: OpenDatabase, _ connection: Connection) throws {
        let naming = database.naming
        for (root, keys) in contended.sorted(by: { $0.key < $1.key }) {
            guard let entity = database.mapping.entity(modelNumber: root) else { continue }
            try connection.post(
                SaveTransaction.locking("\(naming.key)", of: entity.table, naming, strength),
                [.array(PostgreSQLArray(keys.sorted()))],
                mayWait: true
            )
        }
    }
}
