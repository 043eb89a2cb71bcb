/// A type as it is written in a declaration.
package struct TypeText: Equatable {
    /// The type in a form that can be a generic argument.
    ///
    /// `T!` becomes `T?`, which it is everywhere else.
    package let source: String
    /// Whether it consists of more than one operand, so that `.self` needs parentheses around it.
    package let isCompound: Bool

    /// The expression for the type itself.
    package var metatype: String { isCompound ? "(\(source)).self" : "\(source).self" }
}

extension Cursor {
    /// Reads a type; returns `nil` if there is none.
    ///
    /// The cursor is then at the token that was not understood.
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

    /// Skips one operand of `&` or `->`: a name with its generic arguments, a tuple, an array or a dictionary.
    ///
    /// Specifiers before the operand and optional signs behind it are skipped, too.
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

    /// Words that begin something else in the place of a type.
    private static let notTypes: Set<String> = [
        "some", "inout", "borrowing", "consuming", "sending", "var", "let", "func", "class", "static",
    ]
}
