/// Examines a predicate or an expression, and throws if it contains a part that is not allowed.
///
/// Text that comes from outside may parse and still ask for data that a client must not see. A validator receives each
/// predicate, expression and operator of a tree before anything is evaluated:
///
/// ```swift
/// struct Refused: Error { let keyPath: String }
///
/// final class OnlyNames: NSPredicateValidating {
///     func visit(_ expression: NSExpression) throws {
///         guard expression.expressionType == .keyPath, expression.keyPath != "name" else { return }
///         throw Refused(keyPath: expression.keyPath)
///     }
/// }
/// let predicate = try NSPredicate(validating: "name == 'Hot Five'")
/// try predicate.allowEvaluation(validator: OnlyNames())
/// ```
///
/// Each method does nothing unless it is implemented. An error that it throws ends the visit.
public protocol NSPredicateValidating: AnyObject {
    /// Receives a predicate, before its parts.
    ///
    /// - Parameter predicate: The predicate. Its subclass shows its kind.
    /// - Throws: An error that ends the visit.
    func visit(_ predicate: NSPredicate) throws
    /// Receives an expression, before its parts.
    ///
    /// A path under a variable, as in `$item.price`, is a function named `valueForKeyPath:` with the path as its argument.
    ///
    /// - Parameter expression: The expression.
    /// - Throws: An error that ends the visit.
    func visit(_ expression: NSExpression) throws
    /// Receives the operator of a comparison.
    ///
    /// - Parameter operatorType: The operator.
    /// - Throws: An error that ends the visit.
    func visit(_ operatorType: NSComparisonPredicate.Operator) throws
}

extension NSPredicateValidating {
    /// Accepts every predicate.
    ///
    /// - Parameter predicate: Ignored.
    /// - Throws: Nothing.
    public func visit(_ predicate: NSPredicate) throws {}
    /// Accepts every expression.
    ///
    /// - Parameter expression: Ignored.
    /// - Throws: Nothing.
    public func visit(_ expression: NSExpression) throws {}
    /// Accepts every operator.
    ///
    /// - Parameter operatorType: Ignored.
    /// - Throws: Nothing.
    public func visit(_ operatorType: NSComparisonPredicate.Operator) throws {}
}

extension NSPredicate {
    /// Passes the whole predicate to a validator.
    ///
    /// Predicates may be evaluated here without any validation. The purpose of this method is the error that it throws.
    ///
    /// - Parameter validator: Receives each part, from the outside in and from left to right.
    /// - Throws: Errors of the validator, and an error for a predicate more than 1,000 levels deep.
    /// - Complexity: O(*n*) in the number of parts.
    public func allowEvaluation(validator: any NSPredicateValidating) throws {
        try TreeDepth.check(self)
        try Visit(validator: validator).visit(self)
    }
}

extension NSExpression {
    /// Passes the whole expression to a validator.
    ///
    /// - Parameter validator: Receives each part, from the outside in and from left to right.
    /// - Throws: Errors of the validator, and an error for an expression more than 1,000 levels deep.
    /// - Complexity: O(*n*) in the number of parts.
    public func allowEvaluation(validator: any NSPredicateValidating) throws {
        try TreeDepth.check(self)
        try Visit(validator: validator).visit(self)
    }
}

/// Walks a tree for a validator.
private struct Visit {
    let validator: any NSPredicateValidating

    func visit(_ predicate: NSPredicate) throws {
        try validator.visit(predicate)
        if let comparison = predicate as? NSComparisonPredicate {
            try visit(comparison.leftExpression)
            try validator.visit(comparison.predicateOperatorType)
            try visit(comparison.rightExpression)
        } else if let compound = predicate as? NSCompoundPredicate {
            for member in compound.subpredicates { try visit(member) }
        }
    }

    func visit(_ expression: NSExpression) throws {
        try validator.visit(expression)
        switch expression.kind {
        case .constant, .evaluatedObject, .variable, .keyPath, .anyKey, .custom: break
        case .function(_, let target, let arguments):
            if let target { try visit(target) }
            for argument in arguments { try visit(argument) }
        case .setOperation(_, let left, let right):
            try visit(left)
            try visit(right)
        case .subquery(let source, _, let predicate):
            try visit(source)
            try visit(predicate)
        case .aggregate(let members), .block(_, let members):
            for member in members { try visit(member) }
        case .conditional(let predicate, let first, let second):
            try visit(predicate)
            try visit(first)
            try visit(second)
        }
    }
}
