// Foundation reaches clients on one road only, through the predicates module, so that the names that both declare
// (`NSExpression`, `NSComparisonPredicate`) resolve to ours.
@_exported import StrataKeys
@_exported import StrataPredicates

/// The expressions of this module, under a name with which a client can say which type it means.
///
/// Foundation on Linux has a type of that name too. In a module that imports both, `typealias NSExpression = CoreData.NSExpression`
/// makes the name mean this one.
///
/// ```swift
/// let half = NSExpression(format: "price / 2")
/// print(half.expressionValue(with: venue, context: nil) ?? 0)
/// ```
public typealias NSExpression = StrataPredicates.NSExpression
