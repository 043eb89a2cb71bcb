import StrataRows

// Rows that somebody outside of a tree has changed since a child read them. The child saves into its parent all the
// same, but the parent's object counts as made upon what the child has read: so the root's save finds the conflict, and
// its policy decides.
//
// Called inside the child's and the parent's scope.

extension NSManagedObjectContext {
    /// The row that this context's object is to begin with, when a child has changed or deleted its own and the one
    /// here is not loaded; `nil` if there is none.
    ///
    /// That is `newest`, unless others have changed or deleted the row since the child read it: then what the child has
    /// read. An order of members is judged by ``isNewer(_:than:of:_:)``.
    final func startingRow(for object: NSManagedObject, of child: NSManagedObjectContext, _ newest: Row?) -> Row? {
        // A policy of the child's is asked about the newest row, right now.
        guard child.parentConflictPolicy == nil, !object.isFault, object.key > 0, let base = object.baseRow,
            base.version >= 0, !base.namesUnsaved
        else { return newest }
        guard let newest else {
            // With its store everything in it has gone.
            let isGone = object.isDeleted || store(at: object.storeIndex)?.isOpen != true || hasDeleted(object, base)
            return isGone ? nil : base.under(object.key)
        }
        guard isOvertaken(object, base, by: newest), base.layout === newest.layout,
            object.layout.slots.contains(where: { !child.hasSameValue(base, newest, $0) }),
            !hasAccepted(RowName(object), from: base.version, to: newest.version)
        else { return newest }
        return base.under(object.key)
    }

    /// Whether this context, or one above, has deleted a child's object, or knows that it is deleted.
    private func hasDeleted(_ object: NSManagedObject, _ base: Row) -> Bool {
        if registeredForChild(object)?.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]) == false {
            return true
        }
        let name = RowName(object)
        if tree.acceptedVersions.cover(name, from: base.version, to: AcceptedVersions.gone) { return true }
        guard let upward else { return false }
        return visitParent(upward) { $0.hasDeleted(object, base) }
    }

    /// Whether this context's object is made upon a newer version than a child's, in which others have changed what the
    /// child has.
    ///
    /// Not if somebody in the tree has accepted that version. Of an order of members it cannot be told, so any change
    /// counts.
    ///
    /// - Parameters:
    ///   - target: The object here.
    ///   - object: The child's object.
    ///   - child: The child that saves.
    ///   - slots: What the child has changed; `nil` if the object as a whole counts.
    /// - Returns: Whether the child has read an earlier version.
    final func isNewer(
        _ target: NSManagedObject,
        than object: NSManagedObject,
        of child: NSManagedObjectContext,
        _ slots: SlotSet?
    ) -> Bool {
        guard child.parentConflictPolicy == nil, !target.isFault, !object.isFault, target.key > 0,
            let base = object.baseRow, let newer = target.baseRow,
            isOvertaken(target, base, by: newer),
            target.current?.buffer !== base.buffer
        else { return false }
        let isChanged = target.layout.slots.contains { slot in
            slots?.contains(slot.index) ?? true && !child.hasSameValue(base, newer, slot)
        }
        guard isChanged || object.changesOrders else { return false }
        return !hasAccepted(RowName(target), from: base.version, to: newer.version)
    }

    /// Whether the row of an object was changed by others between two rows that were read.
    private func isOvertaken(_ object: NSManagedObject, _ base: Row, by newer: Row) -> Bool {
        let form = store(at: object.storeIndex)?.rows.versionForm ?? .counted
        return RowVersion.isOvertaken(base.version, by: newer.version, form)
    }

    /// Whether a property is in a newer row as this context has read it.
    final func hasSameValue(_ base: Row, _ row: Row, _ slot: Slot) -> Bool {
        // Stores compute these, without anybody's changing them.
        if slot.property is NSDerivedAttributeDescription || base.hasSameValue(as: row, in: slot) { return true }
        guard slot.kind == .reference, let old = base.reference(slot), let new = row.reference(slot) else {
            return false
        }
        // The parent may know the permanent key where the child's row still has the temporary one.
        return temporaryID(old.key)?.key == new.key
    }
}

extension NSManagedObject {
    /// Whether members of an ordered relationship were added, removed or moved.
    final var changesOrders: Bool {
        guard layout.hasOrderedToMany, let extras else { return false }
        return layout.toMany.contains { slot in
            slot.isOrdered && !slot.isTransient && extras.toMany[slot.index]?.hasChanges == true
        }
    }

    /// Lets the object count as made upon the version that a child has read, with the child's former values of what it
    /// has changed.
    ///
    /// That version is not the stored one any more, so no save takes it for that.
    final func stepBack(to base: Row, _ slots: SlotSet) {
        guard let newer = baseRow else { return }
        let row = newer.copy()
        row.setVersion(base.version)
        for slot in layout.slots where slots.contains(slot.index) {
            if slot.kind == .reference, let reference = base.reference(slot), reference.key < 0 { continue }
            row.take(slot, from: base)
        }
        if flags.contains(.ownsRow) {
            extras?.base = row
        } else {
            extras?.moveDecoded(from: newer, to: row)
            current = row
        }
    }
}

extension Row {
    /// The row under the key that its object has by now: what a child has saved as a new object was made under another
    /// one.
    fileprivate func under(_ key: Int64) -> Row {
        guard self.key != key else { return self }
        let row = copy()
        row.setKey(key)
        return row
    }
}
