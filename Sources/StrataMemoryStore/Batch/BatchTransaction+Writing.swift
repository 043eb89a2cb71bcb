import Foundation
import StrataKeys
import StrataPredicates
import StrataRows

extension BatchTransaction {
    // MARK: - Updating

    mutating func update(_ update: BatchUpdate) throws {
        let before = contents
        let rows = try InMemoryFetch(update.rows, before).rows()
        for slot in update.constantSlots {
            if let reference = update.constants.reference(slot, ifToOne: true) { try requireTarget(reference, slot) }
        }
        var evaluator = ResolvedEvaluator(
            variableCount: update.variableCount,
            reader: RowReader(before, update.rows.storeNumber)
        )
        var saved: [Int64: Int64] = [:]
        // One time limit covers all rows.
        try update.rows.evaluating {
            for row in rows {
                // The successor keeps the values that other rows of the batch have changed in this row.
                let next = successor(of: self.row(row.key, root: row.layout.rootNumber) ?? row)
                for slot in update.constantSlots { next.take(slot, from: update.constants) }
                for computed in update.computed {
                    try next.setComputed(try computed.value(for: row, &evaluator), computed.slot)
                }
                put(next)
                for slot in update.constantSlots where slot.kind == .reference {
                    moveMember(from: row, to: next, by: slot)
                }
                changes.changed.add(row.key, row.layout, properties: update.propertyNames)
                saved[row.key] = row.key
            }
        }
        changes.count = rows.count
        let root = update.rows.layout.rootNumber
        let conflicts = contents.uniques.conflicts(in: contents.rows[root] ?? PersistentMap(), saved)
        if case .constraint(let entity, let attributes, _, _)? = conflicts.first {
            throw CocoaError.batchUpdateBreaksConstraint(on: attributes, of: entity)
        }
    }

    /// Updates the other side of a to-one relationship.
    private mutating func moveMember(from old: Row, to new: Row, by slot: Slot) {
        guard let inverse = slot.inverse else { return }
        let (from, to) = (old.reference(slot)?.key, new.reference(slot)?.key)
        guard inverse.isToMany else { return releaseBack(old.key, inverse) }
        if let from, from != to {
            reordered.remove(old.key, from: from, by: inverse)
            markMembersChanged(of: from, inverse)
        }
        if let to {
            if from != to { reordered.append(new.key, to: to, by: inverse) }
            markMembersChanged(of: to, inverse)
        }
    }

    /// Clears the to-one relationship of all rows that lead to the row with this key, which no longer relates to them.
    mutating func releaseBack(_ key: Int64, _ backlink: Relationship) {
        let root = backlink.entity.rootNumber
        let keys = contents.pointing[InMemoryContents.RelationshipKey(backlink)]?[key]?.sortedKeys ?? []
        for key in keys {
            guard let row = row(key, root: root), let slot = row.layout.slot(named: backlink.name) else { continue }
            let next = successor(of: row)
            next.setReference(nil, slot)
            put(next)
            changes.followed.add(key, row.layout, properties: [backlink.name])
        }
    }

    // MARK: - Inserting

    mutating func insert(_ given: [GivenRow], _ insertion: BatchInsertion) throws {
        let layout = insertion.layout
        let root = layout.rootNumber
        let firstKey = contents.reserve(0, root).lowerBound
        var changed: Set<Int64> = []
        var clashes: [BatchClash] = []
        let control = insertion.control
        var counter = RowCounter(control)
        for (position, given) in given.enumerated() {
            try control?.cancellation.check()
            defer { counter.count() }
            let row = given.row
            for slot in layout.referenceSlots {
                if let reference = row.reference(slot) { try requireTarget(reference, slot) }
            }
            let found = contents.uniques.holders(of: row, in: contents.rows[root] ?? PersistentMap())
            guard let (attributes, holder) = found.first else {
                add(row)
                continue
            }
            guard insertion.upsert != .skip else { continue }
            let isOne = found.allSatisfy { $0.holder.key == holder.key }
            let slots = given.slots(insertion.upsert)
            let clash = BatchClash(
                position: position,
                constraint: attributes,
                row: row,
                stored: holder.key < firstKey ? holder : nil,
                misfits: given.misfits(slots, in: holder.layout)
            )
            guard insertion.upsert != .fail, isOne, clash.misfits.isEmpty,
                replaceValues(of: holder, with: row, in: slots, isNew: holder.key >= firstKey)
            else {
                clashes.append(clash)
                if clashes.count == BatchClashes.limit { break }
                continue
            }
            if holder.key < firstKey, changed.insert(holder.key).inserted {
                changes.count += 1
                changes.changed.add(holder.key, holder.layout, properties: slots.propertyNames)
            }
        }
        counter.finish()
        guard clashes.isEmpty else { throw BatchClashes(layout: layout, clashes: clashes) }
    }

    private mutating func add(_ row: Row) {
        let key = contents.reserve(1, row.layout.rootNumber).lowerBound
        row.setKey(key)
        row.setVersion(1)
        row.setStamp(CoarseClock.now)
        put(row)
        for slot in row.layout.referenceSlots { join(row, slot) }
        changes.inserted.add(key, row.layout)
        changes.count += 1
    }

    private mutating func join(_ row: Row, _ slot: Slot) {
        guard let inverse = slot.inverse, inverse.isToMany,
            let owner = row.reference(slot)?.key
        else { return }
        reordered.append(row.key, to: owner, by: inverse)
        markMembersChanged(of: owner, inverse)
    }

    /// Sets values of a stored row to those of another row; false if that would break a constraint.
    ///
    /// A row of the same batch keeps its version, since no other context has seen it with other values.
    private mutating func replaceValues(of stored: Row, with row: Row, in slots: [Slot], isNew: Bool) -> Bool {
        guard !slots.isEmpty else { return true }
        let next = successor(of: stored)
        if isNew { next.setVersion(stored.version) }
        for slot in slots where stored.layout.shares([slot]) { next.take(slot, from: row) }
        let root = stored.layout.rootNumber
        put(next)
        guard
            contents.uniques.conflicts(in: contents.rows[root] ?? PersistentMap(), [stored.key: stored.key]).isEmpty
        else {
            put(stored)
            return false
        }
        for slot in slots where slot.kind == .reference && stored.layout.shares([slot]) {
            moveMember(from: stored, to: next, by: slot)
        }
        return true
    }
}

extension Row {
    /// The destination in a slot; `nil` if the slot is not a relationship.
    fileprivate func reference(_ slot: Slot, ifToOne: Bool) -> ObjectReference? {
        slot.kind == .reference ? reference(slot) : nil
    }
}
