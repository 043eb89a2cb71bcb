import StrataRows

// Rows that were changed outside of a tree since a child read them. The child can save into its parent all the same.
// But the parent's object is then based on the row that the child has read. So the root's save finds the conflict, and
// the root's policy decides.
//
// Called inside the child's and the parent's scope.

extension ChildSave {
    /// The row on which to base the parent's object if the child has changed or deleted the object, and it is not
    /// loaded there.
    ///
    /// This is `newest`, unless the row was changed or deleted elsewhere since the child read it: then it is the row
    /// that the child has read. It is `nil` if there is no row. Orders of members are checked by
    /// ``isNewer(_:than:_:)``.
    func startingRow(for object: NSManagedObject, _ newest: Row?) -> Row? {
        // If the child has a policy, that decides about the newest row now.
        guard child.parentConflictPolicy == nil, !object.isFault, object.key > 0, let base = object.baseRow,
            base.version >= 0, !base.namesUnsaved
        else { return newest }
        guard let newest else {
            // If the store was removed, none of its rows exists any more.
            let isGone =
                object.isDeleted || parent.store(at: object.storeIndex)?.isOpen != true
                || Self.hasDeleted(object, base, parent)
            return isGone ? nil : base.under(object.key)
        }
        guard isOvertaken(object, base, by: newest), base.layout === newest.layout,
            object.layout.slots.contains(where: { !child.hasSameValue(in: base, and: newest, at: $0) }),
            !parent.hasAccepted(RowName(object), from: base.version, to: newest.version)
        else { return newest }
        return base.under(object.key)
    }

    /// Whether a context, or one above, has deleted the child's object, or has merged its deletion.
    private static func hasDeleted(_ object: NSManagedObject, _ base: Row, _ context: NSManagedObjectContext) -> Bool {
        if context.registeredForChild(object)?.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]) == false {
            return true
        }
        let name = RowName(object)
        if context.tree.acceptedVersions.cover(name, from: base.version, to: AcceptedVersions.gone) { return true }
        guard let upward = context.upward else { return false }
        return context.visitParent(upward) { hasDeleted(object, base, $0) }
    }

    /// Whether the parent's object is based on a newer version, in which values that the child has changed were
    /// changed elsewhere.
    ///
    /// The result is `false` if a context of the tree has accepted that version. For an order of members the values
    /// cannot be compared, so any change counts.
    ///
    /// - Parameters:
    ///   - target: The parent's object.
    ///   - object: The child's object.
    ///   - slots: The properties that the child has changed; `nil` if the object as a whole counts.
    /// - Returns: Whether the child has read an earlier version.
    func isNewer(_ target: NSManagedObject, than object: NSManagedObject, _ slots: SlotSet?) -> Bool {
        guard child.parentConflictPolicy == nil, !target.isFault, !object.isFault, target.key > 0,
            let base = object.baseRow, let newer = target.baseRow,
            isOvertaken(target, base, by: newer),
            target.current?.buffer !== base.buffer
        else { return false }
        let isChanged = target.layout.slots.contains { slot in
            slots?.contains(slot.index) ?? true && !child.hasSameValue(in: base, and: newer, at: slot)
        }
        guard isChanged || object.changesOrders else { return false }
        return !parent.hasAccepted(RowName(target), from: base.version, to: newer.version)
    }

    /// Whether the row of an object was changed elsewhere between two rows that were read.
    private func isOvertaken(_ object: NSManagedObject, _ base: Row, by newer: Row) -> Bool {
        let form = parent.store(at: object.storeIndex)?.rows.versionForm ?? .counted
        return RowVersion.isOvertaken(base.version, by: newer.version, form)
    }
}

extension NSManagedObjectContext {
    /// Whether a property has the same value in a newer row as in the row that this context has read.
    final func hasSameValue(in base: Row, and row: Row, at slot: Slot) -> Bool {
        // Stores compute derived attributes themselves, so a difference is no change by another writer.
        if slot.property is NSDerivedAttributeDescription || base.hasSameValue(as: row, in: slot) { return true }
        guard slot.kind == .reference, let old = base.reference(slot), let new = row.reference(slot) else {
            return false
        }
        // The parent may know the permanent key while the child's row still has the temporary one.
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

    /// Bases the object on the version that a child has read, with the child's former values of the changed properties.
    ///
    /// That version is not the stored one any more, so a save detects the difference.
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
    /// The row with the key that its object has now.
    ///
    /// The key differs if a child has saved the object as a new one.
    fileprivate func under(_ key: Int64) -> Row {
        guard self.key != key else { return self }
        let row = copy()
        row.setKey(key)
        return row
    }
}
