import StrataLocks

/// An object that provides functions for `FUNCTION(target, "name:", …)`.
///
/// On Apple's platforms such an expression calls a method by its selector. Here the target looks the function up:
///
/// ```swift
/// final class Rates: ExpressionFunctionTarget {
///     func function(named name: String) -> (([Any?]) throws -> Any?)? {
///         switch name {
///         case "half:": { arguments in (arguments[0] as? Int64).map { $0 / 2 } }
///         default: nil
///         }
///     }
/// }
/// let expression = NSExpression(format: #"FUNCTION($rates, "half:", price)"#)
/// let price = expression.expressionValue(with: venue, context: ["rates": Rates()])
/// ```
///
/// Functions for targets of other types are registered with ``NSExpression/setFunction(_:forName:)``.
public protocol ExpressionFunctionTarget {
    /// Returns the function with a name; `nil` if the target has none of that name.
    ///
    /// It is asked on the thread that evaluates the expression, which also calls the function.
    ///
    /// - Parameter name: The name as the expression has it, in the form of a selector: one colon for each argument. A
    ///   call with another number of arguments is an error, and the function is not called.
    /// - Returns: A function that takes the values of the arguments, each of which may be nil. If it throws, the
    ///   evaluation ends: `evaluate(with:)` is then false, and the value of the expression nil.
    func function(named name: String) -> (([Any?]) throws -> Any?)?
}

extension NSExpression {
    /// The code of a registered function.
    ///
    /// It takes the target, which is never nil, and the values of the arguments, each of which may be nil. If it
    /// throws, the evaluation ends: `evaluate(with:)` is then false, and the value of the expression nil. Any thread
    /// may call it, several at once.
    ///
    /// ```swift
    /// let reversed: NSExpression.Function = { text, _ in (text as? String).map { String($0.reversed()) } }
    /// NSExpression.setFunction({ text, _ in (text as? String).map { String($0.reversed()) } }, forName: "reversed")
    /// ```
    public typealias Function = @Sendable (_ target: Any, _ arguments: [Any?]) throws -> Any?

    /// Registers a function that `FUNCTION(target, "name:", …)` calls, on targets of any type.
    ///
    /// ```swift
    /// NSExpression.setFunction({ text, _ in (text as? String).map { String($0.reversed()) } }, forName: "backwards")
    /// print(NSPredicate(format: #"FUNCTION(name, "backwards") BEGINSWITH "e""#).evaluate(with: venue))
    /// ```
    ///
    /// A registered function takes precedence over a built-in method of the same name. If the target is an
    /// ``ExpressionFunctionTarget``, its own function comes first. For a target that is nil the value is nil, and no
    /// function is called.
    ///
    /// Predicates from outside (`NSPredicate(validating:arguments:)`) can call registered functions too, with any
    /// arguments. Refuse them with an ``NSPredicateValidating``, or register only functions that any client may call.
    ///
    /// Any thread may call it.
    ///
    /// - Parameters:
    ///   - function: The function; it replaces an earlier one of that name. `nil` removes it.
    ///   - name: The name in the form of a selector: one colon for each argument. A call with another number of arguments is an
    ///     error, and the function is not called.
    public class func setFunction(_ function: Function?, forName name: String) {
        ExpressionFunctions.shared[name] = function
    }

    /// The names of all registered functions, in no order.
    ///
    /// Any thread may call it.
    ///
    /// - Returns: The names that were given to ``setFunction(_:forName:)``.
    public class func functionNames() -> [String] {
        ExpressionFunctions.shared.names
    }
}

/// The registered functions.
final class ExpressionFunctions: Sendable {
    static let shared = ExpressionFunctions()

    private let functions = Locked<[String: NSExpression.Function]>([:])

    subscript(name: String) -> NSExpression.Function? {
        get { functions.withLock { $0[name] } }
        set { functions.withLock { $0[name] = newValue } }
    }

    var names: [String] {
        functions.withLock { Array($0.keys) }
    }
}
