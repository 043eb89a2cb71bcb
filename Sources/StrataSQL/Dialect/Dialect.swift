import StrataPredicates

/// The differences between databases in the SQL that the compiler writes, as one value for each database.
///
/// The compiler uses it for every text that is not the same in all databases. It does not define the meaning of
/// functions: the engine does so for each name on its connections.
package struct Dialect: Sendable {
    /// The text of a parameter with a number, from 1.
    package let parameter: @Sendable (_ number: Int) -> String
    /// The name of a function of values, or of an aggregate over the values of a collection.
    package let function: @Sendable (PredefinedFunction) -> String
    /// The name of an aggregate over the rows of a statement; `nil` if every database has it under its own name.
    package let aggregate: @Sendable (PredefinedFunction) -> String?
    /// The name of a test of a text against a pattern: `name(text, pattern, folding)`.
    package let stringTest: @Sendable (StringMatcher.Test) -> String
    /// The name of the conversion `name(value, type, target)`.
    package let cast: String
    /// The collation for a folding; `nil` for none: the database's own order of bytes.
    package let foldingCollation: @Sendable (StringFolding) -> String?
    /// The collation for a sort; `nil` for the database's own order.
    package let sortCollation: @Sendable (SortComparison) -> String?
    /// A sub-select of the members of a list that is bound to one parameter, given the text of the parameter.
    package let members: @Sendable (String) -> String
    /// The test whether the key of a row is in such a list, with a blank in front.
    ///
    /// It is `nil` if the test for other values is used.
    package let keyTest: (@Sendable (String) -> String)?
    /// The forms of SQL that databases write differently.
    package let forms: SQLForms
    /// The rules for the columns of tables.
    package let columns: SQLColumnRules
    /// The rules for the names of tables and columns.
    package let naming: SQLNaming
    /// The user info in which a model has settings for the database; `nil` if the database has none.
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
