import StrataLocks
import StrataPostgreSQL
import StrataPredicates
import StrataSQL

/// The columns of one table that hold folded texts of other columns.
///
/// Code that writes a row also writes these columns. This type is for code that fills a new column, or checks whether
/// all are right.
struct FoldedColumns {
    private let table: SQLTable
    private let naming: SQLNaming
    /// Each column with the column whose text it holds folded.
    private let columns: [(source: SQLName, folding: StringFolding, name: SQLName)]

    /// The columns of a table; `nil` if it has none.
    init?(_ table: SQLTable, _ naming: SQLNaming) {
        columns = table.entities.flatMap { entity in
            entity.layout.ownSlots.flatMap { slot in
                let column = entity.columns[slot.index]
                return column.name.map { name in column.folded.map { (name, $0.folding, $0.name) } } ?? []
            }
        }
        guard !columns.isEmpty else { return nil }
        self.table = table
        self.naming = naming
    }

    /// Finds the rows whose columns hold wrong texts: their keys, and the correct texts.
    ///
    /// - Parameters:
    ///   - connection: The connection that reads; `body` may write with it.
    ///   - body: Called with each piece of the table that has such rows, of limited size: the keys, and an array for each
    ///     column.
    /// - Throws: ``PostgreSQLError``, and the errors of `body`.
    func eachDiffering(_ connection: Connection, _ body: ([PostgreSQLArray]) throws -> Void) throws {
        let names = columns.flatMap { ["\($0.source)", "\($0.name)"] }.joined(separator: ", ")
        var last = Int64.min
        while true {
            let found = try connection.query(
                "SELECT \(naming.key), \(names) FROM \(table.name) WHERE \(naming.key) > $1 ORDER BY 1 LIMIT \(WorkSize.foldedRows)",
                [.int8(last)]
            )
            guard found.rowCount > 0 else { return }
            var arrays = ColumnArrays([.int8] + columns.map { _ in .text })
            for row in found.rows {
                last = row.int64(0)
                let wanted = columns.indices.map { row.optionalString(1 + $0 * 2).map(columns[$0].folding.fold) }
                // Texts are equal if their code points are equal.
                let isRight = columns.indices.allSatisfy { index in
                    row.optionalString(2 + index * 2).map { Array($0.utf8) } == wanted[index].map { Array($0.utf8) }
                }
                guard !isRight else { continue }
                arrays.append(last, to: 0)
                for (index, text) in wanted.enumerated() {
                    arrays.append(text.map { .text($0) } ?? .null(.text), to: index + 1)
                }
                if arrays.endRow() { try body(arrays.removeColumns()) }
            }
            if arrays.rowCount > 0 { try body(arrays.removeColumns()) }
        }
    }

    /// Computes the columns of all rows.
    ///
    /// - Parameters:
    ///   - connection: The connection that reads and writes.
    ///   - step: Runs a piece of the work, and may run it again.
    /// - Throws: ``PostgreSQLError``, and the errors of `step`.
    func fill(_ connection: Connection, _ step: (() throws -> Void) throws -> Void = { try $0() }) throws {
        let names = columns.indices.map { "c\($0)" }
        let assignments = zip(columns, names).map { "\($0.name) = u.\($1)" }.joined(separator: ", ")
        let types: [PostgreSQLType] = [.int8] + columns.map { _ in .text }
        let rows = "\(unnested(types, from: 1)) AS u (key, \(names.joined(separator: ", ")))"
        try eachDiffering(connection) { arrays in
            try step {
                try connection.query(
                    "UPDATE \(table.name) AS t SET \(assignments) FROM \(rows) WHERE t.\(naming.key) = u.key",
                    arrays.map { .array($0) }
                )
            }
        }
    }
}
