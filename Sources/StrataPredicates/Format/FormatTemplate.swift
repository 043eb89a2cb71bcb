import StrataLocks

/// A parsed format of the usual form, from which predicates are made without parsing the text again.
///
/// The form is: comparisons `key operator value`, joined by AND. Each value is a placeholder or a literal. In such a text
/// the arguments decide about nothing but the values.
struct FormatTemplate {
    private struct Comparison {
        /// The key path, or the evaluated object.
        let left: NSExpression.Kind
        let type: NSComparisonPredicate.Operator
        let options: NSComparisonPredicate.Options
        let value: Value
    }

    private enum Value {
        case placeholder(Token.Placeholder)
        case literal(NSExpression.Kind)
    }

    private let comparisons: [Comparison]

    /// Makes the template of a text that was parsed; `nil` if it has another form.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - predicate: The predicate that the parser has made of it.
    init?(_ text: String, parsedAs predicate: NSPredicate) {
        guard let values = Self.values(in: text) else { return nil }
        let parts: [NSPredicate]
        if let compound = predicate as? StructuralCompoundPredicate {
            guard compound.compoundPredicateType == .and else { return nil }
            parts = compound.subpredicates.compactMap { $0 as NSPredicate }
        } else {
            parts = [predicate]
        }
        guard parts.count == values.count else { return nil }
        var comparisons: [Comparison] = []
        for (part, placeholder) in zip(parts, values) {
            guard let part = part as? NSComparisonPredicate, part.comparisonPredicateModifier == .direct else {
                return nil
            }
            let left = part.leftExpression.kind
            switch left {
            case .keyPath, .evaluatedObject: break
            default: return nil
            }
            let value: Value
            if let placeholder {
                value = .placeholder(placeholder)
            } else {
                guard case .constant = part.rightExpression.kind else { return nil }
                value = .literal(part.rightExpression.kind)
            }
            comparisons.append(
                Comparison(left: left, type: part.predicateOperatorType, options: part.options, value: value)
            )
        }
        self.comparisons = comparisons
    }

    /// The placeholder of each comparison, `nil` for a literal; `nil` for a text of another form.
    private static func values(in text: String) -> [Token.Placeholder?]? {
        var lexer = Lexer(Array(text.utf8))
        var values: [Token.Placeholder?] = []
        do {
            while true {
                // The key path.
                repeat {
                    guard case .word = try lexer.next().kind else { return nil }
                    let next = try lexer.next()
                    if next.isSymbol(".") { continue }
                    // The operator, with its options.
                    guard isOperator(next) else { return nil }
                    break
                } while true
                var token = try lexer.next()
                if token.isSymbol("[") {
                    guard case .word = try lexer.next().kind, try lexer.next().isSymbol("]") else { return nil }
                    token = try lexer.next()
                }
                switch token.kind {
                case .placeholder(.keyPath): return nil
                case .placeholder(let placeholder): values.append(placeholder)
                case .string, .integer, .double: values.append(nil)
                case .word where ["YES", "NO", "TRUE", "FALSE", "NIL", "NULL"].contains(token.keyword):
                    values.append(nil)
                default: return nil
                }
                let next = try lexer.next()
                if case .end = next.kind { return values }
                guard next.isSymbol("&&") || next.keyword == "AND" else { return nil }
            }
        } catch {
            return nil
        }
    }

    private static func isOperator(_ token: Token) -> Bool {
        switch token.kind {
        case .symbol(let symbol): FormatParser.operatorSymbols[symbol] != nil
        case .word: token.keyword.map { FormatParser.operatorWords[$0] != nil } ?? false
        default: false
        }
    }

    /// The predicate with these arguments; `nil` if the parser has to report what is wrong with them.
    func predicate(_ arguments: [Any?]) -> NSPredicate? {
        var reader = ArgumentReader(arguments)
        if comparisons.count == 1 { return predicate(comparisons[0], &reader) }
        var parts: [NSPredicate] = []
        parts.reserveCapacity(comparisons.count)
        for comparison in comparisons {
            guard let part = predicate(comparison, &reader) else { return nil }
            parts.append(part)
        }
        return StructuralCompoundPredicate(type: .and, subpredicates: parts)
    }

    private func predicate(_ comparison: Comparison, _ reader: inout ArgumentReader) -> NSPredicate? {
        let value: NSExpression
        switch comparison.value {
        case .placeholder(let placeholder):
            guard let argument = try? reader.next(for: placeholder) else { return nil }
            // The parser checks the depth of expressions that are passed in.
            guard argument.depth == 1 else { return nil }
            value = argument
        case .literal(let kind): value = NSExpression(kind: kind)
        }
        return NSComparisonPredicate(
            leftExpression: NSExpression(kind: comparison.left),
            rightExpression: value,
            modifier: .direct,
            type: comparison.type,
            options: comparison.options
        )
    }
}

/// The templates of the formats that a program has in its source, by their texts.
///
/// Any thread may use it.
enum FormatTemplates {
    // @unchecked Sendable: a template holds texts, numbers, and literals, which are immutable.
    private struct Known: @unchecked Sendable {
        /// The templates; `nil` for a text of another form.
        var templates: [String: FormatTemplate?] = [:]
    }

    private static let known = Locked(Known())
    /// The most texts, and the most bytes of a text: a program may make texts without end.
    private static let (mostTexts, longestText) = (500, 200)

    /// The predicate of a text with these arguments; the parser's if there is no template for it.
    static func predicate(_ text: String, _ arguments: [Any?]) throws -> NSPredicate {
        guard text.utf8.count <= longestText else { return try FormatParser.predicate(text, arguments: arguments) }
        let template = known.withLock { $0.templates[text] }
        if let template {
            if let predicate = template?.predicate(arguments) { return predicate }
            return try FormatParser.predicate(text, arguments: arguments)
        }
        let predicate = try FormatParser.predicate(text, arguments: arguments)
        let made = FormatTemplate(text, parsedAs: predicate)
        known.withLock { known in
            if known.templates.count >= mostTexts { known.templates.removeAll() }
            known.templates[text] = .some(made)
        }
        return predicate
    }
}
