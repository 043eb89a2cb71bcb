import StrataRows
import StrataSQL
import StrataSQLite

/// The last keys that were given when the history of a file began.
///
/// Rows with higher keys must have been inserted since.
///
/// They are in the metadata of files whose history was begun here. Apple's framework does not keep them.
struct HistoryBaseline {
    /// The last key of each hierarchy, by the name of its root entity.
    let lastKeys: [String: Int]

    /// Reads the keys from the metadata of a file; `nil` if another framework has begun its history.
    init?(_ metadata: StoreMetadata) {
        guard let keys = metadata.values[StoreMetadata.historyBaselineKey] as? [String: Any] else { return nil }
        lastKeys = keys.compactMapValues { $0 as? Int }
    }

    /// Reads the highest keys that were given so far.
    init(_ mapping: SQLMapping, _ connection: Connection) throws {
        var keys: [String: Int] = [:]
        for table in mapping.tables {
            guard let root = table.entities.first else { continue }
            // If another program has changed the file, a counter may be lower than the keys of its table. This corrects
            // that.
            let statement = try connection.statement(
                SQL(
                    """
                    SELECT MAX(IFNULL((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(root.rootNumber)), 0),
                    IFNULL((SELECT MAX(Z_PK) FROM \(table.name)), 0))
                    """
                )
            )
            keys[Self.name(table)] = try statement.step() ? Int(statement[0].int64) : 0
        }
        lastKeys = keys
    }

    /// Takes keys by the number of the root entity in the model.
    init(_ mapping: SQLMapping, lastKeys keys: [Int: Int64]) {
        var last: [String: Int] = [:]
        for table in mapping.tables {
            guard let root = table.entities.first?.layout.rootNumber else { continue }
            last[Self.name(table)] = Int(keys[root] ?? 0)
        }
        lastKeys = last
    }

    /// Writes the keys into the metadata, in the write transaction that begins the history.
    func write(_ connection: Connection) throws {
        guard var metadata = try StoreMetadata(on: connection, catalog: SQLCatalog(connection), url: nil) else {
            return
        }
        metadata.values[StoreMetadata.historyBaselineKey] = lastKeys
        try metadata.write(connection)
    }

    /// The last key of a table's hierarchy when the history began; `nil` if it is not known.
    func lastKey(of table: SQLTable) -> Int? { lastKeys[Self.name(table)] }

    private static func name(_ table: SQLTable) -> String { table.entities.first?.layout.name ?? "" }
}
