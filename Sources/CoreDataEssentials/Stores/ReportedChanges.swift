import StrataRows

/// The objects that a save changes in one store.
///
/// It is used only on the context's queue.
package struct ReportedChanges {
    package private(set) var inserted: Set<NSManagedObject> = []
    package private(set) var updated: Set<NSManagedObject> = []
    package private(set) var deleted: Set<NSManagedObject> = []
    private var locked: Set<NSManagedObject> = []

    package init(_ changes: StoreChanges, of context: NSManagedObjectContext, inStoreAt index: Int32) {
        for object in context.changeTracker.objects where object.flags.isDisjoint(with: .gone) {
            guard context.storeIndexForInsertion(of: object) == index else { continue }
            switch object.flags.intersection(.changed) {
            case .inserted: inserted.insert(object)
            case .updated where object.hasPersistentChangedValues: updated.insert(object)
            case .deleted, [.deleted, .updated]: deleted.insert(object)
            default: break
            }
        }
        for lock in changes.locked {
            guard let object = context.registered(key: lock.key, layout: lock.layout, storeIndex: index) else {
                continue
            }
            locked.insert(object)
        }
    }

    package var request: NSSaveChangesRequest {
        NSSaveChangesRequest(
            inserted: inserted,
            updated: updated,
            deleted: deleted,
            locked: locked.isEmpty ? nil : locked
        )
    }
}
