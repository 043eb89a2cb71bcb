import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The belongings of dropped tables that their successors get: owner, privileges, triggers, storage parameters, replica
/// identity, and publications.
///
/// It is used by one thread, in one transaction.
struct TableBelongings {
    /// A table that replaces another one.
    struct Successor {
        let old: SQLName
        let new: SQLName
        /// The columns that are kept, with their old and new names.
        let columns: [(old: SQLName, new: SQLName)]
    }

    private struct Privilege {
        let kind: String
        /// The grantee in SQL.
        let grantee: String
        let mayBePassedOn: Bool
        /// The column; `nil` for the whole table.
        let column: String?
    }

    private struct Trigger {
        let name: String
        let definition: String
        /// The setting in SQL that decides when the trigger fires; `nil` for the default.
        let firing: String?
    }

    private let connection: Connection
    private var privileges: [String: [Privilege]] = [:]
    private var owners: [String: String] = [:]
    private var triggers: [String: [Trigger]] = [:]
    /// The storage parameters, in the form that `SET` takes.
    private var parameters: [String: String] = [:]
    /// The replica identities that are not the default.
    private var replicaIdentities: [String: String] = [:]
    private var publications: [String: [String]] = [:]

    /// Reads the belongings of tables and sequences in the schema of the session, while these exist.
    init(of names: [SQLName], _ connection: Connection) throws {
        self.connection = connection
        let list = PostgreSQLValue.array(Self.array(names))
        let owned = try connection.query(
            """
            SELECT c.relname::text, pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(c.relowner)) FROM pg_catalog.pg_class AS c
            WHERE \(Self.areNamed) AND pg_catalog.pg_get_userbyid(c.relowner) <> current_user
            """,
            [list]
        )
        for row in owned.rows { owners[row.string(0)] = row.string(1) }
        let granted = try connection.query(
            """
            SELECT c.relname::text, NULL::text, \(Self.privilege) FROM pg_catalog.pg_class AS c
            CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS x WHERE \(Self.areNamed) AND x.grantee <> c.relowner
            UNION ALL
            SELECT c.relname::text, a.attname::text, \(Self.privilege) FROM pg_catalog.pg_class AS c
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            CROSS JOIN LATERAL pg_catalog.aclexplode(a.attacl) AS x WHERE \(Self.areNamed) AND x.grantee <> c.relowner
            """,
            [list]
        )
        for row in granted.rows {
            privileges[row.string(0), default: []].append(
                Privilege(
                    kind: row.string(2),
                    grantee: row.string(3),
                    mayBePassedOn: row.int64(4) != 0,
                    column: row.optionalString(1)
                )
            )
        }
        let made = try connection.query(
            """
            SELECT c.relname::text, pg_catalog.quote_ident(t.tgname), pg_catalog.pg_get_triggerdef(t.oid),
            CASE t.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' END
            FROM pg_catalog.pg_trigger AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
            WHERE \(Self.areNamed) AND NOT t.tgisinternal AND pg_catalog.strpos(t.tgname::text, $2) <> 1 ORDER BY 1, 2
            """,
            [list, .text(PreparedParts.prefix)]
        )
        for row in made.rows {
            triggers[row.string(0), default: []].append(
                Trigger(name: row.string(1), definition: row.string(2), firing: row.optionalString(3))
            )
        }
        try readSettings(list)
    }

    private mutating func readSettings(_ list: PostgreSQLValue) throws {
        let option = "pg_catalog.quote_ident(o.option_name) || ' = ' || pg_catalog.quote_literal(o.option_value)"
        let set = try connection.query(
            """
            SELECT s.name, pg_catalog.string_agg(s.option, ', ') FROM (
            SELECT c.relname::text AS name, \(option) AS option FROM pg_catalog.pg_class AS c
            CROSS JOIN LATERAL pg_catalog.pg_options_to_table(c.reloptions) AS o WHERE \(Self.areNamed) AND c.relkind = 'r'
            UNION ALL
            SELECT c.relname::text, 'toast.' || \(option) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_class AS t ON t.oid = c.reltoastrelid
            CROSS JOIN LATERAL pg_catalog.pg_options_to_table(t.reloptions) AS o WHERE \(Self.areNamed) AND c.relkind = 'r'
            ) AS s GROUP BY 1
            """,
            [list]
        )
        for row in set.rows { parameters[row.string(0)] = row.string(1) }
        let identified = try connection.query(
            """
            SELECT c.relname::text, CASE c.relreplident WHEN 'f' THEN 'FULL' ELSE 'NOTHING' END FROM pg_catalog.pg_class AS c
            WHERE \(Self.areNamed) AND c.relkind = 'r' AND c.relreplident IN ('f', 'n')
            """,
            [list]
        )
        for row in identified.rows { replicaIdentities[row.string(0)] = row.string(1) }
        let published = try connection.query(
            """
            SELECT c.relname::text, pg_catalog.quote_ident(p.pubname) FROM pg_catalog.pg_publication_rel AS r
            JOIN pg_catalog.pg_publication AS p ON p.oid = r.prpubid JOIN pg_catalog.pg_class AS c ON c.oid = r.prrelid
            WHERE \(Self.areNamed) ORDER BY 1, 2
            """,
            [list]
        )
        for row in published.rows { publications[row.string(0), default: []].append(row.string(1)) }
    }

    private static let areNamed = """
        c.relname::text = ANY($1)
        AND c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
        """

    private static let privilege = """
        x.privilege_type, CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(x.grantee)) END,
        x.is_grantable
        """

    private static func array(_ names: [SQLName]) -> PostgreSQLArray {
        var array = PostgreSQLArray(.text)
        for name in names { array.append(name.raw) }
        return array
    }

    // MARK: - Handing on

    /// Gives a table or a sequence the belongings of its predecessor, except for the triggers.
    func handOn(to successor: Successor, isSequence: Bool = false) throws {
        let kind = isSequence ? "SEQUENCE" : "TABLE"
        // Default privileges may grant more than the old table had.
        let given = try TableBelongings(of: [successor.new], connection).privileges[successor.new.raw] ?? []
        for grantee in Set(given.map(\.grantee)).sorted() {
            try connection.command("REVOKE ALL ON \(kind) \(successor.new) FROM \(grantee)")
        }
        for privilege in privileges[successor.old.raw] ?? [] {
            var what = privilege.kind
            if let column = privilege.column {
                guard let new = successor.columns.first(where: { $0.old.raw == column })?.new else { continue }
                what += " (\(new))"
            }
            let passing = privilege.mayBePassedOn ? " WITH GRANT OPTION" : ""
            try connection.command("GRANT \(what) ON \(kind) \(successor.new) TO \(privilege.grantee)\(passing)")
        }
        if !isSequence { try handOnSettings(to: successor) }
        if let owner = owners[successor.old.raw] {
            try connection.command("ALTER \(kind) \(successor.new) OWNER TO \(owner)")
        }
    }

    private func handOnSettings(to successor: Successor) throws {
        let (old, new) = (successor.old.raw, successor.new)
        if let parameters = parameters[old] { try connection.command("ALTER TABLE \(new) SET (\(parameters))") }
        if let identity = replicaIdentities[old] {
            try connection.command("ALTER TABLE \(new) REPLICA IDENTITY \(identity)")
        }
        for publication in publications[old] ?? [] {
            do { try connection.command("ALTER PUBLICATION \(publication) ADD TABLE ONLY \(new)") } catch let error
                as PostgreSQLError where error.sqlState == "42710" && connection.isIdle
            {
                // A migration in steps has come so far before.
            }
        }
    }

    /// Makes the triggers of a table, which has the name of its predecessor by now.
    func makeTriggers(of table: SQLName) throws {
        for trigger in triggers[table.raw] ?? [] {
            do {
                try connection.command(trigger.definition)
            } catch let error as PostgreSQLError where error.kind == .server {
                throw PostgreSQLError(
                    .server,
                    sqlState: error.sqlState,
                    "the trigger \(trigger.name) of \(table.raw) cannot be made for its new columns: \(error.message)"
                )
            }
            if let firing = trigger.firing {
                try connection.command("ALTER TABLE \(table) \(firing) TRIGGER \(trigger.name)")
            }
        }
    }

    // MARK: - What is in the way

    /// Objects that operators have added to tables which are rewritten, and which would be lost.
    ///
    /// - Parameter columns: The columns that the store knows, by the names of the tables.
    /// - Returns: A short description of each.
    /// - Throws: ``PostgreSQLError``.
    private func losses(_ columns: [SQLName: Set<SQLName>]) throws -> [String] {
        let list = PostgreSQLValue.array(Self.array(columns.keys.sorted { $0.raw < $1.raw }))
        let found = try connection.query(
            """
            SELECT c.relname::text, a.attname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            WHERE \(Self.areNamed) AND a.attnum > 0 AND NOT a.attisdropped AND pg_catalog.strpos(a.attname::text, $2) <> 1
            ORDER BY 1, 2
            """,
            [list, .text(PreparedParts.prefix)]
        )
        let known = Dictionary(columns.map { ($0.raw, Set($1.map(\.raw))) }) { $1 }
        let own = found.rows.filter { known[$0.string(0)]?.contains($0.string(1)) == false }.map { row in
            "column \(row.string(1)) (of \(row.string(0)))"
        }
        let others = try connection.query(
            """
            SELECT 'rule ' || pg_catalog.quote_ident(r.rulename), c.relname::text FROM pg_catalog.pg_class AS c
            JOIN pg_catalog.pg_rewrite AS r ON r.ev_class = c.oid WHERE \(Self.areNamed) AND c.relkind = 'r'
            UNION ALL
            SELECT 'replica identity by an index', c.relname::text FROM pg_catalog.pg_class AS c
            WHERE \(Self.areNamed) AND c.relreplident = 'i'
            UNION ALL
            SELECT 'publication ' || pg_catalog.quote_ident(p.pubname) || ', which has a row filter or a list of columns', c.relname::text
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_publication_rel AS r ON r.prrelid = c.oid
            JOIN pg_catalog.pg_publication AS p ON p.oid = r.prpubid
            WHERE \(Self.areNamed) AND COALESCE(pg_catalog.to_jsonb(r) ->> 'prqual', pg_catalog.to_jsonb(r) ->> 'prattrs') IS NOT NULL
            ORDER BY 2, 1
            """,
            [list]
        )
        return own + others.rows.map { "\($0.string(0)) (of \($0.string(1)))" }
    }

    /// The obstacles to replacing tables, each in a few words.
    ///
    /// These are objects that depend on the tables, row security, which must not be lost silently, and triggers of
    /// tables that are renamed.
    private func obstacles(_ dropped: [SQLName], _ successors: [Successor]) throws -> [String] {
        let found = try connection.query(
            """
            SELECT DISTINCT CASE d.classid WHEN 'pg_catalog.pg_rewrite'::regclass
            THEN (SELECT pg_catalog.pg_describe_object('pg_catalog.pg_class'::regclass, r.ev_class, 0) FROM pg_catalog.pg_rewrite AS r WHERE r.oid = d.objid)
            ELSE pg_catalog.pg_describe_object(d.classid, d.objid, 0) END, c.relname::text
            FROM pg_catalog.pg_depend AS d JOIN pg_catalog.pg_class AS c
            ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = c.oid
            OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid = c.reltype
            LEFT JOIN pg_catalog.pg_constraint AS k ON d.classid = 'pg_catalog.pg_constraint'::regclass AND k.oid = d.objid
            WHERE d.deptype = 'n' AND d.classid <> 'pg_catalog.pg_trigger'::regclass AND \(Self.areNamed)
            AND (k.oid IS NULL OR k.conrelid <> c.oid AND pg_catalog.strpos(k.conname::text, $2) <> 1
            AND pg_catalog.strpos(k.conname::text, $3) <> 1)
            UNION ALL
            SELECT 'row security', c.relname::text FROM pg_catalog.pg_class AS c
            WHERE \(Self.areNamed) AND (c.relrowsecurity OR EXISTS (SELECT FROM pg_catalog.pg_policy AS p WHERE p.polrelid = c.oid))
            ORDER BY 2, 1
            """,
            [.array(Self.array(dropped)), .text(ForeignKey.prefix), .text(PreparedParts.prefix)]
        )
        var obstacles = found.rows.map { "\($0.string(0)) (of \($0.string(1)))" }
        for successor in successors where successor.old != successor.new {
            for trigger in triggers[successor.old.raw] ?? [] {
                obstacles.append(
                    "trigger \(trigger.name) (of \(successor.old.raw), which becomes \(successor.new.raw))"
                )
            }
        }
        return obstacles
    }

    /// Whether nothing of others prevents that columns of a table are replaced.
    func isFree(_ table: SQLName, columns: Set<SQLName>) throws -> Bool {
        try obstacles([table], []).isEmpty && losses([table: columns]).isEmpty
    }

    /// Refuses a migration if there are obstacles.
    ///
    /// - Parameters:
    ///   - dropped: The tables that are dropped.
    ///   - successors: The tables that replace some of them.
    ///   - columns: The columns that the store knows of rewritten tables.
    ///   - url: The store.
    ///   - place: The name of the store in messages.
    /// - Throws: `migration` (134110) with the obstacles.
    func requireNoObstacles(
        toDropping dropped: [SQLName],
        replacedBy successors: [Successor],
        keeping columns: [SQLName: Set<SQLName>],
        at url: URL,
        place: String
    ) throws {
        let obstacles = try obstacles(dropped, successors) + losses(columns)
        guard !obstacles.isEmpty else { return }
        let list = obstacles.prefix(10).joined(separator: ", ")
        let others = obstacles.count > 10 ? ", and \(obstacles.count - 10) more" : ""
        let reason =
            "tables are written anew that others depend on, or have added to: \(list)\(others). Drop these before the migration, and make them again after it"
        throw MigrationErrors.failure(
            url,
            CocoaError.described(.migration, userInfo: [NSLocalizedDescriptionKey: reason + "."]),
            place: place
        )
    }
}
