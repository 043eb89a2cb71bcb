/// A string operator with its right operand prepared once, for use on many left operands.
///
/// The in-memory evaluator keeps one per comparison, a store's SQL function one per statement.
///
/// - An empty right operand of `BEGINSWITH`, `ENDSWITH` and `CONTAINS` matches nothing.
/// - `LIKE`: `?` is exactly one code point, `*` any number; a backslash takes the meaning off the next character. An empty
///   pattern matches the empty string.
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
        case contains(String)
        case like(LikePattern)
        case matches(RegularExpressionMatcher)
        case nothing
    }

    private let prepared: Prepared
    private let folding: StringFolding

    /// - Throws: ``PredicateEvaluationError`` if `MATCHES` is given something that is no regular expression.
    package init(_ test: Test, pattern: String, folding: StringFolding) throws {
        self.folding = folding
        switch test {
        case .like: prepared = .like(LikePattern(folding.fold(pattern)))
        case .matches: prepared = .matches(try RegularExpressionMatcher.cached(pattern, folding: folding))
        case _ where pattern.isEmpty: prepared = .nothing
        case .beginsWith: prepared = .beginsWith(folding.fold(pattern))
        case .endsWith: prepared = .endsWith(folding.fold(pattern))
        case .contains: prepared = .contains(folding.fold(pattern))
        }
    }

    /// - Throws: ``PredicateEvaluationError`` where a regular expression takes too long.
    package func matches(_ text: String) throws -> Bool {
        if case .matches(let expression) = prepared { return try expression.matches(text) }
        return withBytes(of: text, matchesBytes)
    }

    /// Whether UTF-8 text matches.
    ///
    /// - Throws: ``PredicateEvaluationError`` where a regular expression takes too long.
    package func matches(_ text: UnsafeBufferPointer<UInt8>) throws -> Bool {
        if case .matches(let expression) = prepared {
            return try expression.matches(String(decoding: text, as: UTF8.self))
        }
        return matchesBytes(text)
    }

    private func matchesBytes(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        if case .nothing = prepared { return false }
        let isPlain = folding.isEmpty || isASCII(text)
        guard !isPlain else { return matches(text, ignoringASCIICase: folding.contains(.case)) }
        return withBytes(of: folding.fold(text)) { matches($0, ignoringASCIICase: false) }
    }

    private func matches(_ text: UnsafeBufferPointer<UInt8>, ignoringASCIICase: Bool) -> Bool {
        switch prepared {
        case .beginsWith(let prefix):
            return withBytes(of: prefix) { matches($0, at: 0, of: text, ignoringASCIICase) }
        case .endsWith(let suffix):
            return withBytes(of: suffix) { matches($0, at: text.count - $0.count, of: text, ignoringASCIICase) }
        case .contains(let needle):
            return withBytes(of: needle) { search($0, in: text, ignoringASCIICase) }
        case .like(let pattern):
            return pattern.matches(text, ignoringASCIICase: ignoringASCIICase)
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

    private func search(
        _ needle: UnsafeBufferPointer<UInt8>,
        in text: UnsafeBufferPointer<UInt8>,
        _ ignoringASCIICase: Bool
    ) -> Bool {
        guard text.count >= needle.count, let haystack = text.baseAddress else { return false }
        guard ignoringASCIICase else {
            var offset = 0
            let last = text.count - needle.count
            while offset <= last, let found = memchr(haystack + offset, Int32(needle[0]), last - offset + 1) {
                offset = UnsafeRawPointer(haystack).distance(to: found)
                if matches(needle, at: offset, of: text, false) { return true }
                offset += 1
            }
            return false
        }
        let first = needle[0]
        for offset in 0...(text.count - needle.count) where foldASCIIByte(text[offset]) == first {
            if matches(needle, at: offset, of: text, true) { return true }
        }
        return false
    }
}
