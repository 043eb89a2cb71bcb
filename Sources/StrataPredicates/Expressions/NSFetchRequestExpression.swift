import Foundation

/// An expression whose value is the result of a fetch: an array of results, or their number.
///
/// Use it as a collection in a predicate, to fetch by the results of another fetch:
///
/// ```swift
/// let cities = NSFetchRequest<City>(entityName: "City")
/// cities.predicate = NSPredicate(format: "name BEGINSWITH 'P'")
/// let expression = NSFetchRequestExpression.expression(
///     forFetch: NSExpression(forConstantValue: cities), context: NSExpression(forConstantValue: context), countOnly: false)
/// let venues = NSFetchRequest<Venue>(entityName: "Venue")
/// venues.predicate = NSPredicate(format: "city IN %@", expression)
/// print(try context.fetch(venues).count)
/// ```
///
/// The inner fetch runs once, in the scope of its context, before the outer one. A fetch of dictionaries with one
/// property stands for the values of that property.
///
/// It is immutable. It can be evaluated wherever its context can be used.
open class NSFetchRequestExpression: NSExpression {
    /// The expression that gives the fetch request.
    public let requestExpression: NSExpression

    /// The expression that gives the context.
    public let contextExpression: NSExpression

    /// Whether the value is the number of the results.
    public let isCountOnlyRequest: Bool

    private init(_ request: NSExpression, _ context: NSExpression, countOnly: Bool) {
        requestExpression = request
        contextExpression = context
        isCountOnlyRequest = countOnly
        super.init(expressionType: .fetchRequest)
    }

    /// Makes an expression that runs a fetch when it is evaluated.
    ///
    /// - Parameters:
    ///   - fetch: The expression that gives the `NSFetchRequest`; mostly a constant.
    ///   - context: The expression that gives the `NSManagedObjectContext`; mostly a constant.
    ///   - countOnly: Whether the value is the number of the results, an `NSNumber`.
    /// - Returns: An ``NSFetchRequestExpression``.
    open class func expression(
        forFetch fetch: NSExpression,
        context: NSExpression,
        countOnly: Bool
    ) -> NSExpression {
        NSFetchRequestExpression(fetch, context, countOnly: countOnly)
    }

    /// Runs the fetch.
    ///
    /// It must be called in the scope of the context.
    ///
    /// - Parameters:
    ///   - object: The object for which the two expressions are evaluated.
    ///   - context: The values of their variables, by name without the dollar sign.
    /// - Returns: The results, or their number. `nil` if the fetch fails, or an expression gives no request or context;
    ///   the coordinator's `unreportableErrorHandler` gets the reason.
    open override func expressionValue(with object: Any?, context: NSMutableDictionary?) -> Any? {
        let owner = contextExpression.expressionValue(with: object, context: context) as? any FetchExecuting
        do {
            return try results(of: requestExpression.expressionValue(with: object, context: context), in: owner)
        } catch {
            owner?.report(error, of: self, for: object)
            return nil
        }
    }

    private func results(of request: Any?, in context: (any FetchExecuting)?) throws -> Any {
        guard let context else {
            throw PredicateEvaluationError(
                "The contextExpression of a fetch request expression gives no NSManagedObjectContext."
            )
        }
        return try context.results(ofFetchIn: request, countOnly: isCountOnlyRequest)
    }

    /// The expression in the format language.
    open override var description: String {
        "FETCH(\(requestExpression), \(contextExpression), \(isCountOnlyRequest ? "YES" : "NO"))"
    }
}

extension NSFetchRequestExpression: StoreEvaluatedExpression {
    package func valueForStore() throws -> Any? {
        try results(
            of: requestExpression.expressionValue(with: nil, context: nil),
            in: contextExpression.expressionValue(with: nil, context: nil) as? any FetchExecuting
        )
    }
}

/// An object that runs the fetch of an ``NSFetchRequestExpression``: a context.
package protocol FetchExecuting {
    /// Runs a fetch.
    ///
    /// - Parameters:
    ///   - request: The value of the request expression, which should be an `NSFetchRequest`.
    ///   - countOnly: Whether to return the number of the results, an `NSNumber`.
    /// - Returns: The results, or their number.
    /// - Throws: The error of the fetch, or another one if there is no request.
    func results(ofFetchIn request: Any?, countOnly: Bool) throws -> Any

    /// Reports an error that cannot be returned to the caller of an expression.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - expression: The expression that was evaluated.
    ///   - object: The object for which it was evaluated.
    func report(_ error: any Error, of expression: NSExpression, for object: Any?)
}

/// The kind of an ``NSFetchRequestExpression``.
public let NSFetchRequestExpressionType: NSExpression.ExpressionType = .fetchRequest
