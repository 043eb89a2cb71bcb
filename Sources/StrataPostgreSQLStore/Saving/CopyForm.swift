import StrataPostgreSQL
import StrataSQL

/// The way in which COPY writes new rows of an entity.
struct CopyForm {
    let sql: String
    private let entity: Int32
    private let widths: [CopiedRows.Width]

    /// Asks for the types of the table's columns, together with statements that were posted before; `nil` if only
    /// INSERT can be used.
    ///
    /// COPY converts nothing, and does not obey rules or row-level security. An operator may, for example, have made a
    /// column wider.
    ///
    /// - Throws: ``PostgreSQLError``, including errors of the posted statements.
    init?(of shape: WriteShape, naming: SQLNaming, on connection: Connection) throws {
        let columns = [naming.entity] + shape.names
        var names = PostgreSQLArray(.text)
        for name in columns { names.append(name.raw) }
        let found = try connection.query(
            """
            SELECT a.atttypid::bigint FROM pg_catalog.unnest($1::text[]) WITH ORDINALITY AS u (name, place)
            JOIN pg_catalog.pg_class AS c ON c.oid = pg_catalog.to_regclass($2)
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = u.name AND NOT a.attisdropped AND a.attgenerated = ''
            WHERE c.relkind IN ('r', 'p') AND NOT c.relhasrules AND NOT pg_catalog.row_security_active(c.oid) ORDER BY u.place
            """,
            [.array(names), .text(shape.entity.table.description)]
        )
        guard found.rowCount == columns.count, found[0].int64(0) == 23 else { return nil }
        var widths: [CopiedRows.Width] = []
        for (type, row) in zip(shape.arrays.types, found.rows.dropFirst()) {
            switch (type, row.int64(0)) {
            case (.int8, 21): widths.append(.two)
            case (.int8, 23): widths.append(.four)
            // Text has the same binary form with and without a maximum length.
            case (.text, 1043): widths.append(.whole)
            case (_, Int64(type.rawValue)): widths.append(.whole)
            default: return nil
            }
        }
        self.widths = widths
        entity = Int32(shape.entity.number)
        let list = columns.map(\.description).joined(separator: ", ")
        sql = "COPY \(shape.entity.table) (\(list)) FROM STDIN (FORMAT binary)"
    }

    /// Takes all rows out of arrays.
    ///
    /// - Throws: ``PostgreSQLError`` with the code 22003, which the server uses too, if a column is too narrow for a
    ///   number.
    func rows(_ arrays: inout ColumnArrays) throws -> CopiedRows {
        guard let rows = CopiedRows(first: entity, columns: arrays.removeColumns(), widths: widths) else {
            throw PostgreSQLError(.server, sqlState: "22003", "a number is out of the range of its column")
        }
        return rows
    }
}
