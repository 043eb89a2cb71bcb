import Foundation

/// One object as it was at the start of an event.
struct UndoRecord {
    enum Status {
        /// Not in the context yet, or any more.
        case absent
        case inserted
        case stored
        case deleted
    }

    let object: NSManagedObject
    let status: Status
    /// The values; `nil` for a fault.
    let row: Row?
    let toMany: [ToManyState?]

    init(_ object: NSManagedObject, status: Status) {
        self.object = object
        self.status = status
        // A row that this event has changed already was kept at its first change.
        let before = object.extras?.eventBase ?? object.current
        row = before.map { $0.buffer === object.current?.buffer && object.flags.contains(.ownsRow) ? $0.copy() : $0 }
        toMany = object.extras?.toMany ?? []
    }
}

extension UndoRecord {
    static func status(of object: NSManagedObject) -> Status {
        if object.context == nil || object.flags.contains(.gone) { return .absent }
        if object.flags.contains(.deleted) { return .deleted }
        return object.flags.contains(.inserted) ? .inserted : .stored
    }
}

extension NSManagedObjectContext {
    /// Takes the last event's changes back, if there is an undo manager.
    public func undo() {
        assertCurrent(#function)
        processPendingChanges()
        undoManager?.undo()
    }

    /// Makes the changes again that were taken back last.
    public func redo() {
        assertCurrent(#function)
        processPendingChanges()
        undoManager?.redo()
    }

    /// Keeps an object's state before its first change in this event.
    final func noteUndo(_ object: NSManagedObject, before status: UndoRecord.Status?) {
        guard let undoManager, undoManager.isUndoRegistrationEnabled, !isUndoing else { return }
        guard undoNoted.insert(ObjectIdentifier(object)).inserted else { return }
        undoRecords.append(UndoRecord(object, status: status ?? UndoRecord.status(of: object)))
    }

    /// Makes one undo step of what the event has done.
    final func closeUndoStep() {
        guard !undoRecords.isEmpty else { return }
        let records = undoRecords
        undoRecords = []
        undoNoted.removeAll()
        undoManager?.registerUndo(withTarget: self) { $0.restore(records) }
    }

    /// Puts objects back to an earlier state, and registers the way back.
    private func restore(_ records: [UndoRecord]) {
        isUndoing = true
        let inverse = records.map { UndoRecord($0.object, status: UndoRecord.status(of: $0.object)) }
        for record in records { restore(record) }
        isUndoing = false
        undoManager?.registerUndo(withTarget: self) { $0.restore(inverse) }
        for record in records where record.object.context != nil {
            record.object.awake(fromSnapshotEvents: record.snapshotEvent)
        }
        processPendingChanges()
    }

    private func restore(_ record: UndoRecord) {
        let object = record.object
        switch record.status {
        case .absent: takeOut(object)
        case .inserted, .stored:
            if UndoRecord.status(of: object) == .absent { putBack(object) }
            if object.flags.contains(.deleted) { undelete(object) }
            restoreValues(record)
        case .deleted:
            if UndoRecord.status(of: object) == .absent { return }
            restoreValues(record)
            delete(object)
        }
    }

    /// Takes an insertion back: an unsaved object leaves the context, a saved one is deleted.
    private func takeOut(_ object: NSManagedObject) {
        guard object.context === self else { return }
        guard object.key < 0, object.isInserted else { return delete(object) }
        object.flags.insert(.eventDeleted)
        noteEvent(object, .eventDeleted)
        object.flags.remove([.inserted, .updated, .deleted])
        unregister(object)
    }

    /// Brings an object back that left the context, or whose deletion was saved: as a new insertion.
    private func putBack(_ object: NSManagedObject) {
        if object.key > 0 || object.idIfKnown?.isTemporaryID == false {
            // The row of that key is gone for good, and keys are not used again.
            object.key = 0
            object.storeSlot = -1
            object.forgetID()
        }
        object.flags.remove([.gone, .detached, .deleted, .fault, .deletePropagated])
        registerUnsaved(object)
        object.flags.insert([.inserted, .ownsRow])
        object.extras?.base = nil
        relist(object, .eventInserted)
    }

    private func restoreValues(_ record: UndoRecord) {
        let object = record.object
        guard let row = record.row else {
            // It was a fault then: it may be one again, unless something else is unsaved.
            if !object.flags.contains(.inserted) { object.discardChanges() }
            return
        }
        if object.isFault { object.fireFault() }
        if object.flags.contains(.ownsRow) {
            if !object.flags.contains(.inserted), object.extras?.base == nil { object.extras?.base = row }
        } else {
            object.writableExtras.base = object.current
            object.flags.insert(.ownsRow)
        }
        let values = row.copy()
        values.setKey(object.key)
        values.setVersion(object.extras?.base?.version ?? 0)
        object.current = values
        if !record.toMany.isEmpty || object.extras != nil {
            let extras = object.writableExtras
            let committed = object.extras?.toMany ?? []
            extras.toMany = record.toMany.isEmpty ? committed.map { _ in nil } : record.toMany
            extras.forgetDecoded()
            for index in extras.toMany.indices {
                // After a save in between, what the old state called a change may be stored, and the other way round.
                guard var old = extras.toMany[index], let content = old.content else { continue }
                let slot = object.layout.toMany[index]
                old = ToManyState(isOrdered: slot.isOrdered)
                old.load(storedMembers(of: slot, ownedBy: object))
                let stored = old.content ?? []
                let wanted = Set(content)
                for member in stored where !wanted.contains(member) { old.remove(member) }
                for member in content { old.add(member) }
                if slot.isOrdered { old.reorder(content) }
                extras.toMany[index] = old
            }
        }
        if !object.flags.contains(.inserted) { object.flags.insert(.updated) }
        relist(object, object.flags.contains(.inserted) ? .eventInserted : .eventUpdated)
    }

    private func relist(_ object: NSManagedObject, _ flag: ObjectFlags) {
        if !object.flags.contains(.listed) {
            object.flags.insert(.listed)
            changedList.append(object)
        }
        noteEvent(object, flag)
    }
}

extension UndoRecord {
    fileprivate var snapshotEvent: NSSnapshotEventType {
        switch status {
        case .absent: .undoInsertion
        case .deleted: .undoDeletion
        case .inserted, .stored: .undoUpdate
        }
    }
}
