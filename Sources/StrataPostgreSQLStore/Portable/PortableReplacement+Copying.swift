import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

// The rows go from one store to the other piece by piece.
extension PortableReplacement {
    /// Makes the new store as a copy of the old one, with its keys, its history and its UUID.
    package func copyRows() throws {
        try PostgreSQLBoundary.run(.migrating, at: target.place) {
            connection.patience = max(timeout, PostgreSQLEngine.workPatience)
            let pool = OpenPostgreSQLStore.pool(working, size: 1, timeout: timeout)
            defer { pool.close() }
            let orders = try PortableStep.repeating { try KeyOrder.orders(in: source, connection) }
            try pool.withConnection { connection in
                let statements = ["CREATE SCHEMA IF NOT EXISTS \(working.quotedSchema)", PortableTables.leases]
                for statement in statements
                    + PortableTables.statements(PostgreSQLSchema(source) { orders[$0.name] ?? .consecutive })
                {
                    try PortableStep.creation(statement, on: connection)
                }
            }
            for table in source.tables {
                let columns = [naming.key, naming.entity, naming.version] + table.columns.map(\.name)
                try copy(table.name, key: naming.key, columns, into: "\(working.quotedSchema).\(table.name)")
            }
            for join in source.joinTables {
                let columns = [join.first, join.second] + join.orders
                try copy(join.name, key: join.first, columns, into: "\(working.quotedSchema).\(join.name)")
            }
            try step {
                for (table, columns) in books {
                    let list = columns.map(\.description).joined(separator: ", ")
                    try connection.command(
                        "INSERT INTO \(working.quotedSchema).\(table) (\(list)) SELECT \(list) FROM \(table)"
                    )
                }
                let metadata = try PostgreSQLEngine.existing(connection, target.place).withoutOtherTables
                try connection.query(
                    """
                    INSERT INTO \(working.quotedSchema).strata_store (format, uuid, metadata, model)
                    SELECT format, uuid, $1, model FROM strata_store
                    """,
                    [.bytea(try metadata.archived())]
                )
            }
            for sequence in PostgreSQLSchema.sequences(source) {
                try setSequence("\(working.quotedSchema).\(sequence)", to: sequence.description)
            }
        }
    }

    var naming: SQLNaming { source.dialect.naming }

    /// The bookkeeping tables that are replaced as a whole, with their columns.
    var books: [PostgreSQLSchema.Contents] {
        PostgreSQLSchema.contents(source).prefix(PostgreSQLSchema.books.count).filter { $0.table.raw != "strata_store" }
    }

    func step(_ body: () throws -> Void) throws {
        try PortableStep.transaction(on: connection, lease, body)
    }

    /// Copies the rows of a table to another one, piece by piece.
    func copy(_ table: SQLName, key: SQLName, _ columns: [SQLName], into other: String, from place: String = "")
        throws
    {
        let list = columns.map(\.description).joined(separator: ", ")
        try PortableTableSet(source, on: connection, lease).eachPiece(
            of: "SELECT \(key) AS k FROM \(place)\(table)",
            startingAfter: .min
        ) {
        } _: {
            try connection.query(
                """
                INSERT INTO \(other) (\(list)) SELECT \(list) FROM \(place)\(table) WHERE \(key) > $1 AND \(key) <= $2
                ON CONFLICT DO NOTHING
                """,
                [.int8($0), .int8($1)]
            )
        }
    }

    /// Sets a sequence to the state of another one, unless it is further.
    func setSequence(_ name: String, to other: String) throws {
        _ = try PortableStep.repeating {
            try connection.query(
                """
                SELECT pg_catalog.setval($1::text::regclass, GREATEST(o.last_value, n.last_value),
                o.is_called AND o.last_value >= n.last_value OR n.is_called AND n.last_value >= o.last_value)
                FROM \(other) AS o, \(name) AS n
                """,
                [.text(name)]
            )
        }
    }
}
