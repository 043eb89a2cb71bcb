/// Gives `NSExpression` its format initialisers, which may return a subclass of it.
///
/// ```swift
/// let expression = NSExpression(format: "price * 1.2")
/// ```
public protocol FormatExpressionFactory {}

extension NSExpression: FormatExpressionFactory {}

extension FormatExpressionFactory where Self: NSExpression {
    /// Makes an expression from text in the format language, such as `price * 1.2` or `sum({1, 2})`.
    ///
    /// - Parameters:
    ///   - expressionFormat: The text. If it does not parse, that is a programmer's error and stops the program, with
    ///     the position and what was expected there. For text that comes from outside use
    ///     ``init(validating:arguments:)``.
    ///   - arguments: One value for each placeholder, in order.
    public init(format expressionFormat: String, _ arguments: Any?...) {
        self.init(trusted: expressionFormat, arguments: arguments)
    }

    /// Makes an expression from text in the format language, with its arguments as an array.
    ///
    /// - Parameters:
    ///   - expressionFormat: The text. If it does not parse, that is a programmer's error and stops the program.
    ///   - arguments: One value for each placeholder, in order; `NSNull` stands for nil.
    public init(format expressionFormat: String, argumentArray arguments: [Any]) {
        self.init(trusted: expressionFormat, arguments: arguments)
    }

    /// Makes an expression from text that is not under your control.
    ///
    /// - Parameters:
    ///   - text: The text in the format language.
    ///   - arguments: One value for each placeholder, in order. A value that no placeholder uses is an error.
    /// - Throws: ``PredicateFormatError`` with the position of the problem and what was expected there.
    public init(validating text: String, arguments: [Any?] = []) throws {
        // The initialiser is called on NSExpression itself. The parser returns an instance of it, for FETCH one of a
        // subclass.
        self = try FormatParser.expression(text, arguments: arguments, rejectsUnusedArguments: true) as! Self
    }

    private init(trusted text: String, arguments: [Any?]) {
        do {
            // The same is true here.
            self = try FormatParser.expression(text, arguments: arguments) as! Self
        } catch {
            fatalError("\(error)")
        }
    }
}
