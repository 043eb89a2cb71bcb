import StrataRows

/// What one save has written, over all its attempts and stores.
///
/// Confined to the context's queue.
final class SavedChanges {
    // Unchecked, as each is appended to and read as a whole: no access lasts while another begins.
    @exclusivity(unchecked) var inserted: [NSManagedObject] = []
    @exclusivity(unchecked) var updated: [NSManagedObject] = []
    @exclusivity(unchecked) var deleted: [NSManagedObject] = []
    /// Rows that the stores have changed on their own meanwhile: derived attributes, rounded values.
    var reread: [ChangeMessage.Change] = []
    /// The last transaction that the save has recorded in each store's history, by the UUIDs of the stores.
    var historyNumbers: [String: Int64] = [:]

    /// What was deleted before it was ever saved.
    @exclusivity(unchecked) var neverSaved = NeverSavedObjects()

    /// Calls `body` with every object that was saved.
    func forEach(_ body: (NSManagedObject) -> Void) {
        inserted.forEachBorrowed(body)
        updated.forEachBorrowed(body)
        deleted.forEachBorrowed(body)
    }

    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}

extension NSManagedObjectContext {
    /// Takes what was deleted before it was ever saved out of relationships without an inverse, whose owners were told of nothing.
    final func forgetNeverSaved(_ saved: SavedChanges) {
        let neverSaved = saved.neverSaved
        guard model.hasOneWayToMany, !neverSaved.isEmpty else { return }
        forEachRegistered { object in
            // What a child has pushed has no key yet, and is of no store.
            let store = object.storeIndex >= 0 ? object.storeIndex : storeIndexForInsertion(of: object)
            object.forgetMembers {
                $0.inverse == nil
            } where: { reference in
                neverSaved.contains(reference, from: store, in: self)
            }
        }
    }
}
