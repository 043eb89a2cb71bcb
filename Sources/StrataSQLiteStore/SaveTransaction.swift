import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// One save, inside a write transaction that its caller begins, and commits or rolls back.
///
/// Keys come first, then the checks of rows that must not have changed (`changes.locked`), then deletes, updates and
/// inserts, so that a unique value that one row gives up is free for the next. If a write meets a unique value that is
/// still in use, it is put off until the others are done. Relationships that are not in rows come next, and reading
/// again comes last. Conflicts are collected. If there is one, nothing may be committed.
///
/// It is used once, by the thread that saves.
final class SaveTransaction {
    let changes: StoreChanges
    let file: OpenSQLiteStore
    let connection: Connection
    /// The number that is added to stored versions, see ``RowVersion``.
    let offset: Int64
    var mapping: SQLMapping { file.mapping }

    private(set) var conflicts: [StoreConflict] = []
    var result = StoreSaveResult()
    /// The permanent keys of rows that had temporary ones.
    private(set) var permanentKeys = PermanentKeys()
    /// Rows whose stored form differs from the given one.
    var inexact: Set<TriggerReports.Entry> = []
    /// Owners in ordered relationships with members that may have no position yet.
    var unplaced = UnplacedOwners()
    /// The last members of ordered relationships after this save, `nil` where they are not known any more; known to
    /// others once it is committed.
    var lastMembers: [LastMembers.Place: LastMembers.Entry?] = [:]
    /// The expected versions of the rows that are updated, made at the first use.
    var updatedVersions: [RowName: Int64] = [:]
    /// The number of commits by other programs that the save sees, or more.
    ///
    /// The transaction has the write lock, so there are no others until its end.
    private(set) lazy var epoch = file.pool.commitsOfOthers &+ UInt64(file.modelGuard.restorationCount)
    /// Writes that met a unique value that is in use.
    var putOff: [PutOffWrite] = []
    /// Writes that found another version of their row.
    ///
    /// The constraints that they would break are reported with that.
    var outdated: [PutOffWrite] = []
    /// The changes that the save makes to external files.
    let files: FileChanges
    /// Values that this save has written to files, with the names of the files.
    var writtenFiles: [ExternalValue: String] = [:]
    /// The recorder of the changes; `nil` if the store keeps no history.
    let history: HistoryRecorder?
    /// Changes for the history besides the rows of the change set.
    var touched = TouchedRows()
    /// Relationships that were cleared because the save deletes their destinations.
    var released: [(key: Int64, relationship: String, entity: EntityMapping)] = []

    init(_ changes: StoreChanges, in file: OpenSQLiteStore, on connection: Connection) {
        self.changes = changes
        self.file = file
        self.connection = connection
        offset = connection.note.versionOffset
        files = FileChanges(file)
        history = HistoryRecorder(file, connection, author: changes.author, contextName: changes.contextName)
        result.versionOffset = offset
    }

    /// Writes everything.
    ///
    /// - Returns: The conflicts; the transaction must be rolled back if there are any.
    func run() throws -> [StoreConflict] {
        _ = file.database.reports.removeAll()
        try allocateKeys()
        for run in runs(changes.locked, \.layout) { try checkVersions(run) }
        for run in runs(changes.deleted, \.layout) { try delete(run) }
        for run in updateRuns() { try update(run) }
        try insertAll()
        try retryPutOff()
        try checkTargets()
        guard conflicts.isEmpty else { return conflicts }
        for change in changes.toMany { try apply(change) }
        for change in changes.toMany { try order(change) }
        try placeUnplaced()
        try releaseLateReferences()
        try keepTimes()
        try readAgain()
        try recordHistory()
        return []
    }

    func report(_ conflict: StoreConflict) {
        if FaultGuard.versionCheck.isOff { return }
        conflicts.append(conflict)
    }

    // MARK: - Keys

    private func allocateKeys() throws {
        let inserted = changes.inserted
        if let kept = changes.keptKeys {
            try KeyAllocation(mapping).advance(past: kept, at: file.url.path, on: connection)
        }
        // The counts are in arrays by the number of the root, because they are used for each row.
        var counts = [Int](repeating: 0, count: mapping.schema.entities.count + 1)
        for row in inserted where row.key < 0 { counts[row.layout.rootNumber] += 1 }
        let wanted = counts.enumerated().filter { $0.element > 0 }.map { ($0.offset, $0.element) }
        let reserved = try KeyAllocation(mapping).reserve(Dictionary(uniqueKeysWithValues: wanted), connection)
        var next = counts.indices.map { reserved[$0]?.lowerBound ?? 0 }
        permanentKeys = PermanentKeys(minimumCapacity: inserted.count)
        var keys: [Int64] = []
        keys.reserveCapacity(inserted.count)
        for row in inserted {
            var key = row.key
            if key < 0 {
                let root = row.layout.rootNumber
                let temporary = key
                key = next[root]
                guard key > 0 else { throw notHeld(row.layout) }
                next[root] = key + 1
                permanentKeys.set(key, for: temporary)
            }
            keys.append(key)
        }
        result.insertedKeys = keys
    }

    /// The stored key; `nil` for a temporary key of a row that is not in the save.
    @inline(__always)
    func storedKey(_ key: Int64) -> Int64? { key >= 0 ? key : permanentKeys[key] }

    /// The mapping of an entity.
    ///
    /// - Throws: `persistentStoreSave` (134030) if the store does not hold it.
    func entity(_ layout: EntityLayout) throws -> EntityMapping {
        guard let entity = mapping.entity(layout) else { throw notHeld(layout) }
        return entity
    }

    private func notHeld(_ layout: EntityLayout) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(file.url.path) does not hold entity \(layout.name)."
            ]
        )
    }

    // MARK: - Runs of one statement

    /// Groups of elements of one entity, each written by one statement.
    func runs<Element>(_ elements: [Element], _ layout: (Element) -> EntityLayout) -> [[Element]] {
        guard let first = elements.first else { return [] }
        if elements.allSatisfy({ layout($0) === layout(first) }) { return [elements] }
        var positions: [Int: Int] = [:]
        var runs: [[Element]] = []
        for element in elements {
            let number = layout(element).number
            if let position = positions[number] {
                runs[position].append(element)
            } else {
                positions[number] = runs.count
                runs.append([element])
            }
        }
        return runs
    }

    private struct UpdateKey: Hashable {
        let entity: Int
        let changed: SlotSet
    }

    /// Groups of updates of one entity and the same slots, each written by one statement.
    func updateRuns() -> [[RowUpdate]] {
        var positions: [UpdateKey: Int] = [:]
        var runs: [[RowUpdate]] = []
        for update in changes.updated {
            let key = UpdateKey(entity: update.row.layout.number, changed: update.changed)
            if let position = positions[key] {
                runs[position].append(update)
            } else {
                positions[key] = runs.count
                runs.append([update])
            }
        }
        return runs
    }

    // MARK: - Versions

    private func checkVersions(_ run: [ExpectedRow]) throws {
        let entity = try entity(run[0].layout)
        let statement = try connection.statement(SQL("SELECT Z_OPT FROM \(entity.table) WHERE Z_PK = ?"))
        for lock in run {
            try statement.bind(lock.key, at: 1)
            let version = try statement.step() ? statement[0].int64 &+ offset : nil
            statement.reset()
            if version != lock.baseVersion {
                try reportVersion(of: entity, key: lock.key, baseVersion: lock.baseVersion)
            }
        }
    }

    func reportVersion(of entity: EntityMapping, key: Int64, baseVersion: Int64) throws {
        let persisted = try file.queries.row(key, of: entity, on: connection, stamp: CoarseClock.now)
        report(.version(layout: entity.layout, key: key, baseVersion: baseVersion, persisted: persisted))
    }

    // MARK: - Deleting

    private func delete(_ run: [ExpectedRow]) throws {
        let entity = try entity(run[0].layout)
        let keepsFiles = entity.columns.contains(where: \.isTagged)
        let keys = run.map(\.key)
        try history?.willDelete(keys, of: entity)
        do {
            let statement = try connection.statement(
                SQL("DELETE FROM \(entity.table) WHERE Z_PK = ? AND Z_OPT = ?")
            )
            for deletion in run {
                if keepsFiles { try rememberFiles(of: entity, key: deletion.key) { _ in true } }
                try statement.bind(deletion.key, at: 1)
                try statement.bind(deletion.baseVersion &- offset, at: 2)
                try statement.run()
                if connection.changeCount == 0 {
                    try reportVersion(of: entity, key: deletion.key, baseVersion: deletion.baseVersion)
                }
            }
        }
        // This removes the rows from other tables.
        for relationship in entity.toMany {
            switch relationship {
            case .join(let side):
                try forEach(keys, "DELETE FROM \(side.table) WHERE \(side.owner) = ?")
                if side.isSymmetric { try forEach(keys, "DELETE FROM \(side.table) WHERE \(side.member) = ?") }
            case .key(let key) where key.isWithoutInverse:
                try forEach(
                    keys,
                    "UPDATE \(key.table) SET \(key.column) = NULL\(key.clearedOrder) WHERE \(key.column) = ?"
                )
            case .key, .absent: break
            }
        }
    }

    private func forEach(_ keys: [Int64], _ sql: String) throws {
        let statement = try connection.statement(SQL(sql))
        for key in keys {
            try statement.bind(key, at: 1)
            try statement.run()
        }
    }

    // MARK: - After the rows

    /// Gives copies of another store's rows the times of their last saves, which triggers have set to that of the copy.
    private func keepTimes() throws {
        guard changes.keptKeys != nil else { return }
        for run in runs(Array(zip(changes.inserted, result.insertedKeys)), { $0.0.layout }) {
            let entity = try entity(run[0].0.layout)
            for slot in entity.layout.slots where slot.traits?.derivation == .now {
                guard let column = entity.columns[slot.index].name else { continue }
                let statement = try connection.statement(
                    SQL("UPDATE \(entity.table) SET \(column) = ? WHERE Z_PK = ?")
                )
                for (row, key) in run {
                    try statement.bind(SQLBinding(row, slot), at: 1)
                    try statement.bind(key, at: 2)
                    try statement.run()
                }
            }
        }
    }

    /// Reads rows that triggers have changed, or whose stored form differs from the given one.
    private func readAgain() throws {
        let entries = file.database.reports.removeAll().union(inexact)
        guard !entries.isEmpty else { return }
        var keys: [Int: [Int64]] = [:]
        for entry in entries {
            guard let entity = mapping.entity(storeNumber: entry.entity) else { continue }
            keys[entity.rootNumber, default: []].append(entry.key)
        }
        let stamp = CoarseClock.now
        for (root, keys) in keys {
            guard let entity = mapping.entity(storeNumber: Int64(root)) else { continue }
            result.reread += try file.queries.rows(keys, of: entity, on: connection, stamp: stamp)
        }
    }

    // MARK: - External files

    /// Notes the files of values that are about to be removed.
    func rememberFiles(of entity: EntityMapping, key: Int64, ifChanged isChanged: (Int) -> Bool) throws {
        let names = entity.layout.slots.compactMap { slot in
            let column = entity.columns[slot.index]
            return column.isTagged && isChanged(slot.index) ? column.name?.description : nil
        }
        guard !names.isEmpty else { return }
        let statement = try connection.statement(
            SQL("SELECT \(names.joined(separator: ", ")) FROM \(entity.table) WHERE Z_PK = ?")
        )
        try statement.bind(key, at: 1)
        guard try statement.step() else { return }
        for index in names.indices { files.addObsolete(statement[index].bytes) }
    }
}
