import StrataPredicates
import StrataRows

/// A computed column of a dictionary fetch, or of a fetch index.
///
/// It is not thread-safe until a coordinator uses its model; then any thread may read it.
///
/// ```swift
/// let sum = NSExpressionDescription()
/// (sum.name, sum.resultType) = ("total", .integer64)
/// sum.expression = NSExpression(format: "sum:(price)")
/// let totals = NSFetchRequest<NSDictionary>(entityName: "Venue")
/// totals.resultType = .dictionaryResultType
/// totals.propertiesToFetch = [sum]
/// print(try context.fetch(totals))
/// ```
open class NSExpressionDescription: NSPropertyDescription, @unchecked Sendable {
    // @unchecked Sendable: like the superclass; every stored property is guarded by `assertMutable`.

    /// The expression that computes the column.
    ///
    /// Default `nil`.
    open var expression: NSExpression? { willSet { assertMutable() } }

    /// The kind of the expression's value.
    ///
    /// Default ``NSAttributeDescription/AttributeType/undefined``.
    open var resultType: NSAttributeDescription.AttributeType = .undefined { willSet { assertMutable() } }

    /// The kind of value, in the older spelling of ``resultType``.
    open var expressionResultType: NSAttributeType {
        get { resultType.rawValue }
        set { resultType = NSAttributeDescription.AttributeType(rawValue: newValue) }
    }

    override func adopt(_ other: NSPropertyDescription) {
        super.adopt(other)
        guard let other = other as? NSExpressionDescription else { return }
        expression = other.expression
        resultType = other.resultType
    }
}
