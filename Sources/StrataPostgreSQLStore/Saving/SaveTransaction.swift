import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// One save, inside a transaction of READ COMMITTED that its caller begins, and commits or rolls back.
///
/// First the rows that the save changes, deletes or relies on are locked, table by table and in the order of their
/// keys, so that no two saves wait for each other. Locked rows cannot change any more, so all conflicts are found
/// before anything is committed. After that the save writes deletions, updates, insertions, relationships that no row
/// holds, and the history, each with one statement for all rows of one shape.
///
/// Some rows are found only later, and are locked after the others: rows that derive values from changed ones, and rows
/// that lead to deleted ones without having been loaded. There two saves can still wait for each other; the server ends
/// one of them, which is then made again. Only later it also turns out which members of an ordered relationship get new
/// positions. There the save does not wait. If another transaction has a lock on one of them, then the save is made
/// again, and locks all of the members in the common order.
///
/// The locks take one round trip, and the writes take another one, together with the COMMIT. New rows that depend on
/// nothing else are sent directly after the locks, so the server inserts them while the answers to the locks are read.
/// If these answers show a conflict, then the new rows are rolled back. Only work that has to read rows which the save
/// has written adds a round trip: positions in ordered relationships, derived attributes, and rows that are not stored
/// as they were given.
///
/// It is used once, by the thread that saves.
final class SaveTransaction {
    let changes: StoreChanges
    let database: OpenPostgreSQLStore
    let connection: Connection
    var mapping: SQLMapping { database.mapping }
    var naming: SQLNaming { mapping.dialect.naming }

    private(set) var conflicts: [StoreConflict] = []
    var result = StoreSaveResult()
    /// The mark in the lower bits of the versions that are written.
    let mark: Int64
    /// The permanent keys of rows that had temporary ones; made when needed, because few saves lead to new rows.
    private lazy var permanentKeys: PermanentKeys = {
        var permanent = PermanentKeys(minimumCapacity: result.insertedKeys.count)
        for (row, key) in zip(changes.inserted, result.insertedKeys) where row.key < 0 {
            permanent.set(key, for: row.key)
        }
        return permanent
    }()
    /// Rows whose stored form differs from the rows that were handed over, by the number of the root entity in the
    /// model.
    var inexact: [Int: Set<Int64>] = [:]
    /// Owners in ordered relationships with members that may have no position yet.
    var unplaced = UnplacedOwners()
    /// Relationships of rows that were cleared because the save deletes their destinations.
    var released: [(key: Int64, relationship: String, entity: EntityMapping)] = []
    /// The rows that the save leads to, and therefore locks, by the number of the root entity.
    var targets: [Int: [ObjectReference]] = [:]
    /// The queries for rows that lead to deleted ones, which are sent before anything is written.
    var lateReferences: [LateReferenceLook] = []
    /// The queries for deleted rows of which the history keeps values, by the number of their entity.
    var kept: [Int: PostedStatement] = [:]
    /// The keys of owners of changed relationships, and the queries for those that exist, by the number of the root
    /// entity.
    var touched: [Int: (keys: Set<Int64>, found: PostedStatement)] = [:]
    /// The recorder of the changes; `nil` if the store keeps no history.
    let history: HistoryRecorder?
    /// The to-one relationships that have a new destination, for each update; `nil` if that applies to all changed
    /// ones.
    private let moved: [SlotSet]?
    /// Whether many new rows are copied by COPY, which takes less time than INSERT, but more round trips.
    let copiesRows: Bool
    /// Keeps derived attributes up to date; `nil` if the model has none.
    let derived: DerivedUpkeep?
    /// Whether the save locks all members of ordered relationships with a new order before it writes, although few may
    /// get new positions.
    let locksOrders: Bool

    /// Makes a save whose new rows get the `keys`, in their order.
    ///
    /// A batch may let many rows be copied, and passes `moved`.
    ///
    /// A save that is made again locks whole orders.
    init(
        _ changes: StoreChanges,
        keys: [Int64],
        in database: OpenPostgreSQLStore,
        on connection: Connection,
        identifier: UUID,
        copiesRows: Bool = false,
        locksOrders: Bool = false,
        moved: [SlotSet]? = nil
    ) {
        self.changes = changes
        self.moved = moved
        self.copiesRows = copiesRows
        self.locksOrders = locksOrders
        self.database = database
        self.connection = connection
        history =
            database.recordsHistory
            ? HistoryRecorder(
                database,
                author: changes.author,
                contextName: changes.contextName,
                identifier: identifier
            ) : nil
        derived = database.derived.map { DerivedUpkeep($0, reading: database.queries, on: connection) }
        mark = RowVersion.mark(identifier)
        result.insertedKeys = keys
        // Copies of rows of another store keep their versions.
        result.versionMark = changes.keptKeys == nil ? mark : nil
    }

    /// Writes everything.
    ///
    /// - Returns: The conflicts; the transaction must be rolled back if there are any.
    func run() throws -> [StoreConflict] {
        try requireStorable()
        let look = try look()
        let isAhead = mayInsertAhead(look)
        if isAhead {
            try connection.requestAnswers(atOnce: changes.isLarge)
            try insertAll()
        }
        let vacated = try check(look)
        guard conflicts.isEmpty else { return conflicts }
        try derived?.markFound()
        for run in runs(changes.deleted, \.layout) { try delete(run) }
        try clear(vacated)
        for run in updateRuns() { try update(run) }
        if !isAhead { try insertAll() }
        try applyMemberships()
        try orderMembers()
        try placeUnplaced()
        try releaseLateReferences()
        try updateDerived()
        try readAgain()
        try recordHistory()
        return []
    }

    /// Whether the new rows can be sent together with the first queries, so that the server need not wait for them.
    ///
    /// If there is a conflict, then the transaction is rolled back with them. So they must not depend on the other
    /// changes, break a constraint, or be restored rows with the keys that they had before. Behind a pooler nothing may
    /// be written before the session was examined.
    private func mayInsertAhead(_ look: Look) -> Bool {
        (1...WorkSize.rowsAhead).contains(changes.inserted.count) && changes.deleted.isEmpty && changes.updated.isEmpty
            && derived == nil && look.findsNoHolders && !connection.isPooled
            && !changes.inserted.contains(where: StoreChanges.isRevived)
    }

    /// A row that shows afterwards whether the transaction was committed; `nil` if there is none.
    var witness: WrittenRow? {
        func row(of layout: EntityLayout, key: Int64, deed: WrittenRow.Deed, version: Int64) -> WrittenRow? {
            mapping.entity(layout).map {
                WrittenRow(table: $0.table, naming: naming, key: key, deed: deed, version: version)
            }
        }
        if let new = changes.inserted.first, let key = result.insertedKeys.first {
            // Others may also have changed a row that existed before.
            return row(
                of: new.layout,
                key: key,
                deed: new.version == 0 ? .inserted : .updated,
                version: RowVersion.next(after: new.version, mark: result.versionMark)
            )
        }
        if let update = changes.updated.first {
            let version = RowVersion.next(after: update.baseVersion, mark: mark)
            return row(of: update.row.layout, key: update.row.key, deed: .updated, version: version)
        }
        return changes.deleted.first.flatMap {
            row(of: $0.layout, key: $0.key, deed: .deleted, version: $0.baseVersion)
        }
    }

    func report(_ conflict: StoreConflict) { conflicts.append(conflict) }

    /// The key in the store; `nil` for a temporary key of a row that is not part of the save.
    func storedKey(_ key: Int64) -> Int64? { key >= 0 ? key : permanentKeys[key] }

    /// The mapping of an entity.
    ///
    /// - Throws: `persistentStoreSave` (134030) if the store does not hold it.
    func entity(_ layout: EntityLayout) throws -> EntityMapping {
        if let entity = mapping.entity(layout) { return entity }
        throw CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(database.place) does not hold entity \(layout.name)."
            ]
        )
    }

    // MARK: - Values that PostgreSQL cannot keep

    private func requireStorable() throws {
        for row in changes.inserted { try requireStorable(row, nil) }
        for update in changes.updated { try requireStorable(update.row, update.changed) }
    }

    private func requireStorable(_ row: Row, _ changed: SlotSet?) throws {
        var byteCount = 0
        for place in row.layout.countedPlaces
        where !row.isNull(place.slot) && changed?.contains(place.slot) != false {
            byteCount += place.isString ? row.string(place.word).utf8.count : row.data(place.word).count
            guard byteCount <= Self.mostBytes else { throw tooLarge(row) }
            guard place.isString, row.string(place.word).hasZeroByte else { continue }
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\"\(row.layout.slots[place.slot].name)\" of \(row.layout.name) \(row.key > 0 ? "p\(row.key)" : "(new)") cannot be saved: its text has the character U+0000, which PostgreSQL cannot keep."
                ]
            ).marked(.request)
        }
    }

    /// The most bytes that the large values of a row may have, because the server refuses a message of 1 GiB.
    private static let mostBytes = 900 << 20

    private func tooLarge(_ row: Row) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "\(row.layout.name) \(row.key > 0 ? "p\(row.key)" : "(new)") cannot be saved: its values have more than \(Self.mostBytes >> 20) MiB together, which PostgreSQL does not take."
            ]
        ).marked(.request)
    }

    // MARK: - Runs of one statement

    /// Groups elements by entity, in the order of the entities' numbers; one statement serves each group.
    func runs<Element>(_ elements: [Element], _ layout: (Element) -> EntityLayout) -> [[Element]] {
        guard let first = elements.first else { return [] }
        if elements.allSatisfy({ layout($0) === layout(first) }) { return [elements] }
        return Dictionary(grouping: elements) { layout($0).number }.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Updates that one statement serves.
    struct UpdateRun {
        let key: UpdateKey
        var updates: [RowUpdate]
    }

    /// Groups the updates by entity and slots.
    func updateRuns() -> [UpdateRun] {
        var positions: [UpdateKey: Int] = [:]
        var runs: [UpdateRun] = []
        for (index, update) in changes.updated.enumerated() {
            let moved = moved?[index] ?? update.changed
            let key = UpdateKey(entity: update.row.layout.number, changed: update.changed, moved: moved)
            if let position = positions[key] {
                runs[position].updates.append(update)
            } else {
                positions[key] = runs.count
                runs.append(UpdateRun(key: key, updates: [update]))
            }
        }
        return runs
    }

    // MARK: - After the rows

    /// Reads rows that are not stored as they were given.
    private func readAgain() throws {
        for (root, keys) in inexact where !keys.isEmpty {
            guard let entity = mapping.entity(modelNumber: root) else { continue }
            result.reread += try database.queries.rows(keys.sorted(), of: entity, on: connection)
        }
    }

    func markInexact(_ key: Int64, _ layout: EntityLayout) { inexact[layout.rootNumber, default: []].insert(key) }
}

extension StoreChanges {
    /// Whether the statements of a save take longer to make than the server takes to wake up.
    ///
    /// Then the first statements are sent early to wake the server. A small save is sent as a whole, because waking the
    /// server takes both sides longer than making its statements.
    var isLarge: Bool { inserted.count + updated.count + deleted.count > 32 }
}

extension String {
    /// Whether the character U+0000 is in the text.
    fileprivate var hasZeroByte: Bool {
        utf8.withContiguousStorageIfAvailable { utf8 in
            utf8.baseAddress.map { memchr($0, 0, utf8.count) != nil } ?? false
        } ?? utf8.contains(0)
    }
}
