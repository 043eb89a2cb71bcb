import Foundation
import StrataRows

/// One migration of the tables of a store, inside a transaction.
///
/// It derives the order of the work, the names of tables in between, and the progress. An engine supplies the statements
/// that differ between databases.
package protocol MigrationDriver: AnyObject {
    var layout: MigrationLayout { get }
    var source: SQLMapping { get }
    var destination: SQLMapping { get }
    /// The tables that stay, and those that get other names.
    var names: MigratedNames { get set }

    /// Runs a statement without parameters.
    func execute(_ statement: String) throws
    /// Returns the number in the first column of the first row of a query.
    func firstNumber(_ query: String) throws -> Int64?
    /// Whether the store has a table of that name before the migration.
    func hasTable(_ name: SQLName) -> Bool
    /// The changes of a table in place; `nil` if it is copied.
    func alteration(_ table: TableMigration) throws -> TableAlteration?
    /// The statement that makes a table under a name.
    func create(_ table: SQLTable, as name: SQLName) -> String
    func create(_ join: SQLJoinTable, as name: SQLName) -> String
    /// Fills a new table with the rows that go there.
    func fill(_ table: TableMigration, as name: SQLName) throws
    /// Changes the columns and the rows of a table that stays, except for the names of columns.
    func alter(_ source: SQLTable, _ alteration: TableAlteration, for table: TableMigration) throws
}

/// The tables that stay in a migration, and those that get other names at its end.
package struct MigratedNames {
    /// The beginning of temporary names.
    private let prefix: String
    private var temporaryCount = 0
    /// The tables that stay, by their names before the migration.
    package fileprivate(set) var kept: Set<SQLName> = []
    /// The tables that are renamed at the end.
    fileprivate var renamed: [(from: SQLName, to: SQLName)] = []

    package init(prefix: String) {
        self.prefix = prefix
    }

    fileprivate mutating func nextTemporary(_ naming: SQLNaming) -> SQLName {
        temporaryCount += 1
        return naming.name("\(prefix)\(temporaryCount)")
    }
}

extension MigrationDriver {
    /// The tables of the store before the migration.
    package var oldTables: [SQLName] { source.tables.map(\.name) + source.joinTables.map(\.name) }

    /// A name that no table of the store has, before or after the migration.
    package func temporaryName() -> SQLName {
        let new = Set((destination.tables.map(\.name) + destination.joinTables.map(\.name)).map { $0.raw.uppercased() })
        while true {
            let name = names.nextTemporary(destination.dialect.naming)
            if !hasTable(name), !new.contains(name.raw.uppercased()) { return name }
        }
    }

    /// Checks the rows before the first change.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - place: The name of the store in messages; `nil` for the path of the URL.
    ///   - mayDropValues: Whether values may be lost.
    ///   - proven: The tables whose own rows are known to fit.
    /// - Throws: `migration` (134110) if the new model does not allow rows, or if values would be lost and may not.
    package func checkRows(
        at url: URL,
        place: String? = nil,
        mayDropValues: Bool,
        except proven: Set<SQLName> = []
    ) throws {
        func isOpen(_ check: RowCheck) -> Bool { check.rows.map { !proven.contains($0.table) } ?? true }
        let problems = try layout.checks.filter(isOpen).findings(firstNumber)
        if !problems.isEmpty { throw MigrationErrors.rows(url, problems, place: place) }
        guard !mayDropValues else { return }
        let losses = try layout.losses.filter(isOpen).findings(firstNumber)
        if !losses.isEmpty { throw MigrationErrors.losses(url, losses, place: place) }
    }

    // MARK: - Tables

    /// Makes and fills the tables that cannot be kept, beside the old ones.
    ///
    /// - Parameter advance: Receives the part of the work that is done, and may cancel the rest.
    /// - Throws: Errors of `advance` and of the database.
    package func copyTables(_ advance: (Double) throws -> Void) throws {
        let total = Double(layout.tables.count + layout.joins.count + 1)
        for (number, table) in layout.tables.enumerated() {
            try advance(Double(number) / total)
            try copyUnlessKept(table)
        }
        for (number, join) in layout.joins.enumerated() {
            try advance(Double(layout.tables.count + number) / total)
            try copyUnlessKept(join)
        }
        try advance((total - 1) / total)
    }

    /// Changes the tables that are kept, drops the other old ones, and gives all their final names.
    package func replaceTables() throws {
        for table in layout.tables {
            guard let source = table.source, names.kept.contains(source.name), let alteration = try alteration(table)
            else { continue }
            try alter(source, alteration, for: table)
            try rename(alteration.renamed, of: source.name)
            try move(source.name, to: table.destination.name)
        }
        for join in layout.joins {
            guard let kept = join.kept else { continue }
            try rename(kept.renamed, of: kept.source.name)
            try move(kept.source.name, to: join.destination.name)
        }
        for table in oldTables where !names.kept.contains(table) { try execute("DROP TABLE \(table)") }
        for (from, to) in names.renamed { try execute("ALTER TABLE \(from) RENAME TO \(to)") }
    }

    private func copyUnlessKept(_ table: TableMigration) throws {
        if let source = table.source, try alteration(table) != nil {
            names.kept.insert(source.name)
            return
        }
        let name = provisionalName(table.destination.name)
        try execute(create(table.destination, as: name))
        try fill(table, as: name)
    }

    private func copyUnlessKept(_ join: JoinMigration) throws {
        if let source = join.kept?.source {
            names.kept.insert(source.name)
            return
        }
        let name = provisionalName(join.destination.name)
        try execute(create(join.destination, as: name))
        for statement in join.fill(name) { try execute(statement) }
    }

    /// The name under which a new table is made: its final name, unless a table of the store still has that.
    private func provisionalName(_ name: SQLName) -> SQLName {
        guard hasTable(name) else { return name }
        let temporary = temporaryName()
        names.renamed.append((temporary, name))
        return temporary
    }

    private func rename(_ columns: [(from: SQLName, to: SQLName)], of table: SQLName) throws {
        for (from, to) in columns { try execute("ALTER TABLE \(table) RENAME COLUMN \(from) TO \(to)") }
    }

    /// Gives a kept table its final name, with a free name in between.
    private func move(_ table: SQLName, to name: SQLName) throws {
        guard table != name else { return }
        let temporary = temporaryName()
        try execute("ALTER TABLE \(table) RENAME TO \(temporary)")
        names.renamed.append((temporary, name))
    }

    // MARK: - Objects

    /// The URIs of rows, each with a key and the number of its entity after the migration.
    package func objects(_ rows: [(key: Int64, entity: Int64)], in uuid: String) -> [URL] {
        rows.compactMap { row in
            destination.entity(storeNumber: row.entity).flatMap {
                URL(string: "x-coredata://\(uuid)/\($0.layout.name)/p\(row.key)")
            }
        }
    }
}

/// The changes of an entity in a history: its numbers, and the names of its properties.
package struct HistoryMigration: Sendable {
    /// A pair of entities that the store has before and after the migration.
    package struct Entity: Sendable {
        package let pair: EntityPair
        package let from: EntityMapping
        package let to: EntityMapping
        private let old: HistoryPlaces
        private let new: HistoryPlaces
        /// The new names of properties, by the former ones.
        package let names: [String: String]

        fileprivate init(_ pair: EntityPair, from: EntityMapping, to: EntityMapping) {
            (self.pair, self.from, self.to) = (pair, from, to)
            old = HistoryPlaces(from.layout) { from.columns[$0.index].entity != nil }
            new = HistoryPlaces(to.layout) { to.columns[$0.index].entity != nil }
            names = Dictionary(pair.names.map { ($0.value, $0.key) }) { first, _ in first }
        }

        /// Moves the bits of changed properties to their new places.
        package func moved(_ mask: UnsafeRawBufferPointer) -> HistoryMask {
            new.mask(names: old.names(of: HistoryMask(old, mask)).compactMap { names[$0] })
        }
    }

    package let entities: [Entity]

    package init(_ migration: SchemaMigration, from source: SQLMapping, to destination: SQLMapping) {
        entities = migration.pairs.compactMap { pair in
            source.entity(pair.source).flatMap { from in
                destination.entity(pair.destination).map { Entity(pair, from: from, to: $0) }
            }
        }
    }

    /// The assignment and the condition that change the numbers of entities in a column; `nil` if all keep theirs.
    package func renumbering(_ column: String) -> String? {
        let changed = entities.filter { $0.from.number != $0.to.number }
        guard !changed.isEmpty else { return nil }
        let arms = changed.map { "WHEN \($0.from.number) THEN \($0.to.number)" }.joined(separator: " ")
        let old = changed.map { "\($0.from.number)" }.joined(separator: ", ")
        return "SET \(column) = CASE \(column) \(arms) END WHERE \(column) IN (\(old))"
    }
}

extension [RowCheck] {
    /// The problems that the checks find.
    ///
    /// - Parameter count: Returns the number that a query returns.
    /// - Returns: The findings, none if all rows fit.
    /// - Throws: Errors of `count`.
    package func findings(_ count: (String) throws -> Int64?) throws -> [RowFinding] {
        try compactMap { check in try count(check.sql).flatMap { check.finding($0) } }
    }
}
