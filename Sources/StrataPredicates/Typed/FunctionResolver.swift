/// Resolves calls of predefined functions, checks the types of their arguments, and computes those of constants.
enum FunctionResolver {
    static func resolve(
        _ function: PredefinedFunction,
        of arguments: [NSExpression],
        in resolver: inout PredicateResolver
    ) throws -> ResolvedOperand {
        if let problem = function.arityProblem(count: arguments.count) {
            throw resolver.failure(.invalidConstant, problem)
        }
        if function == .mode, arguments.count == 1, case .constants(let members) = try resolver.operand(arguments[0]),
            case .collection(let modes) = function.aggregate(members.values)
        {
            return .constants(ConstantMembers(modes))
        }
        if function.isCollectionFunction {
            return .scalar(try collectionFunction(function, of: arguments, in: &resolver))
        }
        if function == .index { return .scalar(try index(arguments, &resolver)) }
        if function == .cast, let cast = try entityCast(arguments, &resolver) { return cast }
        let operands = try arguments.map { try resolver.scalar(resolver.operand($0), $0) }
        let type = try type(of: function, operands, resolver)
        let constants = operands.compactMap(\.constantValue)
        // `now()` is one moment for a whole fetch. Random numbers are made anew for every row.
        if constants.count == operands.count, function != .random, function != .randomBelow {
            let value = function.apply(constants)
            return .scalar(.constant(value))
        }
        return .scalar(.function(function, operands, type))
    }

    // MARK: - Types

    private static func type(
        of function: PredefinedFunction,
        _ operands: [ResolvedExpression],
        _ resolver: PredicateResolver
    ) throws -> ResolvedType {
        let types = operands.map(\.type)
        switch function {
        case .add, .subtract, .multiply, .divide, .modulus, .power:
            return try arithmetic(function, of: types, in: resolver)
        case .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift, .onesComplement, .randomBelow:
            try require(types, of: function, in: resolver, toBe: "numbers") { $0.isNumeric }
            return .integer
        case .sqrt, .log, .ln, .exp:
            try require(types, of: function, in: resolver, toBe: "a number") { $0.isNumeric }
            return .double
        case .floor, .ceiling, .abs, .trunc:
            try require(types, of: function, in: resolver, toBe: "a number") { $0.isNumeric }
            return types[0] == .bool ? .integer : types[0]
        case .uppercase, .lowercase, .canonical:
            try require(types, of: function, in: resolver, toBe: "a string") { $0.isText }
            return .string
        case .length:
            try require(types, of: function, in: resolver, toBe: "a string or data") { $0.isText || $0 == .data }
            return .integer
        case .random: return .integer
        case .now: return .date
        case .noIndex: return types[0]
        case .cast: return try castType(operands, resolver)
        default: throw resolver.failure(.unsupported, "A store cannot evaluate the function \(function.rawValue).")
        }
    }

    private static func arithmetic(
        _ function: PredefinedFunction,
        of types: [ResolvedType],
        in resolver: PredicateResolver
    ) throws -> ResolvedType {
        if function == .add || function == .subtract, types.contains(.date) {
            switch (types[0], types[1]) {
            case (.date, .date) where function == .subtract: return .double
            case (.date, let other) where other.isNumeric || other == .null: return .date
            case (let other, .date) where function == .add && (other.isNumeric || other == .null): return .date
            default: break
            }
        }
        try require(types, of: function, in: resolver, toBe: "numbers") { $0.isNumeric }
        if function == .modulus { return .integer }
        if function == .power { return .double }
        let areIntegers = types.allSatisfy { $0 == .integer || $0 == .bool }
        return areIntegers ? .integer : .double
    }

    private static func castType(
        _ operands: [ResolvedExpression],
        _ resolver: PredicateResolver
    ) throws -> ResolvedType {
        guard let target = operands[1].constantValue?.stringValue.flatMap(CastTarget.init(rawValue:)) else {
            throw resolver.failure(.invalidConstant, "CAST needs the name of a type.")
        }
        return switch target {
        case .date: .date
        case .number, .decimal: .double
        case .string: .string
        case .uuid: .uuid
        case .url: .uri
        case .data: .data
        }
    }

    /// The objects of an expression cast to another entity, nil for those of others; `nil` for a cast to a type.
    private static func entityCast(
        _ arguments: [NSExpression],
        _ resolver: inout PredicateResolver
    ) throws -> ResolvedOperand? {
        guard case .constant(let constant) = arguments[1].kind,
            let name = PredicateValue(scalar: constant)?.stringValue, CastTarget(rawValue: name) == nil
        else { return nil }
        guard let target = resolver.root.predicateSchema(named: name) else {
            throw resolver.failure(.invalidConstant, "There is no type and no entity \(name.prefix(80)) to cast to.")
        }
        func cast(_ path: ResolvedPath) throws -> ResolvedExpression {
            let schema = resolver.schema(of: path)
            if schema.isKind(of: target) { return .object(path) }
            guard target.isKind(of: schema) else {
                throw resolver.failure(
                    .incompatibleTypes,
                    "An object of \(schema.predicateEntityName) is never one of \(target.predicateEntityName)."
                )
            }
            return .object(ResolvedPath(variable: path.variable, steps: path.steps + [.cast(to: target)]))
        }
        switch try resolver.operand(arguments[0]) {
        case .scalar(.object(let path)): return .scalar(try cast(path))
        case .scalar(let operand) where operand.type == .null: return .scalar(operand)
        case .members(var members):
            guard case .object(let path) = members.element else { break }
            members.element = try cast(path)
            return .members(members)
        default: break
        }
        throw resolver.failure(
            .incompatibleTypes,
            "Only objects can be cast to the entity \(name), not \(arguments[0])."
        )
    }

    private static func require(
        _ types: [ResolvedType],
        of function: PredefinedFunction,
        in resolver: PredicateResolver,
        toBe expected: String,
        where test: (ResolvedType) -> Bool
    ) throws {
        guard let wrong = types.first(where: { $0 != .null && !test($0) }) else { return }
        throw resolver.failure(
            .incompatibleTypes,
            "The function \(function.rawValue) takes \(expected), not a value of type \(wrong)."
        )
    }

    // MARK: - Collections

    static func aggregate(
        _ function: PredefinedFunction,
        over collection: ResolvedCollection,
        of element: ResolvedExpression?
    ) -> ResolvedExpression {
        .aggregate(
            ResolvedAggregate(
                function: function,
                collection: collection,
                element: element,
                type: ResolvedExpression.aggregateType(function, of: element?.type ?? .integer)
            )
        )
    }

    static func check(
        _ element: ResolvedExpression,
        for function: PredefinedFunction,
        _ resolver: PredicateResolver,
        keyPath: String? = nil
    ) throws {
        let type = element.type
        let isFit =
            switch function {
            case .count: true
            case .min, .max: ![.reference, .transformable, .entity, .composite].contains(type)
            default: type.isNumeric || type == .null
            }
        guard isFit else {
            throw resolver.failure(
                .incompatibleTypes,
                "The function \(function.rawValue) cannot be taken over values of type \(type).",
                keyPath: keyPath
            )
        }
    }

    private static func collectionFunction(
        _ function: PredefinedFunction,
        of arguments: [NSExpression],
        in resolver: inout PredicateResolver
    ) throws -> ResolvedExpression {
        guard arguments.count == 1 else {
            let operands = try arguments.map { try resolver.scalar(resolver.operand($0), $0) }
            return try list(function, of: operands, in: resolver)
        }
        switch try resolver.operand(arguments[0]) {
        case .constants(let members): return .constant(function.aggregate(members.values))
        case .list(let operands): return try list(function, of: operands, in: resolver)
        case .members(let members): return try overMembers(function, members, from: arguments[0], in: resolver)
        case .setOperation: throw resolver.failure(.unsupported, "A store cannot compute with the set \(arguments[0]).")
        case .scalar(let operand):
            return try overRows(
                function,
                resolver.scalar(.scalar(operand), arguments[0]),
                from: arguments[0],
                in: resolver
            )
        }
    }

    /// The most arguments that SQLite accepts for a function in every build.
    private static let mostOperands = 100

    private static func list(
        _ function: PredefinedFunction,
        of operands: [ResolvedExpression],
        in resolver: PredicateResolver
    ) throws -> ResolvedExpression {
        guard function != .mode else { throw resolver.failure(.unsupported, "A store cannot evaluate mode:.") }
        for operand in operands { try check(operand, for: function, resolver) }
        if function == .min || function == .max, let first = operands.first(where: { $0.type != .null }),
            let other = operands.first(where: { !$0.type.isCompatible(with: first.type) })
        {
            throw resolver.failure(
                .incompatibleTypes,
                "The function \(function.rawValue) cannot compare a value of type \(first.type) with one of type \(other.type)."
            )
        }
        let constants = operands.compactMap(\.constantValue)
        if constants.count == operands.count { return .constant(function.aggregate(constants)) }
        guard operands.count <= mostOperands else {
            throw resolver.failure(
                .unsupported,
                "The function \(function.rawValue) takes \(mostOperands) values at most in a fetch, not \(operands.count)."
            )
        }
        let types = Set(operands.map(\.type)).subtracting([.null])
        let type: ResolvedType =
            switch function {
            case .count: .integer
            // The middle of two integers, for instance, may have a fraction.
            case .average, .median, .stddev: .double
            case _ where types.count <= 1: types.first ?? .null
            default: .double
            }
        return .function(function, operands, type == .bool ? .integer : type)
    }

    private static func overMembers(
        _ function: PredefinedFunction,
        _ members: ResolvedMembers,
        from source: NSExpression,
        in resolver: PredicateResolver
    ) throws -> ResolvedExpression {
        guard members.levels.count == 1, function != .mode else {
            throw resolver.failure(
                .unsupported,
                "A store cannot take \(function.rawValue) of \(source).",
                keyPath: source.description
            )
        }
        if function == .count { return aggregate(function, over: members.levels[0], of: nil) }
        try check(members.element, for: function, resolver, keyPath: source.description)
        return aggregate(function, over: members.levels[0], of: members.element)
    }

    private static func overRows(
        _ function: PredefinedFunction,
        _ operand: ResolvedExpression,
        from source: NSExpression,
        in resolver: PredicateResolver
    ) throws -> ResolvedExpression {
        guard resolver.allowsRowAggregates, [.count, .sum, .average, .min, .max].contains(function) else {
            throw resolver.failure(
                .collectionNeeded,
                "The function \(function.rawValue) needs a collection here.",
                keyPath: source.description
            )
        }
        try check(operand, for: function, resolver, keyPath: source.description)
        return .rowAggregate(function, operand)
    }

    private static func index(
        _ arguments: [NSExpression],
        _ resolver: inout PredicateResolver
    ) throws -> ResolvedExpression {
        let position = try resolver.scalar(resolver.operand(arguments[1]), arguments[1])
        switch (try resolver.operand(arguments[0]), position.constantValue) {
        case (.constants(let members), let position?):
            return .constant(PredefinedFunction.index.apply([.collection(members.values), position]))
        case (.members(let members), .string(IndexSymbol.size.rawValue)?) where members.levels.count == 1:
            return aggregate(.count, over: members.levels[0], of: nil)
        default:
            throw resolver.failure(.unsupported, "A store cannot take a member of \(arguments[0]) by its index.")
        }
    }
}
