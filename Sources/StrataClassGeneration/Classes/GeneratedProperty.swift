import StrataModelFiles

/// A property of an entity as generated Swift declares it, with the name and type that Xcode would choose.
struct GeneratedProperty {
    let name: String
    let type: String
    /// Whether the property has no setter: the store computes derived attributes, and a fetch gives fetched properties.
    let isReadOnly: Bool
    let isFetched: Bool
    /// The class names in the type that may be declared in hand-written source.
    let classNames: [String]

    /// The name as it is written in source, in back-ticks if it is a keyword.
    var spelledName: String { SwiftKeyword.quoted(name) }

    /// The name of the constant that finds the property's slot.
    var slotName: String { "_managed_" + name }
}

extension GeneratedProperty {
    /// - Returns: `nil` for a property without a type, for which no code is generated.
    init?(_ source: PropertySource, in model: GeneratedModel) {
        name = source.facts.name
        if case .fetched = source { isFetched = true } else { isFetched = false }
        switch source {
        case .attribute(let attribute):
            guard let type = Self.type(of: attribute) else { return nil }
            self.type = type
            isReadOnly = attribute.isDerived
            classNames = attribute.type == .transformable ? attribute.customClassName.map { [$0] } ?? [] : []
        case .relationship(let relationship):
            let className = model.spelledClass(of: relationship.destination)
            isReadOnly = false
            if relationship.isToMany {
                type = relationship.isOrdered ? "NSOrderedSet?" : "NSSet?"
                classNames = []
            } else {
                type = className + "?"
                classNames = [className]
            }
        case .fetched(let fetched):
            let className = model.spelledClass(of: fetched.request?.entity ?? "")
            type = "[\(className)]?"
            isReadOnly = true
            classNames = [className]
        }
    }

    /// The type is chosen as in Xcode: a scalar is never optional, and an object always is, whatever the model says.
    private static func type(of attribute: AttributeSource) -> String? {
        let isScalar = attribute.usesScalarValueType
        return switch attribute.type {
        case .integer16: isScalar ? "Int16" : "NSNumber?"
        case .integer32: isScalar ? "Int32" : "NSNumber?"
        case .integer64: isScalar ? "Int64" : "NSNumber?"
        case .double: isScalar ? "Double" : "NSNumber?"
        case .float: isScalar ? "Float" : "NSNumber?"
        case .boolean: isScalar ? "Bool" : "NSNumber?"
        case .decimal: "NSDecimalNumber?"
        case .date: isScalar ? "TimeInterval" : "Date?"
        case .string: "String?"
        case .data: "Data?"
        case .uuid: "UUID?"
        case .uri: "URL?"
        case .objectID: "NSManagedObjectID?"
        case .transformable: (attribute.customClassName ?? "NSObject") + "?"
        case .composite: "[String: Any]?"
        case .undefined: nil
        }
    }
}

/// The reserved words of Swift.
enum SwiftKeyword {
    private static let all: Set<String> = [
        "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
        "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import",
        "in", "init", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol",
        "public", "repeat", "rethrows", "return", "self", "Self", "static", "struct", "subscript", "super", "switch",
        "throw", "throws", "true", "try", "typealias", "var", "where", "while", "Any",
    ]

    static func quoted(_ name: String) -> String { all.contains(name) ? "`\(name)`" : name }
}
