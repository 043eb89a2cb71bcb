import StrataPredicates
import StrataRows
import StrataSQL

/// Two numbers of a row as a point of the plane, in an index that finds the points in a rectangle (an R-tree, which
/// PostgreSQL calls GiST).
struct BoxIndex: Sendable {
    let sides: (x: Int, y: Int)
    private let columns: (x: SQLName, y: SQLName)

    /// Makes the index; `nil` for an index of another kind, or of numbers that are no doubles.
    init?(_ index: IndexDefinition, _ entity: EntityMapping) {
        let slots = index.columns.filter(\.isTree).compactMap { entity.layout.slot(named: $0.name) }
        guard index.columns.count == 2, slots.count == 2, slots.allSatisfy({ Self.isExact($0.type) }),
            let x = entity.columns[slots[0].index].name, let y = entity.columns[slots[1].index].name
        else { return nil }
        sides = (slots[0].index, slots[1].index)
        columns = (x, y)
    }

    /// Whether a double can hold each value of a type.
    private static func isExact(_ type: AttributeType) -> Bool {
        switch type {
        case .integer16, .integer32, .double, .float, .date: true
        case .undefined, .integer64, .decimal, .string, .boolean, .data, .uuid, .uri, .transformable, .objectID,
            .composite:
            false
        }
    }

    /// The point as a box without an extent; `alias` is that of the table.
    func expression(_ alias: String?) -> String {
        let prefix = alias.map { "\($0)." } ?? ""
        let point =
            "pg_catalog.point((\(prefix)\(columns.x))::double precision, (\(prefix)\(columns.y))::double precision)"
        return "pg_catalog.box(\(point), \(point))"
    }

    /// The condition that the point is in a rectangle, in the form that the index serves; the parameters have
    /// consecutive numbers.
    ///
    /// Points a little outside satisfy it too.
    func contains(firstParameter: Int, _ alias: String) -> String {
        func corner(_ number: Int) -> String {
            "pg_catalog.point($\(number)::double precision, $\(number + 1)::double precision)"
        }
        return
            "\(expression(alias)) OPERATOR(pg_catalog.&&) pg_catalog.box(\(corner(firstParameter)), \(corner(firstParameter + 2)))"
    }
}

extension ResolvedCondition {
    /// The bounds that the condition sets for attributes of a row, by slot.
    var bounds: [Int: (lower: Double, upper: Double)] {
        var bounds: [Int: (lower: Double, upper: Double)] = [:]
        func narrow(_ slot: Int, from lower: Double, to upper: Double) {
            let known = bounds[slot] ?? (-.infinity, .infinity)
            bounds[slot] = (max(known.lower, lower), min(known.upper, upper))
        }
        func add(_ condition: ResolvedCondition) {
            switch condition {
            case .and(let operands): for operand in operands { add(operand) }
            case .between(let operand, let lower, let upper, _):
                guard let slot = operand.ownSlot, let lower = lower.exactDouble, let upper = upper.exactDouble else {
                    return
                }
                narrow(slot, from: lower, to: upper)
            case .comparison(let comparison):
                if let slot = comparison.left.ownSlot, let value = comparison.right.exactDouble {
                    narrow(slot, to: comparison.operator, value: value)
                } else if let slot = comparison.right.ownSlot, let value = comparison.left.exactDouble {
                    narrow(slot, to: comparison.operator.swapped, value: value)
                }
            case .constant, .or, .not, .isNull, .member, .string, .exists: break
            }
        }
        func narrow(_ slot: Int, to comparison: ResolvedComparison.Operator, value: Double) {
            switch comparison {
            case .equal: narrow(slot, from: value, to: value)
            case .less, .lessOrEqual: narrow(slot, from: -.infinity, to: value)
            case .greater, .greaterOrEqual: narrow(slot, from: value, to: .infinity)
            }
        }
        add(self)
        return bounds
    }
}

extension ResolvedComparison.Operator {
    /// The operator with the same meaning when its sides are exchanged.
    fileprivate var swapped: Self {
        switch self {
        case .equal: .equal
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        }
    }
}

extension ResolvedExpression {
    /// The slot of an attribute of the row itself.
    fileprivate var ownSlot: Int? {
        guard case .attribute(let path, let attribute) = self, path.variable == 0, path.steps.isEmpty else {
            return nil
        }
        return attribute.slot
    }

    /// The value of a constant number, if a double can hold it exactly.
    fileprivate var exactDouble: Double? {
        switch constantValue {
        case .int(let number)? where number.magnitude <= 1 << 53: Double(number)
        case .double(let number)? where number.isFinite: number
        case .date(let seconds)? where seconds.isFinite: seconds
        default: nil
        }
    }
}
