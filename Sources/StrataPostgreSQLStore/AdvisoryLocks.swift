/// The numbers of the advisory locks that stores take.
///
/// All programs that use a database share the numbers of its locks, so Docs/PostgreSQL.md names these.
enum AdvisoryLocks {
    /// The key of a lock of 64 bits of which each schema has one.
    ///
    /// - Parameters:
    ///   - number: Which lock it is.
    ///   - schema: The expression of the schema's name.
    /// - Returns: An expression.
    private static func key(_ number: Int, ofSchema schema: String) -> String {
        "pg_catalog.hashtextextended(\(schema), \(number))"
    }

    /// Whoever makes or migrates a store has this one; the parameter is the name of the schema.
    static let shape = key(7274, ofSchema: "$1")
    /// Whoever gives numbers to transactions has this one.
    static let numbering = key(7275, ofSchema: "pg_catalog.current_schema()")

    /// All who have a store open share a lock of which this is the first number; the second is of the schema.
    static let sessions = 7276
    /// The first number of a lock that is taken to see whether the server shows it; the second is the process.
    static let trial = 7277
}
