import StrataPredicates

/// The predicates and expressions that a model file has as text.
enum ModelText {
    /// Parses a predicate.
    ///
    /// - Throws: What is wrong with the text.
    static func predicate(_ text: String) throws -> NSPredicate {
        try NSPredicate(validating: text)
    }

    /// Parses an expression: a key path, or else the left side of a comparison, for that is what the predicate parser reads.
    ///
    /// - Throws: What is wrong with the text.
    static func expression(_ text: String) throws -> NSExpression {
        if text.wholeMatch(of: #/[\p{L}_][\p{L}\p{N}_]*(\.@?[\p{L}_][\p{L}\p{N}_]*)*/#) != nil {
            return NSExpression(forKeyPath: text)
        }
        let predicate = try NSPredicate(validating: "\(text) == nil") as? NSComparisonPredicate
        guard let predicate, predicate.comparisonPredicateModifier == .direct else {
            throw ModelError(.invalid, "\"\(text)\" is not an expression")
        }
        return predicate.leftExpression
    }
}
