import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The statements that show each session only the rows of one tenant, by row-level security of the server.
///
/// They are text for an administrator. No code runs them.
///
/// A row belongs to the tenant whose name its entity has in an attribute. A session names its tenant in a setting. A
/// table without the attribute has no policy, and a comment says so. The rows of a many-to-many relationship belong to
/// the tenant of their ends.
package struct RowSecurity {
    /// The setting in which a session names its tenant.
    ///
    /// If a session has no such setting, then the server refuses its statements.
    package static let setting = "strata.tenant"
    /// The name of the policies.
    static let policy = "strata_tenant"

    /// The lines: statements, each without a semicolon at its end, and comments.
    package let lines: [String]

    /// Makes the statements.
    ///
    /// - Parameters:
    ///   - mapping: The tables of the store.
    ///   - attribute: The name of the attribute with the tenant, in all entities that have it.
    ///   - schema: The quoted name of the schema; `nil` for the one that the session looks in.
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) if no entity has such an attribute, or if its type has no
    ///   values that a setting can name.
    init(_ mapping: SQLMapping, attribute: String, schema: String?) throws {
        func name(_ table: SQLName) -> String { (schema.map { $0 + "." } ?? "") + table.description }
        let naming = mapping.dialect.naming
        var lines: [String] = []
        var open: [String] = []
        var owned: [SQLName: SQLName] = [:]
        for table in mapping.tables {
            guard let (column, type) = try Self.column(attribute, of: table) else {
                open.append(table.name.raw)
                continue
            }
            owned[table.name] = column
            let tenant = "pg_catalog.current_setting('\(Self.setting)')"
            lines += Self.policy(name(table.name), "\(column) = \(type == "text" ? tenant : "\(tenant)::\(type)")")
        }
        guard !owned.isEmpty else {
            throw Self.refusal("no entity has an attribute \(attribute) with a column")
        }
        for join in mapping.joinTables {
            // The server applies the policies of the other tables to these queries.
            let ends = [(join.firstTable, join.first), (join.secondTable, join.second)].compactMap { table, key in
                owned[table].map { _ in
                    "EXISTS (SELECT FROM \(name(table)) AS t WHERE t.\(naming.key) = \(name(join.name)).\(key))"
                }
            }
            if ends.isEmpty {
                open.append(join.name.raw)
            } else {
                lines += Self.policy(name(join.name), Set(ends).sorted().joined(separator: " AND "))
            }
        }
        if !open.isEmpty {
            // A comment ends with its line.
            let names = open.sorted().map { $0.split(whereSeparator: \.isNewline).joined(separator: " ") }
            lines.append("-- Without a tenant, so all sessions see all rows: \(names.joined(separator: ", "))")
        }
        lines.append(
            "-- The history (strata_transaction, strata_change) has the changes of all tenants, which all sessions see."
        )
        lines.append("-- The owner of the tables, superusers and roles with BYPASSRLS see all rows.")
        self.lines = lines
    }

    private static func policy(_ table: String, _ condition: String) -> [String] {
        [
            "ALTER TABLE \(table) ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY \(policy) ON \(table) USING (\(condition)) WITH CHECK (\(condition))",
        ]
    }

    /// The column with the tenant; `nil` if the entities of the table have none.
    private static func column(_ attribute: String, of table: SQLTable) throws -> (SQLName, type: String)? {
        var found: SQLName?
        var without: [String] = []
        for entity in table.entities {
            guard let slot = entity.layout.slot(named: attribute), slot.kind != .reference,
                let column = entity.columns[slot.index].name
            else {
                if !entity.layout.isAbstract { without.append(entity.layout.name) }
                continue
            }
            guard found == nil || found == column else {
                throw refusal("\(attribute) has several columns in the table \(table.name.raw)")
            }
            found = column
        }
        guard let found, let column = table.columns.first(where: { $0.name == found }) else { return nil }
        // Their rows would be seen by no tenant.
        if let name = without.first {
            throw refusal("\(name) has no attribute \(attribute), and shares a table with entities that have one")
        }
        let type = column.type.hasPrefix("text") ? "text" : column.type
        guard ["text", "uuid", "smallint", "integer", "bigint"].contains(type) else {
            throw refusal("\(attribute) is neither a text, a UUID nor a whole number")
        }
        return (found, type)
    }

    private static func refusal(_ reason: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreIncompatibleSchema,
            userInfo: [NSLocalizedDescriptionKey: "There are no policies for this model: \(reason)."]
        )
    }
}

extension PostgreSQLEngine {
    /// The statements of ``RowSecurity`` for the store of a model.
    ///
    /// - Parameters:
    ///   - schema: The model.
    ///   - configuration: The configuration of the model that the store holds, or `nil` for all.
    ///   - attribute: The name of the attribute with the tenant.
    ///   - url: The store, whose schema the statements name; `nil` for the schema that the session looks in.
    /// - Returns: The statements and comments, a line each.
    /// - Throws: The errors of ``RowSecurity``, and of a URL that cannot be read.
    package static func rowSecurity(
        for schema: Schema,
        configuration: String?,
        attribute: String,
        at url: URL?
    ) throws -> [String] {
        let target = try PostgreSQLBoundary.run(.reading, at: "") { try url.map { try ConnectionTarget($0) } }
        // The tables of a portable store have other names after a migration. A store that is not there yet has the names of the model.
        let metadata = try url.flatMap { url in
            try withConnection(to: url, .reading, timeout: 30) { try StoreMetadata.read($0, $1) }
        }
        let number = metadata?.generations.current ?? 0
        let mapping = try SQLMapping(schema, configuration: configuration, generation: number)
        return try RowSecurity(mapping, attribute: attribute, schema: target?.quotedSchema).lines
    }
}
