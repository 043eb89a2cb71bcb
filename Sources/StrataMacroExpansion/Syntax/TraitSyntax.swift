/// An argument of `@Managed` or `@ManagedObject` such as `.default(5)`.
struct TraitSyntax: Equatable {
    /// The word after the dot, without back-ticks.
    let name: String
    /// The whole trait as it is spelled.
    let source: String
    /// The bytes of the trait.
    let range: Range<Int>
    /// The string literals among its arguments, including those inside of calls, with the bytes of each.
    let texts: [Text]
    /// The last name of a key path argument: `venues` of `\City.venues`.
    let keyPathName: String?

    /// A string literal, without its quotes.
    struct Text: Equatable {
        let value: String
        let range: Range<Int>
    }
}

/// The arguments of an attribute: an optional name, and traits.
struct TraitArguments: Equatable {
    var name: String?
    var traits: [TraitSyntax] = []

    init() {}

    /// Reads the arguments.
    ///
    /// - Parameters:
    ///   - cursor: A cursor of the declaration that the attribute is part of.
    ///   - start: The index of the token behind the parenthesis.
    ///   - macro: The name of the attribute in messages.
    /// - Throws: An error for an argument that is neither a plain string literal at the beginning nor a trait.
    init(in cursor: Cursor, from start: Int, of macro: String) throws(Diagnostic) {
        var cursor = cursor
        cursor.move(to: start)
        var isFirst = true
        while let token = cursor.current, token.text != ")" {
            if token.text == ".", cursor.following?.kind == .word {
                traits.append(Self.readTrait(&cursor))
            } else if isFirst, Self.isPlain(token), [")", ","].contains(cursor.following?.text) {
                name = token.text
                cursor.advance()
            } else {
                throw Self.misplaced(token, macro, isFirst: isFirst)
            }
            isFirst = false
            guard cursor.take(",") || cursor.isAt(")") else {
                throw Diagnostic("\(macro) does not understand this argument.", at: cursor.range)
            }
        }
        try checkOnce(macro)
    }

    private static func misplaced(_ token: Token, _ macro: String, isFirst: Bool) -> Diagnostic {
        let traits = "traits that begin with a dot, as in \(macro)(.\(example(macro)))"
        guard isFirst, macro == "@Managed" else { return Diagnostic("\(macro) takes \(traits).", at: token.range) }
        return Diagnostic(
            "\(macro) takes the property's name in the model as a plain string literal, as in \(macro)(\"name\"), and \(traits).",
            at: token.range
        )
    }

    private static func example(_ macro: String) -> String { macro == "@ManagedObject" ? "abstract" : "unique" }

    private static func isPlain(_ token: Token) -> Bool {
        token.kind == .string && !token.text.hasPrefix("#") && !token.text.hasPrefix("\"\"")
            && !token.text.contains("\\(")
    }

    private static func readTrait(_ cursor: inout Cursor) -> TraitSyntax {
        let start = cursor.index
        cursor.advance()
        let word = cursor.current?.text ?? ""
        cursor.advance()
        var texts: [TraitSyntax.Text] = []
        var keyPathName: String?
        if cursor.isGlued("(") {
            let inside = cursor.index + 1
            cursor.skipBalanced()
            let tokens = cursor.tokens[inside..<max(inside, cursor.index - 1)]
            for token in tokens where isPlain(token) && token.text.count >= 2 {
                texts.append(.init(value: String(token.text.dropFirst().dropLast()), range: token.range))
            }
            if tokens.first?.text == "\\", let last = tokens.last, last.kind == .word { keyPathName = last.text }
        }
        // The other tokens of the expression are included; the compiler checks them.
        while let token = cursor.current, ![",", ")"].contains(token.text) { cursor.skipBalanced() }
        let range = cursor.tokens[start].range.lowerBound..<cursor.tokens[max(start, cursor.index - 1)].range.upperBound
        return TraitSyntax(
            name: word.hasPrefix("`") ? String(word.dropFirst().dropLast()) : word,
            source: cursor.text(range),
            range: range,
            texts: texts,
            keyPathName: keyPathName
        )
    }

    /// Traits that may be given several times.
    private static let repeatable: Set<String> = ["unique", "index", "compoundIndex", "validated", "configurations"]

    private func checkOnce(_ macro: String) throws(Diagnostic) {
        var seen = Set<String>()
        for trait in traits {
            let mayRepeat =
                Self.repeatable.contains(trait.name) && (macro == "@ManagedObject" || trait.name == "validated")
            guard seen.insert(trait.name).inserted || mayRepeat else {
                throw Diagnostic("\(macro) has the trait '.\(trait.name)' twice.", at: trait.range)
            }
        }
    }

    func trait(_ name: String) -> TraitSyntax? { traits.first { $0.name == name } }
}
