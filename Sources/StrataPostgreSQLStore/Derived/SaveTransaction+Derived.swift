import StrataRows
import StrataSQL

extension SaveTransaction {
    /// Asks, after the locks, for rows that derive values from rows of the save.
    ///
    /// These are the owners that members have before anything is written, the owners that count pairs with deleted
    /// rows, and the rows that copy values. No other transaction can relate anything to the locked rows, or copy from
    /// them, before the save has ended.
    func askForDerived() throws {
        guard let derived else { return }
        for (root, keys) in derivedMembers(derived.plan) { try derived.askForOwners(of: keys, root) }
        for run in runs(changes.deleted, \.layout) {
            try derived.askForCounts(with: run.map(\.key), run[0].layout.rootNumber)
        }
        var copied: [Int: [Int64]] = [:]
        for update in changes.updated
        where !derived.plan.copiedSlots[update.row.layout.number].isDisjoint(with: update.changed) {
            copied[update.row.layout.rootNumber, default: []].append(update.row.key)
        }
        for (root, keys) in copied.sorted(by: { $0.key < $1.key }) { try derived.askForCopiers(of: keys, root) }
    }

    /// Brings derived attributes up to date, after all else is written.
    func updateDerived() throws {
        guard let derived else { return }
        markNewOwners(derived)
        markPairOwners(derived)
        markWritten(derived)
        // The current state of these rows is known, so they need not be read again.
        for (root, rows) in try derived.bringUpToDate() {
            result.reread += rows.values
            inexact[root]?.subtract(rows.keys)
        }
    }

    /// The stored members whose owners derive values from slots that this save changes, by the root entity's number.
    private func derivedMembers(_ plan: DerivedPlan) -> [(root: Int, keys: [Int64])] {
        var members: [Int: Set<Int64>] = [:]
        func add(_ key: Int64, _ layout: EntityLayout) {
            if plan.memberKeys[layout.rootNumber] != nil { members[layout.rootNumber, default: []].insert(key) }
        }
        for deletion in changes.deleted { add(deletion.key, deletion.layout) }
        for update in changes.updated
        where !plan.memberSlots[update.row.layout.number].isDisjoint(with: update.changed) {
            add(update.row.key, update.row.layout)
        }
        for change in changes.toMany {
            guard case .key(let key)? = place(change)?.mapping, key.isWithoutInverse,
                let destination = mapping.entity(modelNumber: change.relationship.destinationNumber)
            else { continue }
            for member in change.added + change.removed where member.key > 0 { add(member.key, destination.layout) }
        }
        return members.map { ($0.key, $0.value.sorted()) }.sorted { $0.root < $1.root }
    }

    /// Marks as outdated the owners that members get: those of new rows, and those of changed relationships.
    private func markNewOwners(_ derived: DerivedUpkeep) {
        let plan = derived.plan
        func mark(_ row: Row, _ changed: SlotSet?) {
            guard let keys = plan.memberKeys[row.layout.rootNumber], let entity = mapping.entity(row.layout) else {
                return
            }
            for slot in row.layout.referenceSlots where changed?.contains(slot.index) != false {
                guard let column = entity.columns[slot.index].name,
                    let owner = row.reference(slot).flatMap({ storedKey($0.key) })
                else { continue }
                for key in keys where key.table == entity.table && key.column == column {
                    derived.markOutdated(owner, root: key.owners)
                }
            }
        }
        for row in changes.inserted { mark(row, nil) }
        for update in changes.updated { mark(update.row, update.changed) }
        for change in changes.toMany where !change.added.isEmpty {
            guard let (mapping, owner) = place(change), case .key(let column) = mapping, column.isWithoutInverse,
                let members = self.mapping.entity(modelNumber: change.relationship.destinationNumber)
            else { continue }
            for key in plan.memberKeys[members.layout.rootNumber] ?? []
            where key.table == column.table && key.column == column.column {
                derived.markOutdated(owner, root: key.owners)
            }
        }
    }

    /// Marks as outdated the owners that count the pairs of changed relationships.
    private func markPairOwners(_ derived: DerivedUpkeep) {
        guard !derived.plan.pairKeys.isEmpty else { return }
        for change in changes.toMany {
            guard let (mapping, owner) = place(change), case .join(let side) = mapping else { continue }
            let members = (change.added + change.removed).compactMap { storedKey($0.key) }
            for pair in derived.plan.pairKeys where pair.table == side.table {
                if pair.owner == side.owner || side.isSymmetric { derived.markOutdated(owner, root: pair.owners) }
                guard pair.owner != side.owner || side.isSymmetric else { continue }
                for member in members { derived.markOutdated(member, root: pair.owners) }
            }
        }
    }

    /// Marks as outdated the rows that the save writes, which are then read again.
    private func markWritten(_ derived: DerivedUpkeep) {
        func mark(_ key: Int64, _ layout: EntityLayout) {
            guard layout.hasDerivedSlots else { return }
            derived.markOutdated(key, root: layout.rootNumber, isWritten: true)
            markInexact(key, layout)
        }
        for (row, key) in zip(changes.inserted, result.insertedKeys) {
            mark(key, row.layout)
            if changes.keptKeys != nil, row.layout.hasDerivedSlots { derived.markCopy(key, of: row) }
        }
        for update in changes.updated { mark(update.row.key, update.row.layout) }
        // The row may belong to a sub-entity that alone has derived attributes; its entity is found when it is read.
        for row in released { derived.markOutdated(row.key, root: row.entity.layout.rootNumber, isWritten: true) }
    }
}
