import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLMigration {
    /// The steps of the migration of a portable store, planned without making them.
    ///
    /// No transaction writes from the first one on, and all may read until the last one.
    func portableSteps() throws -> [MigrationStep] {
        let large = try largeTables()
        var steps: [MigrationStep] = []
        func add(_ work: String, on table: SQLName?) {
            steps.append(
                MigrationStep(
                    work,
                    waiting: .writers,
                    lock: "none: the metadata says so",
                    growsWithRows: table != nil,
                    isHazard: table.map(large.contains) == true
                )
            )
        }
        add("closes the store to writers, and waits for those that are at work", on: nil)
        for check in layout.checks + layout.losses {
            let name = check.rows?.table ?? source.entities.first { $0.layout.name == check.entity }?.table
            if let name { add("looks for rows of \(check.entity) that do not fit", on: name) }
        }
        for table in layout.tables {
            guard let name = table.source?.name else { continue }
            add("copies \(name.raw) to \(table.destination.name.raw)", on: name)
        }
        for join in layout.joins where join.pairs != nil {
            add("copies pairs to \(join.destination.name.raw)", on: join.kept?.source.name ?? join.destination.name)
        }
        let former = Dictionary(
            layout.tables.compactMap { table in table.source.map { (table.destination.name, $0.name) } }
        ) { first, _ in first }
        for index in PostgreSQLSchema.indexes(destination) {
            add("makes the index \(index.name.raw)", on: former[index.table])
        }
        for table in layout.tables where !table.derived.isEmpty {
            add("computes derived attributes of \(table.destination.name.raw)", on: table.source?.name)
        }
        if try connection.query("SELECT 1 FROM strata_change LIMIT 1").rowCount > 0 {
            add("changes the history to the new version", on: naming.name("strata_change"))
        }
        add("changes the metadata, so that the new tables count, and drops the old ones", on: nil)
        return steps
    }
}
