import StrataPostgreSQL

// Many rows are one statement, whose parameters are arrays: one for each column, all of the same length. In a list of what is selected the
// server takes the rows from the arrays one by one. In FROM it would make a table of each array first, which takes it two thirds longer for an
// insertion of 100 rows with eight columns (without indexes, PostgreSQL 15).

/// What selects the rows that arrays of parameters are, given the types of their elements and the number of the first parameter.
func unnestedColumns(_ types: [PostgreSQLType], from first: Int) -> String {
    types.enumerated().map { "pg_catalog.unnest($\(first + $0)::\($1.array.name))" }.joined(separator: ", ")
}

/// The rows as a table, to be followed by its name and those of its columns.
///
/// Numbers of the rows are an array more. Would the server count them (`generate_series`), it would expect a thousand rows, and plan anew each time.
func unnested(_ types: [PostgreSQLType], from first: Int) -> String {
    "(SELECT \(unnestedColumns(types, from: first)))"
}
