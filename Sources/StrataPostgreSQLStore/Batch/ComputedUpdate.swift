import StrataPostgreSQL
import StrataPredicates
import StrataRows
import StrataSQL

/// Writes the values of an update that the server computes for each row as the process would.
///
/// These are sums, differences and products of numbers of the row. If a value is too large for its type or its column,
/// or is NaN, then the statement fails with 22003. The process then computes the value, and has a double for it, or an
/// error.
struct ComputedUpdate {
    private let entity: EntityMapping
    /// The values of the statement, to which constants are added.
    private(set) var parameters: [PostgreSQLValue]

    init(_ entity: EntityMapping, _ parameters: [PostgreSQLValue]) {
        self.entity = entity
        self.parameters = parameters
    }

    /// The SQL for an expression in the type of a slot; `nil` if the process has to compute it, so that the statement
    /// cannot be used.
    mutating func value(of expression: ResolvedExpression, for slot: Slot) -> String? {
        guard let (sql, isWhole) = written(expression) else { return nil }
        return switch (slot.type, isWhole) {
        case (.integer16, true): "CAST(\(sql) AS smallint)"
        case (.integer32, true): "CAST(\(sql) AS integer)"
        case (.integer64, true): sql
        case (.double, true): "CAST(\(sql) AS double precision)"
        // With infinities the result may be NaN. The cast to an integer then fails, as intended.
        case (.double, false):
            """
            CASE WHEN \(sql) = 'NaN'::double precision THEN CAST(CAST(\(sql) AS bigint) AS double precision)
            ELSE \(sql) END
            """
        // The server rounds a fraction, and the process cuts it off; other types have other rules.
        default: nil
        }
    }

    /// The SQL of an expression, and whether its value is a whole number.
    private mutating func written(_ expression: ResolvedExpression) -> (sql: String, isWhole: Bool)? {
        switch expression {
        case .constant(.int(let number), _): return (parameter(.int8(number)), true)
        case .constant(.double(let number), _) where !number.isNaN: return (parameter(.float8(number)), false)
        case .attribute(let path, let attribute):
            guard path.variable == 0, path.steps.isEmpty, entity.columns.indices.contains(attribute.slot),
                let name = entity.columns[attribute.slot].name
            else { return nil }
            return switch entity.layout.slots[attribute.slot].type {
            case .integer16, .integer32, .integer64: ("CAST(t0.\(name) AS bigint)", true)
            // An operator may have changed the column to a narrower type.
            case .double: ("CAST(t0.\(name) AS double precision)", false)
            default: nil
            }
        case .function(let function, let arguments, _):
            guard arguments.count == 2, let sign = Self.sign(function), let left = written(arguments[0]),
                let right = written(arguments[1])
            else { return nil }
            return ("(\(left.sql) \(sign) \(right.sql))", left.isWhole && right.isWhole)
        case .constant, .object, .aggregate, .conditional, .rowAggregate: return nil
        }
    }

    private static func sign(_ function: PredefinedFunction) -> String? {
        switch function {
        case .add: "+"
        case .subtract: "-"
        case .multiply: "*"
        default: nil
        }
    }

    private mutating func parameter(_ value: PostgreSQLValue) -> String {
        parameters.append(value)
        return "$\(parameters.count)"
    }
}
