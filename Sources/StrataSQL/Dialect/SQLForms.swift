import StrataPredicates

/// The forms of SQL that databases spell differently, as one database spells them.
package struct SQLForms: Sendable {
    /// A truth value that stands as a condition by itself.
    package let truth: @Sendable (Bool) -> String
    /// The operator that compares two values and finds two NULLs equal.
    package let equalityOfNulls: String
    /// What follows a term of an order, with a blank in front.
    ///
    /// NULL comes first if the order ascends, and last if it descends.
    package let direction: @Sendable (_ ascending: Bool) -> String
    /// Whether UUIDs have a type of their own; else they are bytes.
    package let hasUUIDs: Bool
    /// A column, as it is compared and computed with.
    package let attribute: @Sendable (_ column: String, _ type: PredicateAttributeType) -> String
    /// The collation that compares texts byte by byte.
    package let byteCollation: String
    /// The type of floating-point numbers of 64 bits, as CAST names it.
    package let double: String
    /// What is written before a column so that it counts as a computed value.
    ///
    /// No index serves it then, and nothing that it is compared with is converted to the type of the column.
    package let computed: String
    /// The sum of a column of numbers that are not whole, 0 if there is none.
    package let sumOfDoubles: @Sendable (_ column: String) -> String
    /// Whether a text contains another, compared byte by byte.
    package let contains: @Sendable (_ text: String, _ pattern: String) -> String
    /// The longest pattern, in bytes, for which ``contains`` is faster than the function for the test.
    package let longestContained: Int

    package init(
        truth: @escaping @Sendable (Bool) -> String,
        equalityOfNulls: String,
        direction: @escaping @Sendable (_ ascending: Bool) -> String,
        hasUUIDs: Bool,
        attribute: @escaping @Sendable (_ column: String, _ type: PredicateAttributeType) -> String,
        byteCollation: String,
        double: String,
        computed: String,
        sumOfDoubles: @escaping @Sendable (_ column: String) -> String,
        contains: @escaping @Sendable (_ text: String, _ pattern: String) -> String,
        longestContained: Int
    ) {
        self.truth = truth
        self.equalityOfNulls = equalityOfNulls
        self.direction = direction
        self.hasUUIDs = hasUUIDs
        self.attribute = attribute
        self.byteCollation = byteCollation
        self.double = double
        self.computed = computed
        self.sumOfDoubles = sumOfDoubles
        self.contains = contains
        self.longestContained = longestContained
    }
}
