import StrataPostgreSQL
import StrataRows
import StrataSQL

extension PostgreSQLEngine {
    /// Asks the server for the plan of a fetch.
    ///
    /// This does not include the work of the process on the rows: if SQL cannot express a condition, then the condition
    /// is missing from the statement.
    package func explanation(of plan: FetchPlan, _ answer: ExplainedAnswer) throws -> ExplainedStatement? {
        let database = try openDatabase()
        guard let entity = database.mapping.entity(plan.layout) else { return nil }
        return try PostgreSQLBoundary.run(.reading, at: place) {
            let (sql, parameters) = try database.queries.text(of: plan, for: entity, as: answer)
            return try database.pool.reading { connection in
                try database.requireSame(connection)
                let steps = try connection.query("EXPLAIN (COSTS OFF) \(sql)", parameters)
                return ExplainedStatement(sql: sql, steps: steps.rows.compactMap { $0.optionalString(0) })
            }
        }
    }
}

extension RowQueries {
    /// The statement of a fetch, and its values.
    fileprivate func text(of plan: FetchPlan, for entity: EntityMapping, as answer: ExplainedAnswer) throws
        -> (sql: String, parameters: [PostgreSQLValue])
    {
        let isCount = answer == .count
        let statement = try statement(isCount ? plan.unordered : plan, entity, isOrdered: !isCount)
        let columns: String
        switch answer {
        // Evaluation in the process needs whole rows.
        case .count where statement.isExact: columns = "pg_catalog.count(*)"
        case .references where statement.isExact: columns = "t0.\(naming.key), t0.\(naming.entity)"
        case .rows, .references, .count: columns = shape(entity).plan.columns
        }
        return ("SELECT \(columns)\(statement.tail)", statement.parameters)
    }
}

extension ExplainedStatement {
    /// Reads the lines of EXPLAIN.
    ///
    /// Lines with conditions contain values, so only the steps themselves are kept.
    ///
    ///     Sort
    ///       Sort Key: t0.name
    ///       ->  Index Scan using venue_price_index on venue t0
    ///             Index Cond: (price < '20'::bigint)
    fileprivate init(sql: String, steps lines: [String]) {
        var plan: [String] = []
        var indexes: [String] = []
        var scanned: [String] = []
        for (number, line) in lines.enumerated() {
            let indent = line.prefix { $0 == " " }.count
            var step = String(line.dropFirst(indent))
            if step.hasPrefix("->") {
                step = String(step.dropFirst(2).drop { $0 == " " })
            } else if number > 0 {
                continue
            }
            // The first step has no arrow; each level below is indented by six more places.
            let level = number == 0 ? 0 : (indent - 2) / 6 + 1
            plan.append(String(repeating: "  ", count: level) + step)
            if let name = Self.name(in: step, after: "Scan using ")
                ?? Self.name(in: step, after: "Scan Backward using ")
                ?? Self.name(in: step, after: "Bitmap Index Scan on ")
            {
                if !indexes.contains(name) { indexes.append(name) }
            } else if let table = Self.name(in: step, after: "Seq Scan on ") {
                scanned.append(table)
            }
        }
        self.init(sql: sql, plan: plan, indexes: indexes, scannedTables: scanned)
    }

    /// The name after a phrase, without its quotes.
    private static func name(in step: String, after phrase: String) -> String? {
        guard let range = step.firstRange(of: phrase) else { return nil }
        let rest = step[range.upperBound...]
        guard rest.first == "\"" else { return String(rest.prefix { $0 != " " }) }
        var name = ""
        var characters = rest.dropFirst()
        while let character = characters.popFirst() {
            if character == "\"" {
                guard characters.first == "\"" else { break }
                characters = characters.dropFirst()
            }
            name.append(character)
        }
        return name
    }
}
