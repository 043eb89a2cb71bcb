import StrataPostgreSQL
import StrataSQL

/// The indexes of a store that stay in a migration, although their tables or columns may get other names.
struct StandingIndexes {
    /// The names of those that stay, by the names that they have in the new model.
    private(set) var former: [SQLName: SQLName] = [:]

    /// The names that they have in the new model.
    var names: Set<SQLName> { Set(former.keys) }
    /// The names that they have before the migration.
    var formerNames: Set<SQLName> { Set(former.values) }

    /// Finds them.
    ///
    /// - Parameters:
    ///   - wanted: The indexes of the new model.
    ///   - old: Those of the old model that the store has.
    ///   - tables: The tables that are changed in place, by the names that they have in the new model.
    init(_ wanted: [PostgreSQLSchema.Index], from old: [PostgreSQLSchema.Index], _ tables: [SQLName: FormerTable]) {
        var taken: Set<SQLName> = []
        // An index that keeps its name is preferred to one with the same columns.
        for mayRename in [false, true] {
            for index in wanted where former[index.name] == nil {
                guard let table = tables[index.table] else { continue }
                let found = old.first { other in
                    (mayRename || other.name == index.name) && !taken.contains(other.name)
                        && table.keeps(other, as: index)
                }
                guard let found else { continue }
                taken.insert(found.name)
                former[index.name] = found.name
            }
        }
    }
}

/// A table that is changed in place, as it was before.
struct FormerTable {
    let name: SQLName
    /// The former names of the columns that stay, by their new names.
    let columns: [SQLName: SQLName]
    /// The columns that get other values, by their former names.
    let changed: Set<SQLName>

    /// Whether an index of this table is one of the new model.
    fileprivate func keeps(_ old: PostgreSQLSchema.Index, as new: PostgreSQLSchema.Index) -> Bool {
        guard old.table == name, (old.constraint == nil) == (new.constraint == nil) else { return false }
        guard let own = old.columns, new.columns != nil, !old.isPartial, !new.isPartial else {
            // The text of an expression is that of the server only as long as all names stay.
            return old.sql == new.sql
        }
        // Unique values are checked when all are written.
        if old.constraint != nil, own.contains(where: changed.contains) { return false }
        guard let text = new.definition({ columns[$0] }) else { return false }
        return text == old.definition { $0 }
    }
}

extension PostgreSQLSchema.Index {
    /// The text after the name of the table.
    var text: String? {
        let start = "CREATE \(constraint == nil ? "INDEX" : "UNIQUE INDEX") \(name) ON \(table) "
        return sql.hasPrefix(start) ? String(sql.dropFirst(start.count)) : nil
    }

    /// The text after the name of the table, with other names of columns.
    ///
    /// - Parameter name: Returns the other name of a column; `nil` if there is none.
    /// - Returns: The text; `nil` if a column has no other name, or if the index has more than columns.
    func definition(_ name: (SQLName) -> SQLName?) -> String? {
        guard let columns, !isPartial, let text, text.hasPrefix("("), text.hasSuffix(")") else { return nil }
        let parts = text.dropFirst().dropLast().components(separatedBy: ", ")
        guard parts.count == columns.count else { return nil }
        var texts: [String] = []
        for (part, column) in zip(parts, columns) {
            guard part.hasPrefix(column.description), let name = name(column) else { return nil }
            texts.append(name.description + part.dropFirst(column.description.count))
        }
        return "(\(texts.joined(separator: ", ")))"
    }
}
