/// An operand of a comparison while it is being resolved: one value, or one of the kinds of collections.
indirect enum ResolvedOperand {
    case scalar(ResolvedExpression)
    case members(ResolvedMembers)
    case constants(ConstantMembers)
    case list([ResolvedExpression])
    case setOperation(SetOperation, ResolvedOperand, ResolvedOperand)
}

/// The members at the end of a path through one or more to-many relationships.
struct ResolvedMembers {
    /// The collections.
    ///
    /// Each belongs to the variable of the one before it.
    var levels: [ResolvedCollection]
    /// The value that is read from each member of the last level.
    var element: ResolvedExpression

    /// The last level, if the path leads to its members themselves.
    var plainLevel: ResolvedCollection? {
        guard let last = levels.last, case .object(let path) = element, path.variable == last.variable,
            path.steps.isEmpty
        else { return nil }
        return last
    }

    /// The last level without members that have no value, if the path leads to attributes of the members.
    var levelWithValues: ResolvedCollection? {
        guard var last = levels.last, case .attribute(let owner, _) = element, owner.variable == last.variable else {
            return nil
        }
        let hasValue = ResolvedCondition.isNull(element).negated
        last.filter = last.filter.map { .all([$0, hasValue]) } ?? hasValue
        return last
    }

    /// The condition that an element satisfies a condition.
    func exists(_ condition: ResolvedCondition) -> ResolvedCondition {
        if case .constant(false) = condition { return .constant(false) }
        return levels.reversed().reduce(condition) { .exists($1, $0) }
    }

    /// The condition that every element satisfies a condition.
    func all(_ condition: ResolvedCondition) -> ResolvedCondition {
        exists(condition.negated).negated
    }
}

extension PredicateResolver {
    /// The operand as one value.
    func scalar(_ operand: ResolvedOperand, _ source: NSExpression) throws -> ResolvedExpression {
        switch operand {
        case .scalar(let expression):
            guard expression.type != .composite else {
                throw failure(.unsupported, Self.onlyNil(source.description), keyPath: source.description)
            }
            return expression
        case .members:
            throw failure(
                .toManyNotAllowed,
                "A to-many key is not allowed where one value is needed; use ANY, ALL, SUBQUERY or a collection operator.",
                keyPath: source.description
            )
        case .constants, .list, .setOperation:
            throw failure(.toManyNotAllowed, "The collection \(source) stands where one value is needed.")
        }
    }

    /// The reason why a composite attribute cannot be used somewhere.
    static func onlyNil(_ source: String) -> String {
        "The composite attribute \(source.prefix(80)) can be compared with nil only; name one of its elements."
    }

    /// Resolves an expression to an operand of any kind.
    mutating func operand(_ expression: NSExpression) throws -> ResolvedOperand {
        try descend()
        defer { ascend() }
        switch expression.kind {
        case .constant(let value): return try constant(value)
        case .evaluatedObject: return .scalar(.object(ResolvedPath(variable: 0)))
        case .variable(let name): return try variable(name)
        case .keyPath(let path):
            return try KeyPathResolver.resolve(path, from: .scalar(.object(ResolvedPath(variable: 0))), &self)
        case .function(let name, nil, let arguments):
            guard let function = PredefinedFunction(rawValue: name) else {
                throw failure(.unsupported, "There is no function \(name).")
            }
            return try FunctionResolver.resolve(function, of: arguments, in: &self)
        case .function(let name, let target?, let arguments): return try method(name, of: target, arguments: arguments)
        case .setOperation(let operation, let left, let right):
            return .combining(operation, of: try operand(left), and: try operand(right))
        case .subquery(let source, let name, let predicate):
            return try subquery(of: source, variable: name, where: predicate)
        case .aggregate(let members): return try aggregate(members)
        case .conditional(let predicate, let first, let second):
            return try conditional(if: predicate, then: first, else: second)
        case .anyKey: throw failure(.unsupported, "ANYKEY cannot be evaluated by a store.")
        case .block: throw failure(.unsupported, "A block expression cannot be evaluated by a store.")
        // The value of a subclass does not depend on the row; that of a fetch request, for instance, is its result.
        case .custom:
            guard let fetch = expression as? any StoreEvaluatedExpression else {
                return try constant(expression.expressionValue(with: nil, context: nil))
            }
            do {
                return try constant(try fetch.valueForStore())
            } catch let error as PredicateEvaluationError {
                throw failure(.unsupported, "\(error)")
            }
        }
    }

    func constant(_ any: Any?) throws -> ResolvedOperand {
        if let scalar = PredicateValue(scalar: any) { return .scalar(.constant(scalar)) }
        if let entity = try entity(any) { return .scalar(.constant(entity)) }
        if let members = ConstantMembers(uniform: any) { return .constants(members) }
        guard let members = collectionMembers(of: any) else {
            throw failure(
                .unsupported,
                "A store cannot compare with a constant of type \(any.map { "\(type(of: $0))" } ?? "nil")."
            )
        }
        let values = try members.map { member in
            if let scalar = try PredicateValue(scalar: member) ?? entity(member) { return scalar }
            throw failure(
                .unsupported,
                "A store cannot compare with a member of type \(member.map { "\(type(of: $0))" } ?? "nil") of a collection."
            )
        }
        return .constants(ConstantMembers(values, areOrdered: !isUnordered(any)))
    }

    /// An entity description as a value; `nil` for anything else.
    private func entity(_ any: Any?) throws -> PredicateValue? {
        guard let entity = any as? any PredicateEntityReference else { return nil }
        let name = entity.predicateEntityName
        guard let schema = root.predicateSchema(named: name) else {
            throw failure(.invalidConstant, "The model has no entity \(name) to compare with.")
        }
        return .entity(schema.predicateEntityNumber)
    }

    private mutating func variable(_ name: String) throws -> ResolvedOperand {
        if let iterator = iterator(named: name) { return .scalar(.object(ResolvedPath(variable: iterator))) }
        guard let value = boundValue(named: name) else {
            throw failure(.unboundVariable, "There is no value for the variable $\(name).")
        }
        // A HAVING clause may name the expressions that a fetch computes.
        if let expression = value as? NSExpression { return try operand(expression) }
        return try constant(nullToNil(value))
    }

    private mutating func aggregate(_ members: [NSExpression]) throws -> ResolvedOperand {
        let resolved = try members.map { try scalar(operand($0), $0) }
        let constants = resolved.compactMap(\.constantValue)
        return constants.count == resolved.count ? .constants(ConstantMembers(constants)) : .list(resolved)
    }

    private mutating func conditional(
        if predicate: NSPredicate,
        then first: NSExpression,
        else second: NSExpression
    ) throws -> ResolvedOperand {
        let test = try condition(predicate)
        let left = try scalar(operand(first), first)
        let right = try scalar(operand(second), second)
        guard left.type.isCompatible(with: right.type) else {
            throw failure(
                .incompatibleTypes,
                "The two values of TERNARY are of the types \(left.type) and \(right.type)."
            )
        }
        if case .constant(let value) = test { return .scalar(value ? left : right) }
        return .scalar(.conditional(test, left, right))
    }

    private mutating func subquery(
        of source: NSExpression,
        variable name: String,
        where predicate: NSPredicate
    ) throws -> ResolvedOperand {
        guard case .members(var members) = try operand(source), let level = members.plainLevel else {
            throw failure(.collectionNeeded, "SUBQUERY needs a to-many relationship, not \(source).")
        }
        let test = try withScope(name, of: level.variable) { try $0.condition(predicate) }
        members.levels[members.levels.count - 1].filter = ResolvedCondition.all([level.filter ?? .constant(true), test])
        return .members(members)
    }

    private mutating func method(
        _ name: String,
        of target: NSExpression,
        arguments: [NSExpression]
    ) throws -> ResolvedOperand {
        guard name == KeyPathFunction.name || name == "valueForKey:", let path = KeyPathFunction.path(of: arguments)
        else {
            throw failure(
                .unsupported,
                "A store cannot call the function \(name.prefix(80)). Fetch without it, and filter the result."
            )
        }
        // After substitution, a path may follow an object: its value is a constant like any other.
        if let object = constantObject(target) { return try constant(try constantValue(of: object, path)) }
        return try KeyPathResolver.resolve(path, from: operand(target), &self)
    }

    private func constantObject(_ expression: NSExpression) -> Any? {
        switch expression.kind {
        case .constant(let value): value
        case .variable(let name) where iterator(named: name) == nil: boundValue(named: name)
        default: nil
        }
    }

    private func constantValue(of object: Any, _ path: String) throws -> Any? {
        do {
            return try KeyPathReader.value(of: object, path: path)
        } catch {
            throw failure(.unknownKey, "\(error)", keyPath: path)
        }
    }
}
