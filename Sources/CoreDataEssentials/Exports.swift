// Foundation reaches clients on one road only, through the predicates module, so that the names that both declare
// (`NSExpression`, `NSComparisonPredicate`) resolve to ours.
@_exported import CoreDataTransformers
@_exported import StrataKeys
@_exported import StrataPredicates

/// The expressions of the framework, for the signatures of the modules above this one.
///
/// Foundation on Linux has a type of that name too. Programs use the name of the module that they import, `CoreData.NSExpression`.
public typealias NSExpression = StrataPredicates.NSExpression
