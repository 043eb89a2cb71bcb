import StrataLocks

/// A regular expression that must match the whole text, with the folding of its comparison.
package struct RegularExpressionMatcher: Sendable {
    private let expression: NSRegularExpression
    private let stripsDiacritics: Bool

    package init(_ pattern: String, folding: StringFolding) throws {
        stripsDiacritics = folding.contains(.diacritics)
        let pattern = stripsDiacritics ? StringFolding.diacritics.fold(pattern) : pattern
        let options: NSRegularExpression.Options = folding.contains(.case) ? .caseInsensitive : []
        do {
            // It is compiled alone first: inside a group, a stray parenthesis could match the group's own. Foundation
            // regards an empty pattern as an error.
            if !pattern.isEmpty { _ = try NSRegularExpression(pattern: pattern, options: options) }
            expression = try NSRegularExpression(pattern: "\\A(?:\(pattern))\\z", options: options)
        } catch {
            throw PredicateEvaluationError("\"\(pattern.prefix(200))\" is not a regular expression")
        }
    }

    /// ICU reports every ten thousand steps.
    ///
    /// Nearly all texts take fewer steps, and so cost nothing of the fetch's time limit.
    private static let mostReports = 2_000

    /// - Throws: ``PredicateEvaluationError`` if the match takes millions of steps, as with `(a+)+b` on a long text: an
    ///   expression from outside must not keep a server busy for ever.
    package func matches(_ text: String) throws -> Bool {
        let text = stripsDiacritics ? StringFolding.diacritics.fold(text) : text
        var isFound = false
        var reports = 0
        var isOver = false
        let range = NSRange(location: 0, length: text.utf16.count)
        expression.enumerateMatches(in: text, options: .reportProgress, range: range) { result, _, stop in
            if result != nil {
                isFound = true
            } else {
                reports += 1
                isOver = isOver || EvaluationBudget.isSpent
            }
            stop.pointee = ObjCBool(isFound || isOver || reports > Self.mostReports)
        }
        if isOver { try EvaluationBudget.check() }
        guard reports <= Self.mostReports else {
            throw PredicateEvaluationError(
                "the regular expression takes too long on a text of \(range.length) characters"
            )
        }
        return isFound
    }

    // MARK: - Cache

    private struct Key: Hashable {
        let pattern: ByteString
        let folding: StringFolding
    }

    /// The cache.
    ///
    /// Without it, patterns that come from data would be compiled again and again.
    private static let cache = Locked<[Key: RegularExpressionMatcher]>([:])

    /// The matcher for a pattern, from the cache if it is there.
    package static func cached(_ pattern: String, folding: StringFolding) throws -> RegularExpressionMatcher {
        let key = Key(pattern: ByteString(pattern), folding: folding)
        if let known = cache.withLock({ $0[key] }) { return known }
        let matcher = try RegularExpressionMatcher(pattern, folding: folding)
        cache.withLock { cache in
            if cache.count >= WorkSize.regularExpressions { cache.removeAll(keepingCapacity: true) }
            cache[key] = matcher
        }
        return matcher
    }
}
