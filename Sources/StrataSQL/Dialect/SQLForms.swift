import StrataPredicates

/// The forms of SQL that databases write differently, in the form of one database.
package struct SQLForms: Sendable {
    /// A truth value that is a condition by itself.
    package let truth: @Sendable (Bool) -> String
    /// The operator that compares two values and regards two NULLs as equal.
    package let equalityOfNulls: String
    /// Whether a negation is written as the opposite comparison, or NULL, for which an index can be used.
    ///
    /// Otherwise it is written around the condition.
    package let negatesInside: Bool
    /// The text after a term of an order, with a blank in front.
    ///
    /// NULL comes first if the order is ascending, and last if it is descending.
    package let direction: @Sendable (_ ascending: Bool) -> String
    /// Whether there is a type for UUIDs; otherwise they are bytes.
    package let hasUUIDs: Bool
    /// Whether decimals keep all of their digits; otherwise they are whole numbers or doubles.
    package let hasDecimals: Bool
    /// A column in the form for comparisons and computations.
    package let attribute: @Sendable (_ column: String, _ type: PredicateAttributeType) -> String
    /// The collation that compares texts byte by byte.
    package let byteCollation: String
    /// The name of 64-bit floating-point numbers in CAST.
    package let double: String
    /// The type for computations with whole numbers, if columns may have narrower ones.
    package let wideInteger: String?
    /// The text before a column by which it counts as a computed value.
    ///
    /// Then no index is used for it, and values that it is compared with are not converted to the type of the column.
    package let computed: String
    /// The sum of a column, 0 if there are no values.
    ///
    /// It is `nil` if the database's own sum has another meaning than ours, so that our function has to be called.
    /// `order` is the order in which the values are added; `nil` for any.
    package let sum: @Sendable (_ column: String, _ numbers: SummedNumbers, _ order: String?) -> String?
    /// The average of a column, 0 if there are no values.
    package let average: @Sendable (_ column: String, _ numbers: SummedNumbers, _ order: String?) -> String
    /// Whether every selected part of a group has to be named in GROUP BY, even if the keys of the group determine it.
    package let namesAllOfGroup: Bool
    /// Whether a text contains another, compared byte by byte.
    package let contains: @Sendable (_ text: String, _ pattern: String) -> String
    /// The longest pattern, in bytes, for which ``contains`` is faster than the function for the test.
    package let longestContained: Int

    package init(
        truth: @escaping @Sendable (Bool) -> String,
        equalityOfNulls: String,
        negatesInside: Bool,
        direction: @escaping @Sendable (_ ascending: Bool) -> String,
        hasUUIDs: Bool,
        hasDecimals: Bool,
        attribute: @escaping @Sendable (_ column: String, _ type: PredicateAttributeType) -> String,
        byteCollation: String,
        double: String,
        wideInteger: String? = nil,
        computed: String,
        sum: @escaping @Sendable (String, SummedNumbers, String?) -> String?,
        average: @escaping @Sendable (String, SummedNumbers, String?) -> String,
        namesAllOfGroup: Bool,
        contains: @escaping @Sendable (_ text: String, _ pattern: String) -> String,
        longestContained: Int
    ) {
        self.truth = truth
        self.equalityOfNulls = equalityOfNulls
        self.negatesInside = negatesInside
        self.direction = direction
        self.hasUUIDs = hasUUIDs
        self.hasDecimals = hasDecimals
        self.attribute = attribute
        self.byteCollation = byteCollation
        self.double = double
        self.wideInteger = wideInteger
        self.computed = computed
        self.sum = sum
        self.average = average
        self.namesAllOfGroup = namesAllOfGroup
        self.contains = contains
        self.longestContained = longestContained
    }
}

/// The kinds of numbers that are added, by the possible problems of their sum.
package enum SummedNumbers: Sendable {
    /// Whole numbers of 32 bits at most: the sum of all rows of a table fits into 64 bits.
    case short
    /// Whole numbers of 64 bits.
    case long
    /// All others, as doubles: the rounding errors depend on the order of addition.
    case fractional
}
