import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// One save, inside a transaction of READ COMMITTED that its caller begins, and commits or rolls back.
///
/// First the rows that the save changes, deletes or relies on are locked, table by table and in the order of their
/// keys, so that no two saves wait for each other. Locked rows cannot change any more, so all conflicts are found
/// before anything is committed. Then come deletions, updates, insertions, relationships that no row holds, and the
/// history, each in a statement for all rows of one shape.
///
/// Some rows are found only on the way, and are locked behind the others: rows that compute something of changed ones,
/// and rows that lead to deleted ones without having been loaded. There two saves can still wait for each other; the
/// server ends one, which is made again. It also turns out on the way which members of an ordered relationship get
/// new positions. There the save does not wait: if another transaction has one, the save is made again, with all of the
/// members locked in their turn.
///
/// The locks are one round trip, and what is written is another one, with the COMMIT. New rows that depend on nothing else are sent behind the
/// locks, so that the server inserts them while their answers are read: if these tell a conflict, they are rolled back. Only what has to look at
/// rows that the save has written adds a round trip: positions in ordered relationships, derived attributes, and rows that are not stored as they
/// were given.
///
/// Used once, by the thread that saves.
final class SaveTransaction {
    let changes: StoreChanges
    let database: OpenDatabase
    let connection: Connection
    var mapping: SQLMapping { database.mapping }
    var naming: SQLNaming { mapping.dialect.naming }

    private(set) var conflicts: [StoreConflict] = []
    var result = StoreSaveResult()
    /// The mark in the lower bits of the versions that are written.
    let mark: Int64
    /// The permanent keys of rows that had temporary ones; few saves lead to rows that are as new.
    private lazy var permanentKeys: KeyMap<Int64> = {
        var permanent = KeyMap<Int64>(minimumCapacity: result.insertedKeys.count)
        for (row, key) in zip(changes.inserted, result.insertedKeys) where row.key < 0 {
            permanent.set(key, for: row.key)
        }
        return permanent
    }()
    /// Rows whose stored form is not what was handed over, by the number of the root entity in the model.
    var inexact: [Int: Set<Int64>] = [:]
    /// Owners in ordered relationships with members that may have no position yet.
    var unplaced: Set<UnplacedOwner> = []
    /// Relationships that rows were taken out of because the save deletes what they led to.
    var released: [(key: Int64, relationship: String, entity: EntityMapping)] = []
    /// The rows that the save leads to, and locks for that, by the number of the root entity.
    var targets: [Int: [ObjectReference]] = [:]
    /// What was asked before anything is written, for later: rows that lead to deleted ones, deleted rows of which something is kept, by the
    /// number of their entity, and owners of changed relationships, by that of the root entity.
    var stragglers: [StragglerLook] = []
    var kept: [Int: PostedStatement] = [:]
    var touched: [Int: (keys: Set<Int64>, found: PostedStatement)] = [:]
    /// Where changes are recorded; `nil` if the store keeps no history.
    let history: HistoryRecorder?
    /// The to-one relationships that lead elsewhere than before, for each update; `nil` if all that change do.
    private let moved: [SlotSet]?
    /// Whether many new rows go by COPY, which takes less time than INSERT, and round trips of its own.
    let copiesRows: Bool
    /// What keeps derived attributes up to date; `nil` if the model has none.
    let derived: DerivedUpkeep?
    /// Whether all members of ordered relationships whose order changes are locked before anything is written, though few may get new positions.
    let locksOrders: Bool

    /// An owner in an ordered relationship, to which this save has added members.
    struct UnplacedOwner: Hashable {
        let table: SQLName
        let owner: SQLName
        let member: SQLName
        let order: SQLName
        let key: Int64
    }

    /// A save whose new rows get the `keys`, in their order; a batch lets many rows be copied, and says what has `moved`.
    ///
    /// One that is made again locks whole orders.
    init(
        _ changes: StoreChanges,
        keys: [Int64],
        _ database: OpenDatabase,
        _ connection: Connection,
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
        derived = database.derived.map { DerivedUpkeep($0, database.queries, connection) }
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
        try derived?.noteAnswers()
        for run in runs(changes.deleted, \.layout) { try delete(run) }
        try clear(vacated)
        for run in updateRuns() { try update(run) }
        if !isAhead { try insertAll() }
        try applyMemberships()
        try orderMembers()
        try placeUnplaced()
        try releaseStragglers()
        try updateDerived()
        try readAgain()
        try recordHistory()
        return []
    }

    /// The most rows that are sent before the locks are answered: if there is a conflict, the server has inserted them in vain.
    private static let mostAhead = 1000

    /// Whether the new rows can be sent with what is asked before anything is written, so that the server need not wait for them.
    ///
    /// If there is a conflict after all, the transaction is rolled back with them. So they must not depend on the other
    /// changes, nor break a constraint, nor come back under keys that they had before. Behind a pooler nothing may be
    /// written before the session was looked at.
    private func mayInsertAhead(_ look: Look) -> Bool {
        (1...Self.mostAhead).contains(changes.inserted.count) && changes.deleted.isEmpty && changes.updated.isEmpty
            && derived == nil && look.findsNoHolders && !connection.isPooled
            && !changes.inserted.contains(where: StoreChanges.isRevived)
    }

    /// A row that tells afterwards whether the transaction was committed; `nil` if there is none.
    var witness: WrittenRow? {
        func row(_ layout: EntityLayout, _ key: Int64, _ deed: WrittenRow.Deed, _ version: Int64) -> WrittenRow? {
            mapping.entity(layout).map {
                WrittenRow(table: $0.table, naming: naming, key: key, deed: deed, version: version)
            }
        }
        if let new = changes.inserted.first, let key = result.insertedKeys.first {
            // One that was there before may have been changed by others as well.
            return row(
                new.layout,
                key,
                new.version == 0 ? .inserted : .updated,
                RowVersion.next(after: new.version, mark: result.versionMark)
            )
        }
        if let update = changes.updated.first {
            let version = RowVersion.next(after: update.baseVersion, mark: mark)
            return row(update.row.layout, update.row.key, .updated, version)
        }
        return changes.deleted.first.flatMap { row($0.layout, $0.key, .deleted, $0.baseVersion) }
    }

    func report(_ conflict: StoreConflict) { conflicts.append(conflict) }

    /// The key as it is stored; `nil` for a temporary one of a row that is not saved with the rest.
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

    /// The most bytes that the large values of a row may have: the server takes no message of 1 GiB.
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

    /// Elements of one entity, which one statement serves, in the order of the entities' numbers.
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

    /// Updates of one entity and the same slots.
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
            result.reread += try database.queries.rows(keys.sorted(), entity, connection)
        }
    }

    func noteInexact(_ key: Int64, _ layout: EntityLayout) { inexact[layout.rootNumber, default: []].insert(key) }
}

extension StoreChanges {
    /// Whether the statements of a save take longer to make than the server takes to wake up.
    ///
    /// Then it is woken as soon as there is something to do. A small save is sent as a whole: to wake the server takes both sides longer than
    /// to make its statements.
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
