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
        var stored = try storedHolders(of: given, &holders, table)
        var clashes: [BatchClash] = []
        var changed: Set<Int64> = []
        var unwritten: [Row] = []
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
            unwritten.append(given.row)
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
                try replaceValues(
                    of: holder,
                    held: held,
                    with: given.row,
                    in: slots,
                    of: table,
                    updating: &holders,
                    &stored
                )
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
        try requireTargets(of: unwritten)
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

    /// Finds the stored rows that have values of constraints that a row gets by an upsert, partly from the given row.
    ///
    /// Those that the given row has by itself, and those that the row had before, are known.
    private func findHolders(
        of mixed: Row,
        before held: Row,
        with given: Row,
        in table: SQLTable,
        _ holders: inout Holders,
        _ stored: inout [Int64: Row]
    ) throws {
        guard holders.constraints.contains(where: { $0.slots.count > 1 }) else { return }
        let (before, alone) = (holders.values(held), holders.values(given))
        for (index, values) in holders.values(mixed).enumerated() {
            guard let values, values != before[index], values != alone[index] else { continue }
            let constraint = holders.constraints[index]
            let asked = [constraint.slots.map { PostgreSQLValue(mixed, $0) }]
            let found = try queries.holders(of: asked, constraint: constraint, in: table, on: connection)
            for row in found.values {
                // The batch may have given it other values.
                let state = constraint.slots.map { PostgreSQLValue(stateToWrite(of: row), $0).identity }
                guard state == values else { continue }
                holders.set(.stored(row.key), of: index, with: values)
                stored[row.key] = row
            }
        }
    }

    /// Refuses relationships to missing rows, in rows that are not written.
    ///
    /// The destinations of written rows are locked, and that finds missing ones.
    func requireTargets(of rows: [Row]) throws {
        guard !rows.isEmpty else { return }
        for slot in batch.layout.referenceSlots {
            let keys = Set(rows.compactMap { $0.reference(slot)?.key })
            guard !keys.isEmpty, let owners = database.mapping.entity(modelNumber: slot.destinationNumber) else {
                continue
            }
            let found = Set(try queries.rows(keys.sorted(), of: owners, on: connection).map(\.key))
            if let missing = keys.subtracting(found).min() {
                throw CocoaError.missingBatchTarget(of: slot, key: missing, in: batch.layout)
            }
        }
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
        of table: SQLTable,
        updating holders: inout Holders,
        _ stored: inout [Int64: Row]
    ) throws
        -> Bool
    {
        let slots = slots.filter { held.layout.shares([$0]) }
        guard !slots.isEmpty else { return true }
        let trial = held.copy()
        for slot in slots { trial.take(slot, from: row) }
        try findHolders(of: trial, before: held, with: row, in: table, &holders, &stored)
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
