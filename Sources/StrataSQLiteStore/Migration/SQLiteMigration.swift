import Foundation
import StrataKeys
import StrataLocks
import StrataRows
import StrataSQL
import StrataSQLite

/// One migration, inside a write transaction that its caller begins, and commits or rolls back.
///
/// New tables are made and filled beside the old ones first, so that reads find the old state. Then the tables that can
/// be kept are changed, old ones are dropped, and names become final. Indexes, computed values and triggers come next,
/// and the counters, metadata and history last.
///
/// It is used once, by the thread that migrates.
final class SQLiteMigration: MigrationDriver {
    let request: SQLiteMigrationRequest
    let connection: Connection
    var metadata: StoreMetadata
    let catalog: SQLCatalog
    let source: SQLMapping
    let destination: SQLMapping
    let layout: MigrationLayout
    /// The file as it will be after the migration.
    let file: OpenSQLiteStore
    /// The changes that the migration makes to external files.
    let files: FileChanges
    private(set) var report = SQLiteMigrationReport()

    var names = MigratedNames(prefix: "Z_MIGRATION_")
    /// Whether columns are left for tidying up.
    private(set) var hasLeftovers = false

    var url: URL { request.url }

    /// Determines the steps of the migration.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if the file does not have the tables of its model.
    init(
        _ request: SQLiteMigrationRequest,
        of database: SQLiteDatabase,
        from metadata: StoreMetadata,
        on connection: Connection
    ) throws {
        self.request = request
        self.connection = connection
        self.metadata = metadata
        let migration = request.migration
        catalog = try SQLCatalog(connection)
        source = try SQLMapping(
            migration.source,
            configuration: migration.sourceConfiguration,
            catalog: catalog,
            storedHashes: metadata.versionHashes
        )
        destination = try SQLMapping(migration.destination, configuration: migration.destinationConfiguration)
        let missing = source.missing(in: catalog)
        guard missing.isEmpty else {
            let names = missing.prefix(8).joined(separator: ", ") + (missing.count > 8 ? " …" : "")
            throw CocoaError.described(
                .persistentStoreIncompatibleSchema,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(request.url.path) cannot be migrated: it lacks \(names), which its model has.",
                    NSFilePathErrorKey: request.url.path,
                ]
            )
        }
        layout = MigrationLayout(migration, from: source, to: destination)
        var options = request.options
        // An existing history stays consistent, with whichever options the store is opened next.
        options.tracksHistory = true
        let opening = SQLiteStoreRequest(
            url: request.url,
            schema: migration.destination,
            configuration: migration.destinationConfiguration,
            options: options,
            newUUID: metadata.uuid,
            versionIdentifiers: request.versionIdentifiers,
            requireVersion: { _ in }
        )
        let history =
            HistorySchema.isPresent(in: catalog)
            ? HistoryMapping(
                destination,
                isRecording: true,
                tombstoneCount: max(
                    HistorySchema.tombstoneCount(in: catalog),
                    HistoryMapping.tombstoneCount(for: destination)
                )
            ) : nil
        file = OpenSQLiteStore(opening, database: database, mapping: destination, metadata: metadata, history: history)
        files = FileChanges(file)
    }

    /// Writes everything.
    func run() throws {
        try checkRows(at: url, mayDropValues: request.mayDropValues)
        let rootsBefore = try lastKeys()
        try requireSpace(rootsBefore)
        let filesBefore = try losesFiles ? externalFiles(source) : []
        try dropTriggers()
        try copyTables(request.advance)
        try replaceTables()
        if FaultGuard.migrationTransaction.isOff { try connection.execute("COMMIT; BEGIN IMMEDIATE") }
        try FaultPoint.migrationMoved.reach()
        for table in layout.tables { for change in table.tagChanges { try changeTags(table, change) } }
        if losesFiles { try forgetFiles(filesBefore) }
        try makeIndexes()
        try computeDerived()
        try writeKeys(rootsBefore)
        try migrateHistory()
        try writeMetadata()
    }

    // MARK: - Rows

    /// Refuses to begin if there is no room for the tables that are copied, first in the log and then in the file.
    ///
    /// The size of a table is estimated from its last key: counting rows or pages would take as long as copying them.
    private func requireSpace(_ lastKeys: [SQLName: Int64]) throws {
        let copied = try layout.tables.compactMap { table in try alteration(table) == nil ? table.source?.name : nil }
        guard !copied.isEmpty,
            let folder = file.external.folder?.deletingLastPathComponent().deletingLastPathComponent()
        else { return }
        let all = lastKeys.values.reduce(0) { $0 + Double($1) }
        let share = Set(copied).reduce(0) { $0 + Double(lastKeys[$1] ?? 0) } / max(all, 1)
        let pages = Double(try connection.firstInt64("PRAGMA page_count") ?? 0)
        let size = Double(try connection.firstInt64("PRAGMA page_size") ?? 0)
        try DiskSpace.require(Int64(pages * size * share), in: folder.path)
    }

    // MARK: - Tables

    private func dropTriggers() throws {
        // These are the triggers of derived attributes. They would change rows, and keep columns from being renamed.
        let names = try connection.strings(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'Z\\_DA\\_%' ESCAPE '\\'"
        )
        for name in names { try connection.execute("DROP TRIGGER \(SQLName(name))") }
    }

    func execute(_ statement: String) throws { try connection.execute(statement) }

    func firstNumber(_ query: String) throws -> Int64? { try connection.firstInt64(SQL(query)) }

    func hasTable(_ name: SQLName) -> Bool { catalog.hasTable(name.raw) }

    func create(_ table: SQLTable, as name: SQLName) -> String { SQLiteSchema.create(table, as: name) }

    func create(_ join: SQLJoinTable, as name: SQLName) -> String { SQLiteSchema.create(join, as: name) }

    func alteration(_ table: TableMigration) throws -> TableAlteration? {
        guard let source = table.source else { return nil }
        return try TableAlteration(
            table,
            columns: connection.columns(of: source.name),
            keepsLeftovers: request.options.defersCleanUp
        )
    }

    func fill(_ table: TableMigration, as name: SQLName) throws {
        var bindings: [SQLBinding] = []
        let fill = table.fill(name) { value, _ in
            bindings += value.bindings
            return value.text
        }
        guard let source = table.source, let fill else { return }
        try run(fill, bindings)
        let written = connection.changeCount
        report.addCopied(table.destination.name, rows: written)
        let expected = try connection.firstInt64(SQL("SELECT COUNT(*) FROM \(source.name)\(table.condition)")) ?? 0
        guard Int64(written) == expected else {
            throw SQLiteBoundary.damaged(
                url,
                "\(expected) rows of \(source.name.raw) became \(written) of \(table.destination.name.raw)."
            )
        }
    }

    private func run(_ sql: String, _ bindings: [SQLBinding]) throws {
        let statement = try connection.statement(SQL(sql))
        try statement.bind(bindings)
        try statement.run()
    }

    func alter(_ source: SQLTable, _ alteration: TableAlteration, for table: TableMigration) throws {
        if let condition = alteration.deletion { try run("DELETE FROM \(source.name) WHERE \(condition)", []) }
        for column in alteration.added {
            try connection.execute("ALTER TABLE \(source.name) ADD COLUMN \(column.name) \(column.type)")
        }
        if let update = alteration.update(alteration.changes, \.text) {
            try dropConstraints(source.name, over: alteration.changes.map(\.name))
            try run(update, alteration.changes.flatMap(\.value.bindings))
        }
        if alteration.hasLeftovers { hasLeftovers = true }
        report.addChanged(
            table.destination.name,
            isNothing: alteration.isNothing && source.name == table.destination.name
        )
    }

    /// Drops unique indexes whose values are about to change.
    ///
    /// They are made anew at the end, and then find equal rows.
    private func dropConstraints(_ table: SQLName, over columns: [SQLName]) throws {
        let updated = Set(columns.map { $0.raw.uppercased() })
        let statement = try connection.statement(
            """
            SELECT i.name, group_concat(c.name) FROM pragma_index_list(?) AS i, pragma_index_info(i.name) AS c
            WHERE i."unique" AND i.origin = 'c' GROUP BY i.name
            """
        )
        try statement.bind(table.raw, at: 1)
        var names: [String] = []
        while try statement.step() {
            let parts = statement[1].string.uppercased().split(separator: ",").map(String.init)
            if !updated.isDisjoint(with: parts) { names.append(statement[0].string) }
        }
        for name in names { try connection.execute("DROP INDEX \(SQLName(name))") }
    }

    // MARK: - Indexes and computed values

    private func makeIndexes() throws {
        let wanted = SQLiteSchema.indexes(destination)
        var missing = Dictionary(wanted.map { ($0.name, Self.plain($0.sql)) }) { first, _ in first }
        let tables = Set(
            (destination.tables.map(\.name) + destination.joinTables.map(\.name)).map { $0.raw.uppercased() }
        )
        var found: [(name: String, sql: String)] = []
        do {
            let statement = try connection.statement(
                "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"
            )
            while try statement.step() {
                guard tables.contains(statement[1].string.uppercased()) else { continue }
                found.append((statement[0].string, statement[2].string))
            }
        }
        for (name, sql) in found {
            if missing[name] == Self.plain(sql) {
                missing[name] = nil
            } else if name.hasPrefix("Z") {
                // This drops an index of a former version, or one under another one's name. An index of another program
                // stays.
                try connection.execute("DROP INDEX \(SQLName(name))")
            }
        }
        for index in wanted where missing[index.name] != nil { try make(index) }
    }

    /// The text of an index in a form that can be compared.
    ///
    /// SQLite puts names in quotes when it renames tables or columns.
    static func plain(_ sql: String) -> String {
        String(sql.filter { !$0.isWhitespace && $0 != "\"" }).uppercased()
    }

    private func make(_ index: SQLiteSchema.Index) throws {
        do {
            try connection.execute(index.sql)
        } catch  where error.code.primary == .constraint {
            guard let constraint = index.constraint else { throw error }
            let groups = try duplicates(constraint, index.table)
            throw MigrationErrors.constraint(
                at: url,
                of: constraint.layout.name,
                on: constraint.attributes,
                groups: groups
            )
        }
    }

    /// How many groups of objects an error lists.
    private static let mostGroups = 100

    /// The objects that a constraint does not allow beside each other, by their common values.
    private func duplicates(_ constraint: SQLConstraint, _ table: SQLName) throws -> [[URL]] {
        let columns = constraint.columns.map(\.description)
        let statement = try connection.statement(
            SQL(
                """
                SELECT group_concat(Z_PK || ' ' || Z_ENT, ',') FROM \(table) WHERE \(columns.map { "\($0) NOT NULL" }.joined(separator: " AND "))
                GROUP BY \(columns.joined(separator: ", ")) HAVING COUNT(*) > 1 ORDER BY MIN(Z_PK) LIMIT \(Self.mostGroups)
                """
            )
        )
        var groups: [[URL]] = []
        while try statement.step() {
            groups.append(
                objects(
                    statement[0].string.split(separator: ",").compactMap { row in
                        let parts = row.split(separator: " ").compactMap { Int64($0) }
                        return parts.count == 2 ? (parts[0], parts[1]) : nil
                    },
                    in: metadata.uuid
                )
            )
        }
        return groups
    }

    /// The length of the longest chain of derived attributes that ends in this one, at most `limit`.
    ///
    /// It is 1 for an attribute that is derived of one that is not derived.
    private func derivations(_ slot: Slot, _ layout: EntityLayout, limit: Int) -> Int {
        guard slot.isDerived, limit > 0 else { return 0 }
        let source: (layout: EntityLayout?, name: String)? =
            switch slot.traits?.derivation {
            case .function(_, let name)?: (layout, name)
            case .copy(let relationship, let name)?:
                (layout.slot(named: relationship)?.relationship?.destination, name)
            case .aggregate(_, let relationship, let name?)?:
                (layout.toMany(named: relationship)?.relationship.destination, name)
            default: nil
            }
        guard let source, let owner = source.layout, let next = owner.slot(named: source.name) else { return 1 }
        return 1 + derivations(next, owner, limit: limit - 1)
    }

    private func computeDerived() throws {
        let triggers = DerivedTriggers(destination)
        let wanted = layout.tables.flatMap { table in
            triggers.computations.filter { $0.table == table.destination.name && table.derived.contains($0.column) }
        }
        // If a value is derived of a derived value, it must follow that one, in whichever order they come.
        let longest = destination.entities.flatMap { entity in
            entity.layout.slots.map { derivations($0, entity.layout, limit: wanted.count) }
        }.max()
        for _ in 0..<(longest ?? 0) {
            for computation in wanted { try connection.run(SQL(computation.sql)) }
        }
        for statement in triggers.statements { try connection.execute(statement) }
    }
}
