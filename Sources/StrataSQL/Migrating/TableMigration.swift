import StrataRows

/// What becomes of a table.
package struct TableMigration: Sendable {
    package let destination: SQLTable
    /// The table that has the rows; `nil` for one that starts empty.
    package let source: SQLTable?
    /// The numbers of the entities whose rows go on, as they were and as they will be.
    package let numbers: [(from: Int, to: Int)]
    /// Whether rows of the source are left behind: removed, or taken by another table.
    package let leavesRowsBehind: Bool
    /// Whether the source gives rows to other tables too, so that none can be it.
    package let sharesSource: Bool
    /// What the destination's columns hold, in the order of its columns, which are those behind `Z_OPT`.
    package let values: [MigratedValue]
    /// Columns whose data gets a tag in front, or loses it.
    package let tagChanges: [TagChange]
    /// Columns of derived attributes that have to be computed anew.
    package let derived: [SQLName]

    package struct TagChange: Sendable {
        package let column: SQLName
        package let isTagged: Bool
    }

    /// The entity's number as it will be.
    package var entityValue: String {
        if numbers.allSatisfy({ $0.from == $0.to }) { return "Z_ENT" }
        if numbers.count == 1 { return "\(numbers[0].to)" }
        let arms = numbers.map { "WHEN \($0.from) THEN \($0.to)" }.joined(separator: " ")
        return "CASE Z_ENT \(arms) END"
    }

    /// The condition for rows that go on; empty if all do.
    package var condition: String {
        guard leavesRowsBehind else { return "" }
        return " WHERE Z_ENT IN (\(numbers.map { "\($0.from)" }.joined(separator: ", ")))"
    }

    /// The statement that fills the table, under another name if it has one yet.
    package func fill(_ name: SQLName) -> (sql: String, bindings: [SQLBinding])? {
        guard let source else { return nil }
        let filled = zip(destination.columns, values).filter { !$1.isNull }
        let names = ["Z_PK", "Z_ENT", "Z_OPT"] + filled.map { $0.0.name.description }
        let texts = ["Z_PK", entityValue, "Z_OPT"] + filled.map { $0.1.text }
        return (
            "INSERT INTO \(name) (\(names.joined(separator: ", "))) SELECT \(texts.joined(separator: ", ")) FROM \(source.name) AS t\(condition)",
            filled.flatMap { $0.1.bindings }
        )
    }
}

/// How a table is changed where it is.
package struct TableAlteration: Sendable {
    /// Rows that go, by a condition; `nil` if none do.
    package let deletion: String?
    package let added: [SQLColumn]
    /// The statement that gives columns their new values, by the names that they had; `nil` if all keep theirs.
    package let update: (sql: String, bindings: [SQLBinding])?
    /// The columns that it gives values, by those names.
    package let updated: [SQLName]
    package let renamed: [(from: SQLName, to: SQLName)]
    /// Whether columns stay that nobody needs any more.
    package let hasLeftovers: Bool

    package var isNothing: Bool { deletion == nil && added.isEmpty && update == nil && renamed.isEmpty }

    /// How `migration` can be carried out without copying the table; `nil` if a copy is needed: columns go, change their types or trade names,
    /// or values come from other tables.
    ///
    /// - Parameters:
    ///   - migration: What has to become of the table.
    ///   - columns: The columns that the file has, with their types.
    ///   - keepsLeftovers: Whether columns may stay that go; they do not count then.
    package init?(_ migration: TableMigration, columns: [(name: String, type: String)], keepsLeftovers: Bool = false) {
        guard let source = migration.source, !migration.sharesSource else { return nil }
        let own: Set<String> = ["Z_PK", "Z_ENT", "Z_OPT"]
        var unused = Dictionary(
            columns.map { ($0.name.uppercased(), $0.type.uppercased()) }.filter { !own.contains($0.0) }
        ) { first, _ in first }
        let existing = Set(unused.keys)
        var added: [SQLColumn] = []
        var renamed: [(SQLName, SQLName)] = []
        var changes: [(name: SQLName, value: MigratedValue)] = []
        for (column, value) in zip(migration.destination.columns, migration.values) {
            if value.readsOthers { return nil }
            guard let base = value.base else {
                if existing.contains(column.name.raw.uppercased()) { return nil }
                added.append(column)
                if !value.isNull { changes.append((column.name, value)) }
                continue
            }
            guard let type = unused.removeValue(forKey: base.raw.uppercased()), type == column.type.uppercased() else {
                return nil
            }
            if base.raw.uppercased() != column.name.raw.uppercased() {
                if existing.contains(column.name.raw.uppercased()) { return nil }
                renamed.append((base, column.name))
            }
            if !value.isPlain { changes.append((base, value)) }
        }
        guard unused.isEmpty || keepsLeftovers else { return nil }
        hasLeftovers = !unused.isEmpty
        self.added = added
        self.renamed = renamed
        deletion =
            migration.leavesRowsBehind
            ? "NOT (Z_ENT IN (\(migration.numbers.map { "\($0.from)" }.joined(separator: ", "))))" : nil
        updated = changes.map(\.name)
        var assignments = changes.map { "\($0.name) = \($0.value.text)" }
        let entity = migration.entityValue
        if entity != "Z_ENT" { assignments.insert("Z_ENT = \(entity)", at: 0) }
        update =
            assignments.isEmpty
            ? nil
            : (
                "UPDATE \(source.name) SET \(assignments.joined(separator: ", "))",
                changes.flatMap(\.value.bindings)
            )
    }
}

/// What becomes of the table of a many-to-many relationship.
package struct JoinMigration: Sendable {
    package let destination: SQLJoinTable
    /// The table that can be kept, with the columns that get other names; `nil` if there is none.
    package let kept: (source: SQLJoinTable, renamed: [(from: SQLName, to: SQLName)])?
    /// What selects the pairs: owner, member, position of the member, position of the owner; `nil` if there are none.
    package let pairs: String?
    /// The columns in the order in which ``pairs`` selects; `nil` for positions that are not kept.
    let columns: (owner: SQLName, member: SQLName, order: SQLName?, inverseOrder: SQLName?)

    /// The statements that fill the table, under another name if it has one yet.
    package func fill(_ name: SQLName) -> [String] {
        guard let pairs else { return [] }
        func statement(_ owner: String, _ member: String, _ order: String, _ inverseOrder: String) -> String {
            var names = [columns.owner, columns.member]
            var texts = [owner, member]
            if let column = columns.order {
                names.append(column)
                texts.append("COALESCE(\(order), (\(member) + 1) * 1024)")
            }
            if let column = columns.inverseOrder {
                names.append(column)
                texts.append("COALESCE(\(inverseOrder), (\(owner) + 1) * 1024)")
            }
            let list = names.map(\.description).joined(separator: ", ")
            return
                "INSERT OR IGNORE INTO \(name) (\(list)) SELECT \(texts.joined(separator: ", ")) FROM (\(pairs)) WHERE o IS NOT NULL AND m IS NOT NULL"
        }
        var statements = [statement("o", "m", "fo", "fi")]
        if destination.isSymmetric { statements.append(statement("m", "o", "fi", "fo")) }
        return statements
    }
}

/// A question whose answer must be 0 for a migration to go on.
package struct RowCheck: Sendable {
    package let sql: String
    package let entity: String
    package let property: String?
    /// What is the matter, with `%d` for the count.
    package let reason: String
}
