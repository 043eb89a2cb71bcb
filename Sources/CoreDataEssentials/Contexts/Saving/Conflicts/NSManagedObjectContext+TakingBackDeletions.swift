import StrataRows

extension NSManagedObjectContext {
    /// Undoes a deletion that lost a conflict, together with its effects through delete rules.
    ///
    /// The object and those that were deleted with it get their stored values again. The same holds for relationships
    /// to them, unless they were changed since.
    final func undoDeletion(of object: NSManagedObject, row: Row) {
        undelete(object)
        object.discardChanges()
        object.current = row
        object.extras?.reloadRelationships()
        addToEvent(object, as: .eventRefreshed)
        for slot in object.layout.referenceSlots {
            guard let reference = row.reference(slot), let relationship = slot.relationship else { continue }
            restore(relationship, of: object, to: reference)
        }
        for slot in object.layout.toMany where !slot.isTransient {
            for reference in storedMembers(of: slot, ownedBy: object) ?? [] {
                restore(slot.relationship, of: object, to: reference)
            }
        }
        object.awake(fromSnapshotEvents: .mergePolicy)
    }

    private func restore(
        _ relationship: Relationship,
        of object: NSManagedObject,
        to reference: ObjectReference
    ) {
        // A delete rule cannot have changed an object that is not registered.
        guard let destination = registered(reference, near: object), destination.flags.isDisjoint(with: .gone) else {
            return
        }
        if destination.flags.contains(.deleted) {
            guard relationship.deleteRule == .cascade, let base = destination.baseRow else { return }
            undoDeletion(of: destination, row: base)
        } else if relationship.deleteRule == .nullify, let inverse = relationship.inverse {
            undoNullification(of: inverse, of: destination, to: object)
        }
    }

    /// Restores the reference from `destination` to `object` if it is stored and the relationship is empty now.
    private func undoNullification(
        of inverse: Relationship,
        of destination: NSManagedObject,
        to object: NSManagedObject
    ) {
        switch destination.layout.places[inverse.name] {
        case .toMany(let index):
            guard destination.extras?.toMany[index]?.removed.contains(object.reference) == true else { return }
            destination.changeToMany(destination.layout.toMany[index]) { $0.putBack(object.reference) }
        case .slot(let index):
            let slot = destination.layout.slots[index]
            guard destination.flags.contains(.ownsRow), destination.current?.reference(slot) == nil,
                destination.extras?.base?.reference(slot) == object.reference
            else { return }
            destination.writableRow().setReference(object.reference, slot)
        default: break
        }
    }
}
