// Optionals and casts.

extension PredicateExpressions.ForcedUnwrap: PredicateTranslating {
    /// Evaluating the predicate in Swift would throw for nil; a store continues with null.
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.translate(inner)
    }
}

extension PredicateExpressions.OptionalFlatMap: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let optional = try translator.translate(wrapped)
        let source = try optional.plainExpression()
        let inner = try translator.binding(variable.key, to: .value(source)) { try $0.translate(transform) }
        var result = inner.requiring(optional.presence)
        if isToMany(LHS.Output.self) { return result }
        if case .value(let expression) = inner.form, Conditions.isNull(expression, ifNull: source) { return result }
        result.presence = Conditions.all([Conditions.isPresent(source), result.presence])
        return result
    }
}

extension PredicateExpressions.NilCoalesce: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let optional = try translator.translate(lhs)
        let fallback = try translator.translate(rhs)
        if RHS.Output.self == Bool.self { return .condition(try truth(optional, fallback)) }
        if isToMany(LHS.Output.self), optional.presence == nil { return optional }
        if optional.presence == nil, case .value(let value) = optional.form, let constant = fallback.constant,
            let constant
        {
            return Translation(.defaulted(value, fallback: constant))
        }
        return .value(
            NSExpression(
                forConditional: optional.isPresent(),
                trueExpression: try optional.plainExpression(),
                falseExpression: try fallback.expression()
            )
        )
    }

    private func truth(_ optional: Translation, _ fallback: Translation) throws -> NSPredicate {
        let isTrue = try optional.truth()
        let isMissing = Conditions.not(optional.isPresent())
        switch fallback.constantTruth {
        case false?: return isTrue
        case true?:
            // If the value is missing, the result of the condition does not matter.
            let plain = try Translation(optional.form).truth()
            return Conditions.any([isMissing, plain])
        case nil: return Conditions.any([isTrue, Conditions.all([isMissing, try fallback.truth()])])
        }
    }
}

// MARK: - Casts

extension PredicateExpressions.ForceCast: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.cast(input, to: Desired.self)
    }
}

extension PredicateExpressions.ConditionalCast: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.cast(input, to: Desired.self)
    }
}

extension PredicateExpressions.TypeCheck: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let value = try translator.cast(input, to: Desired.self)
        return .condition(value.isPresentObject ? NSPredicate(value: true) : value.isPresent())
    }
}

extension Translation {
    /// Whether the translation is an object that always exists: the evaluated object, or a member.
    fileprivate var isPresentObject: Bool {
        guard case .value(let expression) = form, presence == nil else { return false }
        switch expression.kind {
        case .evaluatedObject, .variable: return true
        default: return false
        }
    }
}

extension PredicateTranslator {
    /// Translates a cast that changes nothing, or one to a sub-entity, which gives nil for other objects.
    fileprivate mutating func cast<Input: PredicateExpression, Desired>(
        _ input: Input,
        to type: Desired.Type
    ) throws -> Translation {
        let from = unwrapped(Input.Output.self)
        let to = unwrapped(Desired.self)
        if from != to, isSubclass(to, of: from), let target = KeyPathNamers.castName(of: to) {
            let source = try translate(input)
            let name = NSExpression(forConstantValue: target)
            let cast = NSExpression(
                forFunction: PredefinedFunction.cast.rawValue,
                arguments: [try source.plainExpression(), name]
            )
            return Translation(.value(cast), presence: source.presence)
        }
        guard from == to || isSubclass(from, of: to) else {
            throw PredicateTranslationError(
                "A cast from \(Input.Output.self) to \(Desired.self) cannot be translated into an NSPredicate; objects can be cast to sub-entities only."
            )
        }
        return try translate(input)
    }

    private func isSubclass(_ type: Any.Type, of other: Any.Type) -> Bool {
        guard let superclass = other as? AnyClass else { return false }
        var current: AnyClass? = type as? AnyClass
        while let type = current {
            if type == superclass { return true }
            current = _getSuperclass(type)
        }
        return false
    }
}

/// Whether a type is that of a to-many relationship: a collection of objects, optional or not.
///
/// Stores have no null for it, only an empty collection.
private func isToMany(_ type: Any.Type) -> Bool {
    func member<Members: Collection>(_ type: Members.Type) -> Any.Type { Members.Element.self }
    guard let collection = unwrapped(type) as? any Collection.Type else { return false }
    return KeyPathNamers.castName(of: member(collection)) != nil
}

/// A type without its optional layers.
package func unwrapped(_ type: Any.Type) -> Any.Type {
    (type as? any WrappingType.Type)?.wrappedType ?? type
}

private protocol WrappingType {
    static var wrappedType: Any.Type { get }
}

extension Optional: WrappingType {
    fileprivate static var wrappedType: Any.Type { unwrapped(Wrapped.self) }
}
