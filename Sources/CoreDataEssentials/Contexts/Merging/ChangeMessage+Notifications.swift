import Foundation

// Messages made from other sources: notifications, dictionaries of IDs and URIs, messages of other coordinators.

extension ChangeMessage {
    /// The message for a context on another coordinator.
    ///
    /// The rows of the changed objects are removed from the other coordinator's row cache.
    func translated(to coordinator: NSPersistentStoreCoordinator?) -> ChangeMessage {
        guard !belongs(to: coordinator) else { return self }
        var message = ChangeMessage()
        message.inserted = inserted.compactMap { Self.own($0, coordinator) }
        message.updated = updated.compactMap { Self.own($0, coordinator) }
        message.deleted = deleted.compactMap { Self.own($0, coordinator) }
        message.invalidateRows()
        return message
    }

    /// Whether all rows are those of stores of a coordinator.
    private func belongs(to coordinator: NSPersistentStoreCoordinator?) -> Bool {
        let owner = coordinator.map { ObjectIdentifier($0) }
        return ![inserted, updated, deleted].joined().contains { $0.store.owner != owner }
    }

    /// Forgets the cached rows of everything that has changed, so that they are read from the store.
    ///
    /// This includes new rows: a fetch may have cached such a row before it changed again, and a message with an
    /// inserted row does not name its later updates.
    package func invalidateRows() {
        var keys: [ObjectIdentifier: (store: OpenStore, byRoot: [Int: [Int64]])] = [:]
        for change in [inserted, updated, deleted].joined() {
            keys[ObjectIdentifier(change.store), default: (change.store, [:])]
                .byRoot[change.layout.rootNumber, default: []].append(change.key)
        }
        for (store, byRoot) in keys.values {
            for (root, keys) in byRoot { store.cache.invalidate(keys, root: root) }
        }
    }

    /// Reads the user info of a notification, or a dictionary of the same form with IDs or URIs.
    init(userInfo: [AnyHashable: Any], _ coordinator: NSPersistentStoreCoordinator?) {
        self.init()
        if let saved = userInfo[Self.key] as? UncheckedBox<ChangeMessage> {
            self = saved.value
            if let coordinator, !belongs(to: coordinator) { translate(for: coordinator) }
            return
        }
        inserted = Self.changes(in: userInfo, under: [.insertedObjects, .insertedObjectIDs], coordinator: coordinator)
        updated = Self.changes(
            in: userInfo,
            under: [
                .updatedObjects, .updatedObjectIDs, .refreshedObjects, .refreshedObjectIDs, .invalidatedObjects,
                .invalidatedObjectIDs,
            ],
            coordinator: coordinator
        )
        deleted = Self.changes(in: userInfo, under: [.deletedObjects, .deletedObjectIDs], coordinator: coordinator)
    }

    private static func changes(
        in userInfo: [AnyHashable: Any],
        under keys: [NSManagedObjectContext.NotificationKey],
        coordinator: NSPersistentStoreCoordinator?
    ) -> [Change] {
        var result: [Change] = []
        for key in keys {
            for element in elements(of: userInfo[key.rawValue]) {
                let id: NSManagedObjectID?
                switch element {
                case let object as NSManagedObject: id = object.objectID
                case let known as NSManagedObjectID: id = known
                case let url as URL: id = coordinator?.managedObjectID(forURIRepresentation: url)
                case let text as String: id = coordinator?.managedObjectID(for: text)
                default: id = nil
                }
                guard let id else { continue }
                if let change = Self.change(id, coordinator).flatMap({ own($0, coordinator) }) { result.append(change) }
            }
        }
        return result
    }

    private static func change(_ id: NSManagedObjectID, _ coordinator: NSPersistentStoreCoordinator?) -> Change? {
        let (key, store) = id.current
        if let store { return Change(key: key, layout: id.layout, store: store) }
        // The object is in a tree of contexts and not saved to a store yet.
        guard let store = coordinator?.storeForInsertion(of: id.layout) else { return nil }
        return Change(key: key, layout: id.layout, store: store, temporaryID: id)
    }

    /// Names all changes as this coordinator does.
    ///
    /// An initialiser cannot do it itself, because what it sets does not renew the shared IDs.
    private mutating func translate(for coordinator: NSPersistentStoreCoordinator) {
        inserted = inserted.compactMap { Self.own($0, coordinator) }
        updated = updated.compactMap { Self.own($0, coordinator) }
        deleted = deleted.compactMap { Self.own($0, coordinator) }
    }

    /// The change as this coordinator names it: IDs of another coordinator on the same file are translated by their
    /// URIs.
    private static func own(_ change: Change, _ coordinator: NSPersistentStoreCoordinator?) -> Change? {
        guard let coordinator, change.store.owner != ObjectIdentifier(coordinator) else { return change }
        guard change.temporaryID == nil,
            let known = coordinator.managedObjectID(forURIRepresentation: change.id.uriRepresentation()),
            let store = known.current.store
        else { return nil }
        return Change(key: known.key, layout: known.layout, store: store)
    }

    private static func elements(of value: Any?) -> [Any] {
        switch value {
        case let array as [Any]: return array
        case let set as Set<NSManagedObject>: return Array(set)
        case let set as Set<NSManagedObjectID>: return Array(set)
        case let set as NSSet: return set.allObjects
        case let set as Set<AnyHashable>: return set.map(\.base)
        default: return []
        }
    }
}
