/// The numbers of the advisory locks that stores take.
///
/// All programs that use a database share the numbers of its locks, so Docs/PostgreSQL.md names these.
enum AdvisoryLocks {
    /// The key of a lock with a number of 64 bits; each schema has one.
    ///
    /// - Parameters:
    ///   - number: The number that chooses the lock.
    ///   - schema: The expression of the schema's name.
    /// - Returns: An expression.
    private static func key(_ number: Int, ofSchema schema: String) -> String {
        "pg_catalog.hashtextextended(\(schema), \(number))"
    }

    /// The lock for making or migrating a store; the parameter is the name of the schema.
    static let shape = key(7274, ofSchema: "$1")
    /// The lock for giving numbers to transactions.
    static let numbering = key(7275, ofSchema: "pg_catalog.current_schema()")

    /// The first number of a lock that all sessions share which have the store open; the second number stands for the
    /// schema.
    static let sessions = 7276
    /// The first number of a lock that tests whether the server shows locks; the second number is the process.
    static let trial = 7277
}
