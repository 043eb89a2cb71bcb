import StrataPredicates

/// The source of a derived attribute's value.
package enum Derivation: Equatable {
    /// A function of the objects at the other end of a to-many relationship: of one attribute, or of their number.
    case aggregate(Aggregate, relationship: String, attribute: String?)
    /// The value of an attribute of the object at the other end of a to-one relationship.
    case copy(relationship: String, attribute: String)
    /// A function of another attribute of the same object.
    case function(TextFunction, attribute: String)
    /// The moment of the last save.
    case now

    package enum Aggregate: String {
        case count, sum, min, max, average

        package init?(name: String) {
            self.init(rawValue: name == "avg" ? "average" : name)
        }
    }

    package enum TextFunction: String {
        case canonical, lowercase, uppercase

        /// The predicate function that computes it.
        ///
        /// Each connection of a store has it.
        package var predefined: PredefinedFunction {
            switch self {
            case .canonical: .canonical
            case .lowercase: .lowercase
            case .uppercase: .uppercase
            }
        }
    }

    /// Reads the text of a derivation; `nil` for a derivation that the store cannot keep up to date.
    package init?(_ text: String) {
        let text = text.trimmingCharacters(in: .whitespaces)
        guard let open = text.firstIndex(of: "("), text.hasSuffix(")") else {
            let path = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard path.count == 2, path.allSatisfy({ !$0.isEmpty && !$0.hasPrefix("@") }) else { return nil }
            self = .copy(relationship: path[0], attribute: path[1])
            return
        }
        var name = String(text[..<open])
        if name.hasSuffix(":") { name.removeLast() }
        let argument = text[text.index(after: open)...].dropLast().trimmingCharacters(in: .whitespaces)
        let path = argument.split(separator: ".").map(String.init)
        if name == "now", argument.isEmpty {
            self = .now
        } else if let function = TextFunction(rawValue: name), path.count == 1 {
            self = .function(function, attribute: path[0])
        } else if let aggregate = Aggregate(name: name) {
            switch (path.count, aggregate) {
            case (1, .count): self = .aggregate(.count, relationship: path[0], attribute: nil)
            case (2, .count): return nil
            case (2, _): self = .aggregate(aggregate, relationship: path[0], attribute: path[1])
            default: return nil
            }
        } else {
            return nil
        }
    }
}
