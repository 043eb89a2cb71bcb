import Foundation

/// What a save, or anything else, has changed in the stores: keys and, where they are known, the new rows.
///
/// Immutable; any thread may read it.
struct ChangeMessage: Sendable {
    /// One changed row.
    struct Change: Sendable {
        let key: Int64
        unowned(unsafe) let layout: EntityLayout
        let store: OpenStore
        /// The ID of an object that only a tree of contexts has, under a negative key.
        var temporaryID: NSManagedObjectID?

        /// The ID of the row.
        var id: NSManagedObjectID { temporaryID ?? store.ids.id(key: key, layout: layout, store: store) }
    }

    var inserted: [Change] = []
    var updated: [Change] = []
    var deleted: [Change] = []

    init() {}

    /// What a context on `coordinator` has saved.
    init(_ saved: SavedChanges, _ coordinator: NSPersistentStoreCoordinator?) {
        inserted = Self.changes(of: saved.inserted, coordinator)
        updated = Self.changes(of: saved.updated, coordinator)
        deleted = Self.changes(of: saved.deleted, coordinator)
    }

    /// Under what key a did-save notification carries the message, for those who merge it.
    static let key = "CoreData.savedChanges"

    /// The rows of stored objects of a context on `coordinator`.
    ///
    /// Of the objects only what does not change any more is read, so their context's scope does not have to be entered.
    static func changes(of objects: [NSManagedObject], _ coordinator: NSPersistentStoreCoordinator?) -> [Change] {
        var stores: [Int32: OpenStore] = [:]
        return objects.compactMap { object in
            let slot = object.storeSlot
            guard let store = stores[slot] ?? openStore(of: object, coordinator) else { return nil }
            stores[slot] = store
            let id = object.key < 0 ? object.objectID : nil
            return Change(key: object.key, layout: object.layout, store: store, temporaryID: id)
        }
    }

    private static func openStore(of object: NSManagedObject, _ coordinator: NSPersistentStoreCoordinator?) -> OpenStore? {
        if object.storeSlot < 0 { return coordinator?.storeForInsertion(of: object.layout) }
        return coordinator?.openStore(at: Int(object.storeSlot))
    }

    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }

    /// Adds what came later.
    mutating func append(_ later: ChangeMessage) {
        if !deleted.isEmpty, !later.inserted.isEmpty {
            // Where memory won over a deletion the row has come back under its key.
            let back = Set(later.inserted.map(RowName.init))
            deleted.removeAll { back.contains(RowName($0)) }
        }
        inserted.append(contentsOf: later.inserted)
        updated.append(contentsOf: later.updated)
        deleted.append(contentsOf: later.deleted)
    }

    private struct RowName: Hashable {
        let store: ObjectIdentifier
        let root: Int
        let key: Int64

        init(_ change: Change) {
            store = ObjectIdentifier(change.store)
            root = change.layout.rootNumber
            key = change.key
        }
    }
}
