import StrataRows
import StrataSQL
import StrataSQLite

/// The rows that a batch is about, as a part of statements.
///
/// `t0` is their table.
struct RowSelection {
    let table: SQLName
    /// ` LEFT JOIN …`, with a blank in front.
    let joins: String
    /// ` WHERE …`, with a blank in front, or nothing.
    let condition: String
    /// ` ORDER BY … LIMIT … OFFSET …`, with a blank in front, or nothing.
    let window: String
    /// The values of condition and window.
    let bindings: [SQLBinding]

    /// Whether the condition alone selects the rows, so that it can be part of an UPDATE or a DELETE.
    var isPlain: Bool { joins.isEmpty && window.isEmpty }

    /// A query for columns of the rows.
    func select(_ columns: String) -> String { "SELECT \(columns) FROM \(table) AS t0\(joins)\(condition)\(window)" }

    /// The text after the table's name (with the alias `t0`) in an UPDATE or DELETE of the rows.
    var restriction: String { isPlain ? condition : " WHERE t0.Z_PK IN (\(inner))" }

    /// The query for the keys, inside of a statement that has another `t0`.
    private var inner: String { select("t0.Z_PK") }

    /// Selects one row.
    init(key: Int64, _ entity: EntityMapping) {
        table = entity.table
        joins = ""
        condition = " WHERE t0.Z_PK = ?"
        window = ""
        bindings = [.integer(key)]
    }

    /// Selects the rows whose keys another query returns.
    init(keysOf query: String, _ entity: EntityMapping) {
        table = entity.table
        joins = ""
        condition = " WHERE t0.Z_PK IN (\(query))"
        window = ""
        bindings = []
    }

    /// Compiles the rows of a plan.
    ///
    /// - Throws: `persistentStoreUnsupportedRequestType` (134091) if SQL cannot express the plan.
    init(_ plan: FetchPlan, of entity: EntityMapping, queries: RowQueries) throws {
        let isWindowed = plan.isWindowed
        // Without limit and offset, the order changes nothing.
        let plan = isWindowed ? plan : plan.unordered
        let query = try QueryCompiler.compile(plan, for: entity, in: queries.mapping)
        var conditions: [String] = plan.coversHierarchy ? [] : [queries.entityCondition(plan)]
        if let condition = query.condition { conditions.append("(\(condition))") }
        table = entity.table
        joins = query.joins
        condition = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
        guard isWindowed else {
            window = ""
            bindings = query.bindings
            return
        }
        window = (query.order.map { " ORDER BY " + $0 } ?? "") + " LIMIT ? OFFSET ?"
        bindings = query.bindings + [.integer(plan.limit > 0 ? Int64(plan.limit) : -1), .integer(Int64(plan.offset))]
    }
}
