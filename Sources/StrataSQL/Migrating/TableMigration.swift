import StrataRows

/// The changes of one table.
package struct TableMigration: Sendable {
    package let destination: SQLTable
    /// The names that the database gives to its columns.
    let naming: SQLNaming
    /// The table with the former rows; `nil` for a table that starts empty.
    package let source: SQLTable?
    /// The former and the new numbers of the entities whose rows are kept.
    package let numbers: [(from: Int, to: Int)]
    /// Whether rows of the source are not taken over: they are removed, or go to another table.
    package let leavesRowsBehind: Bool
    /// Whether rows of the source go to other tables too, so that it cannot become this table.
    package let sharesSource: Bool
    /// The values of the destination's columns, in their order, starting after the version.
    package let values: [MigratedValue]
    /// Columns whose data gets a tag, or loses it.
    package let tagChanges: [TagChange]
    /// Columns of derived attributes that have to be computed again.
    package let derived: [SQLName]
    /// Whether folded texts have to be computed.
    package let refolds: Bool

    package struct TagChange: Sendable {
        package let column: SQLName
        package let isTagged: Bool
        /// The new numbers of the entities whose rows are concerned.
        package let numbers: [Int]
    }

    /// The new number of the entity.
    package var entityValue: String {
        if numbers.allSatisfy({ $0.from == $0.to }) { return naming.entity.description }
        if numbers.count == 1 { return "\(numbers[0].to)" }
        let arms = numbers.map { "WHEN \($0.from) THEN \($0.to)" }.joined(separator: " ")
        return "CASE \(naming.entity) \(arms) END"
    }

    /// Whether rows get other entity numbers.
    package var renumbers: Bool { entityValue != naming.entity.description }

    /// The condition for rows that are kept; empty if all are.
    package var condition: String { leavesRowsBehind ? " WHERE \(goesOn)" : "" }

    /// The test that a row is kept.
    fileprivate var goesOn: String {
        // Not every database accepts a list without members.
        if numbers.isEmpty { return "1 = 0" }
        return "\(naming.entity) IN (\(numbers.map { "\($0.from)" }.joined(separator: ", ")))"
    }

    /// The statement that fills the table, which may still have another name.
    ///
    /// - Parameters:
    ///   - name: The table's name.
    ///   - piece: A condition for the rows of one piece, as rows of `t`; `nil` for all. Rows that the table has already are left out then.
    ///   - write: Returns the text of a value for a column.
    /// - Returns: The statement; `nil` for a table that starts empty.
    package func fill(
        _ name: SQLName,
        piece: String? = nil,
        _ write: (MigratedValue, SQLColumn) -> String
    ) -> String? {
        guard let source else { return nil }
        let filled = zip(destination.columns, values).filter { !$1.isNull }
        let own = [naming.key.description, naming.entity.description, naming.version.description]
        let names = own + filled.map { $0.0.name.description }
        let texts = [own[0], entityValue, own[2]] + filled.map { write($0.1, $0.0) }
        let all =
            "INSERT INTO \(name) (\(names.joined(separator: ", "))) SELECT \(texts.joined(separator: ", ")) FROM \(source.name) AS t\(condition)"
        guard let piece else { return all }
        return "\(all)\(condition.isEmpty ? " WHERE" : " AND") \(piece) ON CONFLICT (\(naming.key)) DO NOTHING"
    }
}

/// The changes of a table in place.
package struct TableAlteration: Sendable {
    /// The condition for rows to delete; `nil` if there are none.
    package let deletion: String?
    package let added: [SQLColumn]
    /// The columns that get new values, by their former names.
    package let changes: [(name: SQLName, value: MigratedValue)]
    /// The new number of the entity; `nil` if rows keep theirs.
    package let entity: String?
    package let renamed: [(from: SQLName, to: SQLName)]
    /// Whether columns stay that are no longer needed.
    package let hasLeftovers: Bool

    private let table: SQLName
    private let entityColumn: SQLName

    package var isNothing: Bool {
        deletion == nil && added.isEmpty && changes.isEmpty && entity == nil && renamed.isEmpty
    }

    /// The statement that gives columns their new values.
    ///
    /// - Parameters:
    ///   - changes: The columns.
    ///   - write: Returns the text of a value.
    /// - Returns: The statement; `nil` if no column gets another value.
    package func update(
        _ changes: [(name: SQLName, value: MigratedValue)],
        _ write: (MigratedValue) -> String
    ) -> String? {
        var assignments = changes.map { "\($0.name) = \(write($0.value))" }
        if let entity { assignments.insert("\(entityColumn) = \(entity)", at: 0) }
        return assignments.isEmpty ? nil : "UPDATE \(table) SET \(assignments.joined(separator: ", "))"
    }

    /// Makes the changes that are left after other columns of a table were prepared.
    ///
    /// - Parameters:
    ///   - table: The name of the table before the migration.
    ///   - added: The columns that are added.
    ///   - changes: The values of added columns.
    ///   - renamed: The columns that get other names.
    ///   - naming: The names of the columns that each table has.
    package init(
        of table: SQLName,
        adding added: [SQLColumn],
        changing changes: [(name: SQLName, value: MigratedValue)],
        renaming renamed: [(from: SQLName, to: SQLName)],
        naming: SQLNaming
    ) {
        deletion = nil
        self.added = added
        self.changes = changes
        entity = nil
        self.renamed = renamed
        hasLeftovers = false
        self.table = table
        entityColumn = naming.entity
    }

    /// Finds the changes for `migration` without a copy of the table; `nil` if a copy is needed.
    ///
    /// That is so if columns are dropped, change their types or exchange names, or if values come from other tables.
    ///
    /// - Parameters:
    ///   - migration: The wanted changes of the table.
    ///   - columns: The columns in the file, with their types.
    ///   - keepsLeftovers: Whether dropped columns may stay; they do not require a copy then.
    package init?(_ migration: TableMigration, columns: [(name: String, type: String)], keepsLeftovers: Bool = false) {
        guard let source = migration.source, !migration.sharesSource else { return nil }
        let naming = migration.naming
        let own = Set([naming.key, naming.entity, naming.version].map { $0.raw.uppercased() })
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
            if base.raw != column.name.raw {
                let isTaken = existing.contains(column.name.raw.uppercased())
                // The name is free if it is the column's own in another case.
                if isTaken, base.raw.uppercased() != column.name.raw.uppercased() { return nil }
                renamed.append((base, column.name))
            }
            if !value.isPlain { changes.append((base, value)) }
        }
        guard unused.isEmpty || keepsLeftovers else { return nil }
        hasLeftovers = !unused.isEmpty
        self.added = added
        self.renamed = renamed
        self.changes = changes
        table = source.name
        entityColumn = naming.entity
        deletion = migration.leavesRowsBehind ? "NOT (\(migration.goesOn))" : nil
        entity = migration.renumbers ? migration.entityValue : nil
    }
}

/// The changes of the table of a many-to-many relationship.
package struct JoinMigration: Sendable {
    package let destination: SQLJoinTable
    /// The table that can be kept, with the columns that are renamed; `nil` if there is none.
    package let kept: (source: SQLJoinTable, renamed: [(from: SQLName, to: SQLName)])?
    /// The query for the pairs: owner, member, position of the member, position of the owner; `nil` if there are none.
    package let pairs: String?
    /// The columns in the order of the query ``pairs``; `nil` for positions that are not kept.
    let columns: (owner: SQLName, member: SQLName, order: SQLName?, inverseOrder: SQLName?)

    /// The statements that fill the table, which may still have another name.
    ///
    /// - Parameters:
    ///   - name: The table's name.
    ///   - piece: A condition for the owners `o` of one piece of the pairs; `nil` for all.
    /// - Returns: The statements, each of which leaves out pairs that the table has already.
    package func fill(_ name: SQLName, piece: String? = nil) -> [String] {
        guard let pairs else { return [] }
        let rows = piece.map { " AND \($0)" } ?? ""
        func statement(owner: String, member: String, order: String, inverseOrder: String) -> String {
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
                "INSERT INTO \(name) (\(list)) SELECT \(texts.joined(separator: ", ")) FROM (\(pairs)) AS p WHERE o IS NOT NULL AND m IS NOT NULL\(rows) ON CONFLICT DO NOTHING"
        }
        var statements = [statement(owner: "o", member: "m", order: "fo", inverseOrder: "fi")]
        if destination.isSymmetric {
            statements.append(statement(owner: "m", member: "o", order: "fi", inverseOrder: "fo"))
        }
        return statements
    }
}

/// A query whose result must be 0 for the migration to continue.
package struct RowCheck: Sendable {
    package let sql: String
    package let entity: String
    package let property: String?
    /// The problem, with `%d` for the count.
    package let reason: String
    /// The rows of one table that the query counts; `nil` if it groups rows, or reads several tables.
    package let rows: (table: SQLName, condition: String)?

    /// Makes a check with a query of any form.
    init(sql: String, entity: String, property: String?, reason: String) {
        self.sql = sql
        self.entity = entity
        self.property = property
        self.reason = reason
        rows = nil
    }

    /// Makes a check that no row of a table fulfils a condition over its own columns.
    init(noRowOf table: SQLName, where condition: String, entity: String, property: String?, reason: String) {
        sql = "SELECT COUNT(*) FROM \(table) WHERE \(condition)"
        self.entity = entity
        self.property = property
        self.reason = reason
        rows = (table, condition)
    }

    /// The result of the check.
    ///
    /// - Parameter count: The count that the statement has returned.
    /// - Returns: `nil` for 0.
    package func finding(_ count: Int64) -> RowFinding? {
        guard count > 0 else { return nil }
        return RowFinding(entity: entity, property: property, reason: reason.replacing("%d", with: "\(count)"))
    }
}
