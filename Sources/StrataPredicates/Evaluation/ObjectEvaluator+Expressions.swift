extension ObjectEvaluator {
    /// The value for the public API: nil in place of an error.
    func publicValue(of expression: NSExpression) -> Any? {
        (try? value(of: expression)) ?? nil
    }

    func value(of expression: NSExpression) throws -> Any? {
        switch expression.kind {
        case .constant(let value): return isNullObject(value) ? nil : value
        case .evaluatedObject: return object
        case .variable(let name): return try variable(name)
        case .keyPath(let path): return try KeyPathReader.value(of: object, path: path)
        case .function(let name, nil, let arguments): return try value(ofFunction: name, arguments)
        case .function(let name, let target?, let arguments):
            return try MethodTable.call(name, on: try value(of: target), try arguments.map(value(of:)))
        case .setOperation(let operation, let left, let right):
            return try value(of: operation, try members(of: left), try members(of: right))
        case .subquery(let source, let variable, let predicate):
            return try members(of: source).filter { try binding(variable, to: $0).evaluate(predicate) }
                .map { $0 ?? NSNull() }
        case .aggregate(let members): return try members.map { try value(of: $0) ?? NSNull() }
        case .anyKey: throw PredicateEvaluationError("ANYKEY has a meaning on the left side of a comparison only")
        case .block(let block, let arguments):
            return nullToNil(block(object, try arguments.map { try value(of: $0) ?? NSNull() }, visibleContext))
        case .conditional(let predicate, let first, let second):
            return try value(of: try evaluate(predicate) ? first : second)
        case .custom: return expression.expressionValue(with: object, context: visibleContext)
        }
    }

    /// The members of a collection expression; none for nil.
    private func members(of expression: NSExpression) throws -> [Any?] {
        guard let value = try value(of: expression) else { return [] }
        guard let members = collectionMembers(of: value) else {
            throw PredicateEvaluationError("\(expression) is no collection")
        }
        return members
    }

    private func value(of operation: SetOperation, _ left: [Any?], _ right: [Any?]) throws -> Any? {
        let right = right.map { $0 ?? NSNull() }
        let left = left.map { $0 ?? NSNull() }
        let rightKeys = Set(right.compactMap { MemberKey($0) })
        let isInRight = { (member: Any) in MemberKey(member).map(rightKeys.contains) ?? false }
        return switch operation {
        case .union: unique(left + right)
        case .intersect: unique(left.filter(isInRight))
        case .minus: unique(left.filter { !isInRight($0) })
        }
    }

    // MARK: - Functions

    private func value(ofFunction name: String, _ arguments: [NSExpression]) throws -> Any? {
        guard let function = PredefinedFunction(rawValue: name) else {
            throw PredicateEvaluationError("there is no function \(name)")
        }
        let values = try arguments.map(value(of:))
        switch function {
        case .noIndex: return values.first ?? nil
        case .index: return try element(of: values[0], at: values[1])
        case .cast: return try cast(values[0], to: values[1])
        case _ where function.isCollectionFunction && values.count == 1:
            let members = values[0] == nil ? [] : flattenedMembers(of: values[0])
            return function.aggregate(members.map { PredicateValue(any: $0) }).anyValue
        default: return function.apply(values.map { PredicateValue(any: $0) }).anyValue
        }
    }

    private func cast(_ value: Any?, to type: Any?) throws -> Any? {
        guard let name = PredicateValue(scalar: type)?.stringValue else { return nil }
        guard let target = CastTarget(rawValue: name) else { return try cast(value, toEntity: name) }
        if let value, let constant = target.constant(from: value) { return constant }
        return target.apply(PredicateValue(any: value)).anyValue
    }

    /// The object if it is of an entity, otherwise nil; for a collection, the same for each member.
    private func cast(_ value: Any?, toEntity name: String) throws -> Any? {
        guard let value else { return nil }
        if let object = value as? any PredicateEntityMember { return object.isKind(ofEntityNamed: name) ? value : nil }
        guard let members = collectionMembers(of: value) else {
            throw PredicateEvaluationError("a value of type \(type(of: value)) cannot be cast to \(name)")
        }
        return try members.map { try cast($0, toEntity: name) ?? NSNull() }
    }

    private func element(of collection: Any?, at index: Any?) throws -> Any? {
        guard let collection else { return index as? IndexSymbol == .size ? NSNumber(value: 0) : nil }
        if !(index is IndexSymbol), let key = PredicateValue(scalar: index)?.stringValue {
            return try KeyPathReader.value(of: collection, path: key)
        }
        guard let members = collectionMembers(of: collection) else {
            throw PredicateEvaluationError("only a collection can be indexed")
        }
        switch index as? IndexSymbol {
        case .first?: return members.first ?? nil
        case .last?: return members.last ?? nil
        case .size?: return NSNumber(value: members.count)
        case nil: break
        }
        guard let position = PredicateValue(scalar: index)?.integerValue.flatMap(Int.init(exactly:)),
            members.indices.contains(position)
        else { return nil }
        return members[position]
    }
}
