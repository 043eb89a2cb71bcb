import Foundation
import StrataRows

/// The rows of the objects that a handler fills, for batch inserts.
///
/// One object serves for all rows as long as the handler does not keep it: its row is taken from it after each call.
final class GivenObjects: GivenRows {
    private let layout: EntityLayout
    private let store: OpenStore
    private let handler: (NSManagedObject) -> Bool
    private var object: NSManagedObject?
    /// The to-one relationships, and whether each of them is also to-one at the other end.
    private let references: [(slot: Slot, isOneToOne: Bool)]
    let count: Int? = nil

    init(_ layout: EntityLayout, _ store: OpenStore, handler: @escaping (NSManagedObject) -> Bool) {
        self.layout = layout
        self.store = store
        self.handler = handler
        references = layout.referenceSlots.map { slot in
            (slot, slot.inverse.map { !$0.isToMany } ?? false)
        }
    }

    deinit {
        object?.endBatch()
    }

    func next() throws -> GivenRow? {
        let object = blankObject()
        guard !handler(object), let row = object.current else { return nil }
        if let (index, value) = object.extras?.refused.first {
            throw FetchPlanner.refused(
                "A batch insert of \(layout.entity.name ?? "") cannot set \"\(layout.slots[index].name)\": its transformer does not take a \(type(of: value))."
            )
        }
        try requireDestinations(row)
        return GivenRow(row: row, given: nil)
    }

    /// An object with the model's defaults that no other code holds.
    private func blankObject() -> NSManagedObject {
        if object != nil, isKnownUniquelyReferenced(&object), let object {
            object.beginBatchRow(storeIndex: Int32(store.index))
            return object
        }
        object?.endBatch()
        let made = layout.objectClass.type(of: layout.entity).init(entity: layout.entity, insertInto: nil)
        made.beginBatchRow(storeIndex: Int32(store.index))
        object = made
        return made
    }

    private func requireDestinations(_ row: Row) throws {
        for (slot, isOneToOne) in references {
            guard let reference = row.reference(slot), isOneToOne || reference.key <= 0 else { continue }
            let values = BatchValues(layout, action: "A batch insert", store: store)
            try values.requireNoSecondColumn(slot)
            throw values.refused("cannot set \"\(slot.name)\" to an object that is not saved: no row can lead to it.")
        }
    }
}

extension NSManagedObject {
    /// Makes this the object of one new row of a batch: it has defaults, may be written to in place, and is in no
    /// context.
    final func beginBatchRow(storeIndex: Int32) {
        current = layout.defaults.copy()
        extras = nil
        forgetID()
        self.storeIndex = storeIndex
        // The flags are those of an insertion in this event, so that no write keeps the former values.
        flags = [.ownsRow, .writable, .eventInserted, .batchRow]
    }

    /// Ends what ``beginBatchRow(storeIndex:)`` began.
    ///
    /// If code has kept the object, then it has an object outside any context.
    final func endBatch() {
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
