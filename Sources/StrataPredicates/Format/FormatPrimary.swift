import Foundation

/// Parses the operands of the format language: literals, names, calls, and their path steps and indexes.
enum FormatPrimary {
    typealias Node = FormatParser.Node

    /// Parses an operand with its signs in front and its path steps and indexes behind.
    static func parse(_ parser: inout FormatParser) throws -> Node {
        let position = parser.token.position
        var signs: [String] = []
        while case .symbol(let sign) = parser.token.kind, sign == "-" || sign == "+" || sign == "~" {
            signs.append(sign)
            try parser.advance()
        }
        let isNegativeLiteral = signs.last == "-"
        var node: Node
        if let literal = try number(&parser, isNegative: isNegativeLiteral) {
            if isNegativeLiteral { signs.removeLast() }
            node = literal
        } else {
            node = try operand(&parser)
        }
        node = try postfix(&parser, node)
        for sign in signs.reversed() where sign != "+" {
            let value = try parser.expression(node)
            node = try parser.node(.expression(signed(sign, value)), depth: node.depth + 1, at: position)
        }
        return node
    }

    private static func signed(_ sign: String, _ value: NSExpression) -> NSExpression {
        if sign == "~" { return call(.onesComplement, [value]) }
        return call(.subtract, [NSExpression(forConstantValue: NSNumber(value: 0)), value])
    }

    static func call(_ function: PredefinedFunction, _ arguments: [NSExpression]) -> NSExpression {
        NSExpression(kind: .function(name: function.rawValue, target: nil, arguments: arguments))
    }

    private static func number(_ parser: inout FormatParser, isNegative: Bool) throws -> Node? {
        let value: NSNumber
        switch parser.token.kind {
        case .integer(let magnitude):
            if isNegative, magnitude <= UInt64(Int64.max) + 1 {
                value = NSNumber(value: Int64(truncatingIfNeeded: 0 &- magnitude))
            } else if let integer = Int64(exactly: magnitude) {
                value = NSNumber(value: integer)
            } else {
                value = NSNumber(value: isNegative ? -Double(magnitude) : Double(magnitude))
            }
        case .double(let magnitude):
            value = NSNumber(value: isNegative ? -magnitude : magnitude)
        default:
            return nil
        }
        let position = parser.token.position
        try parser.advance()
        return try parser.node(.expression(NSExpression(forConstantValue: value)), depth: 1, at: position)
    }

    // MARK: - Operands

    private static func operand(_ parser: inout FormatParser) throws -> Node {
        let position = parser.token.position
        switch parser.token.kind {
        case .string(let text): return try leaf(&parser, NSExpression(forConstantValue: text))
        case .variable(let name): return try leaf(&parser, NSExpression(forVariable: name))
        case .placeholder(let placeholder):
            let value = try parser.argument(for: placeholder)
            return try leaf(&parser, value)
        case .functionName(let name):
            try parser.advance()
            return try functionCall(&parser, name, at: position)
        case .word(let name, let isEscaped): return try word(&parser, name, isEscaped: isEscaped)
        case .symbol("("):
            try parser.advance()
            let node = try parser.logical()
            try parser.expect(symbol: ")")
            return node
        case .symbol("{"): return try aggregate(&parser)
        case .symbol("<"): return try null(&parser)
        case .symbol("@"):
            try parser.advance()
            let name = try pathComponent(&parser)
            return try leaf(&parser, NSExpression(forKeyPath: "@" + name))
        default: throw parser.failure("an expression")
        }
    }

    private static func leaf(_ parser: inout FormatParser, _ expression: NSExpression) throws -> Node {
        let position = parser.token.position
        try parser.advance()
        return try parser.node(.expression(expression), depth: 1, at: position)
    }

    /// Parses `<null>`, the text that `NSNull` is printed as.
    private static func null(_ parser: inout FormatParser) throws -> Node {
        let position = parser.token.position
        try parser.advance()
        guard parser.token.keyword == "NULL" else { throw parser.failure("an expression") }
        try parser.advance()
        try parser.expect(symbol: ">")
        return try parser.node(.expression(NSExpression(forConstantValue: NSNull())), depth: 1, at: position)
    }

    private static func word(_ parser: inout FormatParser, _ name: String, isEscaped: Bool) throws -> Node {
        let position = parser.token.position
        let keyword = parser.token.keyword
        switch keyword {
        case "TRUE", "YES": return try leaf(&parser, NSExpression(forConstantValue: NSNumber(value: true)))
        case "FALSE", "NO": return try leaf(&parser, NSExpression(forConstantValue: NSNumber(value: false)))
        case "NULL", "NIL": return try leaf(&parser, NSExpression(forConstantValue: nil))
        case "SELF": return try leaf(&parser, NSExpression.expressionForEvaluatedObject())
        case "ANYKEY": return try leaf(&parser, NSExpression.expressionForAnyKey())
        case let keyword? where !Keyword.contextual.contains(keyword): throw parser.failure("an expression")
        default: break
        }
        try parser.advance()
        guard parser.token.isSymbol("("), !isEscaped else {
            return try parser.node(.expression(NSExpression(forKeyPath: name)), depth: 1, at: position)
        }
        switch keyword {
        case "SUBQUERY": return try subquery(&parser, at: position)
        case "TERNARY": return try ternary(&parser, at: position)
        case "FUNCTION": return try methodCall(&parser, at: position)
        case "CAST": return try cast(&parser, at: position)
        case "FETCH": return try fetch(&parser, at: position)
        default: return try functionCall(&parser, name, at: position)
        }
    }

    // MARK: - Calls

    private static func functionCall(_ parser: inout FormatParser, _ name: String, at position: Int) throws -> Node {
        guard let function = PredefinedFunction(name: name) else {
            throw parser.failure("a known function before its arguments")
        }
        let (arguments, depth) = try list(from: &parser, opening: "(", closing: ")")
        if let problem = function.arityProblem(count: arguments.count) {
            throw parser.failure("other arguments: \(problem)")
        }
        return try parser.node(.expression(call(function, arguments)), depth: depth + 1, at: position)
    }

    private static func subquery(_ parser: inout FormatParser, at position: Int) throws -> Node {
        try open(&parser)
        let source = try parser.binary(BinaryPrecedence.set)
        try parser.expect(symbol: ",")
        guard case .variable(let variable) = parser.token.kind else { throw parser.failure("a variable") }
        try parser.advance()
        try parser.expect(symbol: ",")
        let condition = try parser.logical()
        try close(&parser)
        let expression = NSExpression(
            forSubquery: try parser.expression(source),
            usingIteratorVariable: variable,
            predicate: try parser.predicate(condition)
        )
        return try parser.node(.expression(expression), depth: max(source.depth, condition.depth) + 1, at: position)
    }

    private static func ternary(_ parser: inout FormatParser, at position: Int) throws -> Node {
        try open(&parser)
        let condition = try parser.logical()
        try parser.expect(symbol: ",")
        let first = try parser.binary(BinaryPrecedence.set)
        try parser.expect(symbol: ",")
        let second = try parser.binary(BinaryPrecedence.set)
        try close(&parser)
        let expression = NSExpression(
            forConditional: try parser.predicate(condition),
            trueExpression: try parser.expression(first),
            falseExpression: try parser.expression(second)
        )
        return try parser.node(
            .expression(expression),
            depth: max(condition.depth, first.depth, second.depth) + 1,
            at: position
        )
    }

    private static func methodCall(_ parser: inout FormatParser, at position: Int) throws -> Node {
        let (arguments, depth) = try list(from: &parser, opening: "(", closing: ")")
        guard arguments.count >= 2, case .constant(let value) = arguments[1].kind,
            let selector = PredicateValue(scalar: value)?.stringValue
        else { throw parser.failure("FUNCTION(target, \"selector\", arguments…)") }
        let expression = NSExpression(
            forFunction: arguments[0],
            selectorName: selector,
            arguments: Array(arguments.dropFirst(2))
        )
        return try parser.node(.expression(expression), depth: depth + 1, at: position)
    }

    private static func fetch(_ parser: inout FormatParser, at position: Int) throws -> Node {
        let (arguments, depth) = try list(from: &parser, opening: "(", closing: ")")
        guard arguments.count == 3, case .constant(let value) = arguments[2].kind, let countOnly = value as? NSNumber
        else { throw parser.failure("FETCH(request, context, YES or NO)") }
        let expression = NSFetchRequestExpression.expression(
            forFetch: arguments[0],
            context: arguments[1],
            countOnly: countOnly.boolValue
        )
        return try parser.node(.expression(expression), depth: depth + 1, at: position)
    }

    private static func cast(_ parser: inout FormatParser, at position: Int) throws -> Node {
        let (arguments, depth) = try list(from: &parser, opening: "(", closing: ")")
        guard arguments.count == 2, case .constant(let type) = arguments[1].kind,
            let name = PredicateValue(scalar: type)?.stringValue
        else { throw parser.failure("CAST(value, type)") }
        // If the argument is not a literal, it may be an object that is cast to an entity; the model knows the names of
        // entities.
        if CastTarget(rawValue: name) == nil, !isConstant(arguments[0]) {
            return try parser.node(.expression(call(.cast, arguments)), depth: depth + 1, at: position)
        }
        guard let target = CastTarget(rawValue: name) else {
            let names = CastTarget.allCases.map(\.rawValue).joined(separator: ", ")
            throw parser.failure("CAST(value, type) with one of the types \(names)")
        }
        // A literal becomes a constant: dates and other constants without a literal form are written in this way.
        if case .constant(let literal?) = arguments[0].kind, let constant = target.constant(from: literal) {
            return try parser.node(.expression(NSExpression(forConstantValue: constant)), depth: 1, at: position)
        }
        return try parser.node(.expression(call(.cast, arguments)), depth: depth + 1, at: position)
    }

    private static func isConstant(_ expression: NSExpression) -> Bool {
        if case .constant = expression.kind { return true }
        return false
    }

    private static func aggregate(_ parser: inout FormatParser) throws -> Node {
        let position = parser.token.position
        let (members, depth) = try list(from: &parser, opening: "{", closing: "}")
        return try parser.node(.expression(NSExpression(forAggregate: members)), depth: depth + 1, at: position)
    }

    /// Parses expressions between two brackets, and returns them with the depth of the deepest.
    private static func list(
        from parser: inout FormatParser,
        opening: String,
        closing: String
    ) throws -> ([NSExpression], depth: Int) {
        try parser.enter()
        defer { parser.leave() }
        try parser.expect(symbol: opening)
        var members: [NSExpression] = []
        var depth = 0
        if try parser.accept(symbol: closing) { return (members, depth) }
        repeat {
            let member = try parser.binary(BinaryPrecedence.set)
            members.append(try parser.expression(member))
            depth = max(depth, member.depth)
        } while try parser.accept(symbol: ",")
        try parser.expect(symbol: closing)
        return (members, depth)
    }

    private static func open(_ parser: inout FormatParser) throws {
        try parser.enter()
        try parser.expect(symbol: "(")
    }

    private static func close(_ parser: inout FormatParser) throws {
        try parser.expect(symbol: ")")
        parser.leave()
    }

    // MARK: - Postfix

    private static func postfix(_ parser: inout FormatParser, _ node: Node) throws -> Node {
        var node = node
        while true {
            if parser.token.isSymbol(".") {
                // All steps are appended at once: appending one copies the path.
                var steps: [String] = []
                while try parser.accept(symbol: ".") {
                    let mark = try parser.accept(symbol: "@") ? "@" : ""
                    steps.append(try mark + pathComponent(&parser))
                    try parser.advance()
                }
                let expression = appending(steps.joined(separator: "."), to: try parser.expression(node))
                node = try parser.node(.expression(expression), depth: node.depth, at: node.position)
            } else if parser.token.isSymbol("[") {
                node = try index(&parser, node)
            } else {
                return node
            }
        }
    }

    /// The name that is the current token.
    ///
    /// Behind a dot, every word is a name, reserved or not.
    private static func pathComponent(_ parser: inout FormatParser) throws -> String {
        switch parser.token.kind {
        case .word(let name, _): return name
        case .placeholder(.keyPath):
            guard case .keyPath(let path) = try parser.argument(for: .keyPath).kind else { return "self" }
            return path
        default: throw parser.failure("a property name")
        }
    }

    private static func appending(_ step: String, to expression: NSExpression) -> NSExpression {
        switch expression.kind {
        case .evaluatedObject: return NSExpression(forKeyPath: step)
        case .keyPath(let path): return NSExpression(forKeyPath: path + "." + step)
        case .function(KeyPathFunction.name, let target?, let arguments):
            if let path = KeyPathFunction.path(of: arguments) { return KeyPathFunction.make(target, path + "." + step) }
        default: break
        }
        return KeyPathFunction.make(expression, step)
    }

    private static func index(_ parser: inout FormatParser, _ node: Node) throws -> Node {
        try parser.enter()
        defer { parser.leave() }
        try parser.expect(symbol: "[")
        let collection = try parser.expression(node)
        let index: Node
        if let symbol = parser.token.keyword.flatMap(IndexSymbol.init(rawValue:)) {
            index = try leaf(&parser, NSExpression(forConstantValue: symbol))
        } else {
            index = try parser.binary(BinaryPrecedence.set)
        }
        try parser.expect(symbol: "]")
        let expression = call(.index, [collection, try parser.expression(index)])
        return try parser.node(.expression(expression), depth: max(node.depth, index.depth) + 1, at: node.position)
    }
}

extension NSExpression {
    /// Whether the expression is a key path, of the evaluated object or of another expression.
    var isKeyPath: Bool {
        switch kind {
        case .keyPath, .function(KeyPathFunction.name, .some, _): true
        default: false
        }
    }
}

/// A key path under an expression that is not a key path: `$x.name`, `SUBQUERY(…).@count`.
package enum KeyPathFunction {
    package static let name = "valueForKeyPath:"

    package static func make(_ target: NSExpression, _ path: String) -> NSExpression {
        NSExpression(kind: .function(name: name, target: target, arguments: [NSExpression(forConstantValue: path)]))
    }

    /// The key path in the arguments of such a function.
    package static func path(of arguments: [NSExpression]) -> String? {
        guard arguments.count == 1 else { return nil }
        return switch arguments[0].kind {
        case .constant(let value): PredicateValue(scalar: value)?.stringValue
        case .keyPath(let path): path
        default: nil
        }
    }
}
