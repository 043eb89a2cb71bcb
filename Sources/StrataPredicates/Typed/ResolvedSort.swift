/// Sort descriptors that were checked against an entity.
package struct ResolvedSort: Sendable {
    /// One descriptor: a value to sort by, and the way to compare it.
    package struct Term: Sendable {
        /// An attribute; an object, which sorts by its identity; or, for dictionaries, any expression.
        package let expression: ResolvedExpression
        package let ascending: Bool
        package let comparison: SortComparison

        package init(expression: ResolvedExpression, ascending: Bool = true, comparison: SortComparison = .natural) {
            self.expression = expression
            self.ascending = ascending
            self.comparison = comparison
        }
    }

    package let terms: [Term]
    /// The number of variables in the terms: more than the one for the object only if a term reads a collection.
    package let variableCount: Int

    /// Makes an order from terms that were resolved elsewhere.
    package init(terms: [Term], variableCount: Int) {
        self.terms = terms
        self.variableCount = variableCount
    }

    /// Checks sort descriptors against an entity.
    ///
    /// - Throws: ``PredicateResolutionError`` for a key that is unknown, leads through a to-many relationship or has no
    ///   order, for a comparator, and for a selector that ``SortComparison`` does not know.
    package init(_ descriptors: [NSSortDescriptor], schema: any PredicateSchema) throws {
        terms = try descriptors.map { try Self.term($0, schema) }
        variableCount = 1
    }

    /// Checks one sort descriptor against an entity.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor.
    ///   - schema: The entity.
    ///   - known: Resolved expressions that keys may name beside the entity's own properties.
    /// - Returns: The checked term.
    /// - Throws: The errors of ``init(_:schema:)``.
    package static func term(
        _ descriptor: NSSortDescriptor,
        _ schema: any PredicateSchema,
        known: [String: ResolvedExpression] = [:]
    ) throws -> Term {
        func failure(_ reason: PredicateResolutionError.Reason, _ message: String) -> PredicateResolutionError {
            PredicateResolutionError(
                reason: reason,
                message: message,
                keyPath: descriptor.key,
                entityName: schema.predicateEntityName
            )
        }
        guard let selector = descriptor.selector else {
            throw failure(.unsupported, "A store cannot sort by code; give the sort descriptor a key and a selector.")
        }
        guard let comparison = SortComparison(selector) else {
            throw failure(.unsupported, "Unsupported NSSortDescriptor selector: \(selector).")
        }
        let expression =
            try descriptor.key.flatMap { known[$0] } ?? self.expression(of: descriptor, in: schema, failure: failure)
        if expression.type == .transformable || expression.type == .entity {
            throw failure(.incompatibleTypes, "There is no order between values of type \(expression.type).")
        }
        if comparison != .natural, !expression.type.isText {
            throw failure(
                .incompatibleTypes,
                "The selector \(selector) sorts strings, not values of type \(expression.type)."
            )
        }
        return Term(expression: expression, ascending: descriptor.ascending, comparison: comparison)
    }

    private static func expression(
        of descriptor: NSSortDescriptor,
        in schema: any PredicateSchema,
        failure: (PredicateResolutionError.Reason, String) -> PredicateResolutionError
    ) throws -> ResolvedExpression {
        let source = descriptor.key.map { NSExpression(forKeyPath: $0) } ?? NSExpression.expressionForEvaluatedObject()
        let (expression, variableCount) = try PredicateResolver.resolve(source, schema: schema)
        guard variableCount == 1 else {
            throw failure(.toManyNotAllowed, "A fetch cannot be sorted by what a to-many key leads to.")
        }
        if case .function = expression {
            throw failure(.unsupported, "A fetch is sorted by attributes, not by what is computed from them.")
        }
        return expression
    }

    // MARK: - Sorting in memory

    /// Reads the values of a subject that ``compare(_:_:)`` needs.
    package func keys(of subject: AnyObject, reader: any PredicateReader) throws -> [PredicateValue] {
        var evaluator = ResolvedEvaluator(variableCount: variableCount, reader: reader)
        return try terms.map { try evaluator.value(of: $0.expression, for: subject) }
    }

    /// The order of two subjects by their keys.
    ///
    /// nil comes first in ascending order.
    package func compare(_ lhs: [PredicateValue], _ rhs: [PredicateValue]) -> ComparisonResult {
        for (index, term) in terms.enumerated() {
            let result = term.comparison.compare(lhs[index], rhs[index])
            if result != .orderedSame { return term.ascending ? result : result.reversed }
        }
        return .orderedSame
    }

    /// The subjects that come before a subject with given keys.
    ///
    /// From each subject, only the values are read that decide.
    package func preceding<Subject: AnyObject>(
        _ keys: [PredicateValue],
        among subjects: [Subject],
        reader: any PredicateReader
    ) throws -> [Subject] {
        var evaluator = ResolvedEvaluator(variableCount: 1, reader: reader)
        return try subjects.filter { subject in
            for (term, key) in zip(terms, keys) {
                let result = term.comparison.compare(try evaluator.value(of: term.expression, for: subject), key)
                if result != .orderedSame { return (result == .orderedAscending) == term.ascending }
            }
            return false
        }
    }

    /// The subjects in order.
    ///
    /// Subjects that compare the same keep their order.
    ///
    /// - Complexity: O(*n* log *n*) comparisons; each subject is read once.
    package func sorted<Subject: AnyObject>(_ subjects: [Subject], reader: any PredicateReader) throws -> [Subject] {
        if terms.isEmpty { return subjects }
        let keyed = try subjects.map { (keys: try keys(of: $0, reader: reader), subject: $0) }
        // Swift's sort is stable.
        return keyed.sorted { compare($0.keys, $1.keys) == .orderedAscending }.map(\.subject)
    }
}
