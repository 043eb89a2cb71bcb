import Foundation
import StrataPredicates
import StrataRows
import StrataSQL
import StrataSQLite

/// The text after SET in a batch update.
struct BatchAssignments {
    /// The message of SQLite for a value that does not fit.
    static let rangeMessage = "strata: out of range"
    /// Always fails.
    ///
    /// It is called only for a value that does not fit.
    static let refuseRange = ScalarFunction("strata_out_of_range", argumentCount: 0, isDeterministic: false) {
        $0.fail(rangeMessage)
    }

    /// The message of SQLite for NaN.
    static let numberMessage = "strata: not a number"
    /// Always fails.
    ///
    /// It is called only for NaN.
    static let refuseNoNumber = ScalarFunction("strata_not_a_number", argumentCount: 0, isDeterministic: false) {
        $0.fail(numberMessage)
    }

    /// Columns with values that are the same for all rows.
    private var constants: [(column: SQLName, value: SQLBinding)] = []
    /// Columns with the values that are computed from `t0`.
    private var computed: [(column: SQLName, text: String)] = []
    private let computedBindings: [SQLBinding]
    /// Columns of positions, which a member loses when it leaves its owner.
    private var orders: [(column: SQLName, owner: SQLName, value: SQLBinding)] = []
    /// The tables that the computed values need, joined to `t0`.
    private let joins: String
    /// Whether the values depend only on the row itself, so that they can be computed while it changes.
    private let isPlain: Bool

    init(for update: BatchUpdate, to entity: EntityMapping, in mapping: SQLMapping) throws {
        for slot in update.constantSlots {
            let place = entity.columns[slot.index]
            guard let name = place.name else { continue }
            constants.append((name, SQLBinding(update.constants, slot, isTagged: place.isTagged)))
            if let column = place.entity {
                let number = update.constants.reference(slot).flatMap { mapping.entity(modelNumber: $0.entity)?.number }
                constants.append((column, number.map { .integer(Int64($0)) } ?? .null))
            }
            if let order = place.order { orders.append((order, name, SQLBinding(update.constants, slot))) }
        }
        var compiler = QueryCompiler(
            mapping,
            storeNumber: update.rows.storeNumber,
            entity: entity,
            variableCount: update.variableCount
        )
        for value in update.computed {
            guard let name = entity.columns[value.slot.index].name else { continue }
            try compiler.write(value)
            computed.append((name, compiler.takeText()))
        }
        computedBindings = compiler.bindings
        joins = compiler.joins
        isPlain = joins.isEmpty && update.computed.allSatisfy(\.expression.needsOnlyItsRow)
    }

    /// A statement, and its values.
    typealias Bound = (sql: String, bindings: [SQLBinding])

    /// The statement that changes the rows.
    func statement(_ rows: RowSelection, _ entity: EntityMapping) -> Bound {
        guard isPlain else { return statement(from: values(of: rows, entity), entity) }
        let assignments = fixed(of: "t0") + computed.map { "\($0.column) = \($0.text)" }
        return (
            "UPDATE \(entity.table) AS t0 SET \(assignments.joined(separator: ", "))\(rows.restriction)",
            fixedBindings + computedBindings + rows.bindings
        )
    }

    /// A query for the new values of the rows: their keys, then the computed values.
    func values(of rows: RowSelection, _ entity: EntityMapping) -> Bound {
        let columns = computed.indices.map { ", \(computed[$0].text) AS v\($0)" }.joined()
        return (
            "SELECT t0.Z_PK AS k\(columns) FROM \(entity.table) AS t0\(joins) WHERE t0.Z_PK IN (\(rows.select("t0.Z_PK")))",
            computedBindings + rows.bindings
        )
    }

    /// The statement that changes the rows to values that were computed for all of them before the first one changed.
    func statement(from values: Bound, _ entity: EntityMapping) -> Bound {
        let assignments = fixed(of: "\(entity.table)") + computed.indices.map { "\(computed[$0].column) = n.v\($0)" }
        return (
            "UPDATE \(entity.table) SET \(assignments.joined(separator: ", ")) FROM (\(values.sql)) AS n WHERE \(entity.table).Z_PK = n.k",
            fixedBindings + values.bindings
        )
    }

    /// The assignments that are the same for all rows.
    private func fixed(of table: String) -> [String] {
        constants.map { "\($0.column) = ?" }
            + orders.map { "\($0.column) = CASE WHEN \(table).\($0.owner) IS ? THEN \(table).\($0.column) END" }
            + ["Z_OPT = Z_OPT + 1"]
    }

    private var fixedBindings: [SQLBinding] { constants.map(\.value) + orders.map(\.value) }

    /// The columns with values that differ from row to row.
    var computedColumns: [SQLName] { computed.map(\.column) }
}

extension QueryCompiler {
    /// Writes the new value of a column; the statement fails for a row in which it is NaN.
    fileprivate mutating func write(_ value: BatchUpdate.Computed) throws {
        guard let lacksNumber = value.lacksNumber else { return try writeValue(value.expression, for: value.slot) }
        write("CASE WHEN ")
        try write(lacksNumber)
        write(" THEN \(BatchAssignments.refuseNoNumber.name)() ELSE ")
        try writeValue(value.expression, for: value.slot)
        write(" END")
    }

    /// Writes an expression as a value for a column.
    private mutating func writeValue(_ expression: ResolvedExpression, for slot: Slot) throws {
        switch slot.type {
        case .integer16: try writeWhole(expression, from: "\(Int16.min)", to: "\(Int16.max)")
        case .integer32: try writeWhole(expression, from: "\(Int32.min)", to: "\(Int32.max)")
        // A sum that is too large becomes a floating-point number.
        case .integer64: try writeWhole(expression, from: "\(Int64.min)", to: "\(Int64.max)")
        // A larger number could be stored, but no row could be read that has it.
        case .decimal: try write(expression, from: "-3.4e165", to: "3.4e165")
        case .boolean where expression.type != .bool:
            write("(")
            try write(expression, for: .computation)
            write(" <> 0)")
        default: try write(expression, for: .computation)
        }
    }

    private mutating func writeWhole(_ expression: ResolvedExpression, from lowest: String, to highest: String) throws {
        write("CAST(")
        try write(expression, from: lowest, to: highest)
        write(" AS INTEGER)")
    }

    /// Writes an expression; the statement fails for a row in which its value is outside of a range.
    private mutating func write(_ expression: ResolvedExpression, from lowest: String, to highest: String) throws {
        write("CASE WHEN ")
        try write(expression, for: .computation)
        write(" NOT BETWEEN \(lowest) AND \(highest) THEN \(BatchAssignments.refuseRange.name)() ELSE ")
        try write(expression, for: .computation)
        write(" END")
    }
}

extension ResolvedExpression {
    /// Whether the value depends only on the columns of the row itself.
    fileprivate var needsOnlyItsRow: Bool {
        switch self {
        case .constant: true
        case .attribute(let path, _): path.steps.isEmpty
        case .function(_, let arguments, _): arguments.allSatisfy(\.needsOnlyItsRow)
        case .object, .aggregate, .conditional, .rowAggregate: false
        }
    }
}

extension SQLBinding {
    /// The value of a slot in the form that its column holds.
    init(_ row: Row, _ slot: Slot, isTagged: Bool = false) {
        guard !row.isNull(slot.index) else {
            self = .null
            return
        }
        switch slot.kind {
        case .int, .reference: self = .integer(row.int(slot.word))
        case .double: self = .double(row.double(slot.word))
        case .string: self = .text(row.string(slot.word))
        // Data of a batch stays in its rows, because no two rows may have the same file.
        case .data: self = .blob(isTagged ? ExternalData.tagged(row.data(slot.word)) : row.data(slot.word))
        case .uuid: self = .blob(withUnsafeBytes(of: row.uuid(slot.word).uuid) { Data($0) })
        case .decimal: self = StoredDecimal.stored(row.decimal(slot.word)).value
        }
    }
}
