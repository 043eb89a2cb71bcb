import StrataPredicates

/// What differs between databases in the SQL that the compiler writes: one value for each database.
///
/// The compiler asks here for everything that is not the same text everywhere. What a function does is not said here but by the
/// engine, which gives each name a meaning on its connections.
package struct Dialect: Sendable {
    /// How the parameter of a number, from 1, is written.
    package let parameter: @Sendable (_ number: Int) -> String
    /// The name of a function of values, or of an aggregate over the values of a collection.
    package let function: @Sendable (PredefinedFunction) -> String
    /// The name of an aggregate over the rows of a statement; `nil` for one that every database has under its own name.
    package let aggregate: @Sendable (PredefinedFunction) -> String?
    /// The name of a test of a text against a pattern: `name(text, pattern, folding)`.
    package let stringTest: @Sendable (StringMatcher.Test) -> String
    /// The name of the conversion `name(value, type, target)`.
    package let cast: String
    /// The collation for a folding; `nil` for none, which is the database's own order of bytes.
    package let foldingCollation: @Sendable (StringFolding) -> String?
    /// The collation for a sort; `nil` for the database's own order.
    package let sortCollation: @Sendable (SortComparison) -> String?
    /// A sub-select of the members of a list that stands for one parameter, given how that is written.
    package let members: @Sendable (String) -> String
    /// The test whether the key of a row is among the members of such a list, with a blank in front; `nil` if it is that of any value.
    package let keyTest: (@Sendable (String) -> String)?
    /// The forms of SQL that databases spell differently.
    package let forms: SQLForms
    /// The columns of tables.
    package let columns: SQLColumnRules
    /// The names of tables and columns.
    package let naming: SQLNaming
    /// Where a model says what it wants of the database; `nil` if nobody looks.
    package let hints: SQLHints?

    package init(
        parameter: @escaping @Sendable (Int) -> String,
        function: @escaping @Sendable (PredefinedFunction) -> String,
        aggregate: @escaping @Sendable (PredefinedFunction) -> String?,
        stringTest: @escaping @Sendable (StringMatcher.Test) -> String,
        cast: String,
        foldingCollation: @escaping @Sendable (StringFolding) -> String?,
        sortCollation: @escaping @Sendable (SortComparison) -> String?,
        members: @escaping @Sendable (String) -> String,
        keyTest: (@Sendable (String) -> String)? = nil,
        forms: SQLForms,
        columns: SQLColumnRules,
        naming: SQLNaming,
        hints: SQLHints? = nil
    ) {
        self.parameter = parameter
        self.function = function
        self.aggregate = aggregate
        self.stringTest = stringTest
        self.cast = cast
        self.foldingCollation = foldingCollation
        self.sortCollation = sortCollation
        self.members = members
        self.keyTest = keyTest
        self.forms = forms
        self.columns = columns
        self.naming = naming
        self.hints = hints
    }
}
