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
final class SQLiteMigration {
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

    /// The tables of the file that stay, by their present names.
    private var kept: Set<String> = []
    /// The tables that are renamed at the end.
    private var renamed: [(from: SQLName, to: SQLName)] = []
    private var temporaryCount = 0
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
        try checkRows()
        let rootsBefore = try lastKeys()
        try requireSpace(rootsBefore)
        let filesBefore = try losesFiles ? externalFiles(source) : []
        try dropTriggers()
        let total = Double(layout.tables.count + layout.joins.count + 1)
        for (number, table) in layout.tables.enumerated() {
            try request.advance(Double(number) / total)
            try copyUnlessKept(table)
        }
        for (number, join) in layout.joins.enumerated() {
            try request.advance(Double(layout.tables.count + number) / total)
            try copyUnlessKept(join)
        }
        try request.advance((total - 1) / total)
        for table in layout.tables { try alterIfKept(table) }
        for join in layout.joins { try alterIfKept(join) }
        try dropOldTables()
        try giveFinalNames()
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

    private func checkRows() throws {
        let problems = try connection.findings(layout.checks)
        if !problems.isEmpty { throw MigrationErrors.rows(url, problems) }
        guard !request.mayDropValues else { return }
        let losses = try connection.findings(layout.losses)
        if !losses.isEmpty { throw MigrationErrors.losses(url, losses) }
    }

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

    private func alteration(_ table: TableMigration) throws -> TableAlteration? {
        guard let source = table.source else { return nil }
        return try TableAlteration(
            table,
            columns: connection.columns(of: source.name),
            keepsLeftovers: request.options.defersCleanUp
        )
    }

    /// The name under which a new table is made: its final name, unless a table of the file has that.
    private func provisionalName(_ name: SQLName) -> SQLName {
        guard catalog.hasTable(name.raw) else { return name }
        let temporary = temporaryName()
        renamed.append((temporary, name))
        return temporary
    }

    private func temporaryName() -> SQLName {
        repeat { temporaryCount += 1 } while catalog.hasTable("Z_MIGRATION_\(temporaryCount)")
        return SQLName("Z_MIGRATION_\(temporaryCount)")
    }

    private func copyUnlessKept(_ table: TableMigration) throws {
        if let source = table.source, try alteration(table) != nil {
            kept.insert(source.name.raw.uppercased())
            return
        }
        let name = provisionalName(table.destination.name)
        try connection.execute(SQLiteSchema.create(table.destination, as: name))
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

    private func copyUnlessKept(_ join: JoinMigration) throws {
        if let source = join.kept?.source {
            kept.insert(source.name.raw.uppercased())
            return
        }
        let name = provisionalName(join.destination.name)
        try connection.execute(SQLiteSchema.create(join.destination, as: name))
        for statement in join.fill(name) { try connection.run(SQL(statement)) }
    }

    private func run(_ sql: String, _ bindings: [SQLBinding]) throws {
        let statement = try connection.statement(SQL(sql))
        try statement.bind(bindings)
        try statement.run()
    }

    private func alterIfKept(_ table: TableMigration) throws {
        guard let source = table.source, kept.contains(source.name.raw.uppercased()),
            let alteration = try alteration(table)
        else { return }
        if let condition = alteration.deletion { try run("DELETE FROM \(source.name) WHERE \(condition)", []) }
        for column in alteration.added {
            try connection.execute("ALTER TABLE \(source.name) ADD COLUMN \(column.name) \(column.type)")
        }
        if let update = alteration.update(alteration.changes, \.text) {
            try dropConstraints(source.name, over: alteration.changes.map(\.name))
            try run(update, alteration.changes.flatMap(\.value.bindings))
        }
        if alteration.hasLeftovers { hasLeftovers = true }
        try rename(alteration.renamed, of: source.name)
        try move(source.name, to: table.destination.name)
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

    private func alterIfKept(_ join: JoinMigration) throws {
        guard let kept = join.kept else { return }
        try rename(kept.renamed, of: kept.source.name)
        try move(kept.source.name, to: join.destination.name)
    }

    private func rename(_ columns: [(from: SQLName, to: SQLName)], of table: SQLName) throws {
        for (from, to) in columns { try connection.execute("ALTER TABLE \(table) RENAME COLUMN \(from) TO \(to)") }
    }

    /// Gives a kept table its final name, with a free name in between.
    private func move(_ table: SQLName, to name: SQLName) throws {
        guard table != name else { return }
        let temporary = temporaryName()
        try connection.execute("ALTER TABLE \(table) RENAME TO \(temporary)")
        renamed.append((temporary, name))
    }

    private func dropOldTables() throws {
        let old = source.tables.map(\.name) + source.joinTables.map(\.name)
        for table in old where !kept.contains(table.raw.uppercased()) {
            try connection.execute("DROP TABLE \(table)")
        }
    }

    private func giveFinalNames() throws {
        for (from, to) in renamed { try connection.execute("ALTER TABLE \(from) RENAME TO \(to)") }
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
    private static func plain(_ sql: String) -> String {
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
                statement[0].string.split(separator: ",").compactMap { row in
                    let parts = row.split(separator: " ").compactMap { Int64($0) }
                    guard parts.count == 2, let entity = destination.entity(storeNumber: parts[1]) else { return nil }
                    return URL(string: "x-coredata://\(metadata.uuid)/\(entity.layout.name)/p\(parts[0])")
                }
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
