import StrataRows
import StrataSQL

extension SaveTransaction {
    /// Notes the owners that members have before anything is written.
    func noteDerivedBefore() throws {
        guard let derived else { return }
        for (root, keys) in derivedMembers(derived.plan, includesInserted: false) {
            try derived.noteOwners(of: keys, root)
        }
        for run in runs(changes.deleted, \.layout) {
            try derived.noteCounts(with: run.map(\.key), run[0].layout.rootNumber)
        }
    }

    /// Brings derived attributes up to date, once all else is written.
    func updateDerived() throws {
        guard let derived else { return }
        for (root, keys) in derivedMembers(derived.plan) { try derived.noteOwners(of: keys, root) }
        notePairs(derived)
        noteWritten(derived)
        var copied: [Int: [Int64]] = [:]
        for update in changes.updated
        where !derived.plan.copiedSlots[update.row.layout.number].isDisjoint(with: update.changed) {
            copied[update.row.layout.rootNumber, default: []].append(update.row.key)
        }
        for (root, keys) in copied.sorted(by: { $0.key < $1.key }) { try derived.noteCopiers(of: keys, root) }
        for (root, keys) in try derived.settle() { inexact[root, default: []].formUnion(keys) }
    }

    /// The members that owners compute something of, as far as this save changes what matters of them, by the root entity's number.
    private func derivedMembers(_ plan: DerivedPlan, includesInserted: Bool = true) -> [(root: Int, keys: [Int64])] {
        var members: [Int: Set<Int64>] = [:]
        func add(_ key: Int64, _ layout: EntityLayout) {
            if plan.memberKeys[layout.rootNumber] != nil { members[layout.rootNumber, default: []].insert(key) }
        }
        if includesInserted {
            for (row, key) in zip(changes.inserted, result.insertedKeys) { add(key, row.layout) }
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
            for member in change.added + change.removed {
                if let key = storedKey(member.key) { add(key, destination.layout) }
            }
        }
        return members.map { ($0.key, $0.value.sorted()) }.sorted { $0.root < $1.root }
    }

    /// Notes who counts the pairs of relationships that have changed.
    private func notePairs(_ derived: DerivedUpkeep) {
        guard !derived.plan.pairKeys.isEmpty else { return }
        for change in changes.toMany {
            guard let (mapping, owner) = place(change), case .join(let side) = mapping else { continue }
            let members = (change.added + change.removed).compactMap { storedKey($0.key) }
            for pair in derived.plan.pairKeys where pair.table == side.table {
                if pair.owner == side.owner || side.isSymmetric { derived.note(owner, root: pair.owners) }
                guard pair.owner != side.owner || side.isSymmetric else { continue }
                for member in members { derived.note(member, root: pair.owners) }
            }
        }
    }

    /// Notes the rows that the save writes, which are read again.
    private func noteWritten(_ derived: DerivedUpkeep) {
        func note(_ key: Int64, _ layout: EntityLayout) {
            guard layout.hasDerivedSlots else { return }
            derived.note(key, root: layout.rootNumber, isWritten: true)
            noteInexact(key, layout)
        }
        for (row, key) in zip(changes.inserted, result.insertedKeys) { note(key, row.layout) }
        for update in changes.updated { note(update.row.key, update.row.layout) }
        // The row may be of a sub-entity, which alone has derived attributes; then it is found when the row is read.
        for row in released { derived.note(row.key, root: row.entity.layout.rootNumber, isWritten: true) }
    }
}
