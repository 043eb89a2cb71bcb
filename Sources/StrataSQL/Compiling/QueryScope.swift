import StrataRows

/// The rows of one variable of a predicate, and the tables joined to them: a part of a FROM clause while it is written.
package struct QueryScope {
    /// The mapping of the variable's entity.
    package let mapping: EntityMapping
    private let naming: SQLNaming
    /// The name of the entity's table in the statement.
    package let alias: String
    /// The primary key of the row.
    package let key: String
    /// Whether the row itself is needed, and not only its key, which a join table has too.
    package var needsRow: Bool
    /// Tables along to-one relationships, each joined once.
    package private(set) var joins = ""
    private var aliases: [Step: String] = [:]
    private var casts: [Cast: String] = [:]

    /// A to-one relationship from one of the scope's tables.
    private struct Step: Hashable {
        let alias: String
        let column: SQLName
    }

    /// Rows that are read as rows of a sub-entity.
    private struct Cast: Hashable {
        let key: String
        let entity: Int
    }

    package init(mapping: EntityMapping, alias: String, key: String? = nil, naming: SQLNaming) {
        self.naming = naming
        self.mapping = mapping
        self.alias = alias
        self.key = key ?? "\(alias).\(naming.key)"
        needsRow = key == nil
    }

    /// Joins the table that a key column of another table refers to.
    ///
    /// The join returns at most one row, and nulls if there is none, so that it can be used for any number of
    /// conditions.
    package mutating func join(_ table: SQLName, from alias: String, _ column: SQLName, newAlias: () -> String)
        -> String
    {
        let step = Step(alias: alias, column: column)
        if let known = aliases[step] { return known }
        let alias = newAlias()
        aliases[step] = alias
        joins += " LEFT JOIN \(table) \(alias) ON \(alias).\(naming.key) = \(step.alias).\(column)"
        return alias
    }

    /// Joins the table of a row again, so that the row is found only if it is of an entity or of a sub-entity.
    package mutating func cast(_ key: String, to entity: EntityMapping, newAlias: () -> String) -> String {
        let cast = Cast(key: key, entity: entity.number)
        if let known = casts[cast] { return known }
        let alias = newAlias()
        casts[cast] = alias
        let (first, last) = (entity.subtree.lowerBound, entity.subtree.upperBound)
        joins += " LEFT JOIN \(entity.table) \(alias) ON \(alias).\(naming.key) = \(key)"
        joins += " AND \(alias).\(naming.entity) BETWEEN \(first) AND \(last)"
        return alias
    }
}
