import StrataPostgreSQL
import StrataSQL

/// Checks whether a store has the primary keys and the indexes that it relies on.
struct StoreIndexes {
    /// An index that a table has.
    private struct Found {
        let table: String
        let isValid: Bool
        let isUnique: Bool
        let isPartial: Bool
        /// The columns in the form of statements; an empty text for an expression.
        let columns: [String]
    }

    private let mapping: SQLMapping
    private var naming: SQLNaming { mapping.dialect.naming }
    private var indexes: [String: Found] = [:]
    /// The columns of primary keys, by the names of the tables.
    private var primaryKeys: [String: [String]] = [:]

    /// Reads the indexes in the schema of the session.
    init(_ mapping: SQLMapping, _ connection: Connection) throws {
        self.mapping = mapping
        let found = try connection.query(
            """
            SELECT c.relname::text, t.relname::text, i.indisvalid, i.indisunique, i.indpred IS NOT NULL, i.indisprimary,
            COALESCE('"' || pg_catalog.replace(a.attname::text, '"', '""') || '"', '')
            FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
            CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
            LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
            WHERE n.nspname = pg_catalog.current_schema() AND k.place <= i.indnkeyatts ORDER BY 1, k.place
            """
        )
        for (name, rows) in Dictionary(grouping: found.rows, by: { $0.string(0) }) {
            let (first, columns) = (rows[0], rows.map { $0.string(6) })
            indexes[name] = Found(
                table: first.string(1),
                isValid: first.int64(2) != 0,
                isUnique: first.int64(3) != 0,
                isPartial: first.int64(4) != 0,
                columns: columns
            )
            if first.int64(5) != 0, first.int64(2) != 0 { primaryKeys[first.string(1)] = columns }
        }
    }

    /// The differences, one sentence each.
    var problems: [String] {
        keyProblems
            + PostgreSQLSchema.indexes(mapping).compactMap { index in
                problem(
                    index.name.raw,
                    on: index.table.raw,
                    isUnique: index.constraint != nil,
                    isPartial: index.isPartial,
                    index.columns?.map(\.description)
                )
            }
            + PostgreSQLSchema.bookIndexes.compactMap { index in
                problem(
                    index.name,
                    on: "strata_transaction",
                    isUnique: index.isUnique,
                    isPartial: index.condition != nil,
                    [naming.name(index.column).description]
                )
            }
    }

    private var keyProblems: [String] {
        let rows = mapping.tables.map { ($0.name.raw, [naming.key]) }
        let pairs = mapping.joinTables.map { ($0.name.raw, [$0.first, $0.second]) }
        let books = PostgreSQLSchema.books.map { ($0.name, $0.key.map(naming.name)) }
        return (rows + pairs + books).compactMap { table, key in
            // The order does not matter.
            guard Set(primaryKeys[table] ?? []) != Set(key.map(\.description)) else { return nil }
            return "\(table) has not the primary key (\(key.map(\.raw).joined(separator: ", ")))"
        }
    }

    private func problem(
        _ name: String,
        on table: String,
        isUnique: Bool,
        isPartial: Bool,
        _ columns: [String]?
    ) -> String? {
        guard let found = indexes[name] else { return "the index \(name) is missing" }
        guard found.isValid else { return "the index \(name) is not valid" }
        guard found.table == table else { return "the index \(name) is of \(found.table), not of \(table)" }
        guard found.isUnique == isUnique else {
            return isUnique
                ? "the index \(name) is not unique" : "the index \(name) is unique, and the model does not ask for that"
        }
        guard found.isPartial == isPartial else {
            return "the index \(name) has \(isPartial ? "all rows, not some" : "some rows, not all")"
        }
        guard let columns else { return nil }
        // For unique values the order of the columns does not matter.
        let isSame = isUnique ? Set(found.columns) == Set(columns) : found.columns == columns
        guard !isSame else { return nil }
        return
            "the index \(name) is of (\(found.columns.joined(separator: ", "))), not of (\(columns.joined(separator: ", ")))"
    }
}

/// The sequences that give the rows of a store their keys.
struct StoreSequences {
    private let mapping: SQLMapping
    private let increments: [String: Int64]

    /// Reads the sequences in the schema of the session.
    init(_ mapping: SQLMapping, _ connection: Connection) throws {
        self.mapping = mapping
        let found = try connection.query(
            """
            SELECT c.relname::text, s.seqincrement FROM pg_catalog.pg_sequence AS s JOIN pg_catalog.pg_class AS c ON c.oid = s.seqrelid
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = pg_catalog.current_schema()
            """
        )
        increments = Dictionary(found.rows.map { ($0.string(0), $0.int64(1)) }) { first, _ in first }
    }

    /// Whether the sequence of a table exists.
    func has(_ table: SQLTable) -> Bool { increments[PostgreSQLSchema.sequence(table).raw] != nil }

    /// The differences from the sequences that the store needs, one sentence each.
    var problems: [String] {
        mapping.tables.compactMap { table in
            let name = PostgreSQLSchema.sequence(table).raw
            guard let increment = increments[name] else { return "the sequence \(name) is missing" }
            return increment == PostgreSQLSchema.keyBlock
                ? nil : "the sequence \(name) increments by \(increment), not \(PostgreSQLSchema.keyBlock)"
        }
    }
}
