import StrataLocks

/// A predicate that compares the values of two expressions.
///
/// `NSPredicate(format:)` returns an instance of this class for a format that is one comparison, so
/// `predicate as? NSComparisonPredicate` succeeds there. Instances are immutable.
///
/// ```swift
/// let cheap = NSComparisonPredicate(
///     leftExpression: NSExpression(forKeyPath: "price"), rightExpression: NSExpression(forConstantValue: 20), modifier: .direct,
///     type: .lessThan)
/// request.predicate = cheap
/// ```
open class NSComparisonPredicate: NSPredicate {
    /// The operand on the left of the operator.
    public let leftExpression: NSExpression
    /// The operand on the right of the operator.
    public let rightExpression: NSExpression
    /// Whether the left operand is one value or a collection of which all or any members must satisfy the comparison.
    public let comparisonPredicateModifier: Modifier
    /// The operator.
    public let predicateOperatorType: Operator
    /// How strings are compared.
    public let options: Options
    /// The method of a custom comparison, `nil` for every other operator.
    public let customSelector: Selector?

    /// The number of levels of expressions and predicates, including this one.
    package let depth: Int

    private let membership = Locked<PredicateValueSet??>(nil)

    /// A comparison of two expressions.
    ///
    /// ```swift
    /// request.predicate = NSComparisonPredicate(
    ///     leftExpression: NSExpression(forKeyPath: "name"), rightExpression: NSExpression(forConstantValue: "hot"), modifier: .direct,
    ///     type: .beginsWith, options: [.caseInsensitive])
    /// ```
    ///
    /// - Parameters:
    ///   - lhs: The left operand.
    ///   - rhs: The right operand.
    ///   - modifier: `.direct` to compare the values, `.any` and `.all` to compare each member of the left operand.
    ///   - type: The operator; `.customSelector` needs ``init(leftExpression:rightExpression:customSelector:)``.
    ///   - options: For string comparisons, `[]` by default.
    public init(
        leftExpression lhs: NSExpression,
        rightExpression rhs: NSExpression,
        modifier: Modifier,
        type: Operator,
        options: Options = []
    ) {
        leftExpression = lhs
        rightExpression = rhs
        comparisonPredicateModifier = modifier
        predicateOperatorType = type
        self.options = options
        customSelector = nil
        depth = 1 + max(lhs.depth, rhs.depth)
        // With a constant, Foundation would take `NSPredicate(value:)` on the left of `==` for equal.
        super.init(block: { _, _ in false })
    }

    /// A comparison by a method of the left value that takes the right value.
    ///
    /// Without an Objective-C runtime the known methods are `isEqual:`, `isEqualToString:`, `isEqualToNumber:`,
    /// `hasPrefix:`, `hasSuffix:`, `containsString:` and `containsObject:`; others evaluate as false. A store refuses
    /// all of them.
    ///
    /// - Parameters:
    ///   - lhs: The expression whose value the method is called on.
    ///   - rhs: The expression whose value is the method's argument.
    ///   - selector: The method.
    public init(leftExpression lhs: NSExpression, rightExpression rhs: NSExpression, customSelector selector: Selector)
    {
        leftExpression = lhs
        rightExpression = rhs
        comparisonPredicateModifier = .direct
        predicateOperatorType = .customSelector
        options = []
        customSelector = selector
        depth = 1 + max(lhs.depth, rhs.depth)
        // With a constant, Foundation would take `NSPredicate(value:)` on the left of `==` for equal.
        super.init(block: { _, _ in false })
    }

    /// The right side of `IN` as a set, if it is a large constant collection of plain values.
    ///
    /// It is hashed once for all look-ups.
    package var constantSet: PredicateValueSet? {
        guard predicateOperatorType == .in, case .constant(let value) = rightExpression.kind else { return nil }
        return membership.withLock { known in
            if let known { return known }
            let members = collectionMembers(of: value) ?? []
            let values = members.count < 8 ? [] : members.compactMap { PredicateValue(scalar: $0) }
            let set =
                values.isEmpty || values.count < members.count
                ? nil : PredicateValueSet(values, folding: StringFolding(options))
            known = .some(set)
            return set
        }
    }

    /// Whether the comparison holds for an object.
    ///
    /// A comparison that cannot be made is false.
    ///
    /// - Returns: False also if an operand is nil and the operator compares sizes.
    open override func evaluate(with object: Any?) -> Bool {
        evaluate(with: object, substitutionVariables: nil)
    }

    /// Whether the comparison holds for an object, with `bindings` for its variables.
    ///
    /// A comparison that cannot be made is false.
    ///
    /// - Returns: The result of ``evaluate(with:)``.
    open override func evaluate(with object: Any?, substitutionVariables bindings: [String: Any]?) -> Bool {
        (try? evaluateOrThrow(with: object, substitutionVariables: bindings)) ?? false
    }

    /// The comparison in the format language.
    open override var predicateFormat: String {
        FormatPrinter.text(of: self)
    }

    /// The comparison in the format language.
    open override var description: String {
        FormatPrinter.text(of: self)
    }

    /// Comparisons are immutable: the copy is the comparison itself.
    open override func copy(with zone: NSZone? = nil) -> Any {
        self
    }

    /// Structural equality.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPredicate else { return false }
        return predicatesAreEqual(self, other)
    }

    /// A hash that agrees with structural equality.
    open override var hash: Int {
        var hasher = Hasher()
        hashPredicate(self, into: &hasher)
        return hasher.finalize()
    }
}

extension NSComparisonPredicate {
    /// How a collection on the left takes part in a comparison.
    ///
    /// ```swift
    /// let any = NSPredicate(format: "ANY venues.price < 20") as? NSComparisonPredicate
    /// print(any?.comparisonPredicateModifier == .any)
    /// ```
    public enum Modifier: UInt, Sendable {
        /// The two values are compared directly.
        case direct = 0
        /// Every member of the left collection must satisfy the comparison; true for an empty one.
        case all = 1
        /// At least one member of the left collection must satisfy the comparison; false for an empty one.
        case any = 2
    }

    /// The operators, with Apple's raw values.
    ///
    /// ```swift
    /// let cheap = NSPredicate(format: "price < 20") as? NSComparisonPredicate
    /// print(cheap?.predicateOperatorType == .lessThan)
    /// ```
    public enum Operator: UInt, Sendable {
        /// `<`
        case lessThan = 0
        /// `<=`
        case lessThanOrEqualTo = 1
        /// `>`
        case greaterThan = 2
        /// `>=`
        case greaterThanOrEqualTo = 3
        /// `==`
        case equalTo = 4
        /// `!=`
        case notEqualTo = 5
        /// `MATCHES`: a regular expression covers the whole string.
        case matches = 6
        /// `LIKE`: `?` stands for one character, `*` for any number.
        case like = 7
        /// `BEGINSWITH`
        case beginsWith = 8
        /// `ENDSWITH`
        case endsWith = 9
        /// `IN`: member of a collection, or substring.
        case `in` = 10
        /// A named method.
        case customSelector = 11
        /// `CONTAINS`: has a member or a substring.
        case contains = 99
        /// `BETWEEN`: both ends included.
        case between = 100
    }

    /// How strings are compared.
    ///
    /// ```swift
    /// let named = NSPredicate(format: "name ==[cd] 'musica'") as? NSComparisonPredicate
    /// print(named?.options == [.caseInsensitive, .diacriticInsensitive])
    /// ```
    public struct Options: OptionSet, Hashable, Sendable {
        /// Apple's bit mask.
        public let rawValue: UInt

        /// Options from Apple's bit mask.
        ///
        /// - Parameter rawValue: The bits.
        public init(rawValue: UInt) {
            self.rawValue = rawValue
        }

        /// `[c]`: capital and small letters are the same.
        public static let caseInsensitive = Options(rawValue: 1)
        /// `[d]`: letters with and without diacritical marks are the same.
        public static let diacriticInsensitive = Options(rawValue: 2)
        /// `[n]`: both sides are known to be normalised, and are compared byte by byte whatever the other options say.
        public static let normalized = Options(rawValue: 4)
        /// `[l]`: canonically equivalent spellings are the same.
        ///
        /// Apple gives the letter no public constant.
        package static let localeSensitive = Options(rawValue: 8)
    }
}
