import StrataRows
import StrataSQL
import StrataSQLite

/// Gives out primary keys, by the counters in `Z_PRIMARYKEY`.
///
/// A key is never given twice, even after its row is gone.
struct KeyAllocation {
    private let mapping: SQLMapping

    init(_ mapping: SQLMapping) { self.mapping = mapping }

    /// Reserves keys in the open transaction; `counts` has their number by the number of the root entity in the model.
    func reserve(_ counts: [Int: Int], _ connection: Connection) throws -> [Int: Range<Int64>] {
        var ranges: [Int: Range<Int64>] = [:]
        for (root, count) in counts where count > 0 {
            guard let entity = mapping.entity(modelNumber: root) else { continue }
            ranges[root] = try reserve(count, of: entity, on: connection)
        }
        return ranges
    }

    private func reserve(_ count: Int, of root: EntityMapping, on connection: Connection) throws -> Range<Int64> {
        // If another program has changed the file, a counter may be lower than the keys of its table. This corrects
        // that.
        let sql = SQL(
            """
            UPDATE Z_PRIMARYKEY SET Z_MAX = MAX(IFNULL(Z_MAX, 0), (SELECT IFNULL(MAX(Z_PK), 0) FROM \(root.table))) + ?
            WHERE Z_ENT = ? RETURNING Z_MAX
            """
        )
        for _ in 0..<2 {
            let statement = try connection.statement(sql)
            try statement.bind(count, at: 1)
            try statement.bind(root.number, at: 2)
            if try statement.step() {
                let last = statement[0].int64
                while try statement.step() {}
                // If another program has set a counter to the highest number, SQLite adds to it as to a floating-point
                // number.
                guard last >= Int64(count), last < .max else {
                    let name = root.layout.name
                    throw SQLiteBoundary.damaged(nil, "Z_PRIMARYKEY leaves no keys for entity \(name).")
                }
                return (last - Int64(count) + 1)..<(last + 1)
            }
            try addCounter(root, connection)
        }
        throw SQLiteBoundary.damaged(nil, "Z_PRIMARYKEY has no row for entity \(root.layout.name).")
    }

    /// The highest keys that were given so far, by the number of the root entity in the model.
    func last(_ roots: [Int], _ connection: Connection) throws -> [Int: Int64] {
        var last: [Int: Int64] = [:]
        let statement = try connection.statement("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = ?")
        for root in roots {
            guard let entity = mapping.entity(modelNumber: root) else { continue }
            try statement.bind(entity.number, at: 1)
            if try statement.step() { last[root] = statement[0].optionalInt64 ?? 0 }
            statement.reset()
        }
        return last
    }

    /// Moves the counters past the keys that copies of another store's rows bring along.
    ///
    /// - Parameters:
    ///   - keys: The highest of these keys, by the number of the root entity in the model.
    ///   - place: The place of the store, for the error.
    ///   - connection: A connection with an open write transaction.
    /// - Throws: `persistentStoreOperation` (134070) if the store has already given keys itself.
    func advance(past keys: [Int: Int64], at place: String, on connection: Connection) throws {
        let statement = try connection.statement(
            "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ? AND IFNULL(Z_MAX, 0) = 0"
        )
        for (root, key) in keys where key > 0 {
            guard let entity = mapping.entity(modelNumber: root) else { continue }
            try statement.bind(key, at: 1)
            try statement.bind(entity.number, at: 2)
            try statement.run()
            guard connection.changeCount > 0 else { throw StoreChanges.givenKeys(of: entity.layout.name, at: place) }
        }
    }

    private func addCounter(_ root: EntityMapping, _ connection: Connection) throws {
        let statement = try connection.statement(
            "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, 0, 0)"
        )
        try statement.bind(root.number, at: 1)
        try statement.bind(root.layout.name, at: 2)
        try statement.run()
    }
}
