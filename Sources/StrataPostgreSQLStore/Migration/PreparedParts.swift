import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataSQL

/// The objects that preparations of migrations have made in a schema: columns, triggers with their functions, indexes,
/// and foreign keys.
///
/// No model knows them. A process that is killed leaves them, and the next migration uses or removes them. It is used by
/// one thread.
struct PreparedParts {
    /// The prefix of their names.
    static let prefix = "strata_prepared_"

    private let connection: Connection
    private let naming = SQLNaming.postgresql
    private(set) var columns: [Part] = []
    private(set) var triggers: [Part] = []
    /// The indexes; one that is not valid is the rest of an interrupted statement.
    private(set) var indexes: [Part] = []
    private(set) var foreignKeys: [Part] = []

    /// One of them.
    struct Part: Hashable {
        let table: SQLName
        let name: SQLName
        /// Whether it is complete: a trigger that always fires, an index or a foreign key that is valid.
        let isComplete: Bool
        /// The text that changes when the part is changed.
        let stamp: String
    }

    /// The name of the object with a definition.
    ///
    /// Another definition has another name. So a process that finds the name need not know which one has made the object.
    static func name(_ definition: String) -> SQLName {
        let digest = SHA2.sha256(Data(definition.utf8)).prefix(12)
        let digits = digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        return SQLNaming.postgresql.name(prefix + digits)
    }

    /// Finds those in the schema of the session.
    init(_ connection: Connection) throws {
        self.connection = connection
        let found = try connection.query(
            """
            SELECT 'column', c.relname::text, a.attname::text, true, a.xmin::text FROM pg_catalog.pg_attribute AS a
            JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid WHERE \(Self.isHere) AND c.relkind IN ('r', 'p')
            AND NOT a.attisdropped AND pg_catalog.strpos(a.attname::text, $1) = 1
            UNION ALL
            SELECT 'trigger', c.relname::text, t.tgname::text, t.tgenabled = 'A', t.xmin::text || ' ' || p.xmin::text
            FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
            JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
            WHERE \(Self.isHere) AND NOT t.tgisinternal AND pg_catalog.strpos(t.tgname::text, $1) = 1
            UNION ALL
            SELECT 'index', c.relname::text, x.relname::text, i.indisvalid AND i.indisready, i.xmin::text
            FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
            JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
            WHERE \(Self.isHere) AND pg_catalog.strpos(x.relname::text, $1) = 1
            UNION ALL
            SELECT 'key', c.relname::text, k.conname::text, k.convalidated, k.xmin::text
            FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
            WHERE \(Self.isHere) AND k.contype = 'f' AND pg_catalog.strpos(k.conname::text, $1) = 1
            ORDER BY 1, 2, 3
            """,
            [.text(Self.prefix)]
        )
        for row in found.rows {
            let part = Part(
                table: naming.name(row.string(1)),
                name: naming.name(row.string(2)),
                isComplete: row.int64(3) != 0,
                stamp: row.string(4)
            )
            switch row.string(0) {
            case "column": columns.append(part)
            case "trigger": triggers.append(part)
            case "index": indexes.append(part)
            default: foreignKeys.append(part)
            }
        }
    }

    private static let isHere = """
        c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
        """

    /// The tables that have some of them.
    var tables: Set<SQLName> { Set((columns + triggers + indexes + foreignKeys).map(\.table)) }

    func has(column name: SQLName, of table: SQLName) -> Bool {
        columns.contains { $0.table == table && $0.name == name }
    }

    func trigger(_ name: SQLName, of table: SQLName) -> Part? {
        triggers.first { $0.table == table && $0.name == name }
    }

    func index(_ name: SQLName) -> Part? { indexes.first { $0.name == name } }

    func foreignKey(_ name: SQLName, of table: SQLName) -> Part? {
        foreignKeys.first { $0.table == table && $0.name == name }
    }

    // MARK: - Removing

    /// Removes those with other names than the given ones, in the transaction that is open.
    ///
    /// - Parameters:
    ///   - names: The names of those that stay.
    ///   - table: The only table that is looked at; `nil` for all.
    /// - Throws: ``PostgreSQLError``.
    func remove(except names: Set<SQLName>, of table: SQLName? = nil) throws {
        func isUnwanted(_ part: Part) -> Bool {
            !names.contains(part.name) && (table == nil || part.table == table)
        }
        for key in foreignKeys where isUnwanted(key) {
            try connection.command("ALTER TABLE \(key.table) DROP CONSTRAINT \(key.name)")
        }
        for trigger in triggers where isUnwanted(trigger) {
            try connection.command("DROP TRIGGER \(trigger.name) ON \(trigger.table)")
        }
        for index in indexes where isUnwanted(index) { try connection.command("DROP INDEX IF EXISTS \(index.name)") }
        for column in columns where isUnwanted(column) {
            try connection.command("ALTER TABLE \(column.table) DROP COLUMN \(column.name)")
        }
        try Self.removeFunctions(connection)
    }

    /// Removes the functions that no trigger calls any more, in the transaction that is open.
    static func removeFunctions(_ connection: Connection) throws {
        let found = try connection.query(
            """
            SELECT p.proname::text FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
            WHERE n.nspname = pg_catalog.current_schema() AND pg_catalog.strpos(p.proname::text, $1) = 1
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgfoid = p.oid)
            """,
            [.text(prefix)]
        )
        for row in found.rows {
            try connection.command("DROP FUNCTION IF EXISTS \(SQLNaming.postgresql.name(row.string(0)))()")
        }
    }
}
