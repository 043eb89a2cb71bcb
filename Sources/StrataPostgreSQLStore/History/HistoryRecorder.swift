import Foundation
import StrataKeys
import StrataLocks
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// Records the changes of one transaction, as part of that transaction: at its end, when every row is locked.
///
/// It is used once, by the thread that writes, before it commits.
final class HistoryRecorder {
    let identifier: UUID
    private let database: OpenPostgreSQLStore
    private let author: String?
    private let contextName: String?
    /// The recorded changes.
    ///
    /// Exclusivity is not checked, because only `record` changes them, and it calls nothing that records.
    @exclusivity(unchecked) private var runs: [Run] = []

    /// Consecutive changes of one kind to rows of one entity: they become one row of the table.
    private struct Run {
        /// The number of its first change in the transaction, from 1.
        let place: Int
        let kind: HistoryChangeKind
        let entity: Int
        /// The properties that were changed in all of the rows.
        let mask: [UInt8]?
        /// The kept values of a deleted row, which then is a separate run.
        let tombstone: Data?
        var keys: [Int64]
    }

    init(_ database: OpenPostgreSQLStore, author: String?, contextName: String?, identifier: UUID) {
        self.database = database
        self.author = author
        self.contextName = contextName
        self.identifier = identifier
    }

    /// Whether something was recorded.
    private(set) var isWritten = false

    // MARK: - Changes

    func inserted(_ keys: some Sequence<Int64>, of entity: EntityMapping) {
        for key in keys { record(.insert, of: entity, key: key) }
    }

    func updated(_ keys: some Sequence<Int64>, of entity: EntityMapping, mask: HistoryMask) {
        for key in keys { record(.update, of: entity, key: key, mask: mask.bytes) }
    }

    /// Whether the model keeps values of deleted rows of an entity, or of its sub-entities.
    static func keepsValues(of entity: EntityMapping, _ mapping: SQLMapping) -> Bool {
        entity.subtree.contains { number in
            mapping.entity(storeNumber: Int64(number)).map { !$0.layout.keptSlots.isEmpty } ?? false
        }
    }

    func deleted(_ keys: some Sequence<Int64>, of entity: EntityMapping) {
        for key in keys { record(.delete, of: entity, key: key) }
    }

    /// Records that a row is deleted, with the values that the model keeps.
    func deleted(_ row: Row) {
        guard let entity = database.mapping.entity(row.layout) else { return }
        record(.delete, of: entity, key: row.key, tombstone: Tombstone.archive(row))
    }

    private func record(
        _ kind: HistoryChangeKind,
        of entity: EntityMapping,
        key: Int64,
        mask: [UInt8]? = nil,
        tombstone: Data? = nil
    ) {
        let last = runs.count - 1
        if last >= 0, runs[last].keys.count < WorkSize.runKeys, runs[last].kind == kind,
            runs[last].entity == entity.number,
            runs[last].mask == mask, runs[last].tombstone == nil, tombstone == nil
        {
            return runs[last].keys.append(key)
        }
        let place = last >= 0 ? runs[last].place + runs[last].keys.count : 1
        runs.append(
            Run(place: place, kind: kind, entity: entity.number, mask: mask, tombstone: tombstone, keys: [key])
        )
    }

    func places(_ entity: EntityMapping) -> HistoryPlaces { database.places.places(entity) }

    // MARK: - The end

    /// Writes everything; nothing may be recorded afterwards.
    ///
    /// A transaction without changes is not recorded.
    func finish(_ connection: Connection) throws {
        guard !runs.isEmpty else { return }
        isWritten = true
        // The number in the sequence is drawn when all rows are locked, so a later change of a row gets a later number.
        let transaction =
            connection.isPortable
            ? Self.numberedTransaction
            : """
            t AS (INSERT INTO strata_transaction (id, time, author, bundle, context, process)
            VALUES ($1, \(HistoryQueries.now), $2, $3, $4, $5) RETURNING seq)
            """
        let values: [PostgreSQLValue] = [
            .uuid(identifier), Self.text(author), Self.text(Self.bundleID), Self.text(contextName),
            Self.text(Self.processID),
        ]
        var rest = runs[...]
        while !rest.isEmpty {
            let isFirst = rest.startIndex == 0
            let known = "t AS (SELECT seq FROM strata_transaction WHERE id = $1)"
            let source = isFirst ? transaction : known
            let other = isFirst ? values : [values[0]]
            // There are no arrays of arrays of different lengths. So the keys of all runs are one array, and each run
            // has a part of it.
            var keys = PostgreSQLArray(.int8)
            var columns = Self.columns.map { PostgreSQLArray($0) }
            var (count, byteCount) = (0, 0)
            while let run = rest.first, count < WorkSize.historyRuns, keys.count < WorkSize.historyKeys,
                byteCount < ColumnArrays.statement.bytes
            {
                columns[0].append(Int64(run.place))
                columns[1].append(Int64(run.kind.rawValue))
                columns[2].append(Int64(run.entity))
                if let mask = run.mask { columns[3].append(mask) } else { columns[3].appendNull() }
                if let tombstone = run.tombstone { columns[4].append(tombstone) } else { columns[4].appendNull() }
                columns[5].append(Int64(keys.count + 1))
                for key in run.keys { keys.append(key) }
                columns[6].append(Int64(keys.count))
                count += 1
                byteCount += run.tombstone?.count ?? 0
                rest = rest.dropFirst()
            }
            let runs = unnested(Self.columns, from: other.count + 1)
            try connection.post(
                """
                WITH \(source)
                INSERT INTO strata_change (seq, place, kind, entity, mask, tombstone, keys)
                SELECT t.seq, u.place, u.kind, u.entity, u.mask, u.tombstone, ($\(other.count + Self.columns.count + 1))[u.first:u.last]
                FROM t, \(runs) AS u (place, kind, entity, mask, tombstone, first, last)
                """,
                other + columns.map { .array($0) } + [.array(keys)]
            )
        }
    }

    /// The transaction of a portable store, with its number.
    ///
    /// The number is that of a row that every transaction with changes writes last, and keeps locked until it ends. So numbers become visible in their order
    /// and without gaps, and no reader has to give them. The price is that such transactions commit one after the other.
    private static let numberedTransaction = """
        n AS (UPDATE strata_history SET last = last + 1 RETURNING last),
        t AS (INSERT INTO strata_transaction (number, id, time, author, bundle, context, process)
        SELECT n.last, $1, \(HistoryQueries.now), $2, $3, $4, $5 FROM n RETURNING seq)
        """

    /// The place, kind, entity, mask and tombstone of each run, and the positions of its first and its last key.
    private static let columns: [PostgreSQLType] = [.int8, .int8, .int8, .bytea, .bytea, .int8, .int8]

    private static func text(_ value: String?) -> PostgreSQLValue {
        value.map { .text($0.replacing("\0", with: "")) } ?? .null(.text)
    }

    private static let bundleID = Bundle.main.bundleIdentifier
    private static let processID = ProcessInfo.processInfo.processName
}

/// The bits that stand for the properties of each entity.
final class PlacesByEntity: Sendable {
    private let places: [HistoryPlaces]

    init(_ mapping: SQLMapping) {
        places = mapping.entities.map { entity in
            HistoryPlaces(entity.layout) { entity.columns[$0.index].entity != nil }
        }
    }

    func places(_ entity: EntityMapping) -> HistoryPlaces { places[entity.number - 1] }
}

extension EntityLayout {
    /// The attributes whose values the history keeps when an object is deleted.
    var keptSlots: [Slot] {
        let elements = Set(composites.filter(\.keepsValueInHistory).flatMap(\.leaves))
        return slots.filter { $0.keepsValueInHistory || elements.contains($0.index) }
    }
}

/// The values of a deleted object that the history keeps: a property list of the values by attribute.
enum Tombstone {
    static func archive(_ row: Row) -> Data? {
        let kept = row.layout.keptSlots
        guard !kept.isEmpty else { return nil }
        var values: [String: Any] = [:]
        for slot in kept where !row.isNull(slot.index) {
            switch slot.kind {
            case .int: values[slot.name] = row.int(slot.word)
            case .double: values[slot.name] = row.double(slot.word)
            case .string: values[slot.name] = row.string(slot.word)
            case .data: values[slot.name] = row.data(slot.word)
            case .uuid: values[slot.name] = row.uuid(slot.word).uuidString
            case .decimal: values[slot.name] = "\(row.decimal(slot.word))"
            case .reference: break
            }
        }
        return try? PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
    }

    /// The values as key-value coding returns them; for transformable attributes, the archives.
    static func values(_ data: Data, _ layout: EntityLayout) -> [String: Any] {
        guard let list = PropertyListSerialization.dictionary(from: data) else { return [:] }
        var values: [String: Any] = [:]
        for slot in layout.keptSlots {
            guard let value = list[slot.name] else { continue }
            let row = Row(layout: layout, key: 0)
            switch slot.kind {
            case .int: (value as? NSNumber).map { row.setInt($0.int64Value, slot) }
            case .double: (value as? NSNumber).map { row.setDouble($0.doubleValue, slot) }
            case .string: (value as? String).map { row.setString($0, slot) }
            case .uuid: (value as? String).flatMap { UUID(uuidString: $0) }.map { row.setUUID($0, slot) }
            case .decimal:
                // A migration may have made a decimal of a whole number.
                let digits = value as? String ?? (value as? NSNumber)?.stringValue
                digits.flatMap { Decimal(string: $0) }.map { row.setDecimal($0, slot) }
            case .data:
                values[slot.name] = value as? Data
                continue
            case .reference: continue
            }
            if !row.isNull(slot.index) { values[slot.name] = row.anyValue(slot) }
        }
        return values
    }
}
