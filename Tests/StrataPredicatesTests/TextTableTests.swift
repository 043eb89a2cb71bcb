import Expectations
import StrataPredicates
import Testing

/// String tests and foldings, each against a second implementation that does nothing but follow their definition.
@Suite("Texts in tables")
struct TextTableTests {
    private static let foldings: [StringFolding] = [
        [], .case, .diacritics, [.case, .diacritics], .canonical, [.case, .canonical],
    ]
    private static let texts = [
        "", "a", "A", "b", "ab", "aB", "AAB", "aab", "aaab", "abab", "ababc", "abcabd", "Abc abd", "a*b", "a?b", "a\\b",
        "%_",
        "\u{E9}", "e\u{301}", "\u{C9}t\u{E9}", "ete", "Straße", "STRASSE", "ı", "i", "I", "İ", "ΑΆα", "が", "か", "日本語",
        "👩‍👧", "👩",
        "abcdefgh", "abcdefgé", "abcdefghi", "ABCDEFGHIJ", "line\nbreak",
    ]
    private static let patterns =
        texts + [
            "*", "?", "**", "a*", "*b", "*a*", "a*b", "?b", "a?", "??", "?*", "*?", "*ab*c", "a\\*b", "\\", "a\\",
            "*é*", "?t?", "*ab?ab*",
            "*aab", "aab*", "*a*b*", "a**b", "\\?", "*bca*", "*日*", "*b?*", "*?c*", "?a*b",
        ]

    private func isLike(_ text: ArraySlice<UInt32>, _ pattern: ArraySlice<(UInt32, Bool)>) -> Bool {
        guard let (first, isSpecial) = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        if isSpecial, first == UInt32(UInt8(ascii: "*")) {
            return (text.startIndex...text.endIndex).contains { isLike(text[$0...], rest) }
        }
        guard let symbol = text.first, isSpecial || symbol == first else { return false }
        return isLike(text.dropFirst(), rest)
    }

    /// The pattern's code points, each with whether it is a sign and not itself.
    private func signs(_ pattern: String) -> [(UInt32, Bool)] {
        var result: [(UInt32, Bool)] = []
        var isQuoted = false
        for scalar in pattern.unicodeScalars {
            if isQuoted {
                result.append((scalar.value, false))
                isQuoted = false
            } else if scalar == "\\" {
                isQuoted = true
            } else {
                result.append((scalar.value, scalar == "*" || scalar == "?"))
            }
        }
        return isQuoted ? result + [(UInt32(UInt8(ascii: "\\")), false)] : result
    }

    @Test func `beginnings, ends, parts and patterns of texts, with each folding`() throws {
        for folding in Self.foldings {
            for pattern in Self.patterns {
                let matchers = try [StringMatcher.Test.beginsWith, .endsWith, .contains, .like]
                    .map { try StringMatcher($0, pattern: pattern, folding: folding) }
                let folded = folding.fold(pattern)
                let wanted = Array(folded.utf8)
                for text in Self.texts {
                    let bytes = Array(folding.fold(text).utf8)
                    let isThere = !wanted.isEmpty
                    let expected = [
                        isThere && bytes.starts(with: wanted),
                        isThere && bytes.reversed().starts(with: wanted.reversed()),
                        isThere && bytes.indices.contains { bytes[$0...].starts(with: wanted) },
                        isLike(folding.fold(text).unicodeScalars.map(\.value)[...], signs(folded)[...]),
                    ]
                    let found = try matchers.map { try $0.matches(text) }
                    if found != expected { expectEqual(found, expected, "\(text) and \(pattern), \(folding.rawValue)") }
                    let bare = try matchers.map { matcher in try withBytes(of: text) { try matcher.matches($0) } }
                    if bare != expected { expectEqual(bare, expected, "\(text) and \(pattern), \(folding.rawValue)") }
                }
            }
        }
    }

    @Test func `foldings of texts, and their order`() {
        let lines = Self.texts.map { text in
            Self.foldings.map { folding in
                expectEqual(withBytes(of: text) { folding.fold($0) }, folding.fold(text))
                return folding.fold(text).debugDescription
            }.joined(separator: " ")
        }
        expectTable(lines, Self.folded)
        for folding in Self.foldings {
            for left in Self.texts {
                for right in Self.texts {
                    let (one, other) = (Array(folding.fold(left).utf8), Array(folding.fold(right).utf8))
                    let order = one == other ? 0 : one.lexicographicallyPrecedes(other) ? -1 : 1
                    if folding.order(left, right) != order {
                        expectEqual(folding.order(left, right), order, "\(left) \(right)")
                    }
                    if folding.areEqual(left, right) != (order == 0) {
                        expect(false, "\(left) \(right) \(folding.rawValue)")
                    }
                }
            }
        }
        let options: [NSComparisonPredicate.Options] = [
            [], .caseInsensitive, .diacriticInsensitive, .normalized, .localeSensitive,
            [.caseInsensitive, .diacriticInsensitive],
            [.caseInsensitive, .normalized], [.caseInsensitive, .localeSensitive],
        ]
        expectEqual(options.map { StringFolding($0).rawValue }, [0, 1, 2, 0, 4, 3, 0, 5])
    }

    @Test func `regular expressions cover the whole text`() throws {
        let patterns = [
            "", "a", "a|ab", ".*", "[a-c]+", "(?i)A+B", "\\w+ \\w+", "é", "e\u{301}", "S(tr)a(ß|ss)e", "a.b", "^ab$",
            "^a", ".", "\\d*",
        ]
        var lines: [String] = []
        for folding in Self.foldings.prefix(4) {
            for pattern in patterns {
                let matcher = try StringMatcher(.matches, pattern: pattern, folding: folding)
                expect(matcher.isCostly)
                let found = try Self.texts.filter { text in
                    let answer = try matcher.matches(text)
                    try expectEqual(withBytes(of: text) { try matcher.matches($0) }, answer)
                    return answer
                }
                lines.append("\(folding.rawValue) \(pattern): \(found.map(\.debugDescription).joined(separator: " "))")
            }
        }
        expectTable(lines, Self.matched)
        for pattern in ["(", ")", "a)(b", "[", "*", String(repeating: "(", count: 300)] {
            let error = expectThrows(PredicateEvaluationError.self) {
                try StringMatcher(.matches, pattern: pattern, folding: [])
            }
            expectEqual(error?.description, "\"\(pattern.prefix(200))\" is not a regular expression")
        }
    }

    @Test func `the fixed parts of patterns, and which of them can take long`() {
        let lines = [
            "", "abc", "abc*", "*abc", "ab*cdef*g", "a?cde", "?", "*", "a\\*b*", "*a?cdefghi*", "*a?cdefgh*",
            "a?bcdefghijk*", "*é?*ü",
        ]
        .map { pattern in
            let like = LikePattern(pattern)
            return "\(pattern): '\(like.fixedText.prefix)' '\(like.fixedText.longest)'\(like.isCostly ? " costly" : "")"
        }
        expectTable(lines, Self.fixed)
    }

    @Test func `sort selectors compare texts, and other values as they are`() {
        let pairs = [("a", "B"), ("a", "A"), ("é", "f"), ("e", "é"), ("a10", "a9"), ("ß", "ss"), ("", "a"), ("a", "a")]
        let selectors: [Selector] = [
            .compare, .caseInsensitiveCompare, .localizedCompare, .localizedCaseInsensitiveCompare,
            .localizedStandardCompare,
        ]
        var lines: [String] = []
        for selector in selectors {
            guard let comparison = SortComparison(selector) else { return expect(false, "\(selector)") }
            let answers = pairs.map { "\($0) \($1) \(comparison.compare($0, $1).rawValue)" }
            lines += wrapped("\(selector)", answers)
            expectEqual(comparison.compare(.int(2), .double(10)), .orderedAscending)
            expectEqual(comparison.compare(.null, .string("")), .orderedAscending)
            expectEqual(comparison.compare(.string("a"), .int(9)), .orderedDescending)
        }
        expectTable(lines, Self.sorts)
        expect(SortComparison("compareBackwards:" as Selector) == nil)
    }
}
