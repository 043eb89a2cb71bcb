import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite
import Synchronization

/// One version of a SQLite file, which stays readable for as long as this is held.
///
/// Holds a read transaction open, so that the write-ahead log cannot start over meanwhile, and the external files that
/// rows of the version name. Any thread may read; reads take turns.
final class SQLiteVersion: RowSource, Sendable {
    private struct Held {
        let snapshot: PinnedSnapshot
        let files: RetiredFiles.Hold
    }

    private let file: OpenSQLiteFile
    private let held: Mutex<Held?>

    private init(_ file: OpenSQLiteFile, _ held: Held) {
        self.file = file
        self.held = Mutex(held)
    }

    /// Holds on to the newest version.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if too many are held; errors of the store.
    static func pin(_ file: OpenSQLiteFile) throws -> SQLiteVersion {
        // Before the transaction begins, so that no file of the version is removed in between.
        let files = file.retired.hold()
        let snapshot = try SQLiteBoundary.run(.reading, file.url) {
            try file.pinning("Unpin contexts, or let go of their query generation tokens.") {
                pool throws(SQLiteError) in try pool.sharedSnapshot()
            }
        }
        try SQLiteBoundary.run(.reading, file.url) { try snapshot.read { try file.modelGuard.requireSame($0) } }
        return SQLiteVersion(file, Held(snapshot: snapshot, files: files))
    }

    /// Lets go of the version, which cannot be read any more.
    ///
    /// A read under way ends first.
    func end() {
        let held = held.withLock { held in
            defer { held = nil }
            return held
        }
        // Outside the lock: the connection goes back to its pool.
        _ = consume held
    }

    /// - Throws: `persistentStoreOperation` (134070) once the store was removed.
    private var reading: SQLiteReading {
        get throws {
            if let snapshot = held.withLock({ $0?.snapshot }) { return SQLiteReading(file, at: snapshot) }
            throw CocoaError(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(file.url.path) was removed from its coordinator, so the query generation cannot be read any more."
                ]
            ).marked(.environment)
        }
    }

    // MARK: - Reading

    func rows(for plan: FetchPlan) throws -> [Row] { try reading.rows(for: plan) }

    func references(for plan: FetchPlan) throws -> [ObjectReference] { try reading.references(for: plan) }

    func count(for plan: FetchPlan) throws -> Int { try reading.count(for: plan) }

    func cursor(for plan: FetchPlan) throws -> any RowCursor { try reading.cursor(for: plan) }

    func values(for plan: DictionaryPlan) throws -> FetchedValues { try reading.values(for: plan) }

    func count(for plan: DictionaryPlan) throws -> Int { try reading.count(for: plan) }

    func row(forKey key: Int64, in layout: EntityLayout) throws -> Row? { try reading.row(forKey: key, in: layout) }

    func rows(forKeys keys: [Int64], in layout: EntityLayout) throws -> [Row] {
        try reading.rows(forKeys: keys, in: layout)
    }

    func members(of relationship: ToManySlot, ownedBy owner: ObjectReference) throws -> [ObjectReference] {
        try reading.members(of: relationship, ownedBy: owner)
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference]) throws -> Memberships {
        try reading.memberships(of: relationship, ownedBy: owners)
    }

    func rows(forKeys keys: [Int64], in layout: EntityLayout, _ control: FetchControl) throws -> [Row] {
        try reading.rows(forKeys: keys, in: layout, control)
    }

    func memberships(of relationship: ToManySlot, ownedBy owners: [ObjectReference], _ control: FetchControl) throws
        -> Memberships
    { try reading.memberships(of: relationship, ownedBy: owners, control) }
}
