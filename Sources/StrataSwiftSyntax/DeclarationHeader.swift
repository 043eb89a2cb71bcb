/// The beginning of a declaration: its modifiers, its keyword and its name.
package struct DeclarationHeader {
    package let modifiers: [Token]
    package let keyword: Token
    /// The name with its back-ticks; `nil` if the keyword takes none, as in `init`.
    package let name: Token?
    /// Whether a list of generic parameters follows the name.
    package let isGeneric: Bool
}

extension Cursor {
    /// Words that may come before a declaration's keyword.
    private static let modifiers: Set<String> = [
        "open", "public", "package", "internal", "fileprivate", "private", "final", "override", "dynamic", "static",
        "class", "lazy", "weak", "unowned", "nonisolated", "isolated", "indirect", "mutating", "nonmutating",
        "required",
        "convenience", "optional", "distributed", "borrowing", "consuming", "prefix", "postfix", "infix",
    ]

    private static let keywords: Set<String> = [
        "class", "struct", "enum", "actor", "protocol", "extension", "func", "init", "deinit", "subscript", "var",
        "let",
        "typealias", "associatedtype", "case", "macro", "import", "operator", "precedencegroup",
    ]

    /// Reads a declaration's attributes and modifiers, its keyword and its name.
    ///
    /// - Returns: `nil` if this is not a declaration. The cursor is then at the token that was not understood.
    package mutating func readHeader(attribute: (AttributeSyntax) -> Void = { _ in }) -> DeclarationHeader? {
        var modifiers: [Token] = []
        while let token = current {
            if token.text == "@" {
                guard let read = readAttribute() else { return nil }
                attribute(read)
                continue
            }
            // `class` is a modifier in `class var`, and the keyword in `class Venue`.
            let isKeyword =
                Self.keywords.contains(token.text)
                && !(token.text == "class" && following.map { Self.startsMember($0.text) } == true)
            if isKeyword {
                advance()
                let name = current.flatMap { $0.kind == .word ? $0 : nil }
                if name != nil { advance() }
                return DeclarationHeader(modifiers: modifiers, keyword: token, name: name, isGeneric: isAt("<"))
            }
            guard Self.modifiers.contains(token.text) else { return nil }
            modifiers.append(token)
            advance()
            if isAt("(") { skipBalanced() }
        }
        return nil
    }

    private static func startsMember(_ word: String) -> Bool {
        ["func", "var", "let", "subscript"].contains(word) || (word != "class" && modifiers.contains(word))
    }
}
