import StrataPredicates
import StrataRows

extension QueryCompiler {
    /// Writes a test of a text against a pattern.
    package mutating func write(_ test: ResolvedStringTest) throws {
        guard case .string(let pattern)? = test.pattern.constantValue else { return try writeCall(test) }
        switch test.test {
        case .beginsWith, .endsWith, .contains:
            // No text begins with, ends with or contains an empty text.
            if pattern.isEmpty { return write(false) }
        case .like, .matches: break
        }
        guard test.folding.isEmpty else { return try writeCall(test) }
        switch test.test {
        case .beginsWith:
            guard case .attribute = test.text, let end = Self.successor(ofPrefix: pattern) else {
                return try writeCall(test)
            }
            // It is written as a range, for which an index on the column can be used.
            write("(")
            try write(test.text, for: .comparison)
            write(" >= ")
            bind(.text(pattern))
            write(" AND ")
            try write(test.text, for: .comparison)
            write(" < ")
            bind(.text(end))
            write(")")
        case .contains:
            guard pattern.utf8.count <= forms.longestContained else { return try writeCall(test) }
            let text = try piece { try $0.write(test.text, for: .comparison) }
            write(forms.contains(text, parameter(for: .text(pattern))))
        case .endsWith, .like, .matches: try writeCall(test)
        }
    }

    private mutating func writeCall(_ test: ResolvedStringTest) throws {
        write("\(mapping.dialect.stringTest(test.test))(")
        try write(test.text, for: .comparison)
        write(", ")
        try write(test.pattern, for: .comparison)
        write(", \(test.folding.rawValue))")
    }

    /// The smallest text that comes after all texts with a prefix; `nil` if there is none.
    ///
    /// The bytes of UTF-8 have the order of the code points.
    package static func successor(ofPrefix prefix: String) -> String? {
        var scalars = String.UnicodeScalarView(prefix.unicodeScalars)
        while let last = scalars.popLast() {
            // Code points of surrogates are not characters.
            let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
            if let scalar = Unicode.Scalar(next) {
                scalars.append(scalar)
                return String(scalars)
            }
        }
        return nil
    }
}
