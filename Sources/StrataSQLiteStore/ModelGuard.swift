import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite
import Synchronization

/// Notices that somebody else has migrated a file that is open: its rows do not mean any more what the model says.
///
/// SQLite tells which statements it had to prepare anew because the tables have changed, as a migration always does. So a read costs
/// nothing unless something has changed. Any thread may use it.
final class ModelGuard: Sendable {
    private let url: URL
    /// The version hashes that the file was opened with.
    private let hashes: [String: Data]
    /// The version of the schema that was last seen with these hashes; -1 for none.
    private let verified = Atomic<Int64>(-1)
    private let isOutdated = Atomic(false)
    /// What the metadata was when it was last looked at.
    private let metadata: Mutex<StoreMetadata>

    /// What the metadata is read from, without a look at all tables of the file.
    static let columns = SQLCatalog(["Z_METADATA": ["Z_UUID", "Z_PLIST"]])

    init(_ url: URL, _ metadata: StoreMetadata) {
        self.url = url
        hashes = metadata.versionHashes
        self.metadata = Mutex(metadata)
    }

    /// Refuses to use the file once it was found migrated.
    ///
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100).
    @inline(__always)
    func requireKnown() throws {
        if isOutdated.load(ordering: .relaxed) { throw error }
    }

    /// Refuses what was just read if the file was migrated before.
    ///
    /// Called while the transaction of the read is open, or right behind it.
    ///
    /// - Throws: As ``requireKnown()``; errors of SQLite.
    @inline(__always)
    func check(_ connection: Connection) throws {
        if connection.takeSchemaNews() { try look(connection) }
    }

    /// Refuses a write to a file that was migrated; called with the write lock.
    ///
    /// - Throws: As ``requireKnown()``; errors of SQLite.
    func requireSame(_ connection: Connection) throws {
        try requireKnown()
        let version = try connection.firstInt64("PRAGMA schema_version") ?? 0
        guard version != verified.load(ordering: .relaxed) else { return }
        try look(connection)
        verified.store(version, ordering: .relaxed)
    }

    private func look(_ connection: Connection) throws {
        let found: StoreMetadata?
        do {
            found = try StoreMetadata(connection, Self.columns, url)
        } catch let error as SQLiteError where error.code == .error {
            // No such table: a file that was emptied or replaced by others is not this type's affair.
            return
        }
        guard let found, found.versionHashes != hashes else { return }
        metadata.withLock { $0 = found }
        isOutdated.store(true, ordering: .relaxed)
        throw error
    }

    private var error: CocoaError {
        let found = metadata.withLock { $0 }
        let names = Set(hashes.keys).union(found.versionHashes.keys).filter { hashes[$0] != found.versionHashes[$0] }
        return CocoaError.described(
            .persistentStoreIncompatibleVersionHash,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(url.path) was migrated by somebody else to another version of the model since it was opened here. Entities that differ: \(names.sorted().joined(separator: ", ")). Nothing is read or saved any more; remove the store, and add it with the new model.",
                NSFilePathErrorKey: url.path,
                "metadata": found.dictionary,
                "reason": "The store was migrated by somebody else",
            ]
        )
    }
}
