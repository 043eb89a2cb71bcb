// Dictionaries of the program, with a value of the object as the key: a chain of choices.

extension PredicateExpressions.DictionaryKeySubscript: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.lookUp(key, in: wrapped, otherwise: NSExpression(forConstantValue: nil))
    }
}

extension PredicateExpressions.DictionaryKeyDefaultValueSubscript: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.lookUp(key, in: wrapped, otherwise: try translator.value(self.default))
    }
}

extension PredicateTranslator {
    /// The largest dictionary; for a larger one the chain of choices would take too many steps.
    private static let largestDictionary = 100

    fileprivate mutating func lookUp<Key: PredicateExpression, Dictionary: PredicateExpression>(
        _ key: Key,
        in dictionary: Dictionary,
        otherwise: NSExpression
    ) throws -> Translation {
        guard let known = try? dictionary.evaluate(PredicateBindings()), let entries = known as? any Entries else {
            throw PredicateTranslationError(
                "A dictionary of an object cannot be asked for a key in an NSPredicate; only one of the program can."
            )
        }
        guard entries.count <= Self.largestDictionary else {
            throw PredicateTranslationError(
                "A dictionary of \(entries.count) entries is too large for an NSPredicate; \(Self.largestDictionary) are allowed."
            )
        }
        let key = try value(key)
        // The order is fixed, so that the same dictionary gives the same text.
        let choices = try entries.pairs.map { (try constantExpression($0), try constantExpression($1)) }
            .sorted { $0.0.description > $1.0.description }
        return .value(
            choices.reduce(otherwise) { rest, choice in
                NSExpression(
                    forConditional: Conditions.compare(key, .equalTo, to: choice.0),
                    trueExpression: choice.1,
                    falseExpression: rest
                )
            }
        )
    }

    private func constantExpression(_ value: Any) throws -> NSExpression {
        guard let constant = try Self.constant(value) else {
            throw PredicateTranslationError("A dictionary of \(type(of: value)) cannot stand in an NSPredicate.")
        }
        return try constant.expression()
    }
}

/// A dictionary of any types.
private protocol Entries {
    var count: Int { get }
    var pairs: [(Any, Any)] { get }
}

extension Dictionary: Entries {
    fileprivate var pairs: [(Any, Any)] { map { ($0.key, $0.value) } }
}
