/// Gives `NSPredicate` its format initialisers, which may return a subclass of it.
///
/// ```swift
/// request.predicate = NSPredicate(format: "name BEGINSWITH %@ AND price < %d", "H", 20)
/// ```
public protocol FormatPredicateFactory {}

extension NSPredicate: FormatPredicateFactory {}

extension FormatPredicateFactory where Self: NSPredicate {
    /// Makes a predicate from text in the format language.
    ///
    /// Values belong into placeholders, never into the text: `NSPredicate(format: "name == %@", name)`.
    ///
    /// - Parameters:
    ///   - predicateFormat: The text. If it does not parse, that is a programmer's error and stops the program, with
    ///     the position and what was expected there. For text that comes from outside use
    ///     ``init(validating:arguments:)``.
    ///   - arguments: One value for each placeholder, in order.
    public init(format predicateFormat: String, _ arguments: Any?...) {
        self.init(trusted: predicateFormat, arguments: arguments)
    }

    /// Makes a predicate from text in the format language, with its arguments as an array.
    ///
    /// - Parameters:
    ///   - predicateFormat: The text. If it does not parse, that is a programmer's error and stops the program.
    ///   - arguments: One value for each placeholder, in order; `NSNull` stands for nil.
    public init(format predicateFormat: String, argumentArray arguments: [Any]?) {
        self.init(trusted: predicateFormat, arguments: arguments ?? [])
    }

    /// Makes a predicate from text that is not under your control, such as a query parameter of a web request.
    ///
    /// Parsing takes time and memory in proportion to the length of the text, for any text.
    ///
    /// - Parameters:
    ///   - text: The text in the format language.
    ///   - arguments: One value for each placeholder, in order.
    /// - Throws: ``PredicateFormatError`` with the position of the problem and what was expected there.
    public init(validating text: String, arguments: [Any?] = []) throws {
        // The parser returns predicates of NSPredicate's own hierarchy, and the initialiser is called on NSPredicate
        // itself.
        self = try FormatParser.predicate(text, arguments: arguments, rejectsUnusedArguments: true) as! Self
    }

    private init(trusted text: String, arguments: [Any?]) {
        do {
            // The same is true here.
            self = try FormatTemplates.predicate(text, arguments) as! Self
        } catch {
            fatalError("\(error)")
        }
    }
}

extension NSPredicate {
    /// The predicate in the format language: the text that parses back to an equal predicate.
    ///
    /// It equals ``predicateFormat`` for predicates of this module. Foundation's own `predicateFormat` is deprecated on
    /// Linux. It is wrong for an `NSCompoundPredicate` that Foundation's initialisers made, while this property is
    /// right for all.
    public var formatText: String {
        FormatPrinter.text(of: self)
    }

    /// A copy in which each variable is replaced by its value.
    ///
    /// ```swift
    /// let cheaper = NSPredicate(format: "price < $limit")
    /// request.predicate = cheaper.withSubstitutionVariables(["limit": 20])
    /// ```
    ///
    /// - Parameter variables: Values by name, without the dollar sign; `NSNull` means nil. If a variable of the
    ///   predicate is missing here, that is a programmer's error and stops the program.
    /// - Returns: A predicate of the same class.
    public func withSubstitutionVariables(_ variables: [String: Any]) -> Self {
        do {
            // Substitution keeps the class of each predicate.
            try TreeDepth.check(self)
            return try Substitution(variables: variables).apply(to: self) as! Self
        } catch {
            fatalError("\(error)")
        }
    }

    /// The result of `evaluate(with:substitutionVariables:)`, or the error that it turns into false.
    ///
    /// - Throws: ``PredicateEvaluationError`` if the predicate cannot be evaluated for the object.
    package func evaluateOrThrow(with object: Any?, substitutionVariables bindings: [String: Any]? = nil) throws -> Bool
    {
        try TreeDepth.check(self)
        return try ObjectEvaluator(object: object, bindings: bindings).evaluate(self)
    }

    /// Does nothing: predicates are never decoded here in a state that forbids evaluation.
    public func allowEvaluation() {}
}

extension NSPredicate {
    /// The predicate in the format language, with `?` for every value.
    package var shape: String { FormatPrinter.shape(of: self) }
}
