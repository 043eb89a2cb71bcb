/// A place in the tokens of a declaration.
package struct Cursor {
    package let source: String
    package let tokens: [Token]
    package private(set) var index = 0

    package init(_ source: String) {
        self.source = source
        tokens = Tokenizer.tokens(of: source)
    }

    /// The token here; `nil` at the end.
    package var current: Token? { index < tokens.count ? tokens[index] : nil }

    /// The token after the one here.
    package var following: Token? { index + 1 < tokens.count ? tokens[index + 1] : nil }

    /// The bytes of the token here, or none at the end of the source.
    package var range: Range<Int> { current?.range ?? source.utf8.count..<source.utf8.count }

    package func isAt(_ text: String) -> Bool { current?.text == text }

    /// Whether the token here has this text and follows the previous token without a space.
    package func isGlued(_ text: String) -> Bool { isAt(text) && current?.isSpaced == false }

    package mutating func advance() { index = min(index + 1, tokens.count) }

    package mutating func move(to index: Int) { self.index = index }

    /// Skips the token here if it has this text.
    package mutating func take(_ text: String) -> Bool {
        guard isAt(text) else { return false }
        advance()
        return true
    }

    /// Skips a bracket and all tokens up to the closing one, or any other token.
    package mutating func skipBalanced() {
        var depth = 0
        repeat {
            guard let token = current else { return }
            if token.kind == .sign {
                switch token.text {
                case "(", "[", "{": depth += 1
                case ")", "]", "}": depth -= 1
                default: break
                }
            }
            advance()
        } while depth > 0
    }

    /// The source text of a range of bytes.
    package func text(_ range: Range<Int>) -> String {
        let utf8 = source.utf8
        let start = utf8.index(utf8.startIndex, offsetBy: range.lowerBound)
        return String(source[start..<utf8.index(start, offsetBy: range.count)])
    }

    /// The source text of the tokens from one index up to another.
    package func text(from start: Int, to end: Int) -> String {
        guard start < end else { return "" }
        return text(tokens[start].range.lowerBound..<tokens[end - 1].range.upperBound)
    }
}

// MARK: - Attributes and modifiers

/// An attribute of a declaration: its name without the module, and the index of the token after its `(` if it has one.
package struct AttributeSyntax {
    package let name: String
    package let argumentsStart: Int?
}

extension Cursor {
    /// Reads an attribute such as `@Managed`, `@CoreData.Managed("x")` or `@available(*, deprecated)`.
    package mutating func readAttribute() -> AttributeSyntax? {
        guard isAt("@"), let first = following, first.kind == .word else { return nil }
        advance()
        var name = first.text
        advance()
        while isGlued(".") || isGlued(":") {
            advance()
            guard let part = current else { return nil }
            if part.kind == .word {
                name = part.text
                advance()
            }
        }
        if isAt("<") { readGenericArguments() }
        guard isGlued("(") else { return AttributeSyntax(name: name, argumentsStart: nil) }
        let start = index + 1
        skipBalanced()
        return AttributeSyntax(name: name, argumentsStart: start)
    }

    /// Skips `<…>`.
    package mutating func readGenericArguments() {
        var depth = 0
        repeat {
            guard let token = current else { return }
            switch token.text {
            case "<": depth += 1
            case ">": depth -= 1
            case "(", "[":
                skipBalanced()
                continue
            default: break
            }
            advance()
        } while depth > 0
    }
}
