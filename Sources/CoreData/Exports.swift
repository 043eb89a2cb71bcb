// Foundation reaches clients on one road only, through the predicates module, so that the names that both declare
// (`NSExpression`, `NSComparisonPredicate`) resolve to ours.
@_exported import StrataKeys
@_exported import StrataPredicates
