import StrataRows

/// The changes that one save has written, over all its attempts and stores.
///
/// Confined to the context's queue.
final class SavedChanges {
    // Exclusivity is unchecked: each array is appended to and read as a whole, and no access lasts while another
    // begins.
    @exclusivity(unchecked) var inserted: [NSManagedObject] = []
    @exclusivity(unchecked) var updated: [NSManagedObject] = []
    @exclusivity(unchecked) var deleted: [NSManagedObject] = []
    /// The changed to-many relationships of the objects of `updated`, in their order; shorter if they are not known.
    @exclusivity(unchecked) var relationships: [SlotSet] = []
    /// Rows that the stores themselves have changed during the save: derived attributes, rounded values.
    private(set) var reread: [ChangeMessage.Change] = []
    /// The last transaction that the save has recorded in each store's history, by the UUIDs of the stores.
    var historyNumbers: [String: Int64] = [:]

    /// New objects that were deleted before they were ever saved.
    @exclusivity(unchecked) var neverSaved = NeverSavedObjects()

    /// Calls `body` with every object that was saved.
    func forEach(_ body: (NSManagedObject) -> Void) {
        inserted.forEachBorrowed(body)
        updated.forEachBorrowed(body)
        deleted.forEachBorrowed(body)
    }

    /// Gives the context's objects the rows that a store itself has changed during the save.
    func applyReread(_ rows: [Row], from store: OpenStore, in context: NSManagedObjectContext) {
        for row in rows {
            let change = ChangeMessage.Change(key: row.key, layout: row.layout, store: store)
            reread.append(change)
            guard let object = change.object(in: context) else {
                context.observers.addUnregistered(change)
                continue
            }
            if object.isFault {
                object.forgetRow()
            } else {
                let old = object.baseRow
                object.rebase(onto: row, reloadsRelationships: false)
                if let old, !row.layout.slots.contains(where: { !old.hasSameValue(as: row, in: $0) }) { continue }
            }
            context.addRefreshed(object)
        }
    }

    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}

extension NSManagedObjectContext {
    /// Removes new objects that were deleted before their first save from relationships without an inverse.
    ///
    /// The deletion of such an object does not update these relationships.
    final func forgetNeverSaved(_ saved: SavedChanges) {
        let neverSaved = saved.neverSaved
        guard model.hasOneWayToMany, !neverSaved.isEmpty else { return }
        forEachRegistered { object in
            // An object that a child has pushed has no permanent key yet, and belongs to no store.
            let store = object.storeIndex >= 0 ? object.storeIndex : storeIndexForInsertion(of: object)
            object.forgetMembers {
                $0.inverse == nil
            } where: { reference in
                neverSaved.contains(reference, from: store, in: self)
            }
        }
    }
}
