import StrataPredicates
import StrataRows

extension FetchPlanner {
    /// The values that a store has to compute for a fetch of dictionaries.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a request that makes no sense, with a text that names key and
    ///   entity.
    func dictionaryPlan(_ specification: FetchSpecification) throws -> DictionaryPlan {
        var plain = specification
        plain.resultType = .dictionaryResultType
        // The order may use computed values, which an object does not have.
        plain.sortDescriptors = nil
        var builder = DictionaryPlanBuilder(rows: try plan(plain), specification)
        return try builder.plan()
    }

    /// Refuses options that only a fetch of dictionaries supports.
    func requireDictionaries(_ specification: FetchSpecification, _ entity: NSEntityDescription) throws {
        let name = entity.name ?? ""
        if specification.havingPredicate != nil, (specification.propertiesToGroupBy ?? []).isEmpty {
            throw Self.refused("havingPredicate of a fetch of \(name) is about groups; set propertiesToGroupBy.")
        }
        guard specification.resultType != .dictionaryResultType else { return }
        guard (specification.propertiesToGroupBy ?? []).isEmpty else {
            throw Self.refused(
                "A fetch of \(name) that has propertiesToGroupBy gives dictionaries; set resultType to .dictionaryResultType."
            )
        }
    }
}

/// Resolves the names in one fetch of dictionaries.
private struct DictionaryPlanBuilder {
    private let rows: FetchPlan
    private let specification: FetchSpecification
    private var variableCount = 1
    /// Computed columns and groups, which the order and HAVING may use by name.
    private var computed: [String: (source: NSExpression, expression: ResolvedExpression)] = [:]

    private var layout: EntityLayout { rows.layout }
    private var entityName: String { layout.predicateEntityName }

    init(rows: FetchPlan, _ specification: FetchSpecification) {
        self.rows = rows
        self.specification = specification
    }

    mutating func plan() throws -> DictionaryPlan {
        let groups = try elements(specification.propertiesToGroupBy ?? [], of: "propertiesToGroupBy").map(\.expression)
        let columns = try columns().map { overGroup($0, groups) }
        if let group = groups.first(where: \.hasRowAggregate) {
            throw refused("cannot be grouped by a value of groups, of type \(group.type).")
        }
        let having = try having()
        let order = try order()
        let grouping = try grouping(of: columns.map(\.expression), by: groups, having: having, order: order)
        let isPlain = grouping == nil
        var rows = rows.with(
            predicate: rows.predicate,
            sort: isPlain && !order.isEmpty ? ResolvedSort(terms: order, variableCount: variableCount) : nil,
            limit: isPlain ? rows.limit : 0,
            offset: isPlain ? rows.offset : 0
        )
        var tables = JoinedTables()
        if let predicate = rows.predicate { tables.add(predicate.condition) }
        if let having { tables.add(having) }
        for expression in columns.map(\.expression) + groups + order.map(\.expression) { tables.add(expression) }
        try tables.requireFewEnough(for: layout)
        rows.hasCostlyValues =
            columns.contains { $0.expression.isCostly } || groups.contains(where: \.isCostly)
            || having?.isCostly ?? false
        return DictionaryPlan(
            rows: rows,
            columns: columns,
            grouping: grouping,
            variableCount: max(variableCount, rows.predicate?.variableCount ?? 1)
        )
    }

    // MARK: - Properties

    /// The resolved form of one member of `propertiesToFetch` or `propertiesToGroupBy`.
    private struct Element {
        let keys: [String]
        let source: NSExpression
        let expression: ResolvedExpression
        /// The type that an expression description requires.
        let wanted: NSAttributeType
    }

    private mutating func columns() throws -> [DictionaryColumn] {
        var properties = specification.propertiesToFetch ?? []
        if properties.isEmpty {
            properties = layout.entity.properties.filter { $0.isPersistent && $0 is NSAttributeDescription }
        }
        var sources: [[String]: NSExpression] = [:]
        var columns: [DictionaryColumn] = []
        for element in try elements(properties, of: "propertiesToFetch") {
            if let other = sources.updateValue(element.source, forKey: element.keys) {
                guard other == element.source else {
                    throw refused(
                        "has two different properties of the name \"\(element.keys.joined(separator: "."))\"."
                    )
                }
                continue
            }
            columns.append(try column(element))
        }
        guard !columns.isEmpty else { throw refused("has no attributes; set propertiesToFetch.") }
        return columns
    }

    /// A column of a grouped fetch, in which an aggregate of a collection is taken over all objects of a group.
    ///
    /// An average of averages would differ from the average of all members, so it is refused like a value that differs
    /// within a group.
    private func overGroup(_ column: DictionaryColumn, _ groups: [ResolvedExpression]) -> DictionaryColumn {
        guard !groups.isEmpty, case .aggregate(let aggregate) = column.expression,
            !groups.contains(where: column.expression.isSame(as:))
        else { return column }
        let function: PredefinedFunction
        switch aggregate.function {
        case .count, .sum: function = .sum
        case .min, .max: function = aggregate.function
        default: return column
        }
        return DictionaryColumn(
            keys: column.keys,
            expression: .rowAggregate(function, column.expression),
            type: column.type,
            description: column.description
        )
    }

    private func column(_ element: Element) throws -> DictionaryColumn {
        let expression = element.expression
        let name = element.keys.joined(separator: ".")
        guard AttributeType(element.wanted).canHold(expression.type) else {
            throw refused(
                "cannot give \"\(name)\": its values are of type \(expression.type), its resultType is \(element.wanted.described)."
            )
        }
        if expression.type == .reference {
            // For any other expression the entity of the resulting objects is not known.
            guard case .object = expression else {
                throw refused("cannot give \"\(name)\": objects can be fetched by a key path only.")
            }
        }
        let value = expression.attributeType(in: layout)
        let wanted = AttributeType(element.wanted)
        return DictionaryColumn(
            keys: element.keys,
            expression: expression,
            type: wanted == .undefined || value.type == .objectID ? value.type : wanted,
            description: value.type == .transformable ? value.description : nil
        )
    }

    private mutating func elements(_ properties: [Any], of list: String) throws -> [Element] {
        var result: [Element] = []
        for property in properties {
            switch property {
            case let name as String: result += try elements(named: name)
            case let computed as NSExpressionDescription: result.append(try element(computed))
            case let property as NSPropertyDescription: result += try elements(named: property.name)
            default:
                throw refused(
                    "takes names and property descriptions as \(list), not a value of type \(type(of: property))."
                )
            }
        }
        return result
    }

    /// The elements for an attribute, a to-one relationship or a key path.
    ///
    /// A composite attribute has one element for each of its leaves.
    private mutating func elements(named name: String) throws -> [Element] {
        guard case .composite(let index)? = layout.places[name] else { return [try element(named: name, [name])] }
        return try layout.composites[index].leaves.map { leaf in
            let path = layout.slots[leaf].name
            return try element(named: path, path.split(separator: ".").map(String.init))
        }
    }

    private mutating func element(named path: String, _ keys: [String]) throws -> Element {
        let source = NSExpression(forKeyPath: path)
        return Element(
            keys: keys,
            source: source,
            expression: try resolve(source, path),
            wanted: .undefinedAttributeType
        )
    }

    private mutating func element(_ description: NSExpressionDescription) throws -> Element {
        let name = description.name
        guard !name.isEmpty else { throw refused("has an expression description without a name.") }
        guard let source = description.expression else {
            throw refused("has an expression description \"\(name)\" without an expression.")
        }
        let expression = try resolve(source, name)
        computed[name] = (source, expression)
        return Element(
            keys: [name],
            source: source,
            expression: expression,
            wanted: description.resultType.rawValue
        )
    }

    private mutating func resolve(_ source: NSExpression, _ name: String) throws -> ResolvedExpression {
        do {
            let (expression, count) = try PredicateResolver.resolve(source, schema: layout, allowsRowAggregates: true)
            variableCount = max(variableCount, count)
            if expression.type == .entity {
                throw refused("cannot give \"\(name)\": an entity is no value of a dictionary.")
            }
            if case .object(let path) = expression, path.steps.last?.isCast == true {
                throw refused("cannot give \"\(name)\": an object that is cast to an entity; ask for its properties.")
            }
            return expression
        } catch let error as PredicateResolutionError {
            throw refused("cannot give \"\(name)\": \(error)", error)
        }
    }

    // MARK: - Groups and order

    private mutating func having() throws -> ResolvedCondition? {
        guard let predicate = specification.havingPredicate else { return nil }
        do {
            let resolved = try PredicateResolver.resolve(
                predicate,
                schema: layout,
                bindings: computed.mapValues(\.source),
                allowsRowAggregates: true
            )
            variableCount = max(variableCount, resolved.variableCount)
            if case .constant(true) = resolved.condition { return nil }
            return resolved.condition
        } catch let error as PredicateResolutionError {
            throw refused("cannot be answered: its havingPredicate: \(error)", error)
        }
    }

    private func order() throws -> [ResolvedSort.Term] {
        let known = computed.mapValues(\.expression)
        do {
            return try (specification.sortDescriptors ?? []).map {
                try ResolvedSort.term($0, layout, known: known)
            }
        } catch let error as PredicateResolutionError {
            throw refused("cannot be sorted: \(error)", error)
        }
    }

    /// The grouping of the rows; `nil` if they are not grouped.
    private func grouping(
        of columns: [ResolvedExpression],
        by groups: [ResolvedExpression],
        having: ResolvedCondition?,
        order: [ResolvedSort.Term]
    ) throws -> RowGrouping? {
        // Apple's rule: the option has an effect only if propertiesToFetch is set.
        let wantsDistinct =
            specification.returnsDistinctResults && !(specification.propertiesToFetch ?? []).isEmpty
        // A single row has no order.
        let order = groups.isEmpty && columns.contains(where: \.hasRowAggregate) ? [] : order
        let isAggregated =
            columns.contains(where: \.hasRowAggregate) || order.contains { $0.expression.hasRowAggregate }
        if groups.isEmpty, !isAggregated {
            return wantsDistinct ? grouping(keys: unique(columns), nil, order.map { representative($0, columns) }) : nil
        }
        try check(columns: columns, groups: groups, having: having, order: order)
        // Groups differ in their keys, so results that contain all keys differ as well.
        let isDistinct = wantsDistinct && !groups.allSatisfy { group in columns.contains(where: group.isSame(as:)) }
        guard isDistinct else { return grouping(keys: groups, having, order) }
        for (term, descriptor) in zip(order, specification.sortDescriptors ?? [])
        where !columns.contains(where: term.expression.isSame(as:)) {
            throw refused(
                "cannot be sorted by \"\(descriptor.key ?? "SELF")\", which its distinct results, made of groups, do not have."
            )
        }
        return grouping(keys: groups, having, order, distinctBy: columns)
    }

    private func grouping(
        keys: [ResolvedExpression],
        _ having: ResolvedCondition?,
        _ order: [ResolvedSort.Term],
        distinctBy columns: [ResolvedExpression]? = nil
    ) -> RowGrouping {
        var order = order
        for key in columns ?? keys
        where !order.contains(where: { $0.comparison == .natural && $0.expression.isSame(as: key) }) {
            order.append(ResolvedSort.Term(expression: key))
        }
        return RowGrouping(
            keys: keys,
            having: having,
            order: order,
            isDistinct: columns != nil,
            limit: rows.limit,
            offset: rows.offset
        )
    }

    /// The value by which equal results are sorted, if only one of them is returned: the least or greatest among them.
    ///
    /// nil does not count, and text is compared by its bytes.
    private func representative(_ term: ResolvedSort.Term, _ columns: [ResolvedExpression]) -> ResolvedSort.Term {
        guard !columns.contains(where: term.expression.isSame(as:)) else { return term }
        return ResolvedSort.Term(
            expression: .rowAggregate(term.ascending ? .min : .max, term.expression),
            ascending: term.ascending,
            comparison: term.comparison
        )
    }

    private func unique(_ expressions: [ResolvedExpression]) -> [ResolvedExpression] {
        expressions.reduce(into: []) { kept, next in
            if !kept.contains(where: next.isSame(as:)) { kept.append(next) }
        }
    }

    /// Refuses expressions that have no single value for a group.
    private func check(
        columns: [ResolvedExpression],
        groups: [ResolvedExpression],
        having: ResolvedCondition?,
        order: [ResolvedSort.Term]
    ) throws {
        var terms = GroupTerms(keys: groups)
        let advice =
            groups.isEmpty
            ? "it stands beside an aggregate of all objects; add it to propertiesToGroupBy."
            : "it differs within a group; add it to propertiesToGroupBy, or aggregate it."
        for column in columns { try check(column, terms: &terms) { "cannot give \"\($0)\": \(advice)" } }
        for term in order { try check(term.expression, terms: &terms) { "cannot be sorted by \"\($0)\": \(advice)" } }
        guard let having else { return }
        do {
            _ = try terms.rewrite(having)
        } catch {
            throw refused(error) { "cannot be restricted by \"\($0)\" in its havingPredicate: \(advice)" }
        }
    }

    private func check(
        _ expression: ResolvedExpression,
        terms: inout GroupTerms,
        text: (_ name: String) -> String
    ) throws {
        do {
            _ = try terms.rewrite(expression)
        } catch {
            throw refused(error, text)
        }
    }

    /// The error for an expression that has no single value for a group.
    private func refused(_ problem: any Error, _ text: (_ name: String) -> String) -> any Error {
        switch problem {
        case GroupTerms.Problem.notGrouped(let name): refused(text(name))
        case GroupTerms.Problem.nestedAggregate: refused("cannot take an aggregate of an aggregate.")
        default: problem
        }
    }

    // MARK: - Errors

    private func refused(_ text: String, _ underlying: (any Error)? = nil) -> CocoaError {
        FetchPlanner.refused("A fetch of \(entityName) \(text)", underlying)
    }
}
