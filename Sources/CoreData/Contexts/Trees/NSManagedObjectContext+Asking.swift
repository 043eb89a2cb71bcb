import Foundation

// What a child asks its parent for. Called inside the child's scope; enters the parent's.

extension NSManagedObjectContext {
    /// What the parent has of an object; `nil` if it has none, or has deleted it.
    final func parentRow(of object: NSManagedObject) throws -> Row? {
        let id = object.key < 0 ? object.objectID : nil
        guard let found = try parentSnapshot(object.key, object.layout, object.storeSlot, id) else { return nil }
        noteForeign(found.temporaries, namedBy: object)
        return found.row
    }

    private func parentSnapshot(
        _ key: Int64,
        _ layout: EntityLayout,
        _ storeSlot: Int32,
        _ id: NSManagedObjectID?
    ) throws -> Snapshot? {
        guard let upward else { return nil }
        let found = try visitParent(upward) { try $0.snapshot(forKey: key, layout, storeSlot, id) }
        settleForeign()
        return found
    }

    /// What the parent has of a to-many relationship.
    final func parentMembers(of slot: ToManySlot, ownedBy object: NSManagedObject) throws -> [ObjectReference] {
        guard let upward else { return [] }
        let id = object.key < 0 ? object.objectID : nil
        let owner = object.reference
        let storeSlot = object.storeSlot
        let found = try visitParent(upward) { try $0.membersForChild(slot, of: owner, storeSlot, id) }
        settleForeign()
        noteForeign(found.temporaries, namedBy: object)
        return found.members
    }

    /// The object of an ID, with its values loaded, from the parent.
    final func existingObjectInTree(_ id: NSManagedObjectID, _ known: NSManagedObject?) throws -> NSManagedObject {
        let (key, store) = id.current
        let slot = store.map { Int32($0.slot) } ?? -1
        guard let found = try parentSnapshot(key, id.layout, slot, key < 0 ? id : nil) else {
            throw Self.missing(id)
        }
        let object = known ?? object(of: found)
        noteForeign(found.temporaries, namedBy: object)
        // Another thread may have been told of the object's fate, and of its key, meanwhile; this is still the object.
        object.realise(found.row)
        return object
    }

    /// Whether a row that a fetch of this context brought is still what the parent would answer, without asking it.
    final func isNewestInTree(_ row: Row) -> Bool {
        guard let upward, stalenessInterval < 0, row.version >= 0 else { return false }
        return upward.prefetchStamp == upward.stamp(knownStores)
    }

    /// The registered object of what the parent has shown, or a fault.
    final func object(of snapshot: Snapshot) -> NSManagedObject {
        let layout = snapshot.row.layout
        if let known = registered(key: snapshot.key, layout: layout, storeSlot: snapshot.storeSlot) { return known }
        if snapshot.key > 0 { return makeFault(key: snapshot.key, layout: layout, storeSlot: snapshot.storeSlot) }
        let id =
            snapshot.temporaries.first { $0.temporaryKey == snapshot.key }
            ?? TemporaryIDs.id(key: snapshot.key, layout: layout)
        return makeForeignFault(id, layout: layout, storeSlot: snapshot.storeSlot)
    }

    /// The objects of what the parent has answered to a fetch: known ones stay as they are, new ones become faults on
    /// their row.
    ///
    /// Called inside all scopes above, so that what the rows say stays true meanwhile.
    final func objects(of snapshots: [Snapshot], _ specification: FetchSpecification) -> [NSManagedObject] {
        guard let upward, let first = snapshots.first else { return [] }
        _ = store(at: first.storeSlot)
        notePrefetch(upward, snapshots.count)
        var result: [NSManagedObject] = []
        result.reserveCapacity(snapshots.count)
        for snapshot in snapshots {
            let row = snapshot.row
            if snapshot.key > 0 {
                makeFaultIfForgotten(key: snapshot.key, root: row.layout.rootNumber, storeSlot: snapshot.storeSlot)
            }
            let object = object(of: snapshot)
            noteForeign(snapshot.temporaries, namedBy: object)
            if object.flags.contains(.fault) {
                object.current = row
                if !specification.returnsObjectsAsFaults { object.realise(row) }
            } else if object.flags.contains(.gone) {
                // Its deletion was merged, and now the parent has it again.
                object.flags.remove([.gone, .deleted, .deletePropagated])
                object.realise(row)
            } else if specification.shouldRefreshRefetchedObjects {
                object.rebase(onto: row)
            }
            result.append(object)
        }
        return result
    }

    /// Remembers at which state of the tree faults were given their rows in advance.
    private func notePrefetch(_ upward: ParentLink, _ count: Int) {
        let stamp = upward.stamp(knownStores)
        guard upward.prefetchStamp != stamp else { return }
        if upward.prefetchStamp != nil {
            // Rows of an earlier fetch may be outdated. Where that is cheap they are dropped; else all faults ask the parent.
            guard registeredCount + temporaryObjects.count <= max(1024, count * 4) else { return }
            forEachRegistered { if $0.flags.contains(.fault) { $0.current = nil } }
        }
        upward.prefetchStamp = stamp
    }
}
