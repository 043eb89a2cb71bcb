import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The tables of a store that were made by hand, from the output of `strata schema`, and that have no metadata yet.
///
/// The role that opens the store first may have no right to change tables, so nothing is repaired. All tables have to
/// be as the store would have made them, and empty.
struct HandMadeStore {
    private let mapping: SQLMapping
    private let connection: Connection
    private let place: String
    private var naming: SQLNaming { mapping.dialect.naming }

    init(_ mapping: SQLMapping, on connection: Connection, place: String) {
        self.mapping = mapping
        self.connection = connection
        self.place = place
    }

    /// Ensures that the store can be adopted.
    ///
    /// - Throws: `persistentStoreIncompatibleSchema` (134020) with the differences.
    func require() throws {
        var problems = try tableProblems()
        problems += try StoreIndexes(mapping, connection).problems + StoreSequences(mapping, connection).problems
        if let first = problems.first {
            let others = problems.count > 1 ? ", and \(problems.count - 1) more" : ""
            throw refusal(
                "is empty, and its tables are not those of the model: \(first)\(others). Make them with what `strata schema --dialect postgresql` prints for this model."
            )
        }
        // Missing tables cannot be examined.
        let filled = try filledTables()
        guard filled.isEmpty else {
            throw refusal(
                "has no metadata, as strata_store is empty, but rows in \(filled.joined(separator: ", ")). Restore strata_store as well, or empty these tables."
            )
        }
    }

    private func refusal(_ what: String) -> CocoaError {
        CocoaError.described(
            .persistentStoreIncompatibleSchema,
            userInfo: [NSLocalizedDescriptionKey: "The store \(place) \(what) Nothing was changed."]
        )
    }

    // MARK: - Tables

    /// The required form of a table.
    private struct Table {
        let name: String
        /// The required form of each column.
        let columns: [String: String]
        let key: [String]
    }

    private var tables: [Table] {
        let books = PostgreSQLSchema.books.map { book in
            let columns = book.columns.map { column in
                let type = column.type == "bigserial" ? "bigint" : column.type
                let isDefaulted = column.type == "bigserial" || column.rest.hasPrefix("DEFAULT")
                let isRequired = column.rest == "NOT NULL" || book.key.contains(column.name)
                return (column.name, type + (isRequired ? " NOT NULL" : "") + (isDefaulted ? " DEFAULT" : ""))
            }
            return Table(name: book.name, columns: Dictionary(columns) { $1 }, key: book.key)
        }
        let rows = mapping.tables.map { table in
            let own = [(naming.key, "bigint"), (naming.entity, "integer"), (naming.version, "bigint")]
            let columns = own.map { ($0.raw, "\($1) NOT NULL") } + table.columns.map { ($0.name.raw, $0.type) }
            return Table(name: table.name.raw, columns: Dictionary(columns) { $1 }, key: [naming.key.raw])
        }
        let pairs = mapping.joinTables.map { join in
            let key = [join.first.raw, join.second.raw]
            let columns = key.map { ($0, "bigint NOT NULL") } + join.orders.map { ($0.raw, "bigint") }
            return Table(name: join.name.raw, columns: Dictionary(columns) { $1 }, key: key)
        }
        return books + rows + pairs
    }

    private func tableProblems() throws -> [String] {
        let found = try connection.query(
            """
            SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
            || COALESCE((SELECT ' COLLATE ' || pg_catalog.quote_ident(o.collname) FROM pg_catalog.pg_collation AS o
            JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid WHERE o.oid = a.attcollation AND o.oid <> y.typcollation), '')
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || CASE WHEN a.atthasdef THEN ' DEFAULT' ELSE '' END,
            COALESCE(pg_catalog.array_position(i.indkey::int2[], a.attnum), -1)::bigint
            FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
            LEFT JOIN pg_catalog.pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
            WHERE n.nspname = pg_catalog.current_schema() AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
            """
        )
        var columns: [String: [String: String]] = [:]
        var keys: [String: [(position: Int64, name: String)]] = [:]
        for row in found.rows {
            columns[row.string(0), default: [:]][row.string(1)] = row.string(2)
            if row.int64(3) >= 0 { keys[row.string(0), default: []].append((row.int64(3), row.string(1))) }
        }
        var problems: [String] = []
        for table in tables {
            guard let own = columns[table.name] else {
                problems.append("\(table.name) is missing")
                continue
            }
            for column in Set(own.keys).union(table.columns.keys).sorted() {
                let name = "\(table.name).\(column)"
                switch (own[column], table.columns[column]) {
                case (nil, _): problems.append("\(name) is missing")
                case (_, nil): problems.append("\(name) is none of the model's columns")
                case (let found?, let wanted?) where found != wanted:
                    problems.append("\(name) is \(found), not \(wanted)")
                default: break
                }
            }
            let key = (keys[table.name] ?? []).sorted { $0.position < $1.position }.map(\.name)
            if key != table.key {
                problems.append("\(table.name) has not the primary key (\(table.key.joined(separator: ", ")))")
            }
        }
        return problems
    }

    // MARK: - Rows

    private func filledTables() throws -> [String] {
        let names = tables.map(\.name)
        let counts = names.map { "EXISTS (SELECT FROM \(naming.name($0)))" }.joined(separator: ", ")
        let found = try connection.query("SELECT \(counts)")
        return names.indices.filter { found[0].int64($0) != 0 }.map { names[$0] }
    }
}
