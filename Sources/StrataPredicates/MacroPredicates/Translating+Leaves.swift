// Constants, variables and key paths.

extension PredicateExpressions.Value: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        throw PredicateTranslationError(
            "A value of type \(Output.self) cannot stand in an NSPredicate: only numbers, strings, dates, UUIDs, URLs, data, enumerations over those, managed objects and their IDs, collections and ranges of them."
        )
    }
}

extension PredicateExpressions.NilLiteral: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        .value(NSExpression(forConstantValue: nil))
    }
}

extension PredicateExpressions.Variable: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        try translator.binding(of: key)
    }
}

extension PredicateExpressions.KeyPath: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let owner = try translator.translate(root)
        if AnyKeyPath.hasNames(of: Root.Output.self) {
            return try translator.property(try keyPath.predicateName(), of: owner)
        }
        if let kind = commonKind { return try translate(kind, of: owner, translator) }
        if isRawValue { return owner }
        throw PredicateTranslationError(
            "The property \(keyPath) of \(Root.Output.self) has no counterpart in an NSPredicate."
        )
    }

    private var commonKind: CommonKeyPathKind? {
        if let kind { return kind }
        // Foundation's own collections are no collections of Swift.
        let path: AnyKeyPath = keyPath
        return path == \NSSet.count || path == \NSOrderedSet.count ? .collectionCount : nil
    }

    private func translate(
        _ kind: CommonKeyPathKind,
        of owner: Translation,
        _ translator: PredicateTranslator
    ) throws -> Translation {
        if case .filtered(let conditions) = owner.form, let answer = try filtered(kind, conditions) { return answer }
        let collection = try owner.plainExpression()
        let isText = Root.Output.self is any StringProtocol.Type
        let count =
            isText || Root.Output.self == Data.self
            ? NSExpression(forFunction: PredefinedFunction.length.rawValue, arguments: [collection])
            : PredicateTranslator.path("@count", behind: collection)
        switch kind {
        case .collectionCount: return Translation(.value(count), presence: owner.presence)
        case .collectionIsEmpty:
            let isEmpty =
                isText
                ? Conditions.compare(collection, .equalTo, to: NSExpression(forConstantValue: ""))
                : Conditions.compare(count, .equalTo, to: NSExpression(forConstantValue: 0))
            return Translation(.condition(isEmpty), presence: owner.presence)
        case .collectionFirst where !isText: return Translation(member(collection, .first), presence: owner.presence)
        case .bidirectionalCollectionLast where !isText:
            return Translation(member(collection, .last), presence: owner.presence)
        default:
            throw PredicateTranslationError(
                "The property \(keyPath) of \(Root.Output.self) has no counterpart in an NSPredicate."
            )
        }
    }

    /// The number of members of a filtered collection of the program, or whether there are none.
    private func filtered(_ kind: CommonKeyPathKind, _ conditions: [NSPredicate]) throws -> Translation? {
        switch kind {
        case .collectionIsEmpty: return .condition(Conditions.not(Conditions.any(conditions)))
        case .collectionCount:
            guard conditions.count <= 100 else {
                throw PredicateTranslationError(
                    "A collection of \(conditions.count) members is too large to be counted in an NSPredicate; 100 are allowed."
                )
            }
            let ones = try conditions.map { try Translation.condition($0).expression() }
            let sum = NSExpression(
                forFunction: PredefinedFunction.sum.rawValue,
                arguments: [NSExpression(forAggregate: ones)]
            )
            return .value(sum)
        default: return nil
        }
    }

    private func member(_ collection: NSExpression, _ index: IndexSymbol) -> Translation.Form {
        .value(
            NSExpression(
                forFunction: PredefinedFunction.index.rawValue,
                arguments: [collection, NSExpression(forConstantValue: index)]
            )
        )
    }

    /// Whether the key path is the raw value of an enumeration, which is the value in a store.
    private var isRawValue: Bool {
        guard let type = Root.Output.self as? any RawRepresentable.Type else { return false }
        func holds<Value: RawRepresentable>(_ type: Value.Type) -> Bool { Output.self == Value.RawValue.self }
        return holds(type)
    }
}
