/// One operand of a comparison: a constant, a key path, a variable, a function call, a collection, a subquery.
///
/// Expressions are immutable and compare structurally: two expressions are equal when they would print the same text and
/// hold equal constants. An expression of a kind that has no text (a block) equals only itself.
///
/// Foundation on Linux declares a type of the same name with every initialiser unavailable. A file that imports Foundation or
/// XCTest beside this module can call `NSExpression(forKeyPath:)` as it is. To write the name as a type there, declare
/// `typealias NSExpression = CoreData.NSExpression` once in your module. Without such an import the name means this type.
///
/// Any thread may use an expression, as long as the thread may use the constants in it.
///
/// ```swift
/// let upper: NSExpression = NSExpression(format: "uppercase:(name)")
/// print(upper.expressionValue(with: venue, context: nil) as? String ?? "")
/// ```
open class NSExpression: NSObject, NSCopying {
    /// The code of a block expression: the evaluated object, the values of the arguments and the context.
    ///
    /// ```swift
    /// let double = NSExpression(block: { object, _, _ in ((object as? Int) ?? 0) * 2 }, arguments: nil)
    /// print(double.expressionValue(with: 4, context: nil) ?? 0)
    /// ```
    public typealias Block = (Any?, [Any], NSMutableDictionary?) -> Any

    /// The kinds of expressions, with their parts.
    package indirect enum Kind {
        case constant(Any?)
        case evaluatedObject
        case variable(String)
        case keyPath(String)
        case function(name: String, target: NSExpression?, arguments: [NSExpression])
        case setOperation(SetOperation, NSExpression, NSExpression)
        case subquery(NSExpression, variable: String, NSPredicate)
        case aggregate([NSExpression])
        case anyKey
        case block(Block, [NSExpression])
        case conditional(NSPredicate, NSExpression, NSExpression)
        /// An expression of a subclass, which evaluates itself.
        case custom(ExpressionType)
    }

    /// It changes only while the expression is deallocated.
    package private(set) var kind: Kind
    /// The number of levels of expressions and predicates, including this one.
    package let depth: Int

    package init(kind: Kind) {
        self.kind = kind
        depth = kind.depth
        super.init()
    }

    /// Releases a deep tree level by level: if each level freed the next, the stack would overflow.
    deinit {
        guard depth > TreeDepth.limit else { return }
        var rest = kind.children
        kind = .evaluatedObject
        while var expression = rest.popLast() {
            guard isKnownUniquelyReferenced(&expression) else { continue }
            rest += expression.kind.children
            expression.kind = .evaluatedObject
        }
    }

    // MARK: - Making expressions

    /// The initialiser for subclasses, which override ``expressionValue(with:context:)`` and the accessors of their kind.
    ///
    /// - Parameter type: The value of ``expressionType``.
    public init(expressionType type: ExpressionType) {
        kind = .custom(type)
        depth = 1
        super.init()
    }

    /// An expression with a fixed value, `nil` for the nil constant.
    ///
    /// - Parameter value: The value; `nil` for the nil constant.
    public convenience init(forConstantValue value: Any?) {
        self.init(kind: .constant(flattenOptional(value)))
    }

    /// The value at a key path of the evaluated object, such as `owner.name` or `items.@sum.price`.
    ///
    /// - Parameter keyPath: The names of the properties, with dots between.
    public convenience init(forKeyPath keyPath: String) {
        self.init(kind: .keyPath(keyPath))
    }

    /// The value that the context or a substitution binds to a name, written without its dollar sign.
    ///
    /// - Parameter string: The name, without its dollar sign.
    public convenience init(forVariable string: String) {
        self.init(kind: .variable(string))
    }

    /// A collection of expressions; its value is the array of their values.
    ///
    /// - Parameter subexpressions: The members.
    public convenience init(forAggregate subexpressions: [NSExpression]) {
        self.init(kind: .aggregate(subexpressions))
    }

    /// A call of a predefined function, by its name with colons, such as `sum:` or `add:to:`.
    ///
    /// A name that is not in the function table, or a number of arguments that does not fit it, is a programmer's error
    /// and stops the program; use `NSPredicate(validating:arguments:)` for names that come from outside.
    ///
    /// - Parameters:
    ///   - name: The name, with one colon for each argument.
    ///   - parameters: The arguments, in order.
    public convenience init(forFunction name: String, arguments parameters: [NSExpression]) {
        guard let function = PredefinedFunction(name: name) else {
            fatalError("NSExpression(forFunction:arguments:): there is no predefined function named \(name).")
        }
        if let problem = function.arityProblem(count: parameters.count) {
            fatalError("NSExpression(forFunction:arguments:): \(problem)")
        }
        self.init(kind: .function(name: function.rawValue, target: nil, arguments: parameters))
    }

    /// A call of a function on the value of another expression; the text form is `FUNCTION(target, "name:", …)`.
    ///
    /// There is no Objective-C runtime to look a method up in. So evaluation knows the functions that the target offers
    /// (``ExpressionFunctionTarget``), those that the program has registered (``setFunction(_:forName:)``), and some
    /// built-in methods: `valueForKey:`, `valueForKeyPath:`, `uppercaseString`, `lowercaseString`, `capitalizedString`,
    /// `length`, `count`, `description`, `doubleValue`, `integerValue`, `intValue`, `boolValue`,
    /// `stringByAppendingString:`, `objectForKey:` and `objectAtIndex:`. It asks in this order. Another name evaluates
    /// as an error.
    ///
    /// Expressions with such calls are evaluated in memory: a fetch refuses them.
    ///
    /// - Parameters:
    ///   - target: The expression whose value the function is called on.
    ///   - name: The name of the function, in the form of a selector.
    ///   - parameters: The arguments, in order; `nil` for none.
    public convenience init(
        forFunction target: NSExpression,
        selectorName name: String,
        arguments parameters: [NSExpression]?
    ) {
        self.init(kind: .function(name: name, target: target, arguments: parameters ?? []))
    }

    /// The elements of a collection for which a predicate holds, with the variable bound to each element in turn.
    ///
    /// - Parameters:
    ///   - expression: The collection.
    ///   - variable: The name of the variable, without its dollar sign.
    ///   - predicate: The condition, in which the variable is one element.
    public convenience init(
        forSubquery expression: NSExpression,
        usingIteratorVariable variable: String,
        predicate: NSPredicate
    ) {
        self.init(kind: .subquery(expression, variable: variable, predicate))
    }

    /// One of two expressions, chosen by a predicate; the text form is `TERNARY(predicate, a, b)`.
    ///
    /// - Parameters:
    ///   - predicate: The predicate that chooses.
    ///   - trueExpression: The value if the predicate holds.
    ///   - falseExpression: The value if it does not.
    public convenience init(
        forConditional predicate: NSPredicate,
        trueExpression: NSExpression,
        falseExpression: NSExpression
    ) {
        self.init(kind: .conditional(predicate, trueExpression, falseExpression))
    }

    /// The members of either of two collections.
    ///
    /// - Parameters:
    ///   - left: A collection.
    ///   - right: Another collection.
    public convenience init(forUnionSet left: NSExpression, with right: NSExpression) {
        self.init(kind: .setOperation(.union, left, right))
    }

    /// The members that are in both of two collections.
    ///
    /// - Parameters:
    ///   - left: A collection.
    ///   - right: Another collection.
    public convenience init(forIntersectSet left: NSExpression, with right: NSExpression) {
        self.init(kind: .setOperation(.intersect, left, right))
    }

    /// The members of the first collection that the second lacks.
    ///
    /// - Parameters:
    ///   - left: The collection whose members remain.
    ///   - right: The collection whose members are left out.
    public convenience init(forMinusSet left: NSExpression, with right: NSExpression) {
        self.init(kind: .setOperation(.minus, left, right))
    }

    /// An expression computed by code.
    ///
    /// It can be evaluated in memory only, never in a store.
    ///
    /// - Parameters:
    ///   - block: The code. The evaluation of the expression calls it.
    ///   - arguments: Expressions whose values are passed to the code; `nil` for none.
    public convenience init(block: @escaping Block, arguments: [NSExpression]?) {
        self.init(kind: .block(block, arguments ?? []))
    }

    /// An expression computed by code.
    ///
    /// It can be evaluated in memory only, never in a store.
    ///
    /// - Parameters:
    ///   - block: The code. The evaluation of the expression calls it.
    ///   - arguments: Expressions whose values are passed to the code; `nil` for none.
    public convenience init(forBlock block: @escaping Block, arguments: [NSExpression]?) {
        self.init(kind: .block(block, arguments ?? []))
    }

    /// The expression `SELF`: the evaluated object itself.
    ///
    /// - Returns: An expression that may be shared between predicates.
    open class func expressionForEvaluatedObject() -> NSExpression {
        NSExpression(kind: .evaluatedObject)
    }

    /// The expression `ANYKEY`, which stands for the value of any key of the evaluated object.
    ///
    /// It is there because the language has it. In memory it matches over the values of a dictionary; a store refuses
    /// it.
    ///
    /// - Returns: An expression that may be shared between predicates.
    open class func expressionForAnyKey() -> NSExpression {
        NSExpression(kind: .anyKey)
    }

    // MARK: - Evaluating

    /// The value of the expression for an object.
    ///
    /// Numbers are returned as `NSNumber`, so `as? Int` and `as? Double` both work. If the value cannot be computed
    /// (because of an unknown key, a function applied to the wrong kind of value, or an unbound variable), it is `nil`.
    ///
    /// ```swift
    /// print(NSExpression(format: "price * 2").expressionValue(with: venue, context: nil) as? Int ?? 0)
    /// ```
    ///
    /// - Parameters:
    ///   - object: The evaluated object: a managed object, a dictionary, a ``KeyValueCoding`` object, any value.
    ///   - context: The values of variables, by name without the dollar sign. Subqueries do not write into it.
    /// - Returns: The value, `nil` for none.
    open func expressionValue(with object: Any?, context: NSMutableDictionary?) -> Any? {
        guard depth <= TreeDepth.limit else { return nil }
        return ObjectEvaluator(object: object, context: context).publicValue(of: self)
    }

    /// The value of ``expressionValue(with:context:)``, or the error that it turns into nil.
    ///
    /// - Throws: `PredicateEvaluationError`, and errors of functions that the expression calls.
    package func valueOrThrow(with object: Any?, context: NSMutableDictionary? = nil) throws -> Any? {
        try TreeDepth.check(self)
        return try ObjectEvaluator(object: object, context: context).value(of: self)
    }

    // MARK: - NSObject

    /// Expressions are immutable: the copy is the expression itself.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The expression itself.
    open func copy(with zone: NSZone? = nil) -> Any {
        self
    }

    /// Expressions are immutable: the copy is the expression itself.
    open override func copy() -> Any {
        self
    }

    /// Structural equality.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSExpression else { return false }
        return expressionsAreEqual(self, other)
    }

    /// A hash that agrees with structural equality.
    open override var hash: Int {
        var hasher = Hasher()
        hashExpression(self, into: &hasher)
        return hasher.finalize()
    }

    /// The expression in the format language.
    open override var description: String {
        FormatPrinter.text(of: self)
    }
}

/// `UNION`, `INTERSECT` and `MINUS`.
package enum SetOperation: String, Sendable {
    case union = "UNION"
    case intersect = "INTERSECT"
    case minus = "MINUS"
}

/// Removes the optional layers of a value that was boxed as `Any`; `NSNull` stays as it is.
package func flattenOptional(_ value: Any?) -> Any? {
    guard let value else { return nil }
    // The cast to a protocol searches all conformances of the type, so the common types are checked first.
    let type = type(of: value)
    if type == String.self || type == Int.self || type == Double.self || type is AnyClass { return value }
    guard let optional = value as? any OptionalBox else { return value }
    return optional.boxedValue
}

/// Gives access to an `Optional` inside an `Any`.
private protocol OptionalBox {
    var boxedValue: Any? { get }
}

extension Optional: OptionalBox {
    var boxedValue: Any? {
        guard case .some(let value) = self else { return nil }
        return flattenOptional(value)
    }
}
