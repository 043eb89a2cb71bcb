/// The numbers of the advisory locks that stores take.
///
/// All programs that use a database share the numbers of its locks, so Docs/PostgreSQL.md names these.
enum AdvisoryLocks {
    /// The key of a lock with a number of 64 bits; each schema has one, or several that have names.
    ///
    /// - Parameters:
    ///   - number: The number that chooses the lock.
    ///   - schema: The expression of the schema's name, with the name of the lock if there are several.
    /// - Returns: An expression.
    private static func key(_ number: Int, ofSchema schema: String) -> String {
        "pg_catalog.hashtextextended(\(schema), \(number))"
    }

    /// The lock for making or migrating a store; the parameter is the name of the schema.
    static let shape = key(7274, ofSchema: "$1")
    /// The lock for giving numbers to transactions.
    static let numbering = key(7275, ofSchema: "pg_catalog.current_schema()")

    /// The lock for preparing a migration; the parameter is the name of the schema.
    static let preparation = key(7278, ofSchema: "$1")

    /// The lock for claims within a quota; the parameter is the name of the quota.
    static let quota = key(7279, ofSchema: "pg_catalog.current_schema()::text || '/' || $1::text")

    /// The first number of a lock that all sessions share which have the store open; the second number stands for the
    /// schema.
    static let sessions = 7276
    /// The first number of a lock that tests whether the server shows locks; the second number is the process.
    static let trial = 7277
}
