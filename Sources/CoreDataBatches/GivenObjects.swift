import CoreDataEssentials
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
        guard !handler(object), let row = object.currentRow else { return nil }
        if let (index, value) = object.refusedBatchValue {
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
        let made = layout.newObject()
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
