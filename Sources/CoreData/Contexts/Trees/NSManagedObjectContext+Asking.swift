import Foundation
import StrataRows

// What a child asks its parent for. Called inside the child's scope; enters the parent's.

extension NSManagedObjectContext {
    /// What the parent has of an object; `nil` if it has none, or has deleted it.
    final func parentRow(of object: NSManagedObject) throws -> Row? {
        let id = object.key < 0 ? object.objectID : nil
        guard let found = try parentSnapshot(object.key, object.layout, object.storeIndex, id) else { return nil }
        return takeRow(of: found, for: object)
    }

    private func parentSnapshot(
        _ key: Int64,
        _ layout: EntityLayout,
        _ storeIndex: Int32,
        _ id: NSManagedObjectID?
    ) throws -> Snapshot? {
        guard let upward else { return nil }
        let found = try visitParent(upward) { try $0.snapshot(forKey: key, layout, storeIndex, id) }
        if let found { learn(found.temporaries) }
        return found
    }

    /// Takes note of unsaved objects that the parent has named, some of which may have become permanent since.
    final func learn(_ temporaries: [NSManagedObjectID]) {
        guard !temporaries.isEmpty else { return }
        noteForeign(temporaries)
        settleForeign()
    }

    /// The row of what the parent has shown, which becomes the object's: under the keys that are known here.
    final func takeRow(of snapshot: Snapshot, for object: NSManagedObject) -> Row {
        guard !snapshot.temporaries.isEmpty else { return snapshot.row }
        let row = snapshot.row.replacing(identityMap.permanentKeys)
        if row.namesUnsaved { upward?.noteMention(object) }
        return row
    }

    /// What the parent has of a to-many relationship.
    final func parentMembers(of slot: ToManySlot, ownedBy object: NSManagedObject) throws -> [ObjectReference] {
        guard let upward else { return [] }
        let id = object.key < 0 ? object.objectID : nil
        let owner = object.reference
        let storeIndex = object.storeIndex
        let found = try visitParent(upward) { try $0.membersForChild(slot, of: owner, storeIndex, id) }
        guard !found.temporaries.isEmpty else { return found.members }
        learn(found.temporaries)
        upward.noteMention(object)
        return found.members.map { member in
            guard member.key < 0, let key = identityMap.permanentKeys[member.key] else { return member }
            return ObjectReference(key: key, entity: member.entity)
        }
    }

    /// The object of an ID, with its values loaded, from the parent.
    final func existingObjectInTree(_ id: NSManagedObjectID, _ known: NSManagedObject?) throws -> NSManagedObject {
        let (key, store) = id.current
        let storeIndex = store.map { Int32($0.index) } ?? -1
        guard let found = try parentSnapshot(key, id.layout, storeIndex, key < 0 ? id : nil) else {
            throw Self.missing(id)
        }
        let object = known ?? object(of: found)
        fill(object, takeRow(of: found, for: object))
        return object
    }

    /// Whether a row that a fetch of this context brought is still what the parent would answer, without asking it.
    final func isNewestInTree(_ row: Row) -> Bool {
        guard let upward, stalenessInterval < 0, row.version >= 0 else { return false }
        return upward.prefetchStamp == upward.stamp(pinnedVersion.seenStores)
    }

    /// The registered object of what the parent, or whoever is above, has shown; else a fault.
    final func object(of snapshot: Snapshot) -> NSManagedObject {
        let layout = snapshot.row.layout
        if let known = registered(key: snapshot.key, layout: layout, storeIndex: snapshot.storeIndex) { return known }
        if snapshot.key > 0 { return makeFault(key: snapshot.key, layout: layout, storeIndex: snapshot.storeIndex) }
        let id =
            snapshot.temporaries.first { $0.temporaryKey == snapshot.key }
            ?? TemporaryIDs.id(key: snapshot.key, layout: layout)
        let (key, store) = id.current
        guard let store else { return makeForeignFault(id, layout: layout, storeIndex: snapshot.storeIndex) }
        // It has been saved since it was shown.
        return registered(key: key, layout: layout, storeIndex: Int32(store.index))
            ?? makeFault(key: key, layout: layout, storeIndex: Int32(store.index))
    }

    /// The objects of what the parent has answered to a fetch: known ones stay as they are, new ones become faults on
    /// their row.
    ///
    /// Called inside all scopes above, so that what the rows say stays true meanwhile.
    final func uniqued(_ snapshots: [Snapshot], _ specification: FetchSpecification) -> [NSManagedObject] {
        guard let upward, let first = snapshots.first else { return [] }
        _ = store(at: first.storeIndex)
        notePrefetch(upward, snapshots.count)
        var result: [NSManagedObject] = []
        result.reserveCapacity(snapshots.count)
        for snapshot in snapshots {
            let row = snapshot.row
            makeFaultIfForgotten(key: snapshot.key, root: row.layout.rootNumber, storeIndex: snapshot.storeIndex)
            // All scopes above are held, so nothing becomes permanent meanwhile.
            noteForeign(snapshot.temporaries)
            let object = object(of: snapshot)
            if !snapshot.temporaries.isEmpty, row.namesUnsaved { upward.noteMention(object) }
            if object.flags.contains(.gone) {
                // Its deletion was merged, and now the parent has it again.
                bringBack(object, row)
            } else if object.flags.contains(.fault) {
                object.current = row
                if !specification.returnsObjectsAsFaults { object.realise(row) }
            } else if specification.shouldRefreshRefetchedObjects {
                object.rebase(onto: row)
            }
            result.append(object)
        }
        return result
    }

    /// Remembers at which state of the tree faults were given their rows in advance.
    final func notePrefetch(_ upward: ParentLink, _ count: Int) {
        let stamp = upward.stamp(pinnedVersion.seenStores)
        guard upward.prefetchStamp != stamp else { return }
        if upward.prefetchStamp != nil {
            // Rows of an earlier fetch may be outdated. Where that is cheap they are dropped; else all faults ask the
            // parent.
            guard identityMap.storedCount + identityMap.temporaryObjects.count <= max(1024, count * 4) else { return }
            forEachRegistered { if $0.flags.contains(.fault) { $0.current = nil } }
        }
        upward.prefetchStamp = stamp
    }
}
