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

    /// What was deleted before it was ever saved, by the store of its key; temporary keys are of none.
    private(set) var neverSaved: [Int32: Set<ObjectReference>] = [:]

    var objects: [NSManagedObject] { inserted + updated + deleted }
    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }

    /// Notes an object that is about to be forgotten, if it was deleted before it was ever saved.
    func noteIfNeverSaved(_ object: NSManagedObject) {
        guard object.flags.isSuperset(of: [.inserted, .deleted]) else { return }
        neverSaved[object.key < 0 ? -1 : object.storeIndex, default: []].insert(object.reference)
    }
}

extension NSManagedObjectContext {
    /// Takes what was deleted before it was ever saved out of relationships without an inverse, whose owners were told of nothing.
    final func forgetNeverSaved(_ saved: SavedChanges) {
        let gone = saved.neverSaved
        guard model.hasOneWayToMany, !gone.isEmpty else { return }
        forEachRegistered { object in
            object.forgetMembers {
                $0.inverse == nil
            } where: { reference in
                gone[reference.key < 0 ? -1 : object.storeIndex]?.contains(reference) ?? false
            }
        }
    }
}
