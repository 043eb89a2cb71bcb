/// The checks that a macro can make of a property's traits: whether they fit the type that is written beside them.
///
/// An unknown name may be any type. If a trait does not fit it, that is an error when the model is made.
enum TraitChecks {
    private static let relationshipTraits: Set<String> = [
        "inverse", "noInverse", "deleteRule", "ordered", "unordered", "count", "destination", "fetched",
    ]
    private static let attributeTraits: Set<String> = [
        "default", "minimum", "maximum", "length", "matches", "externalStorage", "derived", "codable", "transformable",
        "preservedOnDeletion",
    ]
    private static let numbers: Set<String> = ["Int", "Int16", "Int32", "Int64", "Double", "Float", "Decimal", "Date"]
    private static let others: Set<String> = ["String", "Bool", "Data", "UUID", "URL"]

    /// - Throws: The first fault.
    static func check(_ property: PropertyDeclaration) throws(Diagnostic) {
        let type = TypeName(property.type.source)
        let names = Set(property.traits.map(\.name))
        for trait in property.traits {
            // For a relationship to one object, the counts in a file give the smallest number of objects.
            if trait.name == "count", trait.source.hasPrefix(".count(least:"), !type.isScalar { continue }
            if let fault = fault(trait.name, of: type, among: names) {
                throw Diagnostic(
                    "'.\(trait.name)' \(fault) ('\(property.bareName)' is \(type.article)).",
                    at: trait.range
                )
            }
        }
    }

    private static func fault(_ trait: String, of type: TypeName, among all: Set<String>) -> String? {
        if relationshipTraits.contains(trait) {
            if let other = all.first(where: attributeTraits.contains) {
                return "is for relationships and '.\(other)' for attributes; a property is one of both"
            }
            if type.isScalar { return "is for relationships" }
            if ["ordered", "unordered", "count"].contains(trait), !type.isCollection, type.isName {
                return "is for relationships to many objects"
            }
        }
        guard type.isScalar else { return nil }
        switch trait {
        case "minimum", "maximum": return numbers.contains(type.name) ? nil : "is for numbers and dates"
        case "length", "matches": return type.name == "String" ? nil : "is for text"
        case "externalStorage" where !all.contains("codable") && !all.contains("transformable"):
            return type.name == "Data" ? nil : "is for data"
        case "default" where all.contains("derived"): return "and '.derived' exclude each other"
        case "transient" where all.contains("derived"): return "and '.derived' exclude each other"
        case "unique" where all.contains("transient"): return "needs a stored value, and '.transient' stores none"
        case "indexed" where all.contains("transient"): return "needs a stored value, and '.transient' stores none"
        default: return nil
        }
    }

    /// The facts that the spelling of a type shows.
    struct TypeName {
        /// The type without question and exclamation marks.
        let name: String

        init(_ source: String) {
            var text = source
            while text.hasSuffix("?") { text.removeLast() }
            if text.hasPrefix("Optional<"), text.hasSuffix(">") { text = String(text.dropFirst(9).dropLast()) }
            for module in ["Foundation.", "Swift."] where text.hasPrefix(module) { text.removeFirst(module.count) }
            name = text
        }

        var isScalar: Bool { TraitChecks.numbers.contains(name) || TraitChecks.others.contains(name) }

        var isCollection: Bool {
            name.hasPrefix("[") || name.hasPrefix("Set<") || name.hasPrefix("Array<")
                || ["NSSet", "NSOrderedSet"].contains(name)
        }

        /// Whether it is a single plain name.
        var isName: Bool {
            name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."), 0x80...: true
                default: false
                }
            }
        }

        /// The class that a relationship of this type leads to, if the type shows it.
        var destination: String? {
            for opening in ["Set<", "Array<"] where name.hasPrefix(opening) && name.hasSuffix(">") {
                return String(name.dropFirst(opening.utf8.count).dropLast())
            }
            if name.hasPrefix("["), name.hasSuffix("]"), !name.contains(":") {
                return String(name.dropFirst().dropLast())
            }
            return isScalar || !isName ? nil : name
        }

        fileprivate var article: String { "of type \(name)" }
    }
}
