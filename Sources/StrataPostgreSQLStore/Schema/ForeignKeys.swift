import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataSQL

/// The foreign keys of a store: finds the existing ones, and makes the missing ones.
///
/// They are part of the database, which alone shows whether a store has any. It is used by one thread, with the
/// connection that it was made for.
struct ForeignKeys {
    private let connection: Connection
    private let keys: [ForeignKey]
    private let naming: SQLNaming

    /// A foreign key that a store has.
    struct Found: Hashable {
        let table: SQLName
        let name: SQLName
    }

    /// The state of a foreign key.
    struct State {
        /// Whether all rows were found to satisfy it.
        let isValid: Bool
        /// Whether it is checked when a transaction commits.
        let isDeferred: Bool

        var isRight: Bool { isValid && isDeferred }
    }

    /// Rows that keep a store from having a foreign key.
    typealias Violation = (key: ForeignKey, count: Int64)

    init(_ mapping: SQLMapping, _ connection: Connection) {
        self.connection = connection
        keys = ForeignKey.all(mapping)
        naming = mapping.dialect.naming
    }

    // MARK: - What is there

    /// The foreign keys of the store that the session sees.
    static func found(_ connection: Connection) throws -> [Found: State] {
        let found = try connection.query(
            """
            SELECT t.relname::text, c.conname::text, c.convalidated, c.condeferrable AND c.condeferred FROM pg_catalog.pg_constraint AS c
            JOIN pg_catalog.pg_class AS t ON t.oid = c.conrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
            WHERE c.contype = 'f' AND n.nspname = pg_catalog.current_schema() AND pg_catalog.strpos(c.conname::text, $1) = 1
            ORDER BY 1, 2
            """,
            [.text(ForeignKey.prefix)]
        )
        let name = SQLNaming.postgresql.name
        return Dictionary(
            found.rows.map { row in
                (
                    Found(table: name(row.string(0)), name: name(row.string(1))),
                    State(isValid: row.int64(2) != 0, isDeferred: row.int64(3) != 0)
                )
            }
        ) { first, _ in first }
    }

    /// Removes all of them except for some, in the transaction that is open.
    ///
    /// - Returns: Whether there were any.
    static func drop(_ connection: Connection, except standing: Set<Found>) throws -> Bool {
        let found = try found(connection).keys
        try drop(found.filter { !standing.contains($0) }, connection)
        return !found.isEmpty
    }

    private static func drop(_ found: [Found], _ connection: Connection) throws {
        for key in found.sorted(by: { ($0.table.raw, $0.name.raw) < ($1.table.raw, $1.name.raw) }) {
            try connection.command("ALTER TABLE \(key.table) DROP CONSTRAINT \(key.name)")
        }
    }

    private func isWanted(_ found: Found) -> Bool { keys.contains { $0.found == found } }

    /// The faults of the foreign keys, one sentence each; none if the store has no foreign keys at all.
    func problems() throws -> [String] {
        let found = try Self.found(connection)
        guard !found.isEmpty else { return [] }
        let wanted = keys.compactMap { key -> String? in
            guard let state = found[key.found] else {
                return "the foreign key \(key.name.raw) is missing"
            }
            if !state.isValid {
                return "the foreign key \(key.name.raw) is not valid for rows that were there before it"
            }
            return state.isDeferred ? nil : "the foreign key \(key.name.raw) is looked at before transactions commit"
        }
        let others = found.keys.filter { !isWanted($0) }.map(\.name.raw).sorted()
        return wanted + others.map { "the foreign key \($0) is none of the model's" }
    }

    // MARK: - Making them

    /// Makes the missing foreign keys that the rows of the store allow, in the transaction that is open.
    ///
    /// - Returns: The rows that do not allow others. The caller must roll back if there are any.
    func make() throws -> [Violation] {
        let found = try Self.found(connection)
        var violations: [Violation] = []
        for key in keys {
            let state = found[key.found]
            guard state?.isRight != true else { continue }
            try connection.command("SAVEPOINT strata_key")
            do {
                if state == nil {
                    try connection.command(key.creation(naming))
                } else {
                    let of = "ALTER TABLE \(key.table)"
                    try connection.command("\(of) ALTER CONSTRAINT \(key.name) DEFERRABLE INITIALLY DEFERRED")
                    try connection.command("\(of) VALIDATE CONSTRAINT \(key.name)")
                }
            } catch let error as PostgreSQLError where error.isForeignKeyViolation {
                // The server would report only one row, with its values.
                try connection.command("ROLLBACK TO SAVEPOINT strata_key")
                violations.append((key, try connection.query(key.violations(naming)).firstInt64 ?? 0))
            }
            try connection.command("RELEASE SAVEPOINT strata_key")
        }
        try requireDeferred()
        return violations
    }

    /// Refuses a server that accepts the statement but checks foreign keys at once, because it would refuse saves for
    /// the order of their rows.
    private func requireDeferred() throws {
        let found = try Self.found(connection)
        guard let key = keys.first(where: { found[$0.found]?.isDeferred == false }) else { return }
        throw PostgreSQLError(
            .server,
            sqlState: "0A000",
            "the server does not put off looking at the foreign key \(key.name.raw) until transactions commit"
        )
    }

    /// How many milliseconds to wait for a table: a wait for its lock keeps others from writing to it.
    private static let lockTimeout = 1000

    /// Gives a store these foreign keys and no others, in a separate transaction.
    ///
    /// Saves wait for it meanwhile.
    ///
    /// - Parameters:
    ///   - target: Where the store is.
    ///   - timeout: How many seconds others may keep its tables locked.
    ///   - isExpected: Checks the store's metadata, once no other process can migrate the store any more.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if there are rows that do not allow it,
    ///   `persistentStoreTimeout` (134090) if others keep a table locked; nothing is changed then.
    func begin(_ target: ConnectionTarget, timeout: Double, _ isExpected: (StoreMetadata) throws -> Void) throws {
        let found = try Self.found(connection)
        guard keys.contains(where: { found[$0.found]?.isRight != true }) || !found.keys.allSatisfy(isWanted) else {
            return
        }
        let end = ContinuousClock.now + .seconds(timeout)
        // Checking the rows of large tables may take long.
        let patience = connection.patience
        connection.patience = max(timeout, 86_400)
        defer { connection.patience = patience }
        while true {
            do {
                return try attempt(target, isExpected)
            } catch let error as PostgreSQLError
                where (error.sqlState == "55P03" || error.isTransient) && ContinuousClock.now < end
            {
                // Others may proceed before the next attempt.
                try connection.rollback()
                usleep(UInt32.random(in: 50_000..<200_000))
            }
        }
    }

    private func attempt(_ target: ConnectionTarget, _ isExpected: (StoreMetadata) throws -> Void) throws {
        try connection.command(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = \(Self.lockTimeout); \(PostgreSQLEngine.workSetting)"
        )
        try OpenPostgreSQLStore.lockShape(of: target, connection)
        if let metadata = try StoreMetadata.read(connection, target.place) { try isExpected(metadata) }
        // All tables are locked at once, so that nothing waits for a table during the work. Readers do not wait, unless
        // a foreign key is dropped.
        let tables = Set(keys.flatMap { [$0.table.description, $0.target.description] }).sorted()
        if !tables.isEmpty {
            try connection.command("LOCK TABLE \(tables.joined(separator: ", ")) IN SHARE ROW EXCLUSIVE MODE")
        }
        // Another version of the model may have other delete rules, and the same tables.
        try Self.drop(Self.found(connection).keys.filter { !isWanted($0) }, connection)
        let violations = try make()
        guard violations.isEmpty else { throw Self.refusal(violations, target.place) }
        try connection.commit()
    }

    private static func refusal(_ violations: [Violation], _ place: String) -> CocoaError {
        let list = violations.map { "\($0.key.entity).\($0.key.relationship): \(reason($0.count))" }
        return CocoaError.described(
            .persistentStoreIncompatibleSchema,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The store \(place) cannot have foreign keys, and is as it was. \(list.joined(separator: "; ")). Correct these rows first, or add the store without the option."
            ]
        ).marked(.environment)
    }

    /// The fault of rows that do not allow a foreign key.
    static func reason(_ count: Int64) -> String {
        count == 1 ? "1 row leads to an object that is not there" : "\(count) rows lead to objects that are not there"
    }
}

extension ForeignKey {
    /// The table and the name by which the database has it.
    var found: ForeignKeys.Found { ForeignKeys.Found(table: table, name: name) }
}
