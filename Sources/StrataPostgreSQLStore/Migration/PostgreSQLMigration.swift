import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// One migration, inside a transaction that its caller begins, and commits or rolls back.
///
/// Columns are added and renamed in place. A table is copied once if its columns are removed, change their types or
/// exchange names.
///
/// It is used once, by one thread.
final class PostgreSQLMigration: MigrationDriver {
    let request: PostgreSQLMigrationRequest
    let connection: Connection
    let source: SQLMapping
    let destination: SQLMapping
    let layout: MigrationLayout
    let place: String
    var metadata: StoreMetadata

    var names = MigratedNames(prefix: "strata_migrated_")
    private lazy var takenNames = PostgreSQLSchema.takenNames(destination)
    /// The indexes that stay.
    var standing = StandingIndexes([], from: [], [:])
    /// The names in between of indexes that get other names, by these.
    var renamedIndexes: [SQLName: SQLName] = [:]
    /// The preparations of large tables, by the names of the tables.
    var prepared: [SQLName: PreparedTable] = [:]
    /// The result of the preparation before the transaction; `nil` if there was none.
    let preparation: MigrationPreparation?
    /// Whether the store has foreign keys, and gets those of the new model.
    private(set) var hadForeignKeys = false

    var naming: SQLNaming { destination.dialect.naming }

    /// Plans a migration.
    ///
    /// - Parameters:
    ///   - request: The store and the mapping of its model.
    ///   - target: Where the store is.
    ///   - metadata: Its metadata.
    ///   - connection: The connection that the migration uses.
    ///   - preparation: The result of the preparation; `nil` if there was none.
    ///   - generation: The number of the new tables, if the store is portable.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if a model cannot be stored.
    init(
        _ request: PostgreSQLMigrationRequest,
        at target: ConnectionTarget,
        from metadata: StoreMetadata,
        on connection: Connection,
        after preparation: MigrationPreparation? = nil,
        generation: Int = 0
    ) throws {
        self.request = request
        self.connection = connection
        self.preparation = preparation
        self.metadata = metadata
        place = target.place
        let migration = request.migration
        source = try SQLMapping(
            migration.source,
            configuration: migration.sourceConfiguration,
            generation: metadata.generations.current
        )
        destination = try SQLMapping(
            migration.destination,
            configuration: migration.destinationConfiguration,
            generation: generation
        )
        layout = MigrationLayout(migration, from: source, to: destination)
    }

    /// Makes all changes.
    ///
    /// - Returns: Whether the store was migrated; false if it has another version by now.
    func run() throws -> Bool {
        try lockAll()
        // Another process may have written the metadata during the wait for the tables.
        metadata = try StoreMetadata.locked(connection, place)
        guard request.migration.starts(at: metadata.versionHashes) else { return false }
        // Copying large tables may take long.
        connection.patience = max(request.timeout, PostgreSQLEngine.workPatience)
        try adoptPreparation()
        let (belongings, successors) = try belongingsWithoutObstacles()
        let proven = try tablesThatFit()
        try checkRows(at: request.url, place: place, mayDropValues: request.mayDropValues, except: proven)
        // The foreign keys are dropped before rows are written, because checks that wait for the end of the transaction
        // keep tables from being changed.
        hadForeignKeys = try ForeignKeys.drop(connection, except: standingForeignKeys)
        try dropIndexes()
        try freeNames()
        let start = preparation == nil ? 0 : MigrationPreparation.share
        try copyTables { try request.advance(start + (1 - start) * $0) }
        try keepSequences()
        try replaceTables()
        for successor in successors { try belongings.handOn(to: successor) }
        for table in layout.tables where table.refolds {
            try FoldedColumns(table.destination, naming)?.fill(connection)
        }
        try makeIndexes()
        try computeDerived()
        try migrateHistory()
        try writeMetadata()
        try makeForeignKeys()
        for successor in successors { try belongings.makeTriggers(of: successor.new) }
        return true
    }

    /// The belongings of the tables that are dropped, and the successors of these tables.
    ///
    /// - Throws: `migration` (134110) if other objects prevent the migration.
    func belongingsWithoutObstacles() throws -> (TableBelongings, [TableBelongings.Successor]) {
        let (dropped, successors) = replacedTables()
        let belongings = try TableBelongings(of: dropped, connection)
        let rewritten = Set(successors.map(\.old))
        let columns = PostgreSQLSchema.columns(source).filter { rewritten.contains($0.key) }
        try belongings.requireNoObstacles(
            toDropping: dropped,
            replacedBy: successors,
            keeping: columns,
            at: request.url,
            place: place
        )
        return (belongings, successors)
    }

    /// The tables that are dropped, and their successors.
    private func replacedTables() -> (dropped: [SQLName], [TableBelongings.Successor]) {
        var dropped = Set(oldTables)
        var successors: [TableBelongings.Successor] = []
        for table in layout.tables {
            guard let source = table.source else { continue }
            guard alteration(table) == nil else {
                dropped.remove(source.name)
                continue
            }
            successors.append(successor(table, of: source))
        }
        for join in layout.joins {
            if let kept = join.kept {
                dropped.remove(kept.source.name)
            } else if oldTables.contains(join.destination.name) {
                let columns = [join.destination.first, join.destination.second] + join.destination.orders
                successors.append(
                    TableBelongings.Successor(
                        old: join.destination.name,
                        new: join.destination.name,
                        columns: columns.map { ($0, $0) }
                    )
                )
            }
        }
        return (dropped.sorted { $0.raw < $1.raw }, successors)
    }

    /// The tables that take the place of others, if none is kept.
    var successors: [TableBelongings.Successor] {
        let tables = layout.tables.compactMap { table in
            table.source.map { successor(table, of: $0) }
        }
        let joins = layout.joins.compactMap { join -> TableBelongings.Successor? in
            guard let kept = join.kept else { return nil }
            let renamed = Dictionary(kept.renamed.map { ($0.to, $0.from) }) { first, _ in first }
            let columns = [join.destination.first, join.destination.second] + join.destination.orders
            return TableBelongings.Successor(
                old: kept.source.name,
                new: join.destination.name,
                columns: columns.map { (renamed[$0] ?? $0, $0) }
            )
        }
        return tables + joins
    }

    private func successor(_ table: TableMigration, of source: SQLTable) -> TableBelongings.Successor {
        let own = [naming.key, naming.entity, naming.version].map { ($0, $0) }
        let columns = zip(table.destination.columns, table.values).compactMap { column, value in
            value.base.map { ($0, column.name) }
        }
        return TableBelongings.Successor(old: source.name, new: table.destination.name, columns: own + columns)
    }

    /// Locks all tables at once, so that nothing waits for a lock later during the work.
    private func lockAll() throws {
        let tables = ["strata_store", "strata_change"] + oldTables.map(\.description)
        try connection.command("LOCK TABLE \(tables.joined(separator: ", ")) IN ACCESS EXCLUSIVE MODE")
    }

    /// Renames the index of a primary key if a new table needs the name.
    private func freeNames() throws {
        var names = PostgreSQLArray(.text)
        for name in takenNames { names.append(name.raw) }
        let found = try connection.query(
            """
            SELECT c.relname::text, c.oid::text FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND i.indisprimary AND c.relname::text = ANY($1)
            """,
            [.array(names)]
        )
        for row in found.rows {
            let name = naming.name("strata_primary_\(row.string(1))")
            try connection.command("ALTER INDEX \(naming.name(row.string(0))) RENAME TO \(name)")
        }
    }

    // MARK: - Tables

    func execute(_ statement: String) throws { try connection.command(statement) }

    func firstNumber(_ query: String) throws -> Int64? { try connection.query(query).firstInt64 }

    func hasTable(_ name: SQLName) -> Bool { oldTables.contains(name) }

    func create(_ table: SQLTable, as name: SQLName) -> String {
        PostgreSQLSchema.create(table, as: name, besides: takenNames)
    }

    func create(_ join: SQLJoinTable, as name: SQLName) -> String {
        PostgreSQLSchema.create(join, as: name, besides: takenNames)
    }

    func alteration(_ table: TableMigration) -> TableAlteration? {
        guard let source = table.source else { return nil }
        if let prepared = prepared[source.name] { return prepared.alteration }
        return TableAlteration(table, columns: source.columns.map { ($0.name.raw, $0.type) })
    }

    func fill(_ table: TableMigration, as name: SQLName) throws {
        if let (sql, values) = filling(table, as: name) { try connection.query(sql, values) }
    }

    /// The statement that fills a new table, and its values; `nil` if the table starts empty.
    ///
    /// - Parameters:
    ///   - table: The changes of the table.
    ///   - name: Its name.
    ///   - keys: The last key before the rows that are copied, and the last of them; `nil` for all rows.
    /// - Returns: The statement and its values.
    func filling(
        _ table: TableMigration,
        as name: SQLName,
        keys: (after: Int64, through: Int64)? = nil
    ) -> (sql: String, values: [PostgreSQLValue])? {
        var values = keys.map { [PostgreSQLValue.int8($0.after), .int8($0.through)] } ?? []
        let types = Dictionary(table.source?.columns.map { ($0.name, $0.type) } ?? []) { first, _ in first }
        let piece = keys.map { _ in "t.\(naming.key) > $1 AND t.\(naming.key) <= $2" }
        let fill = table.fill(name, piece: piece) { value, column in
            // Each column is cast alone, because a value of the new type may stand beside it.
            value.text(column: { Self.cast($0, types[$0], to: column.type) }) { Self.parameter($0, &values) }
        }
        return fill.map { ($0, values) }
    }

    /// A column as a value of another type.
    ///
    /// - Parameters:
    ///   - column: The column.
    ///   - type: Its type; `nil` if it is unknown.
    ///   - wanted: The type of the value.
    ///   - prefix: The text before the column's name.
    /// - Returns: The expression.
    static func cast(_ column: SQLName, _ type: String?, to wanted: String, prefix: String = "") -> String {
        guard let type, type != wanted else { return "\(prefix)\(column)" }
        // A truth value becomes a number only through `integer`.
        return type == "boolean" ? "\(prefix)\(column)::integer::\(wanted)" : "\(prefix)\(column)::\(wanted)"
    }

    func alter(_ source: SQLTable, _ alteration: TableAlteration, for table: TableMigration) throws {
        for statement in prepared[source.name]?.completion ?? [] { try connection.command(statement) }
        if let condition = alteration.deletion {
            try connection.command("DELETE FROM \(source.name) WHERE \(condition)")
        }
        var changes = alteration.changes
        for column in alteration.added {
            let change = changes.firstIndex { $0.name == column.name && $0.value.constant != nil }
            guard let change, let constant = changes[change].value.constant, let text = Self.text(constant) else {
                try connection.command("ALTER TABLE \(source.name) ADD COLUMN \(column.name) \(column.type)")
                continue
            }
            changes.remove(at: change)
            try add(column, definition: text, to: source.name)
        }
        var values: [PostgreSQLValue] = []
        if let update = alteration.update(changes, { value in value.text { Self.parameter($0, &values) } }) {
            try connection.query(update, values)
        }
    }

    /// Adds a column with the same value in all rows, without a rewrite: the server keeps the value as the column's
    /// initial value.
    private func add(_ column: SQLColumn, definition text: String, to table: SQLName) throws {
        try connection.query("SELECT pg_catalog.set_config('strata.migrated', $1, true)", [.text(text)])
        let setting = "pg_catalog.current_setting('strata.migrated')"
        let value =
            column.type == "bytea" ? "pg_catalog.decode(\(setting), 'hex')" : "(\(setting))::\(Self.plain(column.type))"
        try connection.command("ALTER TABLE \(table) ADD COLUMN \(column.name) \(column.type) DEFAULT \(value)")
        // Rows that are added later are written with all of their values.
        try connection.command("ALTER TABLE \(table) ALTER COLUMN \(column.name) DROP DEFAULT")
    }

    private static func plain(_ type: String) -> String { type.hasPrefix("text") ? "text" : type }

    // MARK: - Values of the new model

    /// Writes a parameter, and adds its value.
    static func parameter(_ constant: MigratedValue.Constant, _ values: inout [PostgreSQLValue]) -> String {
        values.append(value(constant))
        return "$\(values.count)"
    }

    static func value(_ constant: MigratedValue.Constant) -> PostgreSQLValue {
        switch (constant.binding, constant.type) {
        case (.integer(let number), .boolean): .bool(number != 0)
        case (.text(let digits), .decimal): Decimal(string: digits).map { .numeric($0) } ?? .null(.numeric)
        case (.integer(let number), .double), (.integer(let number), .float), (.integer(let number), .date):
            .float8(Double(number))
        case (.blob(let data), .uuid) where data.count == 16:
            .uuid(UUID(uuid: data.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) }))
        default: PostgreSQLValue(constant.binding)
        }
    }

    /// The value as text for the database; `nil` if it cannot store the value.
    static func text(_ constant: MigratedValue.Constant) -> String? {
        switch value(constant) {
        case .bool(let value): value ? "true" : "false"
        case .int8(let value): "\(value)"
        case .float8(let value): value.isFinite ? "\(value)" : nil
        case .numeric(let value): "\(value)"
        case .text(let value): value.utf8.contains(0) ? nil : value
        case .uuid(let value): value.uuidString
        case .bytea(let value): value.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        default: nil
        }
    }

    // MARK: - Derived attributes

    /// Computes derived attributes of tables that have new ones, or ones with a new derivation.
    ///
    /// - Parameters:
    ///   - piece: The number of rows of a piece.
    ///   - step: Runs a piece of the work, and may run it again.
    /// - Throws: Errors of `step` and of the database.
    func computeDerived(piece: Int = 10_000, _ step: (() throws -> Void) throws -> Void = { try $0() }) throws {
        guard let plan = DerivedPlan(destination) else { return }
        let now = Date().timeIntervalSinceReferenceDate
        let queries = RowQueries(destination, place: place)
        for table in layout.tables where !table.derived.isEmpty {
            let root = table.destination.entities[0]
            let stamps = table.destination.entities.flatMap { entity in
                plan.attributes[entity.layout.number].filter { attribute in
                    guard case .now? = attribute.source else { return false }
                    return entity.columns[attribute.slot.index].name.map(table.derived.contains) ?? false
                }
            }
            var last = Int64.min
            while true {
                let found = try connection.query(
                    "SELECT \(naming.key) FROM \(root.table) WHERE \(naming.key) > $1 ORDER BY 1 LIMIT \(piece)",
                    [.int8(last)]
                )
                guard found.rowCount > 0 else { break }
                try step {
                    let upkeep = DerivedUpkeep(plan, reading: queries, on: connection, now: now)
                    for row in found.rows {
                        last = row.int64(0)
                        upkeep.markOutdated(last, root: root.layout.rootNumber, isWritten: !stamps.isEmpty)
                    }
                    try upkeep.bringUpToDate()
                }
            }
        }
    }

    // MARK: - Keys

    /// Continues the sequences, so that a key is never given twice.
    private func keepSequences() throws {
        var final: [(from: SQLName, to: SQLName)] = []
        // The temporary names of the sequences that stay.
        var current: [SQLName: SQLName] = [:]
        let order = try KeyOrder.order(in: source, connection)
        for table in layout.tables {
            let name = PostgreSQLSchema.sequence(table.destination)
            guard let old = table.source.map(PostgreSQLSchema.sequence) else {
                final.append((try newSequence(order, from: 1), name))
                continue
            }
            if let other = current[old] {
                // A second table gets rows of the same old hierarchy.
                let last = try connection.query("SELECT last_value FROM \(other)").firstInt64 ?? 1
                let order = try KeyOrder.order(of: other.description, connection)
                final.append((try newSequence(order, from: last + Int64(PostgreSQLSchema.keyBlock)), name))
            } else if old == name {
                current[old] = old
            } else {
                let temporary = temporaryName()
                try connection.command("ALTER SEQUENCE \(old) RENAME TO \(temporary)")
                current[old] = temporary
                final.append((temporary, name))
            }
        }
        for table in source.tables {
            let old = PostgreSQLSchema.sequence(table)
            if current[old] == nil { try connection.command("DROP SEQUENCE \(old)") }
        }
        for (from, to) in final { try connection.command("ALTER SEQUENCE \(from) RENAME TO \(to)") }
    }

    private func newSequence(_ order: KeyOrder, from start: Int64) throws -> SQLName {
        let name = temporaryName()
        try connection.command(PostgreSQLSchema.createSequence(name, order, from: start))
        return name
    }
}
