import StrataPostgreSQL
import StrataRows

/// What a batch that is made again knows of its earlier attempts.
///
/// Rows that it was to write when others had changed some of them are locked before it reads anything: what it reads then stays as it is until
/// it commits. Else a batch that others always overtake would come to nothing. Only rows that it did not meet before can be changed under it
/// once more; these are locked the next time. Where new rows come all the time, that has no end. So after three attempts nobody else writes to
/// the tables of these rows until the batch has ended.
///
/// Used by the thread that executes the batch.
final class EarlierAttempts {
    /// How many attempts may find unique values taken: who inserts looks at them first, and finds what others have inserted the next time.
    private var racesLeft: Int
    /// The strength of the locks that the batch needs.
    let strength: String
    /// The keys of the rows by the number of their root entity.
    private var contended: [Int: Set<Int64>] = [:]
    /// Whether one has waited for who waited for it.
    ///
    /// A statement that changes many rows locks them in the order in which it finds them.
    private(set) var haveDeadlocked = false
    /// How many attempts were to write rows that others had changed.
    private var overtakings = 0
    /// How many of them lock rows only.
    private static let mostOvertakings = 3

    init(of batch: Batch) {
        switch batch.work {
        case .delete: (strength, racesLeft) = (SaveTransaction.lockStrength(losesKeys: true), 0)
        case .update: (strength, racesLeft) = (SaveTransaction.lockStrength(losesKeys: false), 1)
        case .insert: (strength, racesLeft) = (SaveTransaction.lockStrength(losesKeys: false), 5)
        }
    }

    /// Notes what an attempt was to write when others had changed some of it.
    func noteOvertaking(_ changes: StoreChanges) {
        overtakings += 1
        for update in changes.updated { note([update.row.key], root: update.row.layout.rootNumber) }
        for deletion in changes.deleted { note([deletion.key], root: deletion.layout.rootNumber) }
    }

    /// Notes what an attempt had found in one hierarchy when others changed or deleted some of it.
    func noteOvertaking(_ keys: [Int64], root: Int) {
        overtakings += 1
        note(keys, root: root)
    }

    private func note(_ keys: [Int64], root: Int) { contended[root, default: []].formUnion(keys) }

    /// Whether unique values that are taken may be somebody else's only since the attempt began; each time counts.
    func mayHaveLostRace() -> Bool {
        racesLeft -= 1
        return racesLeft >= 0
    }

    func noteDeadlock() { haveDeadlocked = true }

    /// Locks the rows, or their tables, with the next statement, in the order in which all savers lock rows.
    func lockContended(_ database: OpenDatabase, _ connection: Connection) throws {
        let naming = database.naming
        for (root, keys) in contended.sorted(by: { $0.key < $1.key }) {
            guard let entity = database.mapping.entity(modelNumber: root) else { continue }
            guard overtakings < Self.mostOvertakings else {
                // Others may read. Who has locked rows already is waited for.
                try connection.post("LOCK TABLE \(entity.table) IN EXCLUSIVE MODE", mayWait: true)
                continue
            }
            try connection.post(
                SaveTransaction.locking("\(naming.key)", of: entity.table, naming, strength),
                [.array(PostgreSQLArray(keys.sorted()))],
                mayWait: true
            )
        }
    }
}
