extension NSExpression {
    /// The kinds of expressions, with Apple's raw values.
    ///
    /// ```swift
    /// print(NSExpression(format: "price").expressionType == .keyPath)
    /// ```
    public enum ExpressionType: UInt, Sendable {
        /// A fixed value.
        case constantValue = 0
        /// `SELF`.
        case evaluatedObject = 1
        /// `$name`.
        case variable = 2
        /// `a.b.c`.
        case keyPath = 3
        /// A predefined function, or a method called on a target.
        case function = 4
        /// `a UNION b`.
        case unionSet = 5
        /// `a INTERSECT b`.
        case intersectSet = 6
        /// `a MINUS b`.
        case minusSet = 7
        /// `SUBQUERY(collection, $variable, predicate)`.
        case subquery = 13
        /// `{a, b}`.
        case aggregate = 14
        /// `ANYKEY`.
        case anyKey = 15
        /// A value computed by code.
        case block = 19
        /// `TERNARY(predicate, a, b)`.
        case conditional = 20
        /// A fetch request used as a collection; on Apple a constant beside the enumeration.
        case fetchRequest = 50
    }

    /// The kind of the expression.
    public var expressionType: ExpressionType {
        switch kind {
        case .constant: .constantValue
        case .evaluatedObject: .evaluatedObject
        case .variable: .variable
        case .keyPath: .keyPath
        case .function: .function
        case .setOperation(.union, _, _): .unionSet
        case .setOperation(.intersect, _, _): .intersectSet
        case .setOperation(.minus, _, _): .minusSet
        case .subquery: .subquery
        case .aggregate: .aggregate
        case .anyKey: .anyKey
        case .block: .block
        case .conditional: .conditional
        case .custom(let type): type
        }
    }

    /// The value of a constant expression.
    ///
    /// Traps on other kinds.
    public var constantValue: Any? {
        guard case .constant(let value) = kind else { refuse("constantValue") }
        return value
    }

    /// The key path of a key path expression.
    ///
    /// Traps on other kinds.
    public var keyPath: String {
        guard case .keyPath(let path) = kind else { refuse("keyPath") }
        return path
    }

    /// The name of a function expression: the predefined function, or the method's selector.
    ///
    /// Traps on other kinds.
    public var function: String {
        guard case .function(let name, _, _) = kind else { refuse("function") }
        return name
    }

    /// The name of a variable, or of the iterator of a subquery, without its dollar sign.
    ///
    /// Traps on other kinds.
    public var variable: String {
        switch kind {
        case .variable(let name), .subquery(_, let name, _): name
        default: refuse("variable")
        }
    }

    /// The object that a method is called on.
    ///
    /// Traps if there is none.
    public var operand: NSExpression {
        switch kind {
        case .function(_, let target?, _): target
        case .keyPath: NSExpression.expressionForEvaluatedObject()
        default: refuse("operand")
        }
    }

    /// The arguments of a function or block; `nil` for other kinds.
    public var arguments: [NSExpression]? {
        switch kind {
        case .function(_, _, let arguments), .block(_, let arguments): arguments
        default: nil
        }
    }

    /// The members of an aggregate (an array of expressions), or the collection that a subquery filters.
    ///
    /// Traps on other kinds.
    public var collection: Any {
        switch kind {
        case .aggregate(let members): members
        case .subquery(let source, _, _): source
        default: refuse("collection")
        }
    }

    /// The predicate of a subquery or of a conditional expression.
    ///
    /// Traps on other kinds.
    public var predicate: NSPredicate {
        switch kind {
        case .subquery(_, _, let predicate), .conditional(let predicate, _, _): predicate
        default: refuse("predicate")
        }
    }

    /// The first operand of a set operation.
    ///
    /// Traps on other kinds.
    public var left: NSExpression {
        guard case .setOperation(_, let left, _) = kind else { refuse("left") }
        return left
    }

    /// The second operand of a set operation.
    ///
    /// Traps on other kinds.
    public var right: NSExpression {
        guard case .setOperation(_, _, let right) = kind else { refuse("right") }
        return right
    }

    /// The value of a conditional expression if its predicate holds.
    ///
    /// Traps on other kinds.
    public var `true`: NSExpression {
        guard case .conditional(_, let expression, _) = kind else { refuse("true") }
        return expression
    }

    /// The value of a conditional expression if its predicate does not hold.
    ///
    /// Traps on other kinds.
    public var `false`: NSExpression {
        guard case .conditional(_, _, let expression) = kind else { refuse("false") }
        return expression
    }

    /// The code of a block expression.
    ///
    /// Traps on other kinds.
    public var expressionBlock: Block {
        guard case .block(let block, _) = kind else { refuse("expressionBlock") }
        return block
    }

    /// Does nothing: expressions are never decoded here in a state that forbids evaluation.
    public func allowEvaluation() {}

    private func refuse(_ member: String) -> Never {
        fatalError(
            "NSExpression.\(member) is not defined for an expression of type \(expressionType): \(self)"
        )
    }
}
