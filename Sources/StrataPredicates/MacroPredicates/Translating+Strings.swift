// Strings.

extension PredicateExpressions.CollectionContainsCollection: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        guard Base.Output.self is any StringProtocol.Type, Other.Output.self is any StringProtocol.Type else {
            throw PredicateTranslationError(
                "Whether a \(Base.Output.self) contains a \(Other.Output.self) cannot be translated into an NSPredicate; strings only."
            )
        }
        return .condition(try Operands(translator.translate(base), translator.translate(other)).search(.contains))
    }
}

extension PredicateExpressions.SequenceStartsWith: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        guard Base.Output.self is any StringProtocol.Type, Prefix.Output.self is any StringProtocol.Type else {
            throw PredicateTranslationError(
                "Whether a \(Base.Output.self) starts with a \(Prefix.Output.self) cannot be translated into an NSPredicate; strings only."
            )
        }
        return .condition(try Operands(translator.translate(base), translator.translate(prefix)).search(.beginsWith))
    }
}

extension PredicateExpressions.StringContainsRegex: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let text = try translator.translate(subject)
        guard let regex = try regex.evaluate(PredicateBindings()) as? PredicateExpressions.PredicateRegex else {
            throw PredicateTranslationError("A regular expression has to be a literal or a captured constant.")
        }
        // MATCHES covers the whole string, line breaks included.
        let pattern = "(?s:.*)(?:\(regex.stringRepresentation))(?s:.*)"
        let matches = Conditions.compare(
            try text.plainExpression(),
            .matches,
            to: NSExpression(forConstantValue: pattern)
        )
        return .condition(Conditions.all([text.presence, matches]))
    }
}

extension Operands {
    /// A search with Swift's meaning: every string contains the empty one.
    ///
    /// The format language never finds the empty string.
    fileprivate func search(_ operation: NSComparisonPredicate.Operator) throws -> NSPredicate {
        if case .some("" as String) = right.constant { return left.isPresent() }
        return try compare(operation)
    }
}

// MARK: - Comparisons by methods

/// The comparisons of `String` that `#Predicate` generates on every platform but Foundation implements only on Apple's.
extension PredicateExpressions {
    /// `text.localizedStandardContains(other)`: whether a string contains another, whatever the case and the diacritics.
    ///
    /// ```swift
    /// request.predicate = try NSPredicate(
    ///     translating: #Predicate<Venue> { $0.name.localizedStandardContains("musica") })
    /// ```
    public struct StringLocalizedStandardContains<Root: PredicateExpression, Other: PredicateExpression>:
        PredicateExpression
    where Root.Output: StringProtocol, Other.Output: StringProtocol {
        /// Whether the string contains the other.
        public typealias Output = Bool
        /// The string that is searched.
        public let root: Root
        /// The string to find.
        public let other: Other

        /// A search for `other` in `root`.
        ///
        /// - Parameters:
        ///   - root: The string that is searched.
        ///   - other: The string to find.
        public init(root: Root, other: Other) {
            self.root = root
            self.other = other
        }

        /// Evaluates both strings and searches.
        ///
        /// - Parameter bindings: The values of the predicate's variables.
        /// - Returns: Whether the first string contains the second.
        /// - Throws: Errors of evaluating the strings.
        public func evaluate(_ bindings: PredicateBindings) throws -> Bool {
            String(try root.evaluate(bindings)).localizedStandardContains(String(try other.evaluate(bindings)))
        }
    }

    /// `text.caseInsensitiveCompare(other)`: the order of two strings, whatever the case.
    ///
    /// ```swift
    /// let same = ComparisonResult.orderedSame
    /// request.predicate = try NSPredicate(
    ///     translating: #Predicate<Venue> { $0.name.caseInsensitiveCompare("hot five") == same })
    /// ```
    public struct StringCaseInsensitiveCompare<Root: PredicateExpression, Other: PredicateExpression>:
        PredicateExpression
    where Root.Output: StringProtocol, Other.Output: StringProtocol {
        /// The order of the two strings.
        public typealias Output = ComparisonResult
        /// The first string.
        public let root: Root
        /// The second string.
        public let other: Other

        /// A comparison of `root` with `other`.
        ///
        /// - Parameters:
        ///   - root: The first string.
        ///   - other: The second string.
        public init(root: Root, other: Other) {
            self.root = root
            self.other = other
        }

        /// Evaluates both strings and compares.
        ///
        /// - Parameter bindings: The values of the predicate's variables.
        /// - Returns: The order of the two strings.
        /// - Throws: Errors of evaluating the strings.
        public func evaluate(_ bindings: PredicateBindings) throws -> ComparisonResult {
            String(try root.evaluate(bindings)).caseInsensitiveCompare(String(try other.evaluate(bindings)))
        }
    }

    /// `#Predicate` calls this for `root.localizedStandardContains(other)`.
    ///
    /// - Parameters:
    ///   - root: The string that is searched.
    ///   - other: The string to find.
    /// - Returns: A part of the predicate.
    public static func build_localizedStandardContains<Root, Other>(
        _ root: Root,
        _ other: Other
    ) -> StringLocalizedStandardContains<Root, Other> {
        StringLocalizedStandardContains(root: root, other: other)
    }

    /// `#Predicate` calls this for `root.caseInsensitiveCompare(other)`.
    ///
    /// - Parameters:
    ///   - root: The first string.
    ///   - other: The second string.
    /// - Returns: A part of the predicate.
    public static func build_caseInsensitiveCompare<Root, Other>(
        _ root: Root,
        _ other: Other
    ) -> StringCaseInsensitiveCompare<Root, Other> {
        StringCaseInsensitiveCompare(root: root, other: other)
    }
}

extension PredicateExpressions.StringLocalizedStandardContains: Sendable where Root: Sendable, Other: Sendable {}
extension PredicateExpressions.StringLocalizedStandardContains: Codable where Root: Codable, Other: Codable {}
extension PredicateExpressions.StringLocalizedStandardContains: StandardPredicateExpression
where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}

extension PredicateExpressions.StringCaseInsensitiveCompare: Sendable where Root: Sendable, Other: Sendable {}
extension PredicateExpressions.StringCaseInsensitiveCompare: Codable where Root: Codable, Other: Codable {}
extension PredicateExpressions.StringCaseInsensitiveCompare: StandardPredicateExpression
where Root: StandardPredicateExpression, Other: StandardPredicateExpression {}

extension PredicateExpressions.StringLocalizedStandardContains: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let operands = Operands(try translator.translate(root), try translator.translate(other))
        return .condition(try operands.compare(.contains, [.caseInsensitive, .diacriticInsensitive]))
    }
}

extension PredicateExpressions.StringCaseInsensitiveCompare: PredicateTranslating {
    func translate(_ translator: inout PredicateTranslator) throws -> Translation {
        let left = try translator.translate(root)
        let right = try translator.translate(other)
        let order = StringOrder(
            left: try left.expression(),
            right: try right.expression(),
            options: .caseInsensitive
        )
        return Translation(.order(order))
    }
}
