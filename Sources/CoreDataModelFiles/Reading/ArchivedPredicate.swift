import CoreDataEssentials
import StrataArchives
import StrataPredicates

/// Turns archived predicates and expressions into the format language, which is then parsed.
///
/// So an archive cannot produce more than a text can, and the checks and limits of the parser apply to both.
package struct ArchivedPredicate {
    private let archive: KeyedArchive
    private let values: ArchivedValues
    private let budget: ReadingBudget
    private var arguments: [Any?] = []

    /// The error of an archived predicate that cannot be read.
    struct Unreadable: Error {}

    private static let maximumDepth = 100

    package init(archive: KeyedArchive, values: ArchivedValues, budget: ReadingBudget) {
        self.archive = archive
        self.values = values
        self.budget = budget
    }

    /// The predicate with a number.
    ///
    /// - Throws: ``Unreadable`` if a part of it is damaged, or of an unknown kind.
    package mutating func predicate(_ number: Int) throws -> NSPredicate {
        arguments = []
        let text = try text(ofPredicate: number, 0)
        return try NSPredicate(validating: text, arguments: arguments)
    }

    /// The text of the expression with a number, in the form for a derived attribute: `count:(pages)`.
    ///
    /// - Throws: ``Unreadable`` if a part of it is damaged, a constant, or of an unknown kind.
    mutating func text(ofDerivation number: Int) throws(Unreadable) -> String {
        arguments = []
        let text = try text(ofExpression: number, 0)
        guard arguments.isEmpty else { throw Unreadable() }
        return text
    }

    // MARK: - Predicates

    private mutating func text(ofPredicate number: Int, _ depth: Int) throws(Unreadable) -> String {
        let object = try part(number, depth)
        switch object.classNames.first {
        case "NSTruePredicate": return "TRUEPREDICATE"
        case "NSFalsePredicate": return "FALSEPREDICATE"
        case "NSCompoundPredicate": return try text(ofCompound: object, depth)
        case "NSComparisonPredicate": return try text(ofComparison: object, depth)
        default: throw Unreadable()
        }
    }

    private mutating func text(ofCompound object: KeyedArchive.Object, _ depth: Int) throws(Unreadable) -> String {
        guard let type = object.integer("NSCompoundPredicateType"), let list = object.object("NSSubpredicates"),
            let numbers = list.references("NS.objects")
        else { throw Unreadable() }
        var parts: [String] = []
        for number in numbers {
            parts.append("(\(try text(ofPredicate: number, depth + 1)))")
        }
        switch type {
        case 0 where parts.count == 1: return "NOT \(parts[0])"
        case 1: return parts.isEmpty ? "TRUEPREDICATE" : parts.joined(separator: " AND ")
        case 2: return parts.isEmpty ? "FALSEPREDICATE" : parts.joined(separator: " OR ")
        default: throw Unreadable()
        }
    }

    private mutating func text(ofComparison object: KeyedArchive.Object, _ depth: Int) throws(Unreadable) -> String {
        guard let left = object.reference("NSLeftExpression"), let right = object.reference("NSRightExpression"),
            let comparison = object.object("NSPredicateOperator"), let type = comparison.integer("NSOperatorType"),
            let word = Self.operators[type]
        else { throw Unreadable() }
        let modifiers = [0: "", 1: "ALL ", 2: "ANY "]
        guard let modifier = modifiers[comparison.integer("NSModifier") ?? 0] else { throw Unreadable() }
        // Operators on text keep their options under a different name.
        let bits = comparison.integer("NSOptions") ?? comparison.integer("NSFlags") ?? 0
        var options = ""
        if bits & 1 != 0 { options += "c" }
        if bits & 2 != 0 { options += "d" }
        if bits & 4 != 0 { options = "n" }
        if bits & 8 != 0 { options = "l" }
        let suffix = options.isEmpty ? "" : "[\(options)]"
        let leftText = try text(ofExpression: left, depth + 1)
        let rightText = try text(ofExpression: right, depth + 1)
        return "\(modifier)\(leftText) \(word)\(suffix) \(rightText)"
    }

    /// The operators by the numbers of `NSComparisonPredicate.Operator`.
    private static let operators = [
        0: "<", 1: "<=", 2: ">", 3: ">=", 4: "==", 5: "!=", 6: "MATCHES", 7: "LIKE", 8: "BEGINSWITH", 9: "ENDSWITH",
        10: "IN", 99: "CONTAINS", 100: "BETWEEN",
    ]

    // MARK: - Expressions

    private mutating func text(ofExpression number: Int, _ depth: Int) throws(Unreadable) -> String {
        let object = try part(number, depth)
        switch object.classNames.first {
        case "NSSelfExpression": return "SELF"
        case "NSConstantValueExpression":
            guard let value = object.reference("NSConstantValue") else { throw Unreadable() }
            if value == 0 {
                arguments.append(nil)
            } else {
                guard let constant = values.value(value) else { throw Unreadable() }
                arguments.append(constant)
            }
            return "%@"
        case "NSVariableExpression":
            guard let name = object.string("NSVariable"), Self.isPath(name), !name.contains(".") else {
                throw Unreadable()
            }
            return "$\(name)"
        case "NSKeyPathExpression": return try text(ofKeyPath: object, depth)
        case "NSKeyPathSpecifierExpression":
            guard let path = object.string("NSKeyPath"), Self.isPath(path) else { throw Unreadable() }
            return path
        case "NSFunctionExpression": return try text(ofFunction: object, depth)
        case "NSAggregateExpression":
            guard let numbers = object.object("NSCollection")?.references("NS.objects") else { throw Unreadable() }
            return "{\(try texts(numbers, depth).joined(separator: ", "))}"
        default: throw Unreadable()
        }
    }

    private mutating func text(ofKeyPath object: KeyedArchive.Object, _ depth: Int) throws(Unreadable) -> String {
        guard let operand = object.reference("NSOperand"),
            let argument = object.object("NSArguments")?.references("NS.objects")?.first,
            let specifier = archive.object(argument),
            let path = specifier.string("NSKeyPath") ?? specifier.string("NSConstantValue"), Self.isPath(path)
        else { throw Unreadable() }
        let target = try text(ofExpression: operand, depth + 1)
        return target == "SELF" ? path : "\(target).\(path)"
    }

    private mutating func text(ofFunction object: KeyedArchive.Object, _ depth: Int) throws(Unreadable) -> String {
        guard let selector = object.string("NSSelectorName"), let list = object.object("NSArguments"),
            let numbers = list.references("NS.objects"),
            // Only predefined functions are allowed; their target is a class of Apple's framework and not an object.
            object.object("NSOperand")?.string("NSConstantValueClassName") == "_NSPredicateUtilities",
            selector.wholeMatch(of: #/[A-Za-z]+(:[A-Za-z]+)*:?/#) != nil
        else { throw Unreadable() }
        let name = numbers.isEmpty || selector.hasSuffix(":") ? selector : selector + ":"
        return "\(name)(\(try texts(numbers, depth).joined(separator: ", ")))"
    }

    private mutating func texts(_ numbers: [Int], _ depth: Int) throws(Unreadable) -> [String] {
        var texts: [String] = []
        for number in numbers {
            texts.append(try text(ofExpression: number, depth + 1))
        }
        return texts
    }

    /// A part of the predicate.
    ///
    /// Several parts may refer to the same part, so each reading is counted.
    private func part(_ number: Int, _ depth: Int) throws(Unreadable) -> KeyedArchive.Object {
        guard depth < Self.maximumDepth, (try? budget.spend(1)) != nil, let object = archive.object(number) else {
            throw Unreadable()
        }
        return object
    }

    private static func isPath(_ text: String) -> Bool {
        text.wholeMatch(of: #/@?[\p{L}_][\p{L}\p{N}_]*(\.@?[\p{L}_][\p{L}\p{N}_]*)*/#) != nil
    }
}

extension KeyedArchive.Object {
    /// The number of the object in a field; 0 stands for nil.
    package func reference(_ field: String) -> Int? {
        if case .uid(let number)? = self[field] { number } else { nil }
    }

    /// The object in a field; `nil` also for the object that represents nil.
    package func object(_ field: String) -> KeyedArchive.Object? {
        reference(field).flatMap { archive.object($0) }
    }

    /// The integer in a field, which is in the object itself or is a separate object.
    package func integer(_ field: String) -> Int? {
        switch self[field] {
        case .integer(let value)?: Int(value)
        case .uid?: if case .integer(let value)? = object(field)?.node { Int(value) } else { nil }
        default: nil
        }
    }

    /// Whether a field exists and is true.
    package func flag(_ field: String) -> Bool {
        if case .bool(true)? = self[field] { true } else { false }
    }

    /// The text in a field, which is in the object itself or is a separate object.
    package func string(_ field: String) -> String? {
        if case .string(let text)? = self[field] { return text }
        return object(field)?.text
    }

    /// The text, if the object is one.
    var text: String? {
        if case .string(let text) = node { return text }
        if case .string(let text)? = self["NS.string"] { return text }
        return nil
    }
}
