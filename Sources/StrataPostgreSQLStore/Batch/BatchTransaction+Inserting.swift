import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import StrataSQL

extension BatchTransaction {
    /// The row that has the unique values of a constraint.
    private enum Holder: Hashable {
        case stored(Int64)
        /// A row of the batch, by its position among the inserted rows.
        case new(Int)
    }

    /// The rows with unique values that the batch has to know.
    private struct Holders {
        let constraints: [SQLConstraint]
        private var holders: [[[PostgreSQLValue]: Holder]]

        init(_ constraints: [SQLConstraint]) {
            self.constraints = constraints
            holders = constraints.map { _ in [:] }
        }

        mutating func set(_ holder: Holder, of constraint: Int, with values: [PostgreSQLValue]) {
            holders[constraint][values] = holder
        }

        /// The values of a row by constraint; `nil` if one of them is null, or if the row has no such attributes.
        func values(_ row: Row) -> [[PostgreSQLValue]?] {
            constraints.map { constraint in
                guard constraint.applies(to: row.layout) else { return nil }
                let values = constraint.slots.map { PostgreSQLValue(row, $0).identity }
                return values.contains(where: \.isNull) ? nil : values
            }
        }

        /// The attributes of each constraint that a row would break, and the row that has the values.
        func found(_ row: Row) -> [(attributes: [String], holder: Holder)] {
            if constraints.isEmpty { return [] }
            return zip(constraints.indices, values(row)).compactMap { index, values in
                values.flatMap { holders[index][$0] }.map { (constraints[index].attributes, $0) }
            }
        }

        mutating func enter(_ row: Row, _ holder: Holder) {
            if constraints.isEmpty { return }
            for (index, values) in values(row).enumerated() { if let values { holders[index][values] = holder } }
        }

        mutating func remove(_ row: Row, _ holder: Holder) {
            for (index, values) in values(row).enumerated() {
                if let values, holders[index][values] == holder { holders[index][values] = nil }
            }
        }
    }

    func insert(_ given: [GivenRow], _ insertion: BatchInsertion) throws {
        guard let entity = database.mapping.entity(insertion.layout), let table = database.mapping.table(of: entity)
        else {
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The store \(database.place) does not hold entity \(insertion.layout.name)."
                ]
            )
        }
        var holders = Holders(table.constraints.filter { $0.applies(to: insertion.layout) })
        let stored = try storedHolders(of: given, &holders, table)
        var clashes: [BatchClash] = []
        var changed: Set<Int64> = []
        let control = insertion.control
        var counter = RowCounter(control)
        for (position, given) in given.enumerated() {
            try control?.cancellation.check()
            defer { counter.count() }
            let found = holders.found(given.row)
            guard let (attributes, holder) = found.first else {
                try add(given.row, &holders)
                continue
            }
            guard insertion.upsert != .skip else { continue }
            let slots = given.slots(insertion.upsert)
            let held = row(holder, stored)
            let clash = BatchClash(
                position: position,
                constraint: attributes,
                row: given.row,
                stored: isStored(holder) ? held : nil,
                misfits: held.map { given.misfits(slots, in: $0.layout) } ?? []
            )
            guard insertion.upsert != .fail, let held, found.allSatisfy({ $0.holder == holder }),
                clash.misfits.isEmpty,
                try replaceValues(of: holder, held: held, with: given.row, in: slots, updating: &holders)
            else {
                clashes.append(clash)
                if clashes.count == BatchClashes.limit { break }
                continue
            }
            if case .stored(let key) = holder, changed.insert(key).inserted {
                changes.count += 1
                changes.changed.add(key, held.layout, properties: slots.propertyNames)
            }
        }
        counter.finish()
        markOwnersOfNewRows(insertion.layout)
        guard clashes.isEmpty else { throw BatchClashes(layout: insertion.layout, clashes: clashes) }
    }

    /// The stored rows that have the unique values of new ones.
    private func storedHolders(
        of given: [GivenRow],
        _ holders: inout Holders,
        _ table: SQLTable
    ) throws -> [Int64: Row] {
        var rows: [Int64: Row] = [:]
        for (index, constraint) in holders.constraints.enumerated() {
            let values = given.compactMap { given -> [PostgreSQLValue]? in
                let values = constraint.slots.map { PostgreSQLValue(given.row, $0) }
                return values.contains(where: \.isNull) ? nil : values
            }
            guard !values.isEmpty else { continue }
            for (values, row) in try queries.holders(of: values, constraint: constraint, in: table, on: connection) {
                holders.set(.stored(row.key), of: index, with: values)
                rows[row.key] = row
            }
        }
        return rows
    }

    private func isStored(_ holder: Holder) -> Bool {
        if case .stored = holder { return true }
        return false
    }

    /// The state of a row after the batch.
    private func row(_ holder: Holder, _ stored: [Int64: Row]) -> Row? {
        switch holder {
        case .stored(let key): stored[key].map { stateToWrite(of: $0) }
        case .new(let position): store.inserted[position]
        }
    }

    private func add(_ row: Row, _ holders: inout Holders) throws {
        // A temporary key, until the row gets its permanent one.
        row.setKey(-Int64(store.inserted.count) - 1)
        row.setVersion(0)
        holders.enter(row, .new(store.inserted.count))
        store.inserted.append(row)
        changes.count += 1
    }

    /// Notes the owners whose relationships have new members.
    private func markOwnersOfNewRows(_ layout: EntityLayout) {
        for slot in layout.referenceSlots {
            guard let inverse = slot.inverse, inverse.isToMany else { continue }
            markMembersChanged(of: store.inserted.lazy.compactMap { $0.reference(slot)?.key }, inverse)
        }
    }

    /// Sets values of a row to those of another row; false if that would break a constraint.
    private func replaceValues(
        of holder: Holder,
        held: Row,
        with row: Row,
        in slots: [Slot],
        updating holders: inout Holders
    ) throws
        -> Bool
    {
        let slots = slots.filter { held.layout.shares([$0]) }
        guard !slots.isEmpty else { return true }
        let trial = held.copy()
        for slot in slots { trial.take(slot, from: row) }
        guard holders.found(trial).allSatisfy({ $0.holder == holder }) else { return false }
        holders.remove(held, holder)
        let next = isStored(holder) ? successor(of: held) : held
        let old = held.copy()
        for slot in slots { next.take(slot, from: row) }
        holders.enter(next, holder)
        guard isStored(holder) else { return true }
        markChanged(next, slots)
        for slot in slots where slot.kind == .reference {
            try move(next, from: old.reference(slot), to: next.reference(slot), slot)
        }
        return true
    }
}
