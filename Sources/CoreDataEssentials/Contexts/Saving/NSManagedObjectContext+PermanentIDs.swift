import Foundation
import StrataRows

extension NSManagedObjectContext {
    /// Does the work of ``obtainPermanentIDs(for:)``, which subclasses may override.
    final func givePermanentIDs(to objects: [NSManagedObject]) throws {
        try ConfinementScope.enter(self) {
            if upward != nil { try obtainPermanentIDsFromParent(for: objects) }
            try makePermanent(objects)
        }
    }

    /// Gives permanent IDs to new objects in custom stores, which have to be informed of new objects.
    final func obtainPermanentIDsForCustomStores(_ coordinator: NSPersistentStoreCoordinator) throws {
        let indexes = coordinator.openStores.filter { $0.isNotifiedOfObjects && !$0.store.isReadOnly }.map {
            Int32($0.index)
        }
        guard !indexes.isEmpty else { return }
        let unsaved = changeTracker.objects.filter { object in
            object.flags.intersection([.inserted, .deleted, .gone]) == .inserted && object.key < 0
                && indexes.contains(storeIndexForInsertion(of: object))
        }
        if !unsaved.isEmpty { try givePermanentIDs(to: unsaved) }
    }

    private func makePermanent(_ objects: [NSManagedObject]) throws {
        var seen: Set<ObjectIdentifier> = []
        let unsaved = objects.filter { object in
            object.context === self && object.key < 0 && object.isInserted
                && seen.insert(ObjectIdentifier(object)).inserted
        }
        guard !unsaved.isEmpty, let coordinator else { return }
        var byStore: [Int: [NSManagedObject]] = [:]
        for object in unsaved { byStore[Int(storeIndexForInsertion(of: object)), default: []].append(object) }
        var reserved: [(store: OpenStore, objects: [NSManagedObject], keys: [Int64])] = []
        for (storeIndex, objects) in byStore {
            guard let store = coordinator.storeToWrite(at: storeIndex) else {
                throw CocoaError.described(
                    .persistentStoreOperation,
                    userInfo: [
                        NSLocalizedDescriptionKey: "No store is open that could hold the objects.",
                        NSAffectedObjectsErrorKey: objects,
                    ]
                ).marked(.environment)
            }
            try lockingBlock?.refuse("obtainPermanentIDs(for:)", in: store)
            do {
                reserved.append((store, objects, try store.keys(for: objects)))
            } catch {
                // The successor of the store provides the keys.
                guard store.successor != nil else { throw error }
                return try makePermanent(unsaved)
            }
        }
        enter(reserved)
    }

    /// Gives unsaved objects the given keys, which no row has and no other object will get.
    package final func makePermanent(_ objects: [NSManagedObject], keys: [Int64], in store: OpenStore) {
        guard !objects.isEmpty else { return }
        enter([(store, objects, keys)])
    }

    private func enter(_ reserved: [(store: OpenStore, objects: [NSManagedObject], keys: [Int64])]) {
        let unsaved = reserved.flatMap(\.objects)
        var permanent = PermanentKeys(minimumCapacity: unsaved.count)
        (upward?.root ?? self).downward.promotions.promote {
            for (store, objects, keys) in reserved {
                for (object, key) in zip(objects, keys) {
                    let temporary = object.key
                    permanent.set(key, for: temporary)
                    identityMap.setPermanentKey(key, for: temporary)
                    if let id = TemporaryIDs.removeHeld(temporary) {
                        object.setKnownID(store.ids.succeed(id, key: key, store: store))
                    }
                    refile(object, key: key, storeIndex: Int32(store.index))
                    object.unshareRow()
                    object.current?.setKey(key)
                }
            }
        }
        replaceKeys(permanent, of: unsaved)
    }

    /// Replaces the temporary keys of objects with the permanent ones, wherever they are used.
    private func replaceKeys(_ permanent: PermanentKeys, of objects: [NSManagedObject]) {
        if model.hasOneWayRelationships {
            // There is no inverse by which to find the objects that point at these, so all changed objects are
            // searched.
            for object in changeTracker.objects { object.replaceReferences(permanent) }
            return
        }
        var related: [ObjectIdentifier: NSManagedObject] = [:]
        for object in objects {
            for slot in object.layout.referenceSlots {
                guard let other = object.current?.reference(slot).flatMap({ registered($0, near: object) }) else {
                    continue
                }
                related[ObjectIdentifier(other)] = other
            }
            for state in object.extras?.toMany ?? [] {
                for reference in state?.content ?? state.map({ Array($0.added) }) ?? [] {
                    guard let other = registered(reference, near: object) else { continue }
                    related[ObjectIdentifier(other)] = other
                }
            }
        }
        for other in related.values { other.replaceReferences(permanent) }
    }
}
