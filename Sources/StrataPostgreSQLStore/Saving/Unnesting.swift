import StrataPostgreSQL

// One statement writes many rows. Its parameters are arrays of the same length, one for each column. If they are in the
// SELECT list, then the server takes the rows from the arrays one by one. In FROM it would make a table of each array
// first, which takes two thirds longer for an insertion of 100 rows with eight columns (without indexes, PostgreSQL
// 15).

/// The SELECT list for rows in arrays of parameters, from the types of their elements and the number of the first
/// parameter.
func unnestedColumns(_ types: [PostgreSQLType], from first: Int) -> String {
    types.enumerated().map { "pg_catalog.unnest($\(first + $0)::\($1.array.name))" }.joined(separator: ", ")
}

/// The rows as a table; its name and those of its columns have to follow.
///
/// If the rows need numbers, then these are another array. With `generate_series` the server would expect a thousand
/// rows, and plan anew each time.
func unnested(_ types: [PostgreSQLType], from first: Int) -> String {
    "(SELECT \(unnestedColumns(types, from: first)))"
}
