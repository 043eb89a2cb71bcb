import StrataPredicates

/// The forms of SQL that databases spell differently, as one database spells them.
package struct SQLForms: Sendable {
    /// A truth value that stands as a condition by itself.
    package let truth: @Sendable (Bool) -> String
    /// The operator that compares two values and finds two NULLs equal.
    package let equalityOfNulls: String
    /// Whether a negation is written as the opposite comparison, or NULL, which an index can serve; else around the condition.
    package let negatesInside: Bool
    /// What follows a term of an order, with a blank in front.
    ///
    /// NULL comes first if the order ascends, and last if it descends.
    package let direction: @Sendable (_ ascending: Bool) -> String
    /// Whether UUIDs have a type of their own; else they are bytes.
    package let hasUUIDs: Bool
    /// Whether decimals keep all of their digits; else they are whole numbers or doubles.
    package let hasDecimals: Bool
    /// A column, as it is compared and computed with.
    package let attribute: @Sendable (_ column: String, _ type: PredicateAttributeType) -> String
    /// The collation that compares texts byte by byte.
    package let byteCollation: String
    /// The type of floating-point numbers of 64 bits, as CAST names it.
    package let double: String
    /// The type in which whole numbers are computed with, if columns may have narrower ones.
    package let wideInteger: String?
    /// What is written before a column so that it counts as a computed value.
    ///
    /// No index serves it then, and nothing that it is compared with is converted to the type of the column.
    package let computed: String
    /// The sum of a column, 0 if there are no values; `nil` if the database's own is not ours, and a function of ours has to be called.
    ///
    /// `order` is what the values are added by; `nil` if any order will do.
    package let sum: @Sendable (_ column: String, _ numbers: SummedNumbers, _ order: String?) -> String?
    /// The average of a column, 0 if there are no values.
    package let average: @Sendable (_ column: String, _ numbers: SummedNumbers, _ order: String?) -> String
    /// Whether whatever is selected of a group has to be named in GROUP BY, even if the keys of the group determine it.
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

/// Numbers that are added up, by what may happen to their sum.
package enum SummedNumbers: Sendable {
    /// Whole numbers of 32 bits at most: the sum of as many as a table has fits into 64 bits.
    case short
    /// Whole numbers of 64 bits.
    case long
    /// All others, as doubles: what is lost depends on the order in which they are added.
    case fractional
}
