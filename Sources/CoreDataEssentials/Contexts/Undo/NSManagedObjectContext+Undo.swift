import Foundation
import StrataRows

extension NSManagedObjectContext {
    // MARK: - Recording

    /// Records an object's state before its first change in this event.
    final func recordForUndo(_ object: NSManagedObject, before status: UndoRecord.Status?) {
        guard let undoManager, undoManager.isUndoRegistrationEnabled, !undoLog.isApplyingUndo else { return }
        undoLog.record(object, before: status)
    }

    /// Makes one undo step of the changes of the event.
    final func closeUndoStep() {
        guard !undoLog.records.isEmpty else { return }
        let records = undoLog.close()
        undoManager?.registerUndo(withTarget: self) { $0.applyUndo(records) }
    }

    /// Forgets all undo steps.
    final func forgetUndo() {
        undoLog.forgetAll()
        undoManager?.removeAllActions(withTarget: self)
    }

    // MARK: - Undoing

    /// Undoes the changes of one event, and registers the way back to them.
    private func applyUndo(_ records: [UndoRecord]) {
        // If an object was deleted elsewhere, then it does not come back because this context had changed it.
        // An object that was inserted into another context meanwhile is no concern of this one.
        let records = records.filter { record in
            guard let owner = record.object.context else { return true }
            return owner === self && !record.object.flags.contains(.gone)
        }
        undoLog.isApplyingUndo = true
        for record in records { record.object.noteValues() }
        let events = records.map(\.snapshotEvent)
        let inverse = records.map { $0.inverse() }
        let absent = records.filter { $0.status != .absent && UndoRecord.status(of: $0.object) == .absent }
        for record in absent { putBack(record.object) }
        // From here on all keys are known.
        for record in absent { replaceRevivedKeys(of: record.object) }
        let deleted = records.filter { UndoRecord.status(of: $0.object) == .deleted }
        for record in records { applyUndo(record) }
        // Usually the records of the other objects have restored their sides already.
        for record in deleted where UndoRecord.status(of: record.object) != .deleted {
            restoreRelationships(of: record.object)
        }
        undoLog.isApplyingUndo = false
        // An object that has left the context must not stay listed: another context could not list it.
        if records.contains(where: { $0.object.context == nil }) { changeTracker.compact() }
        undoManager?.registerUndo(withTarget: self) { $0.applyUndo(inverse) }
        for (record, event) in zip(records, events) where record.object.context != nil {
            record.object.awake(fromSnapshotEvents: event)
        }
        endEvent(isMerge: false)
    }

    private func applyUndo(_ record: UndoRecord) {
        let object = record.object
        switch record.status {
        case .absent: undoInsertion(of: object)
        case .inserted, .stored:
            if object.flags.contains(.deleted) { undelete(object) }
            restoreValues(from: record)
        case .deleted:
            if UndoRecord.status(of: object) == .absent { return }
            restoreValues(from: record)
            deleteObject(object)
        }
    }

    /// Undoes an insertion: an unsaved object leaves the context, a saved object is deleted.
    private func undoInsertion(of object: NSManagedObject) {
        guard object.context === self else { return }
        guard object.key < 0, object.isInserted else { return deleteObject(object) }
        addToEvent(object, as: .eventDeleted)
        object.flags.remove([.inserted, .updated, .deleted])
        // Writes outside of the context do not reach the index.
        object.outdateInIndex()
        unregister(object)
    }

    // MARK: - Objects that are not there any more

    /// Brings an object back that left the context or whose deletion was saved; the object becomes a new insertion.
    private func putBack(_ object: NSManagedObject) {
        let old = object.key
        let hadRow = old > 0 || object.idIfKnown?.isTemporaryID == false
        if hadRow {
            // The row with that key is deleted for good, and keys are not used again.
            object.forgetID()
        }
        object.flags.remove([.gone, .detached, .deleted, .fault, .deletePropagated])
        registerUnsaved(object)
        if hadRow { undoLog.recordRevival(of: old, as: object.key, root: object.layout.rootNumber) }
        let values = (object.current ?? object.layout.defaults).copy()
        values.setKey(object.key)
        values.setVersion(0)
        object.current = values
        object.flags.insert([.inserted, .ownsRow])
        object.extras?.base = nil
        changeTracker.addToSave(object)
        addToEvent(object, as: .eventInserted)
        // Meanwhile code may have related it to other objects without a context.
        for companion in insertCompanions(of: object) { companion.awakeFromInsert() }
    }

    /// Makes the relationships of an object that came back lead to the objects that came back with it; a save stores
    /// them all.
    private func replaceRevivedKeys(of object: NSManagedObject) {
        guard let values = object.current else { return }
        for slot in object.layout.referenceSlots {
            guard let reference = values.reference(slot) else { continue }
            values.setReference(newest(reference, slot.destinationNumber), slot)
        }
        guard let extras = object.extras else { return }
        for slot in object.layout.toMany {
            guard let content = extras.toMany[slot.index]?.content else { continue }
            var state = ToManyState(isOrdered: slot.isOrdered)
            state.load([])
            for member in content { _ = state.add(newest(member, slot.destinationNumber)) }
            state.lossCount = identityMap.lossCount
            extras.toMany[slot.index] = state
        }
    }

    private func newest(_ reference: ObjectReference, _ destinationNumber: Int) -> ObjectReference {
        let root = model.layouts[destinationNumber - 1].rootNumber
        return ObjectReference(
            key: undoLog.revivedKeys.newest(reference.key, root: root, identityMap.permanentKeys),
            entity: reference.entity
        )
    }

    // MARK: - Values

    private func restoreValues(from record: UndoRecord) {
        let object = record.object
        if let before = record.before, let after = record.after {
            for slot in object.layout.slots where !before.hasSameValue(as: after, in: slot) {
                if slot.kind == .reference {
                    restoreReference(of: object, slot, before, after)
                } else {
                    object.copyValue(of: slot, from: before)
                }
            }
        }
        for (index, members) in record.members { restoreMembers(members, of: object, in: object.layout.toMany[index]) }
        for (index, transient) in record.transients { object.replaceTransient(transient.before, at: index) }
        object.markAsUnchangedIfRestored()
    }

    /// Restores a to-one relationship.
    ///
    /// The records of the other objects restore the other sides. But if others have changed the relationship since, then
    /// no record has the object to which it leads now: then both sides are set, unless there is nothing to go back to.
    private func restoreReference(of object: NSManagedObject, _ slot: Slot, _ before: Row, _ after: Row) {
        let wanted = before.reference(slot).map { newest($0, slot.destinationNumber) }
        let left = after.reference(slot).map { newest($0, slot.destinationNumber) }
        let row = object.writableRow(slot.index)
        let now = row.reference(slot)
        if now == left || now == wanted { return row.setReference(wanted, slot) }
        guard let wanted, let destination = self.object(for: wanted, near: object) else { return }
        object.setToOne(destination, slot)
    }

    private func restoreMembers(_ members: UndoRecord.Members, of object: NSManagedObject, in slot: ToManySlot) {
        let before = members.before.map { newest($0, slot.destinationNumber) }
        let wanted = Set(before)
        let stray = Set(members.after.map { newest($0, slot.destinationNumber) }).subtracting(wanted)
        let current = object.loadedMembers(slot)
        object.changeToMany(slot) { state in
            var didChange = false
            for member in current where stray.contains(member) { didChange = state.remove(member) || didChange }
            let known = Set(current)
            for member in before where !known.contains(member) { didChange = state.add(member) || didChange }
            guard slot.isOrdered, let now = state.content else { return didChange }
            let order = before.filter(Set(now).contains) + now.filter { !wanted.contains($0) }
            return state.reorder(order) || didChange
        }
    }
}

extension NSManagedObject {
    /// Makes an object that shows its stored values again count as unchanged.
    fileprivate func markAsUnchangedIfRestored() {
        guard flags.intersection(.changed) == .updated, !hasToManyChanges, changedSlotSet().isEmpty,
            extras?.hasChangedTransients != true
        else { return }
        if flags.contains(.ownsRow), let base = extras?.base { current = base }
        extras?.base = nil
        extras?.forgetDecoded()
        flags.remove([.ownsRow, .rowShared, .updated, .writable])
    }
}
