import Foundation
import StrataRows
import StrataSQL
import StrataSQLite

// Data that may be in separate files.

extension SQLiteMigration {
    /// Whether values are dropped that may name files.
    var losesFiles: Bool {
        source.tables.contains { table in
            let tagged = Set(table.entities.flatMap { $0.columns.filter(\.isTagged).compactMap(\.name) })
            guard !tagged.isEmpty else { return false }
            guard let migration = layout.tables.first(where: { $0.source?.name == table.name }),
                !migration.leavesRowsBehind, migration.tagChanges.isEmpty
            else { return true }
            return !tagged.isSubset(of: migration.values.compactMap(\.base))
        }
    }

    /// The names of all files that rows name.
    func externalFiles(_ mapping: SQLMapping) throws -> Set<String> {
        var names: Set<String> = []
        for table in mapping.tables {
            let columns = Set(table.entities.flatMap { $0.columns.filter(\.isTagged).compactMap(\.name) })
            for column in columns.sorted(by: { $0.raw < $1.raw }) {
                // SQLite knows the length without reading the value.
                let statement = try connection.statement(
                    SQL("SELECT \(column) FROM \(table.name) WHERE length(\(column)) BETWEEN 37 AND 38")
                )
                while try statement.step() {
                    if case .file(let name) = ExternalData.content(statement[0].bytes) { names.insert(name) }
                }
            }
        }
        return names
    }

    /// Marks the files that no row names after the migration, so that the commit removes them.
    func forgetFiles(_ before: Set<String>) throws {
        for name in before.subtracting(try externalFiles(destination)).sorted() {
            ExternalData.tagged(file: name).withUnsafeBytes { files.addObsolete($0) }
        }
    }

    /// Adds tags to a column's values, and writes large ones to files; or reads the files back in and removes the tags.
    func changeTags(_ table: TableMigration, _ change: TableMigration.TagChange) throws {
        let (name, column) = (table.destination.name, change.column)
        let numbers = change.numbers.map(String.init).joined(separator: ", ")
        let select = try connection.statement(
            SQL(
                """
                SELECT Z_PK, \(column) FROM \(name) WHERE Z_PK > ? AND \(column) NOT NULL AND Z_ENT IN (\(numbers))
                ORDER BY Z_PK LIMIT 1
                """
            )
        )
        let update = try connection.statement(SQL("UPDATE \(name) SET \(column) = ? WHERE Z_PK = ?"))
        var last = Int64.min
        while true {
            try select.bind(last, at: 1)
            guard try select.step() else { return }
            last = select[0].int64
            let value: SQLBinding
            if change.isTagged {
                value = .blob(try files.tagged(select[1].data).value)
            } else {
                value = try untagged(select[1])
            }
            select.reset()
            try update.bind(value, at: 1)
            try update.bind(last, at: 2)
            try update.run()
        }
    }

    /// The data of a tagged value.
    ///
    /// If its file is missing it is NULL, as for readers.
    private func untagged(_ value: Value) throws -> SQLBinding {
        switch ExternalData.content(value.bytes) {
        case .inline(let data): return .blob(data)
        case .file(let name): return try file.external.read(name).map { .blob($0) } ?? .null
        case .malformed: throw SQLiteBoundary.damaged(url, "a value has an unknown tag.")
        }
    }
}
