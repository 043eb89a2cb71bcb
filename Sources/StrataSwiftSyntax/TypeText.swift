/// A type as a declaration spells it.
package struct TypeText: Equatable {
    /// The type, ready to stand as a generic argument.
    ///
    /// `T!` is given as `T?`, which it is everywhere else.
    package let source: String
    /// Whether it consists of more than one operand, so that `.self` needs parentheses around it.
    package let isCompound: Bool

    /// The expression for the type itself.
    package var metatype: String { isCompound ? "(\(source)).self" : "\(source).self" }
}

extension Cursor {
    /// Steps over a type; `nil`, with the cursor at what was not understood, when there is none.
    package mutating func readType() -> TypeText? {
        let start = index
        var isCompound = false
        guard skipOperand(&isCompound) else { return nil }
        while let token = current {
            if token.text == "&" || token.text == "->" {
                isCompound = true
                advance()
                guard skipOperand(&isCompound) else { return nil }
            } else if token.text == "async" || token.text == "throws", !token.startsLine {
                advance()
                if isGlued("(") { skipBalanced() }
                guard isAt("->") || isAt("throws") else { return nil }
            } else {
                break
            }
        }
        var source = text(from: start, to: index)
        if !isCompound, source.hasSuffix("!") { source = source.dropLast() + "?" }
        return TypeText(source: source, isCompound: isCompound)
    }

    /// Steps over one operand of `&` or `->`: a name with its generic arguments, a tuple, an array or a dictionary,
    /// with the optional signs behind and the specifiers before it.
    private mutating func skipOperand(_ isCompound: inout Bool) -> Bool {
        while let token = current {
            if token.text == "any" {
                isCompound = true
                advance()
            } else if token.text == "@" {
                isCompound = true
                guard readAttribute() != nil else { return false }
            } else {
                break
            }
        }
        guard let first = current else { return false }
        if first.text == "(" || first.text == "[" {
            skipBalanced()
        } else if first.kind == .word, !Self.notTypes.contains(first.text) {
            advance()
        } else {
            return false
        }
        while let token = current {
            switch token.text {
            case "<" where !token.startsLine: readGenericArguments()
            case "?" where !token.isSpaced, "!" where !token.isSpaced: advance()
            case ".":
                advance()
                guard current?.kind == .word else { return false }
                advance()
            case ":" where isModuleSelector:
                advance()
                advance()
                guard current?.kind == .word else { return false }
                advance()
            default: return true
            }
        }
        return true
    }

    /// Whether the cursor is at the `::` between a module and a name.
    private var isModuleSelector: Bool {
        guard let following else { return false }
        return following.text == ":" && !following.isSpaced && current?.isSpaced == false
    }

    /// Words that begin something else where a type is expected.
    private static let notTypes: Set<String> = [
        "some", "inout", "borrowing", "consuming", "sending", "var", "let", "func", "class", "static",
    ]
}
