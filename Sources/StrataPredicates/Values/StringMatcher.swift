/// A string operator with its right operand prepared once, for use on many left operands.
///
/// The in-memory evaluator keeps one for each comparison, a store's SQL function one for each statement.
///
/// - An empty right operand of `BEGINSWITH`, `ENDSWITH` and `CONTAINS` matches nothing.
/// - `LIKE`: `?` is exactly one code point, `*` any number; a backslash makes the next character a literal one. An
///   empty pattern matches the empty string.
/// - `MATCHES`: an ICU regular expression that must cover the whole string.
package struct StringMatcher: Sendable {
    package enum Test: String, CaseIterable, Hashable, Sendable {
        case beginsWith
        case endsWith
        case contains
        case like
        case matches
    }

    private enum Prepared: Sendable {
        case beginsWith(String)
        case endsWith(String)
        case contains(SubstringSearch)
        case like(LikePattern)
        case matches(RegularExpressionMatcher)
        case nothing
    }

    private let prepared: Prepared
    private let folding: StringFolding

    /// - Throws: ``PredicateEvaluationError`` if the pattern of `MATCHES` is not a valid regular expression.
    package init(_ test: Test, pattern: String, folding: StringFolding) throws {
        self.folding = folding
        switch test {
        case .like: prepared = .like(LikePattern(folding.fold(pattern)))
        case .matches: prepared = .matches(try RegularExpressionMatcher.cached(pattern, folding: folding))
        case _ where pattern.isEmpty: prepared = .nothing
        case .beginsWith: prepared = .beginsWith(folding.fold(pattern))
        case .endsWith: prepared = .endsWith(folding.fold(pattern))
        case .contains: prepared = .contains(SubstringSearch(folding.fold(pattern)))
        }
    }

    /// - Throws: ``PredicateEvaluationError`` if a regular expression, or `LIKE`, takes too long.
    package func matches(_ text: String) throws -> Bool {
        if case .matches(let expression) = prepared { return try expression.matches(text) }
        return try withBytes(of: text, matchesBytes)
    }

    /// Whether UTF-8 text matches.
    ///
    /// - Throws: ``PredicateEvaluationError`` if a regular expression, or `LIKE`, takes too long.
    package func matches(_ text: UnsafeBufferPointer<UInt8>) throws -> Bool {
        if case .matches(let expression) = prepared {
            return try expression.matches(String(decoding: text, as: UTF8.self))
        }
        return try matchesBytes(text)
    }

    /// Whether a match can take more time than in proportion to the length of the text.
    package var isCostly: Bool {
        switch prepared {
        case .like(let pattern): pattern.isCostly
        case .matches: true
        case .beginsWith, .endsWith, .contains, .nothing: false
        }
    }

    private func matchesBytes(_ text: UnsafeBufferPointer<UInt8>) throws -> Bool {
        if case .nothing = prepared { return false }
        let isPlain = folding.isEmpty || isASCII(text)
        guard !isPlain else { return try matches(text, ignoringASCIICase: folding.contains(.case)) }
        return try withBytes(of: folding.fold(text)) { try matches($0, ignoringASCIICase: false) }
    }

    private func matches(_ text: UnsafeBufferPointer<UInt8>, ignoringASCIICase: Bool) throws -> Bool {
        switch prepared {
        case .beginsWith(let prefix):
            return withBytes(of: prefix) { matches($0, at: 0, of: text, ignoringASCIICase) }
        case .endsWith(let suffix):
            return withBytes(of: suffix) { matches($0, at: text.count - $0.count, of: text, ignoringASCIICase) }
        case .contains(let needle):
            return needle.occurs(in: text, ignoringASCIICase: ignoringASCIICase)
        case .like(let pattern):
            return try pattern.matches(text, ignoringASCIICase: ignoringASCIICase)
        case .matches, .nothing:
            return false
        }
    }

    private func matches(
        _ part: UnsafeBufferPointer<UInt8>,
        at offset: Int,
        of text: UnsafeBufferPointer<UInt8>,
        _ ignoringASCIICase: Bool
    ) -> Bool {
        guard offset >= 0, offset + part.count <= text.count else { return false }
        let slice = UnsafeBufferPointer(rebasing: text[offset..<(offset + part.count)])
        guard ignoringASCIICase else { return equalBytes(slice, part) }
        return part.indices.allSatisfy { foldASCIIByte(slice[$0]) == part[$0] }
    }
}
