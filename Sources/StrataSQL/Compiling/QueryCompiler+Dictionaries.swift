import StrataPredicates
import StrataRows

/// A statement that computes dictionary results, without limit and offset.
package struct CompiledDictionaries {
    package var text = ""
    package var bindings: [SQLBinding] = []
    /// How each value of a result is read from the statement's columns.
    package var columns: [SelectedColumn] = []

    package init(text: String = "", bindings: [SQLBinding] = [], columns: [SelectedColumn] = []) {
        self.text = text
        self.bindings = bindings
        self.columns = columns
    }
}

/// The place of a value of a dictionary result in a statement's row.
package enum SelectedColumn {
    case value(Int, ResolvedType)
    /// Bytes with a tag in front, which says whether they are here or in a file.
    case tagged(Int)
    /// An object's key, and the column with its entity's number in the store, if it may be one of several.
    case object(Int, entity: Int?, declared: EntityLayout)
}

extension QueryCompiler {
    /// Compiles a fetch of dictionaries.
    ///
    /// - Parameters:
    ///   - plan: The fetch.
    ///   - entity: The mapping of its entity.
    ///   - mapping: The tables of the store.
    ///   - entityCondition: The condition on the rows' entity, if there is one.
    ///   - isOrdered: Whether the order matters.
    /// - Returns: The statement.
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the fetch.
    package static func compile(
        _ plan: DictionaryPlan,
        for entity: EntityMapping,
        in mapping: SQLMapping,
        entityCondition: String?,
        isOrdered: Bool
    ) throws -> CompiledDictionaries {
        var query = CompiledDictionaries()
        var compiler = QueryCompiler(
            mapping,
            storeNumber: plan.rows.storeNumber,
            entity: entity,
            variableCount: plan.variableCount
        )
        // The columns are written in the order of the text, because that is the order of the bindings; joins have none.
        try compiler.writeColumns(of: plan, for: entity, into: &query.columns)
        let columns = compiler.takeText()
        var conditions = entityCondition.map { [$0] } ?? []
        if let predicate = plan.rows.predicate {
            try compiler.writeWhole(predicate.condition)
            conditions.append("(\(compiler.takeText()))")
        }
        try compiler.writeTail(plan, entity, isOrdered: isOrdered)
        let tail = compiler.takeText()

        query.text = "SELECT \(columns) FROM \(entity.table) AS t0\(compiler.joins)"
        if !conditions.isEmpty { query.text += " WHERE " + conditions.joined(separator: " AND ") }
        query.text += tail
        query.bindings = compiler.bindings
        return query
    }

    // MARK: - Columns

    private mutating func writeColumns(
        of plan: DictionaryPlan,
        for entity: EntityMapping,
        into columns: inout [SelectedColumn]
    ) throws {
        if plan.grouping?.isDistinct == true { write("DISTINCT ") }
        var position = 0
        for column in plan.columns {
            if position > 0 { write(", ") }
            let selected = try write(column.expression, at: position, entity, isGrouped: plan.grouping != nil)
            if case .object(_, entity: .some, declared: _) = selected { position += 1 }
            position += 1
            columns.append(selected)
        }
    }

    private mutating func write(
        _ expression: ResolvedExpression,
        at position: Int,
        _ entity: EntityMapping,
        isGrouped: Bool
    ) throws -> SelectedColumn {
        switch expression {
        case .object(let path): return try writeObject(path, at: position, entity)
        case .attribute(let path, let attribute) where !isGrouped:
            // Even data in files can be returned; only a comparison needs the file's content.
            guard let place = try place(of: path), let name = place.mapping.columns[attribute.slot].name else { break }
            write("\(place.alias).\(name)")
            return place.mapping.columns[attribute.slot].isTagged
                ? .tagged(position) : .value(position, expression.type)
        default: break
        }
        // The collation is named, so that distinct results differ as they do in memory.
        try write(expression, collation: nil)
        return .value(position, expression.type)
    }

    /// Writes an object's key, and its entity if that is stored.
    private mutating func writeObject(
        _ path: ResolvedPath,
        at position: Int,
        _ entity: EntityMapping
    ) throws -> SelectedColumn {
        try writeKey(of: path)
        guard let last = path.steps.last else {
            write(", t0.\(naming.entity)")
            return .object(position, entity: position + 1, declared: entity.layout)
        }
        let owner = ResolvedPath(variable: path.variable, steps: Array(path.steps.dropLast()))
        let declared = last.destination as? EntityLayout ?? entity.layout
        guard let place = try place(of: owner), let column = place.mapping.columns[last.slot].entity else {
            return .object(position, entity: nil, declared: declared)
        }
        write(", \(place.alias).\(column)")
        return .object(position, entity: position + 1, declared: declared)
    }

    // MARK: - Groups and order

    /// Writes the text after WHERE.
    private mutating func writeTail(_ plan: DictionaryPlan, _ entity: EntityMapping, isOrdered: Bool) throws {
        guard let grouping = plan.grouping else {
            guard isOrdered else { return }
            if let sort = plan.rows.sort {
                write(" ORDER BY ")
                try write(sort)
            } else if plan.limit > 0 || plan.offset > 0 {
                // The index that the database happens to choose must not decide which rows are within limit and offset.
                write(" ORDER BY t0.\(naming.key)")
            }
            return
        }
        for (index, key) in grouping.keys.enumerated() {
            write(index == 0 ? " GROUP BY " : ", ")
            if case .object(let path) = key, forms.namesAllOfGroup {
                _ = try writeObject(path, at: 0, entity)
            } else {
                try write(key, collation: nil)
            }
        }
        if let having = grouping.having {
            write(" HAVING ")
            try writeWhole(having)
        }
        // A single group is always in order.
        guard isOrdered, !grouping.keys.isEmpty else { return }
        for (index, term) in grouping.order.enumerated() {
            write(index == 0 ? " ORDER BY " : ", ")
            try write(term)
        }
    }

    /// Writes an expression by which rows are grouped or sorted.
    package mutating func write(_ expression: ResolvedExpression, collation: String?) throws {
        try write(expression, for: .comparison)
        if let collation { return write(" COLLATE \(collation)") }
        switch expression {
        case .attribute, .object, .constant: break
        // Otherwise a collation that is named inside of the expression would apply to all of it.
        default: if expression.type.isText { write(" COLLATE \(forms.byteCollation)") }
        }
    }
}
