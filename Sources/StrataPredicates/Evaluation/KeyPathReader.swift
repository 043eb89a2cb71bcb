/// Reads values by key path from any object: managed objects, dictionaries, collections, other Swift values.
enum KeyPathReader {
    /// The value at a key path.
    ///
    /// A nil in the path makes the whole value nil. A collection in the path makes it the array of its members' values.
    /// A collection operator (`@count`, `@sum`, …) reduces the collection to its left to one value.
    ///
    /// - Throws: ``PredicateEvaluationError`` for a key that the object does not have.
    static func value(of object: Any?, path: String) throws -> Any? {
        if !path.utf8.contains(UInt8(ascii: ".")), path.utf8.first != UInt8(ascii: "@") {
            return try value(of: object, key: path)
        }
        return try value(of: object, keys: path.split(separator: ".", omittingEmptySubsequences: false)[...])
    }

    /// Recurses only at collections, so that the length of a path from outside cannot exhaust the stack.
    private static func value(of start: Any?, keys path: ArraySlice<Substring>, depth: Int = 0) throws -> Any? {
        guard depth < 100 else { throw PredicateEvaluationError("the key path leads through too many collections") }
        var keys = path
        var current = start
        while let key = keys.first {
            let rest = keys.dropFirst()
            if key.first == "@" {
                return try CollectionOperator.value(named: key, of: current) {
                    try value(of: $0, keys: rest, depth: depth + 1)
                }
            }
            guard let object = nullToNil(current) else {
                // A later `@count` is a number all the same: nil has no members.
                guard let position = rest.firstIndex(where: { $0.first == "@" }) else { return nil }
                current = nil
                keys = rest[position...]
                continue
            }
            if key.lowercased() == "self" {
                keys = rest
                continue
            }
            if !(object is any KeyedValues), let members = collectionMembers(of: object) {
                let position = keys.firstIndex(where: { $0.first == "@" }) ?? keys.endIndex
                let values = try members.map {
                    try value(of: $0, keys: keys[..<position], depth: depth + 1) ?? NSNull()
                }
                if position == keys.endIndex { return values }
                current = values
                keys = keys[position...]
                continue
            }
            current = try value(of: object, key: String(key))
            keys = rest
        }
        return current
    }

    /// The value of one key.
    private static func value(of object: Any?, key: String) throws -> Any? {
        guard let object = nullToNil(object) else { return nil }
        if key.lowercased() == "self" { return object }
        switch object {
        case let member as any PredicateEntityMember: return nullToNil(try member.predicateValue(forKey: key))
        case let coding as any KeyValueCoding: return nullToNil(coding.value(forKey: key))
        case let dictionary as any KeyedValues: return nullToNil(dictionary.keyedValue(key))
        case let expression as NSExpression: throw PredicateEvaluationError("\(expression) has no key \(key)")
        default: break
        }
        if let members = collectionMembers(of: object) {
            return try members.map { try value(of: $0, key: key) ?? NSNull() }
        }
        // Models use one key of texts and data: `length`, in the validation of an attribute.
        if key == "length" {
            if let text = object as? String { return text.utf16.count }
            if let data = object as? Data { return data.count }
        }
        return try reflected(object, key)
    }

    /// The stored property of a Swift value, declared by its type or inherited.
    private static func reflected(_ object: Any, _ key: String) throws -> Any? {
        var mirror: Mirror? = Mirror(reflecting: object)
        while let level = mirror {
            if let child = level.children.first(where: { $0.label == key }) { return nullToNil(child.value) }
            mirror = level.superclassMirror
        }
        throw PredicateEvaluationError("an object of type \(type(of: object)) has no value for the key \"\(key)\"")
    }
}

/// A dictionary, whose keys are steps of key paths.
///
/// The values of missing keys are nil.
private protocol KeyedValues {
    func keyedValue(_ key: String) -> Any?
}

extension Dictionary: KeyedValues where Key: Hashable {
    fileprivate func keyedValue(_ key: String) -> Any? {
        guard let key = key as? Key ?? (AnyHashable(key) as? Key) else { return nil }
        return self[key]
    }
}

extension NSDictionary: KeyedValues {
    fileprivate func keyedValue(_ key: String) -> Any? {
        object(forKey: key)
    }
}
