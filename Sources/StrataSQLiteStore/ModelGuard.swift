import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite
import Synchronization

/// Notices that other programs have migrated an open file, or have replaced all of its contents.
///
/// After a migration, the rows no longer have the meaning that the model gives them. The rows of another store are
/// other objects. In both cases the file is refused. If an older state of the same store was put back, its rows may
/// repeat versions that other contents had. Such a *restoration* leaves a mark in the metadata, in the transaction that
/// replaces the contents. Each mark that is new here raises the versions of all rows that are read from then on, see
/// ``RowVersion``. So a save of anything that was read before is a conflict.
///
/// SQLite shows which statements it had to prepare anew because the tables have changed, and a migration or a
/// restoration always changes them. So a read costs nothing extra unless something has changed. A connection keeps the
/// offset for the contents that it sees (``ContentsNote``), because another one may still be reading the former
/// contents. Any thread may use it.
final class ModelGuard: Sendable {
    private let url: URL
    /// The version hashes that the file was opened with.
    private let hashes: [String: Data]
    /// The UUID that the store was opened with.
    private let uuid: String
    private let isOutdated = AtomicCell(false)
    /// The number of restorations so far.
    private let restorations = AtomicCell<Int64>(0)
    private let state: Locked<State>

    private struct State {
        /// The metadata for which the file was refused.
        var refused: StoreMetadata?
        /// The newest mark; empty for none.
        var mark: String
        /// The number of restorations up to each mark.
        var numbers: [String: Int64]
    }

    /// The UUIDs that this process has given to stores.
    private static let ownUUIDs = Locked<Set<String>>([])

    /// The columns to read the metadata from, without reading the file's schema.
    static let columns = SQLCatalog(["Z_METADATA": ["Z_UUID", "Z_PLIST"]])

    init(_ url: URL, _ metadata: StoreMetadata) {
        self.url = url
        hashes = metadata.versionHashes
        uuid = metadata.uuid
        let mark = metadata.restoration ?? ""
        state = Locked(State(mark: mark, numbers: [mark: 0]))
    }

    /// Adds a UUID that this process gives to a store: it is still the same store.
    static func addOwnUUID(_ uuid: String) { ownUUIDs.withLock { _ = $0.insert(uuid) } }

    /// Takes over the knowledge of another guard, whose file was the same store.
    ///
    /// It is called before anything is read.
    func goOn(from other: ModelGuard) {
        let (mark, numbers, count) = other.state.withLock {
            ($0.mark, $0.numbers, other.restorations.load(ordering: .relaxed))
        }
        state.withLock { state in
            (state.mark, state.numbers) = (mark, numbers)
            restorations.store(count, ordering: .releasing)
        }
    }

    /// Continues the restorations of another store, whose rows are copied into this one with their versions.
    ///
    /// - Parameter count: The number of restorations that the other one has had.
    func goOn(at count: Int64) {
        state.withLock { state in
            state.numbers[state.mark] = count
            restorations.store(count, ordering: .releasing)
        }
    }

    /// The number of restorations since the store was opened.
    var restorationCount: Int64 { restorations.load(ordering: .acquiring) }

    /// The mark of the last restoration; `nil` for none.
    var restoration: String? {
        let mark = state.withLock { $0.mark }
        return mark.isEmpty ? nil : mark
    }

    /// Refuses to use the file if it was migrated, or became another store.
    ///
    /// - Throws: `persistentStoreIncompatibleVersionHash` (134100); `persistentStoreOperation` (134070) for another store.
    @inline(__always)
    func requireKnown() throws {
        if isOutdated.load(ordering: .relaxed) { throw error }
    }

    /// Checks whether the last read matches the connection's idea of the file.
    ///
    /// It is called while the transaction of the read is open, or directly after it.
    ///
    /// - Returns: Whether the rows have the right versions; otherwise they have to be read again.
    /// - Throws: The errors of ``requireKnown()``; errors of SQLite.
    @inline(__always)
    func isCurrent(_ connection: Connection) throws -> Bool {
        let hasNews = connection.takeSchemaNews()
        guard hasNews || connection.note.generation != restorationCount else { return true }
        let offset = connection.note.versionOffset
        try look(connection, isNewest: false)
        return connection.note.versionOffset == offset
    }

    /// Refuses to go on with a file that was migrated, or is another store.
    ///
    /// It is called inside of a transaction, before anything is read or written.
    ///
    /// - Parameters:
    ///   - connection: The connection that reads or writes.
    ///   - isNewest: Whether it has the write lock, so that it sees the newest contents.
    /// - Throws: The errors of ``requireKnown()``; errors of SQLite.
    func requireSame(_ connection: Connection, isNewest: Bool = true) throws {
        try requireKnown()
        let version = try connection.firstInt64("PRAGMA schema_version") ?? 0
        guard version != connection.note.schemaVersion || connection.note.generation != restorationCount else { return }
        try look(connection, isNewest: isNewest)
        connection.note.schemaVersion = version
    }

    private func look(_ connection: Connection, isNewest: Bool) throws {
        let found: StoreMetadata?
        do {
            found = try StoreMetadata(on: connection, catalog: Self.columns, url: url)
        } catch let error as SQLiteError where error.code == .error {
            // There is no such table. This type does not handle a file that was emptied by other programs.
            return
        }
        guard let found else { return }
        let isSameStore =
            found.uuid == uuid || Self.ownUUIDs.withLock { $0.contains(found.uuid) } || FaultGuard.storeCheck.isOff
        guard found.versionHashes == hashes, isSameStore else {
            state.withLock { $0.refused = found }
            isOutdated.store(true, ordering: .relaxed)
            throw error
        }
        let met = numbers(of: found.restoration ?? "", isNewest: isNewest)
        connection.note.generation = met.inAll
        connection.note.versionOffset = RowVersion.offset(met.before)
    }

    /// The number of restorations up to a mark, and in all.
    ///
    /// A mark that is new here counts as the newest. If two new marks are found at the same time, the wrong one may
    /// count as the newest. The next writer corrects that.
    private func numbers(of mark: String, isNewest: Bool) -> (before: Int64, inAll: Int64) {
        if FaultGuard.restorationMark.isOff { return (0, 0) }
        return state.withLock { state -> (before: Int64, inAll: Int64) in
            let count = restorations.load(ordering: .relaxed)
            let known = state.numbers[mark]
            if let known, mark == state.mark || !isNewest { return (known, count) }
            state.mark = mark
            state.numbers[mark] = count + 1
            restorations.store(count + 1, ordering: .releasing)
            return (count + 1, count + 1)
        }
    }

    private var error: CocoaError {
        guard let found = state.withLock({ $0.refused }), found.versionHashes != hashes else {
            return SQLiteBoundary.replaced(url)
        }
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
