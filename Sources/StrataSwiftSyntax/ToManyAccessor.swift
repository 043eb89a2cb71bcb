/// The methods that change a to-many relationship.
///
/// They have Xcode's names (`addToPages`), or those of key-value coding (`addPages`, `addPagesObject`).
package enum ToManyAccessor {
    /// The body of such a method: a call of the runtime.
    ///
    /// - Parameters:
    ///   - method: The name, such as `addToPages` or `addPages`.
    ///   - labels: The labels of the parameters; `_` for none.
    ///   - names: The arguments of the call.
    ///   - explicit: The relationship's name as a string literal; `nil` for the one in the method's name.
    /// - Returns: `nil` if the method is none of them.
    package static func call(_ method: String, labels: [String], names: [String], key explicit: String?) -> String? {
        func key(after verb: String) -> String? {
            // A lower-case letter continues a word: `addTopics` adds topics, and does not add to "pics".
            guard method.hasPrefix(verb), let first = method.dropFirst(verb.count).first, !first.isLowercase else {
                return nil
            }
            var rest = method.dropFirst(verb.count)
            if rest.hasSuffix("Object"), !["addTo", "removeFrom"].contains(verb), rest.count > "Object".count {
                rest = rest.dropLast("Object".count)
            }
            return explicit ?? "\"\(rest.prefix(1).lowercased())\(rest.dropFirst())\""
        }
        switch labels {
        case ["_"] where ["addTo", "removeFrom"].contains(method): return nil
        case ["_"]:
            if let key = key(after: "addTo") ?? key(after: "add") {
                return "addManagedMembers(\(names[0]), to: \(key))"
            }
            return (key(after: "removeFrom") ?? key(after: "remove"))
                .map { "removeManagedMembers(\(names[0]), from: \($0))" }
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
