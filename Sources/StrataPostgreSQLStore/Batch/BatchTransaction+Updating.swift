import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

extension BatchTransaction {
    func update(_ update: BatchUpdate) throws {
        let rows = try rows(for: update.rows)
        if rows.isEmpty, !update.constantSlots.isEmpty { try requireTargets(of: [update.constants]) }
        var evaluator = ResolvedEvaluator(
            variableCount: update.variableCount,
            reader: StoreRowReader(source, rows, storeNumber: update.rows.storeNumber)
        )
        var values: [[PredicateValue]] = []
        // One time limit covers all rows, and all values are computed from the rows before they change.
        try update.rows.evaluating {
            for row in rows {
                values.append(try update.computed.map { try $0.value(for: row, &evaluator) })
            }
        }
        for (row, computed) in zip(rows, values) {
            let next = successor(of: row)
            for slot in update.constantSlots { next.take(slot, from: update.constants) }
            for (value, target) in zip(computed, update.computed) { try next.setComputed(value, target.slot) }
            markChanged(row, update.slots)
            for slot in update.constantSlots where slot.kind == .reference {
                try move(row, from: row.reference(slot), to: next.reference(slot), slot)
            }
            changes.changed.add(row.key, row.layout, properties: update.propertyNames)
        }
        changes.count = rows.count
    }
}
