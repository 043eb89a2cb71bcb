/// The methods that change a to-many relationship, as Xcode names them.
package enum ToManyAccessor {
    /// What such a method does: a call of the runtime.
    ///
    /// - Parameters:
    ///   - method: The name, such as `addToPages`.
    ///   - labels: The labels of the parameters; `_` for none.
    ///   - names: What the call passes.
    ///   - explicit: The relationship's name as a string literal; `nil` for the one in the method's name.
    /// - Returns: `nil` if the method is none of them.
    package static func call(_ method: String, labels: [String], names: [String], key explicit: String?) -> String? {
        func key(after verb: String) -> String? {
            guard method.hasPrefix(verb), method.count > verb.count else { return nil }
            let rest = method.dropFirst(verb.count)
            return explicit ?? "\"\(rest.prefix(1).lowercased())\(rest.dropFirst())\""
        }
        switch labels {
        case ["_"]:
            if let key = key(after: "addTo") { return "addManagedMembers(\(names[0]), to: \(key))" }
            return key(after: "removeFrom").map { "removeManagedMembers(\(names[0]), from: \($0))" }
        case ["at"]:
            return key(after: "removeFrom").map { "removeManagedMembers(at: \(names[0]), from: \($0))" }
        case ["_", "at"]:
            return key(after: "insertInto").map { "insertManagedMembers(\(names[0]), at: \(names[1]), into: \($0))" }
        case ["at", "with"]:
            return key(after: "replace").map { "replaceManagedMembers(at: \(names[0]), with: \(names[1]), of: \($0))" }
        default: return nil
        }
    }
}
