// To-many relationships, and collections of the program.

extension PredicateExpressions.SequenceContains: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let source = try translator.translate(sequence)
        let member = try translator.translate(element)
        if case .interval(let interval) = source.form {
            return .condition(Conditions.all([member.presence, interval.contains(try member.plainExpression())]))
        }
        let collection = try source.plainExpression()
        let isConstant = source.constant != nil && !(LHS.Output.self is any StringProtocol.Type)
        if isConstant {
            return .condition(Conditions.compare(try member.expression(), .in, to: collection))
        }
        let contains = Conditions.compare(collection, .contains, to: try member.expression())
        return Translation(.condition(contains), presence: source.presence)
    }
}

extension PredicateExpressions.SequenceContainsWhere: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let members = try Members(sequence, variable: variable.key, where: test, in: &translator)
        switch members {
        case .constants(let conditions): return .condition(Conditions.any(conditions))
        case .collection(let collection, let presence, let name, let condition):
            let found =
                condition.quantified(.any, over: collection, name)
                ?? Conditions.count(of: collection, variable: name, where: condition, compared: .greaterThan)
            return Translation(.condition(found), presence: presence)
        }
    }
}

extension PredicateExpressions.SequenceAllSatisfy: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let members = try Members(sequence, variable: variable.key, where: test, in: &translator)
        switch members {
        case .constants(let conditions): return .condition(Conditions.all(conditions))
        case .collection(let collection, let presence, let name, let condition):
            let all =
                condition.quantified(.all, over: collection, name)
                ?? Conditions.count(
                    of: collection,
                    variable: name,
                    where: Conditions.not(condition),
                    compared: .equalTo
                )
            return Translation(.condition(all), presence: presence)
        }
    }
}

extension PredicateExpressions.Filter: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        switch try Members(sequence, variable: variable.key, where: filter, in: &translator) {
        case .constants(let conditions): return Translation(.filtered(conditions))
        case .collection(let collection, let presence, let name, let condition):
            let subquery = NSExpression(forSubquery: collection, usingIteratorVariable: name, predicate: condition)
            return Translation(.value(subquery), presence: presence)
        }
    }
}

extension PredicateExpressions.CollectionIndexSubscript: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let source = try translator.translate(wrapped)
        let expression = NSExpression(
            forFunction: PredefinedFunction.index.rawValue,
            arguments: [try source.plainExpression(), try translator.value(index)]
        )
        return Translation(.value(expression), presence: source.presence)
    }
}

extension PredicateExpressions.SequenceMinimum: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.extreme(.min, of: elements)
    }
}

extension PredicateExpressions.SequenceMaximum: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.extreme(.max, of: elements)
    }
}

extension PredicateTranslator {
    /// The smallest or largest member; nil for an empty collection.
    fileprivate mutating func extreme(
        _ function: PredefinedFunction,
        of elements: some PredicateExpression
    ) throws -> Translation {
        let source = try translate(elements)
        let expression = NSExpression(forFunction: function.rawValue, arguments: [try source.plainExpression()])
        return Translation(.value(expression), presence: source.presence)
    }
}

// MARK: - Quantifiers

/// A collection and a condition on its members.
private enum Members {
    /// The condition for each member of a collection of the program.
    case constants([NSPredicate])
    case collection(NSExpression, presence: NSPredicate?, variable: String, NSPredicate)

    init(
        _ sequence: some PredicateExpression,
        variable: PredicateExpressions.VariableID,
        where test: some PredicateExpression,
        in translator: inout PredicateTranslator
    ) throws {
        let source = try translator.translate(sequence)
        if let constant = source.constant {
            self = .constants(
                try (collectionMembers(of: constant) ?? []).map { member in
                    guard let value = try PredicateTranslator.constant(member) else {
                        throw PredicateTranslationError(
                            "A collection of \(type(of: member)) cannot stand in an NSPredicate."
                        )
                    }
                    return try translator.binding(variable, to: value) { try $0.condition(test) }
                }
            )
            return
        }
        let collection = try source.plainExpression()
        self = try translator.iterating(variable) {
            .collection(collection, presence: source.presence, variable: $1, try $0.condition(test))
        }
    }
}

extension Conditions {
    /// Compares the number of members that satisfy a condition with zero.
    fileprivate static func count(
        of collection: NSExpression,
        variable: String,
        where condition: NSPredicate,
        compared operation: NSComparisonPredicate.Operator
    ) -> NSPredicate {
        let subquery = NSExpression(forSubquery: collection, usingIteratorVariable: variable, predicate: condition)
        let count = PredicateTranslator.path("@count", behind: subquery)
        return compare(count, operation, to: NSExpression(forConstantValue: 0))
    }
}

extension NSPredicate {
    /// The condition on the members of a collection in the short form, `ANY tags.title == "x"`.
    ///
    /// It is `nil` unless the condition is one comparison of a value of the member with a constant.
    fileprivate func quantified(
        _ modifier: NSComparisonPredicate.Modifier,
        over collection: NSExpression,
        _ variable: String
    ) -> NSPredicate? {
        guard case .comparison(let comparison) = PredicateForm(self), comparison.comparisonPredicateModifier == .direct,
            case .constant(let constant) = comparison.rightExpression.kind,
            let path = comparison.leftExpression.path(under: variable), !path.contains("@")
        else { return nil }
        switch comparison.predicateOperatorType {
        case .customSelector, .between: return nil
        // The member's own value may be a collection, unless it is text.
        case .contains where !(constant is String): return nil
        default: break
        }
        switch collection.kind {
        case .keyPath, .function(KeyPathFunction.name, .some, _): break
        default: return nil
        }
        return Conditions.compare(
            PredicateTranslator.path(path, behind: collection),
            comparison.predicateOperatorType,
            to: comparison.rightExpression,
            options: comparison.options,
            modifier: modifier
        )
    }
}

extension NSExpression {
    /// The key path of the expression under a variable.
    fileprivate func path(under variable: String) -> String? {
        switch kind {
        case .variable(variable): return "SELF"
        case .function(KeyPathFunction.name, let target?, let arguments):
            guard case .variable(variable) = target.kind else { return nil }
            return KeyPathFunction.path(of: arguments)
        default: return nil
        }
    }
}
