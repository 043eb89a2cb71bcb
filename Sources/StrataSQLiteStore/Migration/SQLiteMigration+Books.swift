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
        let history = HistoryMigration(request.migration, from: source, to: destination)
        for entity in history.entities {
            try moveMasks(of: entity)
            try moveTombstones(of: entity)
        }
        let numbers = history.entities.map { "\($0.from.number)" }.joined(separator: ", ")
        try connection.run(SQL("DELETE FROM ACHANGE WHERE NOT (ZENTITY IN (\(numbers)))"))
        if let renumbering = history.renumbering("ZENTITY") { try connection.run(SQL("UPDATE ACHANGE \(renumbering)")) }
        let digest =
            metadata.values["NSStoreModelVersionHashesDigest"] as? String
            ?? SchemaHashes.digest(of: metadata.versionHashes)
        try HistoryRecorder(file, connection, author: nil, contextName: nil)?.migrated(fromModelWithDigest: digest)
    }

    /// Moves the bits of changed properties to their new places.
    private func moveMasks(of entity: HistoryMigration.Entity) throws {
        try connection.register(
            ScalarFunction("strataMigratedMask", argumentCount: 1) { call in
                guard call[0].kind == .blob else { return call.return(call[0]) }
                entity.moved(call[0].bytes).bytes.withUnsafeBytes { call.return(blob: $0) }
            }
        )
        try connection.run(
            SQL(
                "UPDATE ACHANGE SET ZCOLUMNS = strataMigratedMask(ZCOLUMNS) WHERE ZENTITY = \(entity.from.number) AND ZCOLUMNS NOT NULL"
            )
        )
    }

    /// Moves the kept values of deleted objects to their new columns, and adds or removes the tags of external data.
    private func moveTombstones(of entity: HistoryMigration.Entity) throws {
        let count = HistorySchema.tombstoneCount(in: try SQLCatalog(connection))
        let old = HistoryEntity.kept(entity.from).prefix(count)
        let new = HistoryEntity.kept(entity.to).prefix(count)
        func moved(_ index: Int) -> String {
            guard index < new.count, let name = entity.pair.names[new[index].name],
                let former = old.firstIndex(where: { $0.name == name })
            else { return "NULL" }
            let column = HistorySchema.tombstoneColumn(former)
            let isTagged = entity.to.columns[new[index].index].isTagged
            if entity.from.columns[old[former].index].isTagged == isTagged { return column }
            // A kept value is never in a file.
            return isTagged ? "CAST(X'01' || \(column) AS BLOB)" : "substr(\(column), 2)"
        }
        let assignments = (0..<max(old.count, new.count)).compactMap { index -> String? in
            let (column, value) = (HistorySchema.tombstoneColumn(index), moved(index))
            return value == column ? nil : "\(column) = \(value)"
        }
        guard !old.isEmpty, !assignments.isEmpty else { return }
        try connection.run(
            SQL(
                "UPDATE ACHANGE SET \(assignments.joined(separator: ", ")) WHERE ZENTITY = \(entity.from.number) AND ZCHANGETYPE = 2"
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
