/// Turns the tree of a Foundation predicate, which `#Predicate` builds, into an `NSPredicate`.
///
/// Each kind of node translates itself (``PredicateTranslating``). This type keeps the shared state: the meanings of
/// the variables. Parts of the tree without variables are computed at once and become constants.
package struct PredicateTranslator {
    private var bindings: [PredicateExpressions.VariableID: Translation] = [:]
    /// The number of enclosing subqueries, by which their variables are named.
    private var depth = 0

    // MARK: - Entry points

    /// The `NSPredicate` with the meaning of a predicate with one input, `SELF`.
    ///
    /// - Throws: ``PredicateTranslationError`` that names the part without a counterpart.
    package static func predicate<Root>(_ predicate: Predicate<Root>) throws -> NSPredicate {
        var translator = PredicateTranslator()
        translator.bindings[predicate.variable.key] = .value(NSExpression.expressionForEvaluatedObject())
        return try translator.condition(predicate.expression)
    }

    /// The `NSExpression` with the meaning of an expression with one input, `SELF`.
    ///
    /// - Throws: ``PredicateTranslationError`` that names the part without a counterpart.
    package static func expression<Root, Value>(_ expression: Expression<Root, Value>) throws -> NSExpression {
        var translator = PredicateTranslator()
        translator.bindings[expression.variable.key] = .value(NSExpression.expressionForEvaluatedObject())
        return try translator.value(expression.expression)
    }

    // MARK: - Nodes

    mutating func translate(_ node: some PredicateExpression) throws -> Translation {
        if let known = try? node.evaluate(PredicateBindings()), let constant = try Self.constant(known) {
            return constant
        }
        guard let translating = node as? any PredicateTranslating else {
            throw PredicateTranslationError("\(type(of: node)) cannot be translated into an NSPredicate.")
        }
        return try translating.translate(&self)
    }

    mutating func condition(_ node: some PredicateExpression) throws -> NSPredicate {
        try translate(node).truth()
    }

    mutating func value(_ node: some PredicateExpression) throws -> NSExpression {
        try translate(node).expression()
    }

    // MARK: - Variables

    func binding(of variable: PredicateExpressions.VariableID) throws -> Translation {
        guard let binding = bindings[variable] else {
            throw PredicateTranslationError("The predicate uses a variable of another predicate.")
        }
        return binding
    }

    /// Runs `body` with a variable whose meaning is `translation`.
    mutating func binding<Result>(
        _ variable: PredicateExpressions.VariableID,
        to translation: Translation,
        _ body: (inout Self) throws -> Result
    ) rethrows -> Result {
        let outer = bindings.updateValue(translation, forKey: variable)
        defer { bindings[variable] = outer }
        return try body(&self)
    }

    /// Runs `body` with a variable for each member of a collection, under the given name.
    mutating func iterating<Result>(
        _ variable: PredicateExpressions.VariableID,
        _ body: (inout Self, _ name: String) throws -> Result
    ) rethrows -> Result {
        let names = ["x", "y", "z"]
        let name = depth < names.count ? names[depth] : "x\(depth - names.count + 1)"
        depth += 1
        defer { depth -= 1 }
        return try binding(variable, to: .value(NSExpression(forVariable: name))) { try body(&$0, name) }
    }

    // MARK: - Constants

    /// A value of the program as a constant; `nil` if predicates do not know its type.
    static func constant(_ any: Any?) throws -> Translation? {
        guard let value = flattenOptional(any) else { return .value(NSExpression(forConstantValue: nil)) }
        if let truth = value as? Bool, type(of: value) == Bool.self { return .condition(NSPredicate(value: truth)) }
        if let range = value as? any BoundedRange { return Translation(.interval(try range.interval())) }
        if let scalar = scalar(value) { return .value(NSExpression(forConstantValue: scalar)) }
        guard let members = collectionMembers(of: value) else { return nil }
        var scalars: [Any] = []
        var isPlain = true
        for member in members {
            guard let member else {
                scalars.append(NSNull())
                continue
            }
            guard let scalar = scalar(member) else { return nil }
            // A constant of another layer has become a value of another type.
            isPlain = isPlain && !(member is any RawRepresentable) && type(of: member) == type(of: scalar)
            scalars.append(scalar)
        }
        return .value(NSExpression(forConstantValue: isPlain && value is [Any] ? value : scalars))
    }

    private static func scalar(_ value: Any) -> Any? {
        if let character = value as? Character { return String(character) }
        if let text = value as? Substring { return String(text) }
        guard let scalar = PredicateValue(scalar: value) else { return KeyPathNamers.constant(value) }
        // An enumeration is stored as its raw value.
        if type(of: value) is AnyClass { return value }
        if let representable = value as? any RawRepresentable, !(value is any BinaryInteger) {
            return scalar.anyValue ?? representable.rawValue
        }
        return value
    }

    // MARK: - Properties

    /// The value of a property of the object that a translation means.
    func property(_ name: String, of owner: Translation) throws -> Translation {
        Translation(.value(Self.path(name, behind: try owner.plainExpression())), presence: owner.presence)
    }

    /// An expression with further steps of a path.
    static func path(_ path: String, behind expression: NSExpression) -> NSExpression {
        if path == "SELF" { return expression }
        switch expression.kind {
        case .evaluatedObject: return NSExpression(forKeyPath: path)
        case .keyPath(let start): return NSExpression(forKeyPath: start + "." + path)
        case .function(KeyPathFunction.name, let target?, let arguments):
            if let start = KeyPathFunction.path(of: arguments) {
                return KeyPathFunction.make(target, start + "." + path)
            }
        default: break
        }
        return KeyPathFunction.make(expression, path)
    }
}

extension Translation {
    /// The value alone.
    ///
    /// The caller keeps the condition of its presence.
    func plainExpression() throws -> NSExpression {
        try Translation(form).expression()
    }
}

/// A node of Foundation's predicate trees that has a counterpart in the format language.
protocol PredicateTranslating: PredicateExpression {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation
}

/// A range of Swift.
private protocol BoundedRange {
    func interval() throws -> Interval
}

extension BoundedRange {
    fileprivate func bound(_ value: Any) throws -> NSExpression {
        guard let bound = try PredicateTranslator.constant(value) else {
            throw PredicateTranslationError("A range of \(type(of: value)) cannot be translated into an NSPredicate.")
        }
        return try bound.expression()
    }
}

extension ClosedRange: BoundedRange {
    fileprivate func interval() throws -> Interval {
        Interval(lower: try bound(lowerBound), upper: try bound(upperBound), includesUpper: true)
    }
}

extension Range: BoundedRange {
    fileprivate func interval() throws -> Interval {
        Interval(lower: try bound(lowerBound), upper: try bound(upperBound), includesUpper: false)
    }
}

extension PartialRangeFrom: BoundedRange {
    fileprivate func interval() throws -> Interval {
        Interval(lower: try bound(lowerBound), upper: nil, includesUpper: false)
    }
}

extension PartialRangeUpTo: BoundedRange {
    fileprivate func interval() throws -> Interval {
        Interval(lower: nil, upper: try bound(upperBound), includesUpper: false)
    }
}

extension PartialRangeThrough: BoundedRange {
    fileprivate func interval() throws -> Interval {
        Interval(lower: nil, upper: try bound(upperBound), includesUpper: true)
    }
}
