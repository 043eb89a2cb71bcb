/// The operators of key paths that follow a collection: `items.@sum.price`.
enum CollectionOperator: String {
    case count = "@count"
    case sum = "@sum"
    case average = "@avg"
    case min = "@min"
    case max = "@max"
    case distinctUnionOfObjects = "@distinctUnionOfObjects"
    case unionOfObjects = "@unionOfObjects"
    case distinctUnionOfArrays = "@distinctUnionOfArrays"
    case unionOfArrays = "@unionOfArrays"
    case distinctUnionOfSets = "@distinctUnionOfSets"

    /// The value of an operator.
    ///
    /// - Parameters:
    ///   - name: The name of the operator, with its `@`.
    ///   - object: The collection; nil counts as an empty one.
    ///   - element: Reads the rest of the key path from a member.
    /// - Returns: The value.
    /// - Throws: An error for an unknown operator, and errors of `element`.
    static func value(named name: Substring, of object: Any?, element: (Any?) throws -> Any?) throws -> Any? {
        guard let operation = CollectionOperator(rawValue: String(name)) else {
            throw PredicateEvaluationError("there is no collection operator \(name)")
        }
        guard let members = object == nil ? [] : collectionMembers(of: object) else {
            throw PredicateEvaluationError("\(name) needs a collection to its left")
        }
        return try operation.apply(to: members, element)
    }

    private func apply(to members: [Any?], _ element: (Any?) throws -> Any?) throws -> Any? {
        switch self {
        case .count: return NSNumber(value: members.count)
        case .sum: return try reduce(members, by: .sum, of: element)
        case .average: return try reduce(members, by: .average, of: element)
        case .min: return try reduce(members, by: .min, of: element)
        case .max: return try reduce(members, by: .max, of: element)
        case .unionOfObjects: return try members.map(element).compactMap { $0 }
        case .distinctUnionOfObjects: return unique(try members.map(element).compactMap { $0 })
        case .unionOfArrays: return try flattened(members, element)
        case .distinctUnionOfArrays, .distinctUnionOfSets: return unique(try flattened(members, element))
        }
    }

    private func reduce(
        _ members: [Any?],
        by function: PredefinedFunction,
        of element: (Any?) throws -> Any?
    ) throws -> Any? {
        let values = try members.flatMap { try flattenedMembers(of: element($0)) }
        return function.aggregate(values.map { PredicateValue(any: $0) }).anyValue
    }

    private func flattened(_ members: [Any?], _ element: (Any?) throws -> Any?) throws -> [Any] {
        try members.flatMap { try (collectionMembers(of: $0) ?? []).map(element).compactMap { $0 } }
    }
}

/// A value as the members of a collection, with nested collections flattened; a single value is its own only member.
func flattenedMembers(of any: Any?) -> [Any?] {
    guard let members = collectionMembers(of: any) else { return [any] }
    guard members.contains(where: { collectionMembers(of: $0) != nil }) else { return members }
    return members.flatMap { collectionMembers(of: $0) == nil ? [$0] : flattenedMembers(of: $0) }
}

/// The key by which members of a collection are the same: the value of a scalar, or the object's own equality.
enum MemberKey: Hashable {
    case value(PredicateValue)
    case object(AnyHashable)
    case instance(ObjectIdentifier)

    /// - Returns: `nil` for a value that cannot be compared.
    init?(_ any: Any?) {
        if let scalar = PredicateValue(scalar: any) {
            self = .value(scalar)
        } else if let hashable = any as? AnyHashable {
            self = .object(hashable)
        } else if let any, type(of: any) is AnyClass {
            self = .instance(ObjectIdentifier(any as AnyObject))
        } else {
            return nil
        }
    }
}

/// The values without repetitions, in their order.
func unique(_ values: [Any]) -> [Any] {
    var seen: Set<MemberKey> = []
    return values.filter { value in MemberKey(value).map { seen.insert($0).inserted } ?? true }
}
