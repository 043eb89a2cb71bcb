import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PreparedTable {
    /// The least size of a table, in bytes, that is worth a preparation.
    ///
    /// A smaller one is changed within a fraction of a second.
    static let leastSize: Int64 = 8 << 20

    /// Plans the preparation of a table.
    ///
    /// The result is `nil` if nothing can be done before the transaction. It is also `nil` if all of the table belongs in
    /// the transaction: its rows go to another table, or get other numbers of entities, or values that are computed from
    /// other rows.
    ///
    /// - Parameters:
    ///   - table: The changes of the table.
    ///   - migration: The migration.
    ///   - existing: The names of the indexes that the store has.
    ///   - hasForeignKeys: Whether the store has foreign keys.
    init?(
        _ table: TableMigration,
        of migration: PostgreSQLMigration,
        having existing: Set<SQLName>,
        hasForeignKeys: Bool
    ) {
        guard let source = table.source, !table.sharesSource, !table.leavesRowsBehind, !table.renumbers else {
            return nil
        }
        let isRenamed = source.name != table.destination.name
        let wantedIndexes = PostgreSQLSchema.indexes(migration.destination)
            .filter { $0.table == table.destination.name }
        let oldIndexes = PostgreSQLSchema.indexes(migration.source)
            .filter { $0.table == source.name && existing.contains($0.name) }
        let newKeys = hasForeignKeys && !isRenamed ? migration.newForeignKeys(of: source.name) : []
        // Only these are worth an early column: any other new column is added within a moment.
        let early = Set(
            wantedIndexes.filter { !$0.isPartial }.flatMap { $0.columns ?? [] } + newKeys.map(\.column)
        )
        guard let values = PreparedValues(table, from: source, early: early, naming: migration.naming) else {
            return nil
        }
        // An index of expressions, or of some rows, is lost with the columns that it reads.
        if !values.dropped.isEmpty, (wantedIndexes + oldIndexes).contains(where: { $0.columns == nil || $0.isPartial })
        {
            return nil
        }
        let former = migration.formerTable(table, source, without: values.dropped)
        let standing = StandingIndexes(wantedIndexes, from: oldIndexes, [table.destination.name: former])
        self.table = source.name
        columns = values.columns
        dropped = values.dropped
        alteration = TableAlteration(
            of: source.name,
            adding: values.added,
            changing: values.changes,
            renaming: values.renamed,
            naming: migration.naming
        )
        indexes = wantedIndexes.compactMap { index in
            guard standing.former[index.name] == nil else { return nil }
            // These values are computed in the transaction, and checked when all are written.
            let isLate = table.refolds || (index.columns ?? []).contains(where: table.derived.contains)
            guard index.constraint == nil || !isLate else { return nil }
            return values.prepared(index, on: source.name)
        }
        misfits = Self.misfits(of: source.name, migration)
        keys = newKeys.compactMap { key in
            guard let column = values.columns.first(where: { $0.column.name == key.column }),
                column.computation == nil
            else { return nil }
            let text = "FOREIGN KEY (\(column.name)) REFERENCES \(key.target) (\(migration.naming.key))"
            let name = PreparedParts.name("\(key.table) \(text)")
            return Key(
                final: key.name,
                name: name,
                target: key.target,
                sql:
                    "ALTER TABLE \(key.table) ADD CONSTRAINT \(name) \(text) DEFERRABLE INITIALLY DEFERRED NOT VALID"
            )
        }
        guard hasSteps || !dropped.isEmpty else { return nil }
    }

    /// The index of the rows that a check of the migration would find.
    private static func misfits(of table: SQLName, _ migration: PostgreSQLMigration) -> Misfits? {
        let losses = migration.request.mayDropValues ? [] : migration.layout.losses
        let conditions = (migration.layout.checks + losses).compactMap { check in
            check.rows.flatMap { $0.table == table ? "(\($0.condition))" : nil }
        }
        guard !conditions.isEmpty else { return nil }
        let condition = conditions.joined(separator: " OR ")
        let definition = "ON \(table) (\(migration.naming.key)) WHERE \(condition)"
        let name = PreparedParts.name(definition)
        return Misfits(name: name, condition: condition, sql: "CREATE INDEX CONCURRENTLY \(name) \(definition)")
    }
}

/// The changes of the columns of a table that is prepared.
private struct PreparedValues {
    private(set) var columns: [PreparedTable.Column] = []
    private(set) var dropped: Set<SQLName> = []
    /// The columns that are added in the transaction.
    private(set) var added: [SQLColumn] = []
    /// The values of added columns.
    private(set) var changes: [(name: SQLName, value: MigratedValue)] = []
    private(set) var renamed: [(from: SQLName, to: SQLName)] = []
    /// The present names of columns, by their names after the migration.
    private var present: [SQLName: SQLName]
    private let table: SQLName

    /// - Parameters:
    ///   - migration: The changes of the table.
    ///   - source: The table as it is.
    ///   - early: The new columns that are needed before the transaction.
    ///   - naming: The names of the columns that each table has.
    init?(_ migration: TableMigration, from source: SQLTable, early: Set<SQLName>, naming: SQLNaming) {
        table = source.name
        present = Dictionary(uniqueKeysWithValues: [naming.key, naming.entity, naming.version].map { ($0, $0) })
        let types = Dictionary(source.columns.map { ($0.name, $0.type) }) { first, _ in first }
        var kept: Set<SQLName> = []
        for (column, value) in zip(migration.destination.columns, migration.values) {
            if value.readsOthers { return nil }
            if let base = value.base, value.isPlain, types[base] == column.type {
                kept.insert(base)
                present[column.name] = base
                if base != column.name { renamed.append((base, column.name)) }
                continue
            }
            guard value.base == nil, value.isNull || value.constant != nil else {
                guard let computation = Self.computation(value, of: column, types) else { return nil }
                prepare(column, .computed(computation), computation.text)
                continue
            }
            if value.isNull, early.contains(column.name) {
                prepare(column, .empty, "NULL")
            } else if let constant = value.constant, early.contains(column.name),
                let literal = SQLLiteral.text(PostgreSQLMigration.value(constant))
            {
                prepare(column, .constant(literal), literal)
            } else {
                if let constant = value.constant, PostgreSQLMigration.text(constant) == nil { return nil }
                added.append(column)
                if !value.isNull { changes.append((column.name, value)) }
            }
        }
        dropped = Set(source.columns.map(\.name)).subtracting(kept)
        let new = columns.map(\.column.name) + added.map(\.name) + renamed.map(\.to)
        // Exchanged names take a copy.
        if new.contains(where: kept.contains) { return nil }
    }

    private mutating func prepare(_ column: SQLColumn, _ content: PreparedTable.Column.Content, _ text: String) {
        let name = PreparedParts.name("\(table) \(column.type) \(text) \(column.name)")
        columns.append(.init(column: column, name: name, content: content))
        present[column.name] = name
    }

    /// The value of a column that is computed; `nil` if it has a constant without a literal.
    private static func computation(_ value: MigratedValue, of column: SQLColumn, _ types: [SQLName: String])
        -> PreparedTable.Computation?
    {
        var isComplete = true
        func text(prefix: String) -> String {
            value.text(column: { PostgreSQLMigration.cast($0, types[$0], to: column.type, prefix: prefix) }) {
                constant in
                let literal = SQLLiteral.text(PostgreSQLMigration.value(constant))
                if literal == nil { isComplete = false }
                return literal ?? "NULL"
            }
        }
        let computation = PreparedTable.Computation(
            text: text(prefix: ""),
            textForTrigger: value.isPlain ? text(prefix: "NEW.") : nil
        )
        return isComplete ? computation : nil
    }

    /// An index on the present names of its columns; `nil` if it cannot be made before the transaction.
    func prepared(_ index: PostgreSQLSchema.Index, on table: SQLName) -> PreparedTable.Index? {
        let isPlain = index.columns != nil && !index.isPartial
        // The text of an expression has the names of columns in places that are not known here.
        guard isPlain || renamed.isEmpty && index.table == table,
            let definition = isPlain ? index.definition({ present[$0] }) : index.text
        else { return nil }
        let kind = index.constraint == nil ? "INDEX" : "UNIQUE INDEX"
        let name = PreparedParts.name("\(kind) \(table) \(definition)")
        return PreparedTable.Index(
            final: index.name,
            name: name,
            sql: "CREATE \(kind) CONCURRENTLY \(name) ON \(table) \(definition)",
            constraint: index.constraint.map { ($0, $0.columns.compactMap { present[$0] }) }
        )
    }
}
