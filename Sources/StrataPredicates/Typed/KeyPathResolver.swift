/// Follows a key path through the entities.
enum KeyPathResolver {
    static func resolve(
        _ path: String,
        from start: ResolvedOperand,
        _ resolver: inout PredicateResolver
    ) throws -> ResolvedOperand {
        var current = start
        // Most paths are one key.
        var keys =
            path.utf8.contains(UInt8(ascii: "."))
            ? path.split(separator: ".", omittingEmptySubsequences: false)[...] : [Substring(path)]
        guard keys.count <= longestPath else {
            throw resolver.failure(
                .unsupported,
                "A key path may have \(longestPath) steps at most, not \(keys.count).",
                keyPath: String(path.prefix(80)) + "…"
            )
        }
        while let key = keys.popFirst() {
            if key.first == "@" {
                return try aggregate(String(key), of: current, rest: keys, path: path, in: &resolver)
            }
            switch key {
            case "self", "SELF", "objectID": continue
            default: current = try step(String(key), rest: &keys, from: current, of: path, in: &resolver)
            }
        }
        return current
    }

    /// The longest path: SQLite joins 64 tables at most.
    private static let longestPath = 60

    // MARK: - Steps

    private static func step(
        _ key: String,
        rest keys: inout ArraySlice<Substring>,
        from current: ResolvedOperand,
        of path: String,
        in resolver: inout PredicateResolver
    ) throws -> ResolvedOperand {
        if key == "length", let length = length(of: current) { return replacing(current, length) }
        let object = try objectPath(current, key: key, of: path, in: resolver)
        let schema = resolver.schema(of: object)
        if key == "entity", schema.predicateEntityNumber > 0, schema.predicateProperty(named: key) == nil {
            return replacing(current, .attribute(object, .entity))
        }
        guard var property = schema.predicateProperty(named: key) else {
            throw resolver.failure(
                .unknownKey,
                "The key path \(path) was not found: there is no property \(key).",
                keyPath: path,
                schema: schema
            )
        }
        while case .composite(let composite) = property {
            guard let element = keys.popFirst() else {
                return replacing(current, .composite(object, composite.predicateLeaves))
            }
            guard let next = composite.predicateProperty(named: String(element)) else {
                throw resolver.failure(
                    .unknownKey,
                    "The composite attribute \(key) has no element \(element).",
                    keyPath: path,
                    schema: schema
                )
            }
            property = next
        }
        switch property {
        case .attribute(let attribute): return replacing(current, .attribute(object, attribute))
        case .toOne(let relationship):
            return replacing(
                current,
                .object(ResolvedPath(variable: object.variable, steps: object.steps + [relationship]))
            )
        case .toMany(let relationship):
            let variable = resolver.newVariable(relationship.destination)
            let level = ResolvedCollection(owner: object, relationship: relationship, variable: variable, filter: nil)
            var levels: [ResolvedCollection] = []
            if case .members(let members) = current { levels = members.levels }
            return .members(
                ResolvedMembers(levels: levels + [level], element: .object(ResolvedPath(variable: variable)))
            )
        case .unsupported(let reason):
            throw resolver.failure(
                .unsupported,
                "The property \(key) cannot be used by a store: \(reason).",
                keyPath: path,
                schema: schema
            )
        // Its elements were resolved above.
        case .composite(let composite): return replacing(current, .composite(object, composite.predicateLeaves))
        }
    }

    /// The length of a text or of data, which has this one key; `nil` for anything else.
    private static func length(of current: ResolvedOperand) -> ResolvedExpression? {
        let value: ResolvedExpression
        switch current {
        case .scalar(let scalar): value = scalar
        case .members(let members): value = members.element
        default: return nil
        }
        guard value.type == .string || value.type == .data else { return nil }
        if let constant = value.constantValue { return .constant(PredefinedFunction.length.apply([constant])) }
        return .function(.length, [value], .integer)
    }

    /// The object to which the next property belongs.
    private static func objectPath(
        _ current: ResolvedOperand,
        key: String,
        of path: String,
        in resolver: PredicateResolver
    ) throws -> ResolvedPath {
        switch current {
        case .scalar(.object(let object)): return object
        case .members(let members):
            if case .object(let object) = members.element { return object }
        default: break
        }
        throw resolver.failure(
            .unknownKey,
            "The key path \(path) was not found: there is no \(key) under a value.",
            keyPath: path
        )
    }

    private static func replacing(_ current: ResolvedOperand, _ element: ResolvedExpression) -> ResolvedOperand {
        guard case .members(var members) = current else { return .scalar(element) }
        members.element = element
        return .members(members)
    }

    // MARK: - Collection operators

    private static let functions: [String: PredefinedFunction] = [
        "@count": .count, "@sum": .sum, "@avg": .average, "@min": .min, "@max": .max,
    ]

    private static func aggregate(
        _ name: String,
        of current: ResolvedOperand,
        rest: ArraySlice<Substring>,
        path: String,
        in resolver: inout PredicateResolver
    ) throws -> ResolvedOperand {
        guard let function = functions[name] else {
            throw resolver.failure(
                .unsupported,
                "A store cannot evaluate the collection operator \(name).",
                keyPath: path
            )
        }
        if case .constants(let members) = current, function == .count || rest.isEmpty || rest == ["self"] {
            return .scalar(.constant(function.aggregate(members.values)))
        }
        guard case .members(let members) = current, members.levels.count == 1,
            let level = members.plainLevel ?? (function == .count ? members.levelWithValues : nil)
        else {
            throw resolver.failure(
                .collectionNeeded,
                "\(name) needs exactly one to-many relationship to its left.",
                keyPath: path
            )
        }
        if function == .count {
            guard rest.isEmpty else {
                throw resolver.failure(.unknownKey, "Nothing can follow @count in a key path.", keyPath: path)
            }
            return .scalar(FunctionResolver.aggregate(function, over: level, of: nil))
        }
        let inner = try resolve(
            rest.joined(separator: "."),
            from: .scalar(.object(ResolvedPath(variable: level.variable))),
            &resolver
        )
        guard case .scalar(let element) = inner else {
            throw resolver.failure(.toManyNotAllowed, "A to-many key is not allowed behind \(name).", keyPath: path)
        }
        try FunctionResolver.check(element, for: function, resolver, keyPath: path)
        return .scalar(FunctionResolver.aggregate(function, over: level, of: element))
    }
}
