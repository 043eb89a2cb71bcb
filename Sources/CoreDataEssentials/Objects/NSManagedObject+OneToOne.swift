import StrataRows

// One-to-one relationships that this context and others have changed. The store has both sides, and others have changed
// both of them. So a context that keeps its own value of one side has to change the other side as well.

extension NSManagedObject {
    /// Makes the other sides of one-to-one relationships agree with this object, after it has kept values that others
    /// have changed in the store.
    ///
    /// - Parameters:
    ///   - base: The row under the object's changes before.
    ///   - row: The stored row.
    final func keepOneToOne(from base: Row, to row: Row) {
        guard let context, let current else { return }
        for slot in layout.referenceSlots {
            let (stored, kept) = (row.reference(slot), current.reference(slot))
            guard kept != stored, base.reference(slot) != stored, let inverse = slot.inverse, !inverse.isToMany,
                !inverse.isTransient
            else { continue }
            if let stored { context.object(for: stored, near: self)?.settle(inverse, with: self, areRelated: false) }
            guard let kept, flags.isDisjoint(with: .deleted) else { continue }
            context.object(for: kept, near: self)?.settle(inverse, with: self, areRelated: true)
        }
    }

    /// Sets this side of a one-to-one relationship, of which the context keeps the other side.
    ///
    /// Others have stored the contrary. If this object has changes and was read before that, then it does not show it yet.
    /// So the row under its changes gets the stored value, and a save writes the new one. The version of the row stays,
    /// so that the save finds out whether something else was changed too.
    private func settle(_ relationship: Relationship, with object: NSManagedObject, areRelated: Bool) {
        guard case .slot(let index)? = place(of: relationship) else { return }
        let isNewest = showNewestRow(triggeredBy: index)
        guard flags.isDisjoint(with: [.fault, .inaccessible, .inserted, .deleted, .gone]), let context,
            let base = baseRow, let current
        else { return }
        let slot = layout.slots[index]
        let (before, shown) = (base.reference(slot), current.reference(slot))
        var stored = before
        if !isNewest {
            stored = areRelated ? (before == object.reference ? nil : before) : object.reference
        }
        // Another change stays, whether it is an unsaved one of this object or a later one of others.
        let isToBeSet =
            areRelated
            ? shown == before && stored != object.reference
            : shown == object.reference || (!isNewest && shown == before)
        guard isToBeSet else { return }
        let row = quietRow(index)
        if stored != before {
            let newer = base.copy()
            newer.setReference(stored, slot)
            extras?.base = newer
        }
        row.setReference(areRelated ? object.reference : nil, slot)
        noteInverse(relationship.name)
        markUpdatedByOthers(in: context)
        context.addRefreshed(self)
        // The object that others have related to this one loses it.
        if areRelated, let stored, let inverse = slot.inverse {
            context.object(for: stored, near: self)?.settle(inverse, with: self, areRelated: false)
        }
    }

    /// Shows the newest row, unless the object has changes, about which a merge policy may have to decide.
    ///
    /// - Parameter slot: The slot whose value is read.
    /// - Returns: Whether the object shows the newest row.
    private func showNewestRow(triggeredBy slot: Int) -> Bool {
        if flags.contains(.fault) {
            fireFault(triggeredBy: slot)
            return true
        }
        guard !hasChanges, let context, let newest = try? context.newestRow(of: self) else { return false }
        guard newest.buffer !== current?.buffer else { return true }
        rebase(onto: newest)
        context.acceptRefreshed(self)
        awake(fromSnapshotEvents: .refresh)
        return true
    }
}
