import StrataPredicates
import StrataRows

extension QueryCompiler {
    /// Writes the condition that a member of a collection satisfies a condition.
    package mutating func writeExists(_ collection: ResolvedCollection, _ test: ResolvedCondition) throws {
        guard let members = try members(of: collection) else { return write(false) }
        var condition = ""
        let scope = try withScope(members.scope, of: collection.variable) { compiler in
            condition = try compiler.piece { try $0.writeFilters([collection.filter, test]) }
        }
        write("EXISTS (SELECT 1")
        write(members, in: scope, where: condition)
        write(")")
    }

    /// Writes one value computed from all members of a collection.
    package mutating func write(_ aggregate: ResolvedAggregate) throws {
        let collection = aggregate.collection
        guard let members = try members(of: collection) else {
            return write([.count, .sum, .average].contains(aggregate.function) ? "0" : "NULL")
        }
        var (value, condition) = ("COUNT(*)", "")
        let scope = try withScope(members.scope, of: collection.variable) { compiler in
            if aggregate.function != .count, let element = aggregate.element {
                value = try compiler.piece {
                    try $0.writeAggregate(aggregate.function, of: element, order: members.order)
                }
            }
            condition = try compiler.piece { try $0.writeFilters([collection.filter]) }
        }
        write("(SELECT \(value)")
        write(members, in: scope, where: condition)
        write(")")
    }

    // MARK: - FROM

    /// The members of a collection, without further conditions.
    private struct Members {
        let scope: QueryScope
        /// The table, with its alias, that has the owners and the members together.
        let table: String
        /// The table of the members, if that is another one.
        let rows: String?
        /// The condition that joins the members to their owner.
        let tie: String
        /// The order of the members in the relationship.
        let order: String
    }

    /// Returns `nil` if the store does not keep the relationship, which is then always empty.
    private mutating func members(of collection: ResolvedCollection) throws -> Members? {
        let relationship = collection.relationship
        guard let destination = entity(relationship.destination),
            let owner = try place(of: collection.owner, needsRow: !collection.owner.steps.isEmpty)
        else { return nil }
        let alias = newAlias("v")
        switch owner.mapping.toMany[relationship.slot] {
        case .absent: return nil
        case .key(let key):
            return Members(
                scope: QueryScope(mapping: destination, alias: alias, naming: naming),
                table: "\(key.table) \(alias)",
                rows: nil,
                tie: "\(alias).\(key.column) = \(owner.key)",
                order: (key.order.map { "\(alias).\($0) NULLS LAST, " } ?? "") + "\(alias).\(naming.key)"
            )
        case .join(let side):
            let link = newAlias("j")
            let member = "\(link).\(side.member)"
            return Members(
                scope: QueryScope(mapping: destination, alias: alias, key: member, naming: naming),
                table: "\(side.table) \(link)",
                rows: "\(side.memberTable) \(alias) ON \(alias).\(naming.key) = \(member)",
                tie: "\(link).\(side.owner) = \(owner.key)",
                order: (side.order.map { "\(link).\($0) NULLS LAST, " } ?? "") + member
            )
        }
    }

    private mutating func writeFilters(_ filters: [ResolvedCondition?]) throws {
        for case let filter? in filters {
            if case .constant(true) = filter { continue }
            write(" AND ")
            try write(filter)
        }
    }

    /// Writes FROM and WHERE.
    ///
    /// The texts that have bindings were compiled in this order.
    private mutating func write(_ members: Members, in scope: QueryScope, where condition: String) {
        write(" FROM \(members.table)")
        if let rows = members.rows, scope.needsRow { write(" JOIN \(rows)") }
        write(scope.joins)
        write(" WHERE \(members.tie)\(condition)")
    }

    // MARK: - Aggregates

    /// Writes an aggregate of an expression's value for each row.
    ///
    /// The database's own aggregates are used if they cannot overflow and have the same meaning: their sum and average
    /// of no values are NULL. `order` is the order of the values; `nil` for any.
    package mutating func writeAggregate(
        _ function: PredefinedFunction,
        of element: ResolvedExpression,
        order: String? = nil
    ) throws {
        switch function {
        case .min, .max:
            let name = function == .min ? "MIN" : "MAX"
            if case .attribute(_, let attribute) = element, attribute.type == .date || attribute.type == .decimal {
                // The cast is on the outside, so that an index can find the smallest and the largest value.
                write("CAST(\(name)(")
                try write(element, for: .comparison)
                return write(") AS \(forms.double))")
            }
            write("\(name)(")
        case .sum, .average:
            if try writePlainAggregate(function, of: element, order) { return }
            write("\(mapping.dialect.aggregate(function) ?? "")(")
        case .median, .stddev: write("\(mapping.dialect.aggregate(function) ?? "")(")
        default: throw Self.unsupported("The function \(function.rawValue) cannot be taken over rows by a SQL store.")
        }
        try write(element, for: .computation)
        // Otherwise a collation that is named inside of the element would apply to the element.
        if element.type.isText { write(" COLLATE \(forms.byteCollation)") }
        write(")")
    }

    /// Writes the number of rows for which an expression has a value.
    package mutating func writeCount(of operand: ResolvedExpression) throws {
        // Every row is an object, and counting rows is faster than counting values.
        if case .object(let path) = operand, path.steps.isEmpty { return write("COUNT(*)") }
        write("COUNT(")
        try write(operand, for: .comparison)
        write(")")
    }

    /// Writes the sum or average of a column by the database's own function, if one gives the same result as ours.
    private mutating func writePlainAggregate(
        _ function: PredefinedFunction,
        of element: ResolvedExpression,
        _ order: String?
    ) throws -> Bool {
        guard case .attribute(let path, let attribute) = element, let place = try place(of: path) else { return false }
        let numbers: SummedNumbers =
            switch attribute.type {
            case .bool: .short
            case .integer: place.mapping.layout.slots[attribute.slot].type == .integer64 ? .long : .short
            default: .fractional
            }
        // A column has no bindings, so its text may be repeated.
        let column = try piece { try $0.write(element, for: .computation) }
        guard let text = function == .sum ? forms.sum(column, numbers, order) : forms.average(column, numbers, order)
        else { return false }
        write(text)
        return true
    }
}
