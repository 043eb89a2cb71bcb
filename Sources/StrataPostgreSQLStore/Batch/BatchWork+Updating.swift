import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

extension BatchWork {
    func update(_ update: BatchUpdate) throws {
        let rows = try rows(for: update.rows)
        var evaluator = ResolvedEvaluator(
            variableCount: update.variableCount,
            reader: StoreRowReader(source, rows, storeNumber: update.rows.storeNumber)
        )
        var values: [[PredicateValue]] = []
        // All rows have one limit, and all values are of the rows before they change.
        try update.rows.evaluating {
            for row in rows {
                values.append(try update.computed.map { try evaluator.value(of: $0.expression, for: row.buffer) })
            }
        }
        for (row, computed) in zip(rows, values) {
            let next = successor(of: row)
            for slot in update.constantSlots { next.take(slot, from: update.constants) }
            for (value, target) in zip(computed, update.computed) { try next.set(value, target.slot) }
            noteChange(row, update.slots)
            for slot in update.constantSlots where slot.kind == .reference {
                try move(row, from: row.reference(slot), to: next.reference(slot), slot)
            }
            changes.changed.add(row.key, row.layout, properties: update.propertyNames)
        }
        changes.count = rows.count
    }
}

extension Row {
    /// Sets an attribute to what an expression has come to.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a number that does not fit.
    fileprivate func set(_ value: PredicateValue, _ slot: Slot) throws {
        switch value {
        case .null, .collection, .reference, .entity: setNull(slot)
        case .int(let number): try setNumber(number, Double(number), slot)
        case .double(let number), .date(let number):
            guard slot.kind == .int else { return try setNumber(0, number, slot) }
            guard let whole = Int64(exactly: number.rounded(.towardZero)) else {
                throw CocoaError.batchValueOutOfRange(layout)
            }
            // The sign of a fraction alone decides whether a truth value is true.
            try setNumber(slot.type == .boolean && number != 0 ? 1 : whole, number, slot)
        case .string(let text): setString(text, slot)
        case .uuid(let uuid): setUUID(uuid, slot)
        case .data(let data): setData(data, slot)
        }
    }

    private func setNumber(_ whole: Int64, _ number: Double, _ slot: Slot) throws {
        switch slot.kind {
        case .int:
            guard let fitting = try? slot.type.integer(whole) else { throw CocoaError.batchValueOutOfRange(layout) }
            setInt(fitting, slot)
        case .double: setDouble(number, slot)
        case .decimal: setDecimal(Decimal(shortest: number) ?? 0, slot)
        default: setNull(slot)
        }
    }
}
