import StrataPostgreSQL
import StrataRows

/// What a batch knows, when it is made again, of its earlier attempts: which rows it was to write when it found that others had changed some
/// of them meanwhile.
///
/// It locks them before it reads anything: what it reads then stays as it is until it commits. Else a batch that others always overtake
/// would come to nothing. Only rows that it did not meet before can be changed under it once more; these are locked the next time.
///
/// Used by the thread that executes the batch.
final class ContendedRows {
    private var keys: [Int: Set<Int64>] = [:]
    private var deletes = false
    /// Whether an attempt has waited for who waited for it.
    ///
    /// A statement that changes many rows locks them in the order in which it finds them.
    private(set) var hasDeadlocked = false

    /// Notes what an attempt was to write.
    func note(_ changes: StoreChanges) {
        for update in changes.updated { keys[update.row.layout.rootNumber, default: []].insert(update.row.key) }
        for deletion in changes.deleted { note([deletion.key], root: deletion.layout.rootNumber) }
        if !changes.deleted.isEmpty { deletes = true }
    }

    /// Notes rows of one hierarchy.
    func note(_ keys: [Int64], root: Int) { self.keys[root, default: []].formUnion(keys) }

    func noteDeadlock() { hasDeadlocked = true }

    /// The strength of the lock that a row needs which is to be written, or deleted.
    static func strength(deletes: Bool) -> String { deletes ? "FOR UPDATE" : "FOR NO KEY UPDATE" }

    /// Locks the rows with the next statement, in the order in which all savers lock rows.
    func lock(_ database: OpenDatabase, _ connection: Connection) throws {
        let naming = database.naming
        for (root, keys) in keys.sorted(by: { $0.key < $1.key }) {
            guard let entity = database.mapping.entity(modelNumber: root) else { continue }
            let strength = Self.strength(deletes: deletes)
            try connection.post(
                SaveTransaction.locking("\(naming.key)", of: entity.table, naming, strength),
                [.array(PostgreSQLArray(keys.sorted()))],
                mayWait: true
            )
        }
    }
}
