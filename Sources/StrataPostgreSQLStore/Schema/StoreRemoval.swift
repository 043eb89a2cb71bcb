import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataSQL

/// Drops the tables and sequences of a store, and its schema unless it contains other objects.
///
/// It is used by one thread, in the transaction that is open.
struct StoreRemoval {
    private let connection: Connection
    private let target: ConnectionTarget
    /// The names of the tables and sequences, without the bookkeeping tables; `nil` if the store has not noted them.
    private let noted: [String]?

    init(of metadata: StoreMetadata, at target: ConnectionTarget, on connection: Connection) {
        self.connection = connection
        self.target = target
        noted = metadata.tableNames.map { $0 + metadata.generations.otherNames }
    }

    /// Drops the tables and sequences of the store, and its schema if nothing else is in it and the role may drop it.
    ///
    /// - Returns: The other objects in the schema, which then stays; empty if the schema is gone, or empty.
    /// - Throws: `persistentStoreOperation` (134070) if an object that does not belong to the store depends on its
    ///   tables; ``PostgreSQLError``.
    func drop() throws -> [String] {
        let (tables, sequences) = try own()
        let isDropped = try attempt(ifRefused: ["2BP01"]) {
            // One statement drops all tables, because they may refer to each other.
            try connection.command("DROP TABLE \(Self.list(tables))")
            if !sequences.isEmpty { try connection.command("DROP SEQUENCE \(Self.list(sequences))") }
        }
        guard isDropped else { throw refusal(try dependents(of: tables)) }
        try PreparedParts.removeFunctions(connection)
        let isGone = try attempt(ifRefused: ["2BP01", "42501"]) {
            try connection.command("DROP SCHEMA \(target.quotedSchema)")
        }
        return isGone ? [] : try others()
    }

    /// Runs `body`, and undoes it if the server refuses it for one of the given reasons.
    ///
    /// - Returns: Whether it was done.
    private func attempt(ifRefused states: Set<String>, _ body: () throws -> Void) throws -> Bool {
        try connection.command("SAVEPOINT strata_removal")
        do {
            try body()
        } catch let error as PostgreSQLError where states.contains(error.sqlState) && !connection.isBroken {
            try connection.command("ROLLBACK TO SAVEPOINT strata_removal")
            return false
        }
        return true
    }

    private static func list(_ names: [SQLName]) -> String { names.map(\.description).joined(separator: ", ") }

    private static func array(_ names: [SQLName]) -> PostgreSQLValue {
        var array = PostgreSQLArray(.text)
        for name in names { array.append(name.raw) }
        return .array(array)
    }

    // MARK: - What is the store's

    /// The existing tables and sequences of the store.
    ///
    /// If a store has not noted their names, then these are its bookkeeping tables, the tables with its three columns
    /// or with foreign keys that it has made, and their sequences.
    private func own() throws -> (tables: [SQLName], sequences: [SQLName]) {
        let naming = SQLNaming.postgresql
        let found = try connection.query(
            """
            SELECT c.relname::text, c.relkind = 'S', (SELECT COUNT(*) FROM pg_catalog.pg_attribute AS a
            WHERE a.attrelid = c.oid AND NOT a.attisdropped
            AND a.attname IN ('strata_id', 'strata_entity', 'strata_version')),
            EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conrelid = c.oid AND k.contype = 'f'
            AND pg_catalog.strpos(k.conname::text, $1) = 1)
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND c.relkind IN ('r', 'p', 'S') ORDER BY 1
            """,
            [.text(ForeignKey.prefix)]
        )
        var names = Set(PostgreSQLSchema.books.map(\.name) + PortableTables.names)
        if let noted {
            names.formUnion(noted)
        } else {
            for row in found.rows where row.int64(1) == 0 && (row.int64(2) == 3 || row.int64(3) != 0) {
                names.formUnion([row.string(0), PostgreSQLName.sequence(row.string(0))])
            }
        }
        let own = found.rows.filter { names.contains($0.string(0)) }
        return (
            own.filter { $0.int64(1) == 0 }.map { naming.name($0.string(0)) },
            own.filter { $0.int64(1) != 0 }.map { naming.name($0.string(0)) }
        )
    }

    // MARK: - What is not

    /// The objects that depend on tables, each in a few words: views, foreign keys of other tables, functions.
    private func dependents(of tables: [SQLName]) throws -> [String] {
        let found = try connection.query(
            """
            WITH own AS (SELECT c.oid, c.reltype, c.relname FROM pg_catalog.pg_class AS c
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND c.relname::text = ANY($1))
            SELECT DISTINCT CASE WHEN r.oid IS NULL THEN pg_catalog.pg_describe_object(d.classid, d.objid, 0)
            ELSE pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, r.ev_class, 0) END, own.relname::text
            FROM pg_catalog.pg_depend AS d JOIN own
            ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = own.oid
            OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid = own.reltype
            LEFT JOIN pg_catalog.pg_constraint AS k
            ON d.classid = 'pg_catalog.pg_constraint'::regclass AND k.oid = d.objid
            LEFT JOIN pg_catalog.pg_rewrite AS r
            ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid
            WHERE d.deptype = 'n' AND d.classid <> 'pg_catalog.pg_policy'::regclass
            AND (k.oid IS NULL OR k.conrelid NOT IN (SELECT oid FROM own))
            AND (r.oid IS NULL OR r.ev_class NOT IN (SELECT oid FROM own)) ORDER BY 2, 1
            """,
            [Self.array(tables)]
        )
        return found.rows.map { "\($0.string(0)) (of \($0.string(1)))" }
    }

    private func refusal(_ dependents: [String]) -> CocoaError {
        let list = dependents.isEmpty ? "" : ": \(Self.first(of: dependents))"
        let reason = "something else depends on its tables\(list). Drop that first. Nothing was changed."
        return CocoaError(
            .persistentStoreOperation,
            userInfo: [NSLocalizedDescriptionKey: "The store \(target.place) cannot be destroyed, as \(reason)"]
        )
    }

    /// The objects in the schema: tables, views, sequences, functions and types, by their names.
    private func others() throws -> [String] {
        let found = try connection.query(
            """
            SELECT c.relname::text FROM pg_catalog.pg_class AS c
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c', 'S')
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = 'pg_catalog.pg_class'::regclass
            AND d.objid = c.oid AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
            UNION SELECT p.proname::text || '()' FROM pg_catalog.pg_proc AS p
            JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = pg_catalog.current_schema()
            UNION SELECT t.typname::text FROM pg_catalog.pg_type AS t
            JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
            WHERE n.nspname = pg_catalog.current_schema() AND t.typtype IN ('d', 'e') ORDER BY 1
            """
        )
        return found.rows.map { $0.string(0) }
    }

    /// The first of some names, and the number of the others.
    static func first(of names: [String]) -> String {
        names.prefix(10).joined(separator: ", ") + (names.count > 10 ? ", and \(names.count - 10) more" : "")
    }
}
