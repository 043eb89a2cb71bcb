import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

/// The tables of the history, in Apple's layout.
enum HistorySchema {
    /// The numbers of the history's tables in `Z_PRIMARYKEY` and in `Z_ENT`.
    enum Counter: Int, CaseIterable {
        case change = 16001
        case transaction = 16002
        case string = 16003

        var name: String {
            switch self {
            case .change: "CHANGE"
            case .transaction: "TRANSACTION"
            case .string: "TRANSACTIONSTRING"
            }
        }

        var table: String { "A" + name }
    }

    /// The column of a change with a value of a deleted object, counted from 0.
    static func tombstoneColumn(_ index: Int) -> String { "ZTOMBSTONE\(index)" }

    static func isPresent(in catalog: SQLCatalog) -> Bool { Counter.allCases.allSatisfy { catalog.hasTable($0.table) } }

    /// The number of columns that a file has for values of deleted objects.
    static func tombstoneCount(in catalog: SQLCatalog) -> Int {
        guard catalog.hasTable(Counter.change.table) else { return 0 }
        var count = 0
        while catalog.hasColumn(tombstoneColumn(count), in: Counter.change.table) { count += 1 }
        return count
    }

    /// Creates the missing tables and columns, in the write transaction that is open.
    ///
    /// The first transaction creates the counters, as in Apple's files.
    ///
    /// - Returns: Whether the history begins here, because the file had no tables for it.
    static func prepare(tombstoneCount wanted: Int, _ connection: Connection) throws -> Bool {
        let catalog = try SQLCatalog(connection)
        let isNew = !isPresent(in: catalog)
        if isNew { for statement in statements { try connection.execute(statement) } }
        for index in tombstoneCount(in: catalog)..<max(wanted, tombstoneCount(in: catalog)) {
            // The column has no type, so that each value stays as it was in the table of its object.
            try connection.execute("ALTER TABLE ACHANGE ADD COLUMN \(tombstoneColumn(index)) BLOB")
        }
        return isNew
    }

    private static let statements = [
        """
        CREATE TABLE IF NOT EXISTS ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, \
        ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB )
        """,
        """
        CREATE TABLE IF NOT EXISTS ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, \
        ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, ZTIMESTAMP FLOAT, \
        ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB )
        """,
        """
        CREATE TABLE IF NOT EXISTS ATRANSACTIONSTRING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, \
        ZNAME VARCHAR )
        """,
        "CREATE INDEX IF NOT EXISTS ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)",
        "CREATE INDEX IF NOT EXISTS ATRANSACTION_ZAUTHORTS_INDEX ON ATRANSACTION (ZAUTHORTS)",
        "CREATE INDEX IF NOT EXISTS ATRANSACTION_ZBUNDLEIDTS_INDEX ON ATRANSACTION (ZBUNDLEIDTS)",
        "CREATE INDEX IF NOT EXISTS ATRANSACTION_ZCONTEXTNAMETS_INDEX ON ATRANSACTION (ZCONTEXTNAMETS)",
        "CREATE INDEX IF NOT EXISTS ATRANSACTION_ZPROCESSIDTS_INDEX ON ATRANSACTION (ZPROCESSIDTS)",
        """
        CREATE INDEX IF NOT EXISTS Z_TRANSACTION_TransactionAuthorIndex ON ATRANSACTION (ZAUTHOR COLLATE BINARY ASC)
        """,
        """
        CREATE INDEX IF NOT EXISTS Z_TRANSACTION_TransactionTimestampIndex \
        ON ATRANSACTION (ZTIMESTAMP COLLATE BINARY ASC)
        """,
        """
        CREATE UNIQUE INDEX IF NOT EXISTS Z_TRANSACTIONSTRING_UNIQUE_NAME \
        ON ATRANSACTIONSTRING (ZNAME COLLATE BINARY ASC)
        """,
    ]
}

/// The history's facts in an open file.
final class HistoryMapping: Sendable {
    /// Whether changes are recorded; otherwise earlier records can be read.
    let isRecording: Bool
    /// The entities by their number in the store, from 1 at index 0.
    private let entities: [HistoryEntity]
    private let tombstoneCount: Int

    init(_ mapping: SQLMapping, isRecording: Bool, tombstoneCount: Int) {
        self.isRecording = isRecording
        self.tombstoneCount = tombstoneCount
        entities = mapping.entities.map { HistoryEntity($0, tombstoneCount: tombstoneCount) }
    }

    func entity(_ mapping: EntityMapping) -> HistoryEntity { entities[mapping.number - 1] }

    /// The columns of a change that hold values of deleted objects, to be selected after others.
    var tombstoneColumns: String {
        (0..<tombstoneCount).map { ", " + HistorySchema.tombstoneColumn($0) }.joined()
    }

    /// The number of columns that a model needs: that of the entity with the most attributes to keep.
    static func tombstoneCount(for mapping: SQLMapping) -> Int {
        mapping.entities.map { HistoryEntity.kept($0).count }.max() ?? 0
    }
}

/// The facts that the history keeps for one entity.
final class HistoryEntity: Sendable {
    let mapping: EntityMapping
    let places: HistoryPlaces
    /// The attributes that a deletion keeps, in the order of their columns.
    let kept: [Slot]
    /// Inserts a change without values of a deleted object: number, kind, entity, key, transaction, properties.
    static let insert: SQL = """
        INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS)
        VALUES (?, 16001, ?, ?, ?, ?, ?)
        """
    /// Inserts a change with the values.
    let insertTombstone: SQL
    /// Selects the values of a row that is about to be deleted.
    let selectTombstone: SQL

    init(_ mapping: EntityMapping, tombstoneCount: Int) {
        self.mapping = mapping
        places = HistoryPlaces(mapping.layout) { mapping.columns[$0.index].entity != nil }
        kept = Array(Self.kept(mapping).prefix(tombstoneCount))
        let columns = kept.indices.map { ", " + HistorySchema.tombstoneColumn($0) }.joined()
        let marks = String(repeating: ", ?", count: kept.count)
        insertTombstone = SQL(
            """
            INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS\(columns))
            VALUES (?, 16001, ?, ?, ?, ?, ?\(marks))
            """
        )
        let names = kept.compactMap { mapping.columns[$0.index].name?.description }.joined(separator: ", ")
        selectTombstone = SQL("SELECT \(names) FROM \(mapping.table) WHERE Z_PK = ?")
    }

    /// The stored attributes that the model wants to keep, by name.
    static func kept(_ mapping: EntityMapping) -> [Slot] {
        let composites = mapping.layout.composites.filter(\.keepsValueInHistory)
        let leaves = Set(composites.flatMap(\.leaves))
        return mapping.layout.slots.filter { slot in
            guard mapping.columns[slot.index].name != nil else { return false }
            return leaves.contains(slot.index) || slot.keepsValueInHistory
        }
        .sorted { $0.name < $1.name }
    }
}
