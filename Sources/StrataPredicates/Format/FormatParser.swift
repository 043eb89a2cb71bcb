/// Reads the format language.
///
/// One grammar covers predicates and expressions. So a parenthesis need not be read twice to find out which of the two
/// it contains, and parsing is linear in the length of the text. Nesting, of the text and of the resulting tree, is
/// limited to ``depthLimit`` levels. So no text can exhaust the stack here or in the later work on the tree.
struct FormatParser {
    /// The deepest nesting of parentheses, operands, operators that group from the left, and `NOT`s.
    static let depthLimit = 500

    /// The meaning of a part of the text: a predicate or an expression.
    struct Node {
        enum Value {
            case predicate(NSPredicate)
            case expression(NSExpression)
        }

        let value: Value
        let depth: Int
        let position: Int
    }

    private let text: [UInt8]
    private var lexer: Lexer
    private(set) var token: Token
    private var arguments: ArgumentReader
    private var nesting = 0

    private init(_ text: String, arguments: [Any?]) throws {
        self.text = Array(text.utf8)
        self.arguments = ArgumentReader(arguments)
        lexer = Lexer(self.text)
        token = try lexer.next()
    }

    /// Parses a predicate.
    ///
    /// With `rejectsUnusedArguments`, an argument without a placeholder is an error. Apple ignores such an argument.
    static func predicate(
        _ text: String,
        arguments: [Any?],
        rejectsUnusedArguments: Bool = false
    ) throws -> NSPredicate {
        var parser = try FormatParser(text, arguments: arguments)
        let node = try parser.logical()
        let predicate = try parser.predicate(node)
        try parser.finish(rejectsUnusedArguments)
        return predicate
    }

    /// Parses an expression.
    static func expression(
        _ text: String,
        arguments: [Any?],
        rejectsUnusedArguments: Bool = false
    ) throws -> NSExpression {
        var parser = try FormatParser(text, arguments: arguments)
        let node = try parser.binary(BinaryPrecedence.set)
        let expression = try parser.expression(node)
        try parser.finish(rejectsUnusedArguments)
        return expression
    }

    private func finish(_ rejectsUnusedArguments: Bool) throws {
        guard case .end = token.kind else { throw failure("an operator or the end of the text") }
        if rejectsUnusedArguments, arguments.unusedCount > 0 {
            throw PredicateFormatError(
                format: text,
                position: token.position,
                expected: "a placeholder for each argument",
                found:
                    "\(arguments.unusedCount) more argument\(arguments.unusedCount == 1 ? "" : "s") than placeholders"
            )
        }
    }

    // MARK: - Logic

    /// Parses predicates joined by OR and AND, or a single expression.
    mutating func logical() throws -> Node {
        try enter()
        defer { nesting -= 1 }
        var alternatives: [Node] = []
        repeat {
            var conditions: [Node] = []
            repeat {
                conditions.append(try negation())
                // The error is thrown here, at the operator, rather than at the end of its operands.
                if isJunction { _ = try predicate(conditions[conditions.count - 1]) }
            } while try accept(keyword: "AND", symbol: "&&")
            alternatives.append(try join(conditions, .and))
        } while try accept(keyword: "OR", symbol: "||")
        return try join(alternatives, .or)
    }

    private var isJunction: Bool {
        token.isSymbol("&&") || token.isSymbol("||") || token.keyword == "AND" || token.keyword == "OR"
    }

    private func join(_ nodes: [Node], _ type: NSCompoundPredicate.LogicalType) throws -> Node {
        if nodes.count == 1 { return nodes[0] }
        let predicates = try nodes.map(predicate)
        let depth = nodes.reduce(0) { max($0, $1.depth) }
        let compound = StructuralCompoundPredicate(type: type, subpredicates: predicates)
        return try node(.predicate(compound), depth: depth + 1, at: nodes[0].position)
    }

    private mutating func negation() throws -> Node {
        let position = token.position
        var count = 0
        while try accept(keyword: "NOT", symbol: "!") { count += 1 }
        var result = try comparison()
        for _ in 0..<count {
            let negated = StructuralCompoundPredicate(type: .not, subpredicates: [try predicate(result)])
            result = try node(.predicate(negated), depth: result.depth + 1, at: position)
        }
        return result
    }

    private mutating func comparison() throws -> Node {
        let position = token.position
        switch token.keyword {
        case "TRUEPREDICATE": return try constant(true)
        case "FALSEPREDICATE": return try constant(false)
        case "ANY", "SOME": return try quantified(.any, isNegated: false)
        case "ALL": return try quantified(.all, isNegated: false)
        case "NONE": return try quantified(.any, isNegated: true)
        default: break
        }
        let left = try binary(BinaryPrecedence.set)
        guard let type = comparisonOperator else { return left }
        return try comparison(left, type, modifier: .direct, at: position)
    }

    private mutating func constant(_ value: Bool) throws -> Node {
        let position = token.position
        try advance()
        return try node(.predicate(NSPredicate(value: value)), depth: 1, at: position)
    }

    private mutating func quantified(_ modifier: NSComparisonPredicate.Modifier, isNegated: Bool) throws -> Node {
        let position = token.position
        try advance()
        let left = try binary(BinaryPrecedence.set)
        guard let type = comparisonOperator else { throw failure("a comparison operator") }
        let result = try comparison(left, type, modifier: modifier, at: position)
        guard isNegated else { return result }
        let negated = StructuralCompoundPredicate(type: .not, subpredicates: [try predicate(result)])
        return try node(.predicate(negated), depth: result.depth + 1, at: position)
    }

    private mutating func comparison(
        _ left: Node,
        _ type: NSComparisonPredicate.Operator,
        modifier: NSComparisonPredicate.Modifier,
        at position: Int
    ) throws -> Node {
        let leftExpression = try expression(left)
        try advance()
        let options = try comparisonOptions()
        let right = try binary(BinaryPrecedence.set)
        let comparison = NSComparisonPredicate(
            leftExpression: leftExpression,
            rightExpression: try expression(right),
            modifier: modifier,
            type: type,
            options: options
        )
        return try node(.predicate(comparison), depth: max(left.depth, right.depth) + 1, at: position)
    }

    private var comparisonOperator: NSComparisonPredicate.Operator? {
        switch token.kind {
        case .symbol(let symbol): Self.operatorSymbols[symbol]
        case .word: token.keyword.flatMap { Self.operatorWords[$0] }
        default: nil
        }
    }

    static let operatorSymbols: [String: NSComparisonPredicate.Operator] = [
        "=": .equalTo, "==": .equalTo, "!=": .notEqualTo, "<>": .notEqualTo, "<": .lessThan, ">": .greaterThan,
        "<=": .lessThanOrEqualTo, "=<": .lessThanOrEqualTo, ">=": .greaterThanOrEqualTo, "=>": .greaterThanOrEqualTo,
    ]

    static let operatorWords: [String: NSComparisonPredicate.Operator] = [
        "BETWEEN": .between, "IN": .in, "CONTAINS": .contains, "BEGINSWITH": .beginsWith, "ENDSWITH": .endsWith,
        "LIKE": .like, "MATCHES": .matches,
    ]

    /// Parses the letters in brackets behind an operator.
    private mutating func comparisonOptions() throws -> NSComparisonPredicate.Options {
        guard try accept(symbol: "[") else { return [] }
        guard case .word(let letters, false) = token.kind else { throw failure("option letters: c, d, n or l") }
        var options: NSComparisonPredicate.Options = []
        for letter in letters.lowercased() {
            switch letter {
            case "c": options.insert(.caseInsensitive)
            case "d": options.insert(.diacriticInsensitive)
            case "n": options.insert(.normalized)
            case "l": options.insert(.localeSensitive)
            default: throw failure("option letters: c, d, n or l")
            }
        }
        try advance()
        try expect(symbol: "]")
        return options
    }

    // MARK: - Expressions

    /// Parses operators between expressions, by precedence climbing.
    ///
    /// The operand on the right is read with a higher floor.
    mutating func binary(_ floor: Int) throws -> Node {
        var left = try FormatPrimary.parse(&self)
        while let (form, precedence) = infixOperator, precedence >= floor {
            try advance()
            try enter()
            let right = try binary(precedence + 1)
            nesting -= 1
            let operands = (try expression(left), try expression(right))
            let result =
                switch form {
                case .function(let function):
                    NSExpression(
                        kind: .function(name: function.rawValue, target: nil, arguments: [operands.0, operands.1])
                    )
                case .set(let operation):
                    NSExpression(kind: .setOperation(operation, operands.0, operands.1))
                }
            left = try node(.expression(result), depth: max(left.depth, right.depth) + 1, at: left.position)
        }
        return left
    }

    private enum InfixForm {
        case function(PredefinedFunction)
        case set(SetOperation)
    }

    private var infixOperator: (InfixForm, Int)? {
        switch token.kind {
        case .symbol(let symbol):
            guard let function = Self.infixFunctions[symbol], let infix = function.infix else { return nil }
            return (.function(function), infix.precedence)
        case .word:
            guard let operation = token.keyword.flatMap(SetOperation.init(rawValue:)) else { return nil }
            return (.set(operation), BinaryPrecedence.set)
        default:
            return nil
        }
    }

    private static let infixFunctions: [String: PredefinedFunction] = {
        var functions: [String: PredefinedFunction] = [:]
        for function in PredefinedFunction.allCases {
            if let infix = function.infix { functions[infix.sign] = function }
        }
        return functions
    }()

    // MARK: - Tokens and nodes

    mutating func advance() throws {
        token = try lexer.next()
    }

    /// Takes the value of the next argument, for the placeholder that is the current token.
    mutating func argument(for placeholder: Token.Placeholder) throws -> NSExpression {
        do {
            return try arguments.next(for: placeholder)
        } catch let problem as ArgumentReader.Problem {
            throw PredicateFormatError(
                format: text,
                position: token.position,
                expected: problem.expected,
                found: problem.found
            )
        }
    }

    mutating func accept(symbol: String) throws -> Bool {
        guard token.isSymbol(symbol) else { return false }
        try advance()
        return true
    }

    private mutating func accept(keyword: String, symbol: String) throws -> Bool {
        guard token.isSymbol(symbol) || token.keyword == keyword else { return false }
        try advance()
        return true
    }

    mutating func expect(symbol: String) throws {
        guard try accept(symbol: symbol) else { throw failure("'\(symbol)'") }
    }

    /// Enters the next level of nesting.
    mutating func enter() throws {
        nesting += 1
        if nesting > Self.depthLimit { throw failure("no more than \(Self.depthLimit) levels of nesting") }
    }

    mutating func leave() {
        nesting -= 1
    }

    func node(_ value: Node.Value, depth: Int, at position: Int) throws -> Node {
        if depth > Self.depthLimit { throw failure("no more than \(Self.depthLimit) levels of nesting") }
        return Node(value: value, depth: depth, position: position)
    }

    func predicate(_ node: Node) throws -> NSPredicate {
        guard case .predicate(let predicate) = node.value else { throw failure("a comparison operator") }
        return predicate
    }

    func expression(_ node: Node) throws -> NSExpression {
        guard case .expression(let expression) = node.value else {
            throw PredicateFormatError(
                format: text,
                position: node.position,
                expected: "an expression",
                found: "a predicate"
            )
        }
        return expression
    }

    func failure(_ expected: String) -> PredicateFormatError {
        PredicateFormatError(format: text, position: token.position, expected: expected, found: token.shown)
    }
}
