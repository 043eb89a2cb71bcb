import StrataPostgreSQL
import StrataRows

/// The knowledge that a repeated batch has of its earlier attempts.
///
/// If others have changed rows that an attempt was to write, then the next attempt locks all of its rows before it
/// reads anything. So the rows do not change until it commits. Without that, a batch that others always overtake would
/// never end. Others can then change only rows that the batch did not find before; these are locked the next time. If
/// new rows are added all the time, that would not end either. So after three attempts other transactions cannot write
/// to the tables of these rows until the batch has ended.
///
/// It is used by the thread that executes the batch.
final class EarlierAttempts {
    /// The number of attempts that may still find unique values taken.
    ///
    /// An insertion checks them first, and the next attempt finds rows that others have inserted meanwhile.
    private var racesLeft: Int
    /// The strength of the locks that the batch needs.
    let strength: String
    /// The keys of the rows by the number of their root entity.
    private var contended: [Int: Set<Int64>] = [:]
    /// Whether an attempt has ended in a deadlock.
    ///
    /// A statement that changes many rows locks them in the order in which it finds them.
    private(set) var haveDeadlocked = false
    /// The number of attempts that were to write rows which others had changed.
    private var overtakings = 0
    /// The number of overtaken attempts after which tables are locked instead of rows.
    private static let mostOvertakings = 3

    init(of batch: Batch) {
        switch batch.work {
        case .delete: (strength, racesLeft) = (SaveTransaction.lockStrength(losesKeys: true), 0)
        case .update: (strength, racesLeft) = (SaveTransaction.lockStrength(losesKeys: false), 1)
        case .insert: (strength, racesLeft) = (SaveTransaction.lockStrength(losesKeys: false), 5)
        }
    }

    /// Adds the rows that an attempt was to write when others had changed some of them.
    func addOvertaking(_ changes: StoreChanges) {
        overtakings += 1
        for update in changes.updated { addContended([update.row.key], root: update.row.layout.rootNumber) }
        for deletion in changes.deleted { addContended([deletion.key], root: deletion.layout.rootNumber) }
    }

    /// Adds the rows of one hierarchy that an attempt had found when others changed or deleted some of them.
    func addOvertaking(_ keys: [Int64], root: Int) {
        overtakings += 1
        addContended(keys, root: root)
    }

    private func addContended(_ keys: [Int64], root: Int) { contended[root, default: []].formUnion(keys) }

    /// Whether taken unique values may have been taken only since the attempt began; each call counts.
    func mayHaveLostRace() -> Bool {
        racesLeft -= 1
        return racesLeft >= 0
    }

    func markDeadlocked() { haveDeadlocked = true }

    /// Locks the rows, or their tables, with the next statement, in the order in which all saves lock rows.
    func lockContended(_ database: OpenPostgreSQLStore, _ connection: Connection) throws {
        let naming = database.naming
        if database.form == .portable, overtakings >= Self.mostOvertakings {
            return try OpenPostgreSQLStore.lockOutWriters(ofPortable: connection)
        }
        for (root, keys) in contended.sorted(by: { $0.key < $1.key }) {
            guard let entity = database.mapping.entity(modelNumber: root) else { continue }
            guard overtakings < Self.mostOvertakings else {
                // Others may read. The statement waits for transactions that have locked rows already.
                try connection.post("LOCK TABLE \(entity.table) IN EXCLUSIVE MODE", mayWait: true)
                continue
            }
            try connection.post(
                SaveTransaction.locking(
                    returning: "\(naming.key)",
                    of: entity.table,
                    naming: naming,
                    strength: strength
                ),
                [.array(PostgreSQLArray(keys.sorted()))],
                mayWait: true
            )
        }
    }
}
