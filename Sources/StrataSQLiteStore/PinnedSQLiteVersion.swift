import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// One version of a SQLite file, which stays readable for as long as this object is held.
///
/// It holds a read transaction open, so that the write-ahead log cannot start over meanwhile, and it keeps the external
/// files that rows of the version name. Any thread may read; reads take turns.
final class PinnedSQLiteVersion: SQLiteSource {
    private struct Held {
        let snapshot: PinnedSnapshot
        let files: RetiredFiles.Hold
    }

    private let file: OpenSQLiteStore
    private let held: Locked<Held?>

    private init(_ file: OpenSQLiteStore, _ held: Held) {
        self.file = file
        self.held = Locked(held)
    }

    /// Holds the newest version.
    ///
    /// - Throws: `persistentStoreOperation` (134070) if too many are held; errors of the store.
    static func pin(_ file: OpenSQLiteStore) throws -> PinnedSQLiteVersion {
        // The hold comes before the transaction, so that no file of the version is removed in between.
        let files = file.retired.hold()
        let snapshot = try SQLiteBoundary.run(.reading, at: file.url) {
            try file.pinning("Unpin contexts, or let go of their query generation tokens.") {
                pool throws(SQLiteError) in try pool.sharedSnapshot()
            }
        }
        try SQLiteBoundary.run(.reading, at: file.url) {
            try snapshot.read { try file.modelGuard.requireSame($0, isNewest: false) }
        }
        return PinnedSQLiteVersion(file, Held(snapshot: snapshot, files: files))
    }

    /// Releases the version, which cannot be read any more.
    ///
    /// A read that is under way ends first.
    func end() {
        let held = held.withLock { held in
            defer { held = nil }
            return held
        }
        // This happens outside the lock: the connection goes back to its pool.
        _ = consume held
    }

    /// - Throws: `persistentStoreOperation` (134070) once the store was removed.
    var reading: SQLiteReading {
        get throws {
            if let snapshot = held.withLock({ $0?.snapshot }) { return SQLiteReading(file, at: snapshot) }
            throw CocoaError.described(
                .persistentStoreOperation,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(file.url.path) was removed from its coordinator, so the query generation cannot be read any more."
                ]
            ).marked(.environment)
        }
    }
}
