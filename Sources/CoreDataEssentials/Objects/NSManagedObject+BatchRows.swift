import StrataRows

// An object that a batch insert fills for one row after the other, for the target that carries out batches.

extension EntityLayout {
    /// Makes an object of the entity's class, in no context.
    package func newObject() -> NSManagedObject { objectClass.type(of: entity).init(entity: entity, insertInto: nil) }
}

extension NSManagedObject {
    /// Makes this the object of one new row of a batch: it has defaults, may be written to in place, and is in no
    /// context.
    package final func beginBatchRow(storeIndex: Int32) {
        current = layout.defaults.copy()
        extras = nil
        forgetID()
        self.storeIndex = storeIndex
        // The flags are those of an insertion in this event, so that no write keeps the former values.
        flags = [.ownsRow, .writable, .eventInserted, .batchRow]
    }

    /// The slot and the value of a transformable attribute that its transformer has refused, if there is one.
    package final var refusedBatchValue: (slot: Int, value: Any)? {
        extras?.refused.first.map { (slot: $0.key, value: $0.value) }
    }

    /// Ends what ``beginBatchRow(storeIndex:)`` began.
    ///
    /// If code has kept the object, then it has an object outside any context.
    package final func endBatch() {
        storeIndex = -1
        flags = [.detached, .ownsRow]
    }

    /// Sets a to-one relationship of a row of a batch; no inverse is updated, since the store stores one side only.
    final func setBatchDestination(_ value: NSManagedObject?, _ slot: Slot) {
        guard let value else { return writableRow().setReference(nil, slot) }
        guard value.key < 0 || value.storeIndex == storeIndex else {
            fatalError(
                "CoreData: relationship \"\(slot.name)\" of a row of a batch insert of \(entity.name ?? "") was set to \(value.objectID), which is not in the store that the rows are inserted into."
            )
        }
        writableRow().setReference(ObjectReference(key: value.key, entity: value.layout.number), slot)
    }
}
