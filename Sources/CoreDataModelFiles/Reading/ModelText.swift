import CoreDataEssentials
import StrataPredicates

/// Parses the predicates and expressions that are texts in a model file.
package enum ModelText {
    /// The beginning of a text that cannot be parsed, for messages, without the contents of literals.
    package static func quotable(_ text: String) -> String {
        let beginning = QuotableText(text).beginning(41)
        return beginning.count > 40 ? String(beginning.prefix(40)) + "…" : beginning
    }

    /// Parses a predicate.
    ///
    /// - Throws: The problem of the text.
    package static func predicate(_ text: String) throws -> NSPredicate {
        try NSPredicate(validating: text)
    }

    /// Parses an expression: a key path, or else the left side of a comparison, which the predicate parser can read.
    ///
    /// - Throws: The problem of the text.
    package static func expression(_ text: String) throws -> NSExpression {
        if text.wholeMatch(of: #/[\p{L}_][\p{L}\p{N}_]*(\.@?[\p{L}_][\p{L}\p{N}_]*)*/#) != nil {
            return NSExpression(forKeyPath: text)
        }
        let predicate = try NSPredicate(validating: "\(text) == nil") as? NSComparisonPredicate
        guard let predicate, predicate.comparisonPredicateModifier == .direct else {
            throw ModelError(.invalid, "\"\(quotable(text))\" is not an expression")
        }
        return predicate.leftExpression
    }
}
