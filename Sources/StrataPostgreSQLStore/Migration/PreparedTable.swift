import Foundation
import StrataPostgreSQL
import StrataRows
import StrataSQL

/// The part of a migration of a large table that is done before its transaction, while others read and save.
///
/// A column of another type gets a new column beside it, which a trigger keeps up to date, and which takes its place in
/// the transaction. New indexes and foreign keys are made without keeping others from writing. Columns that are removed
/// are dropped in place.
struct PreparedTable {
    /// A column that exists before the transaction, under another name.
    struct Column {
        enum Content {
            /// NULL in all rows.
            case empty
            /// A value of the model, as SQL.
            case constant(String)
            /// An expression over the row.
            case computed(Computation)
        }

        let column: SQLColumn
        /// The name before the transaction.
        let name: SQLName
        let content: Content

        var computation: Computation? {
            guard case .computed(let computation) = content else { return nil }
            return computation
        }
    }

    /// The value of a column, computed from the other columns of its row.
    struct Computation {
        /// The expression over a row.
        let text: String
        /// The same as an expression over a row that a trigger has; `nil` if it takes a query.
        let textForTrigger: String?
    }

    /// An index that exists before the transaction, under another name.
    struct Index {
        /// The name after the transaction.
        let final: SQLName
        let name: SQLName
        let sql: String
        /// The constraint that it enforces, and the present names of its columns; `nil` for an index that makes reads
        /// fast.
        var constraint: (SQLConstraint, columns: [SQLName])?
    }

    /// An index of the rows that do not fit the new model.
    ///
    /// While it is empty, all rows fit. It refuses no row: what sessions with the old model write is their matter.
    struct Misfits {
        let name: SQLName
        let condition: String
        let sql: String
    }

    /// A foreign key that exists before the transaction, under another name.
    struct Key {
        /// The name after the transaction.
        let final: SQLName
        let name: SQLName
        let target: SQLName
        /// The statement that makes it without looking at rows.
        let sql: String
    }

    let table: SQLName
    let columns: [Column]
    /// The columns that are dropped in the transaction.
    let dropped: Set<SQLName>
    /// The changes that are left for the transaction.
    let alteration: TableAlteration
    var indexes: [Index]
    var keys: [Key]
    /// The index of the rows that do not fit; `nil` if all do by their form.
    var misfits: Misfits?

    /// The columns that a trigger keeps up to date.
    var computed: [(name: SQLName, computation: Computation)] {
        columns.compactMap { column in column.computation.map { (column.name, $0) } }
    }

    /// The names of all objects that the preparation makes.
    var names: Set<SQLName> {
        Set(columns.map(\.name) + (indexes + misfitIndex).map(\.name) + keys.map(\.name))
    }

    /// The index of the rows that do not fit, like the others.
    var misfitIndex: [Index] { misfits.map { [Index(final: $0.name, name: $0.name, sql: $0.sql)] } ?? [] }

    /// Whether something is made before the transaction.
    var hasSteps: Bool { !columns.isEmpty || !indexes.isEmpty || !keys.isEmpty || misfits != nil }

    // MARK: - The statements

    /// The statements that make a column.
    func creation(of column: Column) -> [String] {
        let add = "ALTER TABLE \(table) ADD COLUMN \(column.name) \(column.column.type)"
        switch column.content {
        case .empty: return [add]
        // Sessions with the old model write rows without the column. They get the value too.
        case .constant(let value): return ["\(add) DEFAULT \(value)"]
        case .computed(let computation):
            let body =
                computation.textForTrigger.map { "NEW.\(column.name) := \($0);" }
                ?? "SELECT \(computation.text) INTO NEW.\(column.name) FROM (SELECT NEW.*) AS t;"
            // A constant of the model may have the text that would end the body.
            var quote = "$strata$"
            while body.contains(quote) { quote.insert("_", at: quote.index(before: quote.endIndex)) }
            return [
                add,
                """
                CREATE OR REPLACE FUNCTION \(column.name)() RETURNS trigger LANGUAGE plpgsql
                AS \(quote)#variable_conflict use_column
                BEGIN \(body) RETURN NEW; END\(quote)
                """,
                """
                CREATE TRIGGER \(column.name) BEFORE INSERT OR UPDATE ON \(table) FOR EACH ROW EXECUTE FUNCTION \(column.name)()
                """,
                // A session that applies changes of another server fires no other triggers.
                "ALTER TABLE \(table) ENABLE ALWAYS TRIGGER \(column.name)",
            ]
        }
    }

    /// The statement that fills the computed columns of some rows; `nil` if there are none.
    ///
    /// It skips rows that others have locked. Its parameters are the last key before these rows, and the number of rows.
    /// The answer has the last key, the number of rows, and whether all of them are filled.
    func filling(_ naming: SQLNaming) -> String? {
        guard !computed.isEmpty else { return nil }
        let differs = computed.map { "t.\($0.name) IS DISTINCT FROM (\($0.computation.text))" }
            .joined(separator: " OR ")
        let assignments = computed.map { "\($0.name) = \($0.computation.text)" }.joined(separator: ", ")
        return """
            WITH piece AS MATERIALIZED (SELECT \(naming.key) FROM \(table) WHERE \(naming.key) > $1
            ORDER BY \(naming.key) LIMIT $2),
            open AS MATERIALIZED (SELECT \(naming.key) FROM \(table) AS t
            WHERE \(naming.key) IN (SELECT \(naming.key) FROM piece) AND (\(differs))),
            locked AS MATERIALIZED (SELECT \(naming.key) FROM \(table) WHERE \(naming.key) IN (SELECT \(naming.key) FROM open)
            FOR NO KEY UPDATE SKIP LOCKED),
            done AS (UPDATE \(table) AS t SET \(assignments) WHERE \(naming.key) IN (SELECT \(naming.key) FROM locked) RETURNING 1)
            SELECT pg_catalog.max(\(naming.key)), pg_catalog.count(*),
            (SELECT pg_catalog.count(*) FROM done) = (SELECT pg_catalog.count(*) FROM open) FROM piece
            """
    }

    /// The statements that put the prepared columns and foreign keys in their places, in the transaction.
    var completion: [String] {
        var statements = misfits.map { ["DROP INDEX \($0.name)"] } ?? []
        for (name, _) in computed {
            statements += ["DROP TRIGGER \(name) ON \(table)", "DROP FUNCTION \(name)()"]
        }
        statements += dropped.map(\.description).sorted().map { "ALTER TABLE \(table) DROP COLUMN \($0)" }
        for column in columns {
            if case .constant = column.content {
                statements.append("ALTER TABLE \(table) ALTER COLUMN \(column.name) DROP DEFAULT")
            }
            statements.append("ALTER TABLE \(table) RENAME COLUMN \(column.name) TO \(column.column.name)")
        }
        return statements + keys.map { "ALTER TABLE \(table) RENAME CONSTRAINT \($0.name) TO \($0.final)" }
    }
}
