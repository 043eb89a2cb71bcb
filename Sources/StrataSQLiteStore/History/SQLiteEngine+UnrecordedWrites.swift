import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

// If a write is not recorded, it is missing in the history, and readers of the history cannot know that. So a store
// that was opened without the option does not write to a file that has a history.

extension SQLiteEngine {
    /// Refuses to save from now on if the file has a history that this store does not continue.
    func protectHistory(of file: OpenSQLiteStore) {
        guard let history = file.history, !history.isRecording, !isReadOnly else { return }
        makeReadOnly(
            """
            the store \(file.url.path) was opened without NSPersistentHistoryTrackingKey, but has been opened with it before. \
            It is read-only, so that its history has no gap.
            """
        )
    }

    /// Refuses this write and all later ones if another program has begun a history since the file was opened.
    ///
    /// The file had no history when it was opened here.
    ///
    /// It is called with the write lock, under which a history is begun.
    func requireNoOtherHistory(of file: OpenSQLiteStore, _ connection: Connection) throws {
        guard file.history == nil, try file.hasNewHistory(connection) else { return }
        let reason =
            """
            the store \(file.url.path) was opened without NSPersistentHistoryTrackingKey, and somebody else has opened it with \
            it since. It is read-only here from now on, so that its history has no gap: add the store again, with the option.
            """
        makeReadOnly(reason)
        throw CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey: "The save is refused: \(reason)",
                NSFilePathErrorKey: file.url.path,
            ]
        )
    }

    private func makeReadOnly(_ reason: String) {
        isReadOnly = true
        try? FileHandle.standardError.write(contentsOf: Data("CoreData: \(reason)\n".utf8))
    }
}

extension OpenSQLiteStore {
    /// Whether the file, which had no history when it was opened, has one now.
    ///
    /// Usually this compares only one number in memory, which SQLite increments when a table is made.
    func hasNewHistory(_ connection: Connection) throws -> Bool {
        let version = try connection.firstInt64("PRAGMA schema_version") ?? 0
        guard version != schemaWithoutHistory.load(ordering: .relaxed) else { return false }
        guard try !HistorySchema.isPresent(in: SQLCatalog(connection)) else { return true }
        schemaWithoutHistory.store(version, ordering: .relaxed)
        return false
    }
}
