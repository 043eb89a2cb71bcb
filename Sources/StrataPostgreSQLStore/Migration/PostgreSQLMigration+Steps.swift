import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// The steps of the migration, planned without making them.
    ///
    /// The tables in ``prepared`` are those that the migration would prepare.
    func steps() throws -> [MigrationStep] {
        let large = try largeTables()
        let hasForeignKeys = try !ForeignKeys.found(connection).isEmpty
        var steps = prepared.values.sorted { $0.table.raw < $1.table.raw }.flatMap(Self.preparation)
        func add(_ work: String, on table: SQLName?) {
            // In the transaction all tables are locked.
            steps.append(
                MigrationStep(
                    work,
                    waiting: .everybody,
                    lock: "ACCESS EXCLUSIVE",
                    growsWithRows: table != nil,
                    isHazard: table.map(large.contains) == true
                )
            )
        }
        add("locks all tables, ends the sessions with the old model, and changes the names and the metadata", on: nil)
        for check in layout.checks + layout.losses {
            let name = check.rows?.table ?? source.entities.first { $0.layout.name == check.entity }?.table
            guard let name else { continue }
            let isProven = check.rows != nil && prepared[name]?.misfits != nil
            add("looks for rows of \(check.entity) that do not fit", on: isProven ? nil : name)
        }
        for table in layout.tables {
            guard let name = table.source?.name else { continue }
            addChanges(of: table, name, add)
        }
        for join in layout.joins where join.kept == nil && join.pairs != nil {
            let table = source.joinTables.first { $0.name == join.destination.name }?.name
            add("copies the pairs of \(join.destination.name.raw)", on: table ?? join.destination.name)
        }
        let old = Set(source.tables.map(\.name) + source.joinTables.map(\.name))
        let former = Dictionary(
            layout.tables.compactMap { table in table.source.map { (table.destination.name, $0.name) } }
                + layout.joins.compactMap { join in join.kept.map { (join.destination.name, $0.source.name) } }
        ) { first, _ in first }
        for index in try indexesToMake() {
            guard let table = former[index.table] ?? (old.contains(index.table) ? index.table : nil) else { continue }
            add("makes the index \(index.name.raw) of \(index.table.raw)", on: table)
        }
        if hasForeignKeys {
            let standing = standingForeignKeys
            for key in ForeignKey.all(destination) where old.contains(key.table) && !standing.contains(key.found) {
                let early = prepared[key.table]?.keys.contains { $0.final == key.name } == true
                if !early { add("checks the foreign key \(key.name.raw)", on: key.table) }
            }
        }
        if try connection.query("SELECT 1 FROM strata_change LIMIT 1").rowCount > 0 {
            add("changes the history to the new version", on: naming.name("strata_change"))
        }
        return steps
    }

    private func addChanges(of table: TableMigration, _ name: SQLName, _ add: (String, SQLName?) -> Void) {
        guard let alteration = alteration(table) else { return add("copies \(name.raw)", name) }
        if alteration.deletion != nil { add("deletes rows of \(name.raw)", name) }
        let written = alteration.changes.filter { $0.value.constant == nil }
        if !written.isEmpty { add("gives \(Self.list(written.map(\.name))) of \(name.raw) new values", name) }
        if alteration.entity != nil { add("gives rows of \(name.raw) other numbers of entities", name) }
        if !alteration.added.isEmpty { add("adds \(Self.list(alteration.added.map(\.name))) to \(name.raw)", nil) }
        if let dropped = prepared[name]?.dropped, !dropped.isEmpty {
            add("drops \(Self.list(dropped.sorted { $0.raw < $1.raw })) of \(name.raw)", nil)
        }
        if table.refolds { add("folds texts of \(name.raw)", name) }
        if !table.derived.isEmpty { add("computes \(Self.list(table.derived)) of \(name.raw)", name) }
    }

    private static func list(_ names: [SQLName]) -> String { names.map(\.raw).joined(separator: ", ") }

    /// The indexes that the transaction makes.
    private func indexesToMake() throws -> [PostgreSQLSchema.Index] {
        let standing = try standingIndexes()
        return PostgreSQLSchema.indexes(destination).filter { index in
            standing.former[index.name] == nil && earlyIndex(index.name) == nil
        }
    }

    /// The steps before the transaction.
    private static func preparation(of table: PreparedTable) -> [MigrationStep] {
        var steps: [MigrationStep] = []
        func add(_ work: String, _ waiting: MigrationStep.Waiting, _ lock: String, grows: Bool) {
            steps.append(MigrationStep(work, waiting: waiting, lock: lock, growsWithRows: grows, isHazard: false))
        }
        let name = table.table.raw
        if !table.columns.isEmpty {
            add(
                "adds columns to \(name) for \(list(table.columns.map(\.column.name)))",
                .everybody,
                "ACCESS EXCLUSIVE",
                grows: false
            )
        }
        let computed = table.columns.filter { $0.computation != nil }.map(\.column.name)
        if !computed.isEmpty {
            let piece = MigrationPreparation.piece
            add("fills \(list(computed)) of \(name), \(piece) rows at a time", .nobody, "ROW EXCLUSIVE", grows: true)
        }
        if table.misfits != nil {
            add("makes an index of the rows of \(name) that do not fit", .nobody, "SHARE UPDATE EXCLUSIVE", grows: true)
        }
        for index in table.indexes {
            add("makes the index \(index.final.raw) of \(name)", .nobody, "SHARE UPDATE EXCLUSIVE", grows: true)
        }
        for key in table.keys {
            add("adds the foreign key \(key.final.raw)", .writers, "SHARE ROW EXCLUSIVE", grows: false)
            add("checks the foreign key \(key.final.raw)", .nobody, "SHARE UPDATE EXCLUSIVE", grows: true)
        }
        return steps
    }
}
