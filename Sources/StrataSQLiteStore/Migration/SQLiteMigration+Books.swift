import Foundation
import StrataKeys
import StrataRows
import StrataSQL
import StrataSQLite

// The file's data about itself: counters, metadata, the copy of the model, and the history.

extension SQLiteMigration {
    // MARK: - Counters

    /// The last key of each hierarchy, by the present name of its table.
    func lastKeys() throws -> [SQLName: Int64] {
        var keys: [SQLName: Int64] = [:]
        for table in source.tables {
            guard let root = table.entities.first else { continue }
            keys[table.name] =
                try connection.firstInt64(
                    SQL(
                        """
                        SELECT MAX(IFNULL((SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = \(root.number)), 0),
                        IFNULL((SELECT MAX(Z_PK) FROM \(table.name)), 0))
                        """
                    )
                ) ?? 0
        }
        return keys
    }

    /// Continues the counters at the former keys: a key is never given twice.
    func writeKeys(_ keys: [SQLName: Int64]) throws {
        // Higher numbers belong to the history, and to Apple's own entities.
        try connection.run("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")
        try OpenSQLiteStore.fillPrimaryKeys(destination, connection)
        let statement = try connection.statement("UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_ENT = ?")
        for table in layout.tables {
            guard let name = table.source?.name, let last = keys[name], let root = table.destination.entities.first
            else { continue }
            try statement.bind(last, at: 1)
            try statement.bind(root.number, at: 2)
            try statement.run()
        }
    }

    // MARK: - Metadata

    func writeMetadata() throws {
        if let baseline = HistoryBaseline(metadata) {
            var keys: [String: Int] = [:]
            for table in layout.tables {
                guard let name = table.destination.entities.first?.layout.name else { continue }
                keys[name] = table.source.flatMap { baseline.lastKey(of: $0) } ?? 0
            }
            metadata.values[StoreMetadata.historyBaselineKey] = keys
        }
        metadata.setModel(request.migration.destinationHashes, request.versionIdentifiers)
        metadata.values[NSPersistentStoreDeferredLightweightMigrationOptionKey] = hasLeftovers ? true : nil
        try metadata.write(connection)
        // The table is made anew, so that the version of the schema always changes: that is how others notice the
        // migration.
        try connection.execute("DROP TABLE IF EXISTS Z_MODELCACHE")
        try connection.execute(SQLiteSchema.modelCache)
        if let model = request.modelCache { try SQLiteEngine.writeModelCache(model, connection) }
    }

    // MARK: - History

    /// Changes the history to the new entities, and notes the migration in it.
    func migrateHistory() throws {
        guard file.history != nil else { return }
        _ = try HistorySchema.prepare(tombstoneCount: HistoryMapping.tombstoneCount(for: destination), connection)
        let pairs = request.migration.pairs.compactMap { pair in
            source.entity(pair.source).flatMap { from in destination.entity(pair.destination).map { (pair, from, $0) } }
        }
        for (pair, from, to) in pairs {
            try moveMasks(of: pair, from: from, to: to)
            try moveTombstones(of: pair, from: from, to: to)
        }
        let numbers = pairs.map { "\($0.1.number)" }.joined(separator: ", ")
        try connection.run(SQL("DELETE FROM ACHANGE WHERE NOT (ZENTITY IN (\(numbers)))"))
        let changed = pairs.filter { $0.1.number != $0.2.number }
        if !changed.isEmpty {
            let arms = changed.map { "WHEN \($0.1.number) THEN \($0.2.number)" }.joined(separator: " ")
            let old = changed.map { "\($0.1.number)" }.joined(separator: ", ")
            try connection.run(SQL("UPDATE ACHANGE SET ZENTITY = CASE ZENTITY \(arms) END WHERE ZENTITY IN (\(old))"))
        }
        let digest =
            metadata.values["NSStoreModelVersionHashesDigest"] as? String
            ?? SchemaHashes.digest(of: metadata.versionHashes)
        try HistoryRecorder(file, connection, author: nil, contextName: nil)?.migrated(fromModelWithDigest: digest)
    }

    /// Moves the bits of changed properties to their new places.
    private func moveMasks(of pair: EntityPair, from: EntityMapping, to: EntityMapping) throws {
        let old = HistoryPlaces(from.layout) { from.columns[$0.index].entity != nil }
        let new = HistoryPlaces(to.layout) { to.columns[$0.index].entity != nil }
        let names = Dictionary(pair.names.map { ($0.value, $0.key) }) { first, _ in first }
        try connection.register(
            ScalarFunction("strataMigratedMask", argumentCount: 1) { call in
                guard call[0].kind == .blob else { return call.return(call[0]) }
                let mask = HistoryMask(old, call[0].bytes)
                let moved = new.mask(names: old.names(of: mask).compactMap { names[$0] })
                moved.bytes.withUnsafeBytes { call.return(blob: $0) }
            }
        )
        try connection.run(
            SQL(
                "UPDATE ACHANGE SET ZCOLUMNS = strataMigratedMask(ZCOLUMNS) WHERE ZENTITY = \(from.number) AND ZCOLUMNS NOT NULL"
            )
        )
    }

    /// Moves the kept values of deleted objects to their new columns.
    private func moveTombstones(of pair: EntityPair, from: EntityMapping, to: EntityMapping) throws {
        let count = HistorySchema.tombstoneCount(in: try SQLCatalog(connection))
        let old = HistoryEntity.kept(from).prefix(count).map(\.name)
        let new = HistoryEntity.kept(to).prefix(count).map { pair.names[$0.name] }
        guard !old.isEmpty, old.map({ $0 }) != new.map({ $0 }) else { return }
        let assignments = (0..<count).map { index in
            let position = index < new.count ? new[index].flatMap { old.firstIndex(of: $0) } : nil
            return
                "\(HistorySchema.tombstoneColumn(index)) = \(position.map { HistorySchema.tombstoneColumn($0) } ?? "NULL")"
        }
        try connection.run(
            SQL(
                "UPDATE ACHANGE SET \(assignments.joined(separator: ", ")) WHERE ZENTITY = \(from.number) AND ZCHANGETYPE = 2"
            )
        )
    }
}

extension Connection {
    /// The columns of a table with their types, as they are declared.
    func columns(of table: SQLName) throws -> [(name: String, type: String)] {
        let statement = try statement("SELECT name, type FROM pragma_table_info(?)")
        try statement.bind(table.raw, at: 1)
        var columns: [(name: String, type: String)] = []
        while try statement.step() { columns.append((statement[0].string, statement[1].string)) }
        return columns
    }
}

extension SQLiteEngine {
    /// Keeps a copy of a model in a file, in the transaction that is open.
    static func writeModelCache(_ model: Data, _ connection: Connection) throws {
        try connection.run("DELETE FROM Z_MODELCACHE")
        let statement = try connection.statement("INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?)")
        try statement.bind(model, at: 1)
        try statement.run()
    }
}
