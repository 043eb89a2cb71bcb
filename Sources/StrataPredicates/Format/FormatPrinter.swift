/// Writes predicates and expressions in the format language, so that the text parses back to an equal tree.
///
/// Some parts have no text form: blocks, custom selectors, objects of unknown classes. Their text is only for readers.
/// If a name is not a word, which code can make, it is written in quotation marks: `#"first name"`, `$"x y"`. A tree
/// deeper than ``TreeDepth/limit`` is only named.
struct FormatPrinter {
    private var text = ""
    /// Whether `?` stands for every value.
    private var hidesValues = false

    static func text(of predicate: NSPredicate) -> String {
        let depth = TreeDepth.of(predicate)
        guard depth <= TreeDepth.limit else { return "<a predicate \(depth) levels deep>" }
        var printer = FormatPrinter()
        printer.write(predicate)
        return printer.text
    }

    /// The text of a predicate with `?` for every value, for logs.
    static func shape(of predicate: NSPredicate) -> String {
        let depth = TreeDepth.of(predicate)
        guard depth <= TreeDepth.limit else { return "<a predicate \(depth) levels deep>" }
        var printer = FormatPrinter()
        printer.hidesValues = true
        printer.write(predicate)
        return printer.text
    }

    static func text(of expression: NSExpression) -> String {
        guard expression.depth <= TreeDepth.limit else { return "<an expression \(expression.depth) levels deep>" }
        var printer = FormatPrinter()
        printer.write(expression, floor: 0)
        return printer.text
    }

    // MARK: - Predicates

    private mutating func write(_ predicate: NSPredicate) {
        switch PredicateForm(predicate) {
        case .constant(let value): text += value ? "TRUEPREDICATE" : "FALSEPREDICATE"
        case .comparison(let comparison): write(comparison)
        case .not(let operand):
            text += "NOT "
            write(operand, inParentheses: PredicateForm(operand).isJunction)
        case .and(let operands): write(operands, joinedBy: " AND ")
        case .or(let operands): write(operands, joinedBy: " OR ")
        case .block(let block):
            text += "BLOCKPREDICATE(0x\(String(UInt(bitPattern: ObjectIdentifier(block).hashValue), radix: 16)))"
        }
    }

    private mutating func write(_ predicate: NSPredicate, inParentheses: Bool) {
        if inParentheses { text += "(" }
        write(predicate)
        if inParentheses { text += ")" }
    }

    private mutating func write(_ operands: [NSPredicate], joinedBy separator: String) {
        for (index, operand) in operands.enumerated() {
            if index > 0 { text += separator }
            write(operand, inParentheses: PredicateForm(operand).isJunction)
        }
    }

    private mutating func write(_ comparison: NSComparisonPredicate) {
        switch comparison.comparisonPredicateModifier {
        case .direct: break
        case .any: text += "ANY "
        case .all: text += "ALL "
        }
        write(comparison.leftExpression, floor: BinaryPrecedence.set)
        text += " " + (comparison.customSelector?.description ?? Self.sign(of: comparison.predicateOperatorType))
        if !comparison.options.isEmpty { text += "[\(Self.letters(of: comparison.options))]" }
        text += " "
        write(comparison.rightExpression, floor: BinaryPrecedence.set)
    }

    private static func sign(of type: NSComparisonPredicate.Operator) -> String {
        switch type {
        case .lessThan: "<"
        case .lessThanOrEqualTo: "<="
        case .greaterThan: ">"
        case .greaterThanOrEqualTo: ">="
        case .equalTo: "=="
        case .notEqualTo: "!="
        case .matches: "MATCHES"
        case .like: "LIKE"
        case .beginsWith: "BEGINSWITH"
        case .endsWith: "ENDSWITH"
        case .in: "IN"
        case .customSelector: "CUSTOM"
        case .contains: "CONTAINS"
        case .between: "BETWEEN"
        }
    }

    private static func letters(of options: NSComparisonPredicate.Options) -> String {
        let letters: [(NSComparisonPredicate.Options, String)] = [
            (.caseInsensitive, "c"), (.diacriticInsensitive, "d"), (.normalized, "n"), (.localeSensitive, "l"),
        ]
        return letters.reduce("") { options.contains($1.0) ? $0 + $1.1 : $0 }
    }

    // MARK: - Expressions

    /// Writes an expression, in parentheses if it binds more loosely than the surrounding operator requires.
    private mutating func write(_ expression: NSExpression, floor: Int) {
        let needsParentheses = Self.precedence(of: expression) < floor
        if needsParentheses { text += "(" }
        writeBare(expression)
        if needsParentheses { text += ")" }
    }

    private static func precedence(of expression: NSExpression) -> Int {
        switch expression.kind {
        case .setOperation: BinaryPrecedence.set
        case .function(let name, nil, let arguments) where arguments.count == 2:
            PredefinedFunction(rawValue: name)?.infix?.precedence ?? BinaryPrecedence.primary
        default: BinaryPrecedence.primary
        }
    }

    private mutating func writeBare(_ expression: NSExpression) {
        switch expression.kind {
        case .constant where hidesValues: text += "?"
        case .constant(let value): write(constant: value)
        case .evaluatedObject: text += "SELF"
        case .variable(let name): write(variable: name)
        case .keyPath(let path): write(keyPath: path)
        case .function(let name, nil, let arguments): write(function: name, arguments)
        case .function(let name, let target?, let arguments): write(method: name, of: target, arguments)
        case .setOperation(let operation, let left, let right):
            write(left, infix: operation.rawValue, right, precedence: BinaryPrecedence.set)
        case .subquery(let source, let variable, let predicate):
            text += "SUBQUERY("
            write(source, floor: BinaryPrecedence.set)
            text += ", "
            write(variable: variable)
            text += ", "
            write(predicate)
            text += ")"
        case .aggregate where hidesValues: text += "?"
        case .aggregate(let members): write(list: members, "{", "}")
        case .anyKey: text += "ANYKEY"
        case .block(_, let arguments): write(list: arguments, "BLOCK(", ")")
        case .conditional(let predicate, let first, let second):
            text += "TERNARY("
            write(predicate)
            text += ", "
            write(first, floor: BinaryPrecedence.set)
            text += ", "
            write(second, floor: BinaryPrecedence.set)
            text += ")"
        case .custom(let type):
            guard let fetch = expression as? NSFetchRequestExpression else { return text += "\(type)" }
            text += "FETCH("
            write(fetch.requestExpression, floor: BinaryPrecedence.set)
            text += ", "
            write(fetch.contextExpression, floor: BinaryPrecedence.set)
            text += fetch.isCountOnlyRequest ? ", YES)" : ", NO)"
        }
    }

    private mutating func write(_ left: NSExpression, infix sign: String, _ right: NSExpression, precedence: Int) {
        write(left, floor: precedence)
        text += " \(sign) "
        write(right, floor: precedence + 1)
    }

    private mutating func write(list: [NSExpression], _ opening: String, _ closing: String) {
        text += opening
        for (index, member) in list.enumerated() {
            if index > 0 { text += ", " }
            write(member, floor: BinaryPrecedence.set)
        }
        text += closing
    }

    private mutating func write(function name: String, _ arguments: [NSExpression]) {
        let function = PredefinedFunction(rawValue: name)
        if let function, let infix = function.infix, arguments.count == 2 {
            write(arguments[0], infix: infix.sign, arguments[1], precedence: infix.precedence)
        } else if function == .cast {
            write(list: arguments, "CAST(", ")")
        } else if function == .index, arguments.count == 2 {
            write(arguments[0], floor: BinaryPrecedence.primary)
            write(list: [arguments[1]], "[", "]")
        } else {
            let isShort = function.map { $0.arity == 1 } ?? false
            write(list: arguments, (isShort ? String(name.dropLast()) : name) + "(", ")")
        }
    }

    private mutating func write(method name: String, of target: NSExpression, _ arguments: [NSExpression]) {
        if name == KeyPathFunction.name, let path = KeyPathFunction.path(of: arguments),
            Self.takesPathBehind(target), case .constant = arguments[0].kind
        {
            write(target, floor: BinaryPrecedence.primary)
            text += "."
            write(keyPath: path)
            return
        }
        write(list: [target, NSExpression(forConstantValue: name)] + arguments, "FUNCTION(", ")")
    }

    /// Whether the expression can be followed by a dot and a path without a change of its meaning.
    private static func takesPathBehind(_ expression: NSExpression) -> Bool {
        switch expression.kind {
        case .keyPath, .evaluatedObject: false
        case .function(KeyPathFunction.name, .some, _): false
        default: true
        }
    }

    // MARK: - Names and constants

    private mutating func write(keyPath: String) {
        for (index, part) in keyPath.split(separator: ".", omittingEmptySubsequences: false).enumerated() {
            if index > 0 { text += "." }
            let isOperator = part.first == "@"
            if isOperator { text += "@" }
            let name = isOperator ? part.dropFirst() : part
            guard Lexer.isName(name) else {
                text += "#"
                write(quoted: String(name))
                continue
            }
            if !isOperator, Keyword.all.contains(name.uppercased()) { text += "#" }
            text += name
        }
    }

    private mutating func write(variable name: String) {
        text += "$"
        if Lexer.isName(name[...]) { text += name } else { write(quoted: name) }
    }

    private mutating func write(constant: Any?) {
        switch constant {
        case nil: text += "nil"
        case is NSNull: text += "<null>"
        case let symbol as IndexSymbol: text += symbol.rawValue
        case let decimal as Decimal: text += "CAST(\"\(decimal)\", \"NSDecimalNumber\")"
        case let decimal as NSDecimalNumber where type(of: constant as Any) is AnyClass:
            text += "CAST(\"\(decimal.decimalValue)\", \"NSDecimalNumber\")"
        case let url as URL: write(cast: url.absoluteString, .url)
        default: write(value: constant)
        }
    }

    private mutating func write(value: Any?) {
        switch PredicateValue(scalar: value) {
        case .null?: write(double: (value as? NSNumber)?.doubleValue ?? .nan)
        case .int(let value)?: text += String(value)
        case .double(let value)?: write(double: value)
        case .string(let value)?: write(quoted: value)
        case .date(let seconds)?:
            let fixed = String(format: "%f", seconds)
            text += "CAST(\(Double(fixed) == seconds ? fixed : String(seconds)), \"NSDate\")"
        case .uuid(let value)?: write(cast: value.uuidString, .uuid)
        case .data(let value)?: write(cast: value.base64EncodedString(), .data)
        case .reference?, .entity?, .collection?, nil:
            guard let members = collectionMembers(of: value) else {
                text += value.map { String(describing: $0) } ?? "nil"
                return
            }
            // In a collection of objects, nil can only be a null object.
            write(list: members.map { NSExpression(forConstantValue: $0 ?? NSNull()) }, "{", "}")
        }
    }

    private mutating func write(double value: Double) {
        if value.isFinite { text += String(value) } else { write(cast: String(value), .number) }
    }

    private mutating func write(cast literal: String, _ target: CastTarget) {
        text += "CAST("
        write(quoted: literal)
        text += ", \"\(target.rawValue)\")"
    }

    private mutating func write(quoted string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
