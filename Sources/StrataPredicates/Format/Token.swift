/// One piece of a text in the format language.
struct Token {
    enum Kind: Equatable {
        case end
        /// A word; `isEscaped` if a `#` before it makes a reserved word a name.
        case word(String, isEscaped: Bool)
        /// A function's name with its colons: `modulus:by:`.
        case functionName(String)
        case variable(String)
        case string(String)
        /// The magnitude of an integer; its sign is a separate token.
        case integer(UInt64)
        case double(Double)
        case placeholder(Placeholder)
        case symbol(String)
    }

    enum Placeholder: Equatable {
        case object
        case keyPath
        case integer
        case double
        case string
    }

    let kind: Kind
    /// The offset in bytes from the start of the text.
    let position: Int

    /// The token for an error message: the beginning of a name, or only the kind of a value.
    var shown: String {
        switch kind {
        case .end: "the end of the text"
        case .word(let word, _): "'\(Self.short(word))'"
        case .functionName(let name): "'\(Self.short(name))'"
        case .variable(let name): "'$\(Self.short(name))'"
        case .string: "a string"
        case .integer, .double: "a number"
        case .placeholder: "a placeholder"
        case .symbol(let symbol): "'\(symbol)'"
        }
    }

    private static func short(_ name: String) -> String {
        let start = name.prefix(16)
        return start.endIndex == name.endIndex ? name : "\(start)…"
    }

    func isSymbol(_ symbol: String) -> Bool {
        kind == .symbol(symbol)
    }

    /// The reserved word, in capitals, if the token is one.
    var keyword: String? {
        guard case .word(let word, false) = kind, word.utf8.count <= Keyword.longest else { return nil }
        let upper = word.uppercased()
        return Keyword.all.contains(upper) ? upper : nil
    }
}

/// The words that are names only after a `#`.
enum Keyword {
    static let all: Set<String> = [
        "AND", "OR", "IN", "NOT", "ALL", "ANY", "SOME", "NONE", "LIKE", "CASEINSENSITIVE", "CI", "MATCHES", "CONTAINS",
        "BEGINSWITH", "ENDSWITH", "BETWEEN", "NULL", "NIL", "SELF", "TRUE", "YES", "FALSE", "NO", "FIRST", "LAST",
        "SIZE",
        "ANYKEY", "SUBQUERY", "CAST", "TRUEPREDICATE", "FALSEPREDICATE", "FUNCTION", "TERNARY", "UNION", "INTERSECT",
        "MINUS", "FETCH",
    ]

    /// Reserved words that have a meaning only before a parenthesis or between brackets; elsewhere they are names.
    static let contextual: Set<String> = [
        "FIRST", "LAST", "SIZE", "SUBQUERY", "CAST", "FUNCTION", "TERNARY", "FETCH", "CI", "CASEINSENSITIVE",
    ]

    static let longest = all.map(\.utf8.count).max() ?? 0
}
