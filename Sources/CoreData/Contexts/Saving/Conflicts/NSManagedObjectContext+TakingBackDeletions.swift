import StrataRows

extension NSManagedObjectContext {
    /// Takes a deletion back that lost a conflict, with what the delete rules have done because of it: the object and
    /// those that went with it are as stored again, and so are relationships to them that nobody has changed since.
    final func takeBackDeletion(of object: NSManagedObject, _ row: Row) {
        undelete(object)
        object.discardChanges()
        object.current = row
        object.extras?.reloadRelationships()
        noteEvent(object, .eventRefreshed)
        for slot in object.layout.referenceSlots {
            guard let reference = row.reference(slot), let relationship = slot.relationship else { continue }
            takeBack(relationship, of: object, to: reference)
        }
        for slot in object.layout.toMany where !slot.isTransient {
            for reference in storedMembers(of: slot, ownedBy: object) ?? [] {
                takeBack(slot.relationship, of: object, to: reference)
            }
        }
        object.awake(fromSnapshotEvents: .mergePolicy)
    }

    private func takeBack(
        _ relationship: Relationship,
        of object: NSManagedObject,
        to reference: ObjectReference
    ) {
        // Who is not registered cannot have been changed by a delete rule.
        guard let destination = registered(reference, near: object), destination.flags.isDisjoint(with: .gone) else {
            return
        }
        if destination.flags.contains(.deleted) {
            guard relationship.deleteRule == .cascade, let base = destination.baseRow else { return }
            takeBackDeletion(of: destination, base)
        } else if relationship.deleteRule == .nullify, let inverse = relationship.inverse {
            takeBackNullification(of: inverse, of: destination, object)
        }
    }

    /// Lets `destination` refer to `object` again, if that was stored and the relationship is empty now.
    private func takeBackNullification(
        of inverse: Relationship,
        of destination: NSManagedObject,
        _ object: NSManagedObject
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
