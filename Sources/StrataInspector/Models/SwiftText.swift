import CoreData

/// The names of the classes for a model's entities.
struct SwiftNames {
    private var classes: [String: String] = [:]

    /// The class name in the model, without its module; the entity's name if that is missing or taken.
    init(_ model: NSManagedObjectModel) {
        var taken = Set<String>()
        for entity in model.sortedEntities {
            let given = (entity.managedObjectClassName ?? "").split(separator: ".").last.map(String.init) ?? ""
            let entityName = entity.name ?? ""
            var name = SwiftText.typeName(given.isEmpty || given == "NSManagedObject" ? entityName : given)
            if taken.contains(name) { name = SwiftText.typeName(entityName) }
            while !taken.insert(name).inserted { name += "Entity" }
            classes[entityName] = name
        }
    }

    subscript(_ entity: NSEntityDescription) -> String { classes[entity.name ?? ""] ?? "NSManagedObject" }

    func contains(_ name: String) -> Bool { classes.values.contains(name) }
}

/// Pieces of Swift source.
enum SwiftText {
    /// Names of types that a class must not have, because it would hide types that the text needs.
    private static let takenTypes: Set<String> = [
        "Any", "Array", "Bool", "Data", "Date", "Decimal", "Double", "Float", "Int", "Int16", "Int32", "Int64",
        "NSObject",
        "Self", "Set", "String", "Type", "URL", "UUID",
    ]

    private static let keywords: Set<String> = [
        "Any", "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit",
        "do", "else",
        "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import", "in",
        "init", "inout",
        "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public", "repeat",
        "rethrows",
        "return", "self", "Self", "static", "struct", "subscript", "super", "switch", "throw", "throws", "true", "try",
        "typealias", "var", "where", "while",
    ]

    /// A name of a type: with a capital, and an underscore for each character that names cannot have.
    static func typeName(_ name: String) -> String {
        var word = String(name.map { $0.isLetter || $0.isNumber || $0 == "_" ? $0 : "_" })
        if word.first?.isNumber != false { word = "_" + word }
        word = word.prefix(1).uppercased() + word.dropFirst()
        return takenTypes.contains(word) ? word + "_" : word
    }

    static func identifier(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

    /// A text as a string literal.
    static func literal(_ text: String) -> String {
        var literal = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": literal += "\\\""
            case "\\": literal += "\\\\"
            case "\n": literal += "\\n"
            case "\r": literal += "\\r"
            case "\t": literal += "\\t"
            case "\u{0}"..."\u{1F}", "\u{7F}": literal += "\\u{\(String(scalar.value, radix: 16))}"
            default: literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "\""
    }

    static func list(_ texts: [String]) -> String { texts.map(literal).joined(separator: ", ") }

    /// The trait for an application's user info; `nil` if there is none.
    static func userInfo(_ facts: [AnyHashable: Any]?) -> String? {
        let entries = NSPropertyDescription.entries(of: facts)
        guard !entries.isEmpty else { return nil }
        return ".userInfo([\(entries.map { "\(literal($0.key)): \(literal($0.value))" }.joined(separator: ", "))])"
    }

    static func type(of attribute: NSAttributeDescription) -> String {
        if let type = attribute.attributeType.swiftType { return "\(type)" }
        // The class that the model names need not exist here.
        return attribute.attributeType == .transformableAttributeType ? "NSObject" : "Any"
    }

    static func attributeType(_ type: NSAttributeDescription.AttributeType) -> String {
        switch type {
        case .integer16: ".integer16"
        case .integer32: ".integer32"
        case .integer64: ".integer64"
        case .decimal: ".decimal"
        case .double: ".double"
        case .float: ".float"
        case .string: ".string"
        case .boolean: ".boolean"
        case .date: ".date"
        case .binaryData: ".binaryData"
        case .uuid: ".uuid"
        case .uri: ".uri"
        case .transformable: ".transformable"
        case .objectID: ".objectID"
        case .composite: ".composite"
        default: ".undefined"
        }
    }

    /// A value as an expression; `nil` if it has none.
    static func value(_ value: Any, _ type: NSAttributeDescription.AttributeType) -> String? {
        switch value {
        case let text as String: literal(text)
        case let date as Date: "Date(timeIntervalSinceReferenceDate: \(date.timeIntervalSinceReferenceDate))"
        case let data as Data: "Data([\(data.map { "0x" + String($0, radix: 16) }.joined(separator: ", "))])"
        case let uuid as UUID: "UUID(uuidString: \(literal(uuid.uuidString)))!"
        case let url as URL: "URL(string: \(literal(url.absoluteString)))!"
        case let number as NSNumber: self.number(number, type)
        default: nil
        }
    }

    private static func number(_ number: NSNumber, _ type: NSAttributeDescription.AttributeType) -> String? {
        switch type {
        case .boolean: number.boolValue ? "true" : "false"
        case .integer16, .integer32, .integer64: grouped(number.int64Value)
        case .double: double(number.doubleValue)
        case .float: double(Double("\(number.floatValue)") ?? 0)
        case .decimal: "Decimal(string: \"\(number)\")!"
        default: nil
        }
    }

    /// Digits in groups of three, if there are many.
    private static func grouped(_ value: Int64) -> String {
        let digits = String(value.magnitude)
        guard digits.count > 6 else { return "\(value)" }
        var groups: [Substring] = []
        var rest = digits[...]
        while !rest.isEmpty {
            groups.insert(rest.suffix(3), at: 0)
            rest = rest.dropLast(3)
        }
        return (value < 0 ? "-" : "") + groups.joined(separator: "_")
    }

    private static func double(_ value: Double) -> String? { value.isFinite ? "\(value)" : nil }
}
