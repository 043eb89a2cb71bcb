import Foundation
import StrataLocks
import StrataRows

// Questions of a child to its parent. Called inside the child's scope; enters the parent's.

extension NSManagedObjectContext {
    /// The parent's row of an object; `nil` if the parent has no such object, or has deleted it.
    final func parentRow(of object: NSManagedObject) throws -> Row? {
        try ChildQuestion(object).askParent(of: self).map { row(of: $0, for: object) }
    }

    /// Notes unsaved objects that the parent has named; some of them may have become permanent since.
    final func learn(_ temporaries: [NSManagedObjectID]) {
        guard !temporaries.isEmpty else { return }
        addForeign(temporaries)
        replaceForeignTemporaryKeys()
    }

    /// The row of a snapshot, for an object of this context, with the keys that this context uses.
    final func row(of snapshot: Snapshot, for object: NSManagedObject) -> Row {
        guard !snapshot.temporaries.isEmpty else { return snapshot.row }
        let row = snapshot.row.replacing(identityMap.permanentKeys)
        if row.namesUnsaved { upward?.addMention(object) }
        return row
    }

    /// The parent's members of a to-many relationship.
    final func parentMembers(of slot: ToManySlot, ownedBy object: NSManagedObject) throws -> [ObjectReference] {
        guard let upward else { return [] }
        let question = ChildQuestion(object)
        let found = try visitParent(upward) { try question.members(of: slot, in: $0) }
        guard !found.temporaries.isEmpty else { return found.members }
        learn(found.temporaries)
        upward.addMention(object)
        return found.members.map { member in
            guard member.key < 0, let key = identityMap.permanentKeys[member.key] else { return member }
            return ObjectReference(key: key, entity: member.entity)
        }
    }

    /// The object of an ID, with values loaded from the parent.
    final func existingObjectInTree(_ id: NSManagedObjectID, _ known: NSManagedObject?) throws -> NSManagedObject {
        guard let found = try ChildQuestion(id).askParent(of: self) else { throw Self.missing(id) }
        let object = known ?? object(of: found)
        fill(object, row(of: found, for: object))
        return object
    }

    /// Whether the parent would still answer with a row that a fetch of this context brought; the parent is not asked.
    final func isNewestInTree(_ row: Row) -> Bool {
        guard let upward, stalenessInterval < 0, row.version >= 0 else { return false }
        return upward.prefetchStamp == upward.stamp(pinnedVersion.seenStores)
    }

    /// The registered object of a snapshot from a context above, or else a new fault.
    final func object(of snapshot: Snapshot) -> NSManagedObject {
        let layout = snapshot.row.layout
        if let known = registered(key: snapshot.key, layout: layout, storeIndex: snapshot.storeIndex) { return known }
        if snapshot.key > 0 { return makeFault(key: snapshot.key, layout: layout, storeIndex: snapshot.storeIndex) }
        let id =
            snapshot.temporaries.first { $0.temporaryKey == snapshot.key }
            ?? TemporaryIDs.id(key: snapshot.key, layout: layout)
        let (key, store) = id.current
        guard let store else { return makeForeignFault(id, layout: layout, storeIndex: snapshot.storeIndex) }
        // The object was saved after the snapshot was made.
        return registered(key: key, layout: layout, storeIndex: Int32(store.index))
            ?? makeFault(key: key, layout: layout, storeIndex: Int32(store.index))
    }

    /// The objects for a fetch result of the parent: known objects stay as they are, new ones become faults with their
    /// row.
    ///
    /// Called inside the scopes of all contexts above, so their answers stay valid meanwhile. Those of the stores may not:
    /// so the stamp is from before the read.
    final func uniqued(_ snapshots: [Snapshot], _ specification: FetchSpecification, readAt stamp: UInt64)
        -> [NSManagedObject]
    {
        guard let upward, let first = snapshots.first else { return [] }
        _ = store(at: first.storeIndex)
        recordPrefetch(through: upward, at: stamp, count: snapshots.count)
        var result: [NSManagedObject] = []
        result.reserveCapacity(snapshots.count)
        for snapshot in snapshots {
            let row = snapshot.row
            makeFaultIfForgotten(key: snapshot.key, root: row.layout.rootNumber, storeIndex: snapshot.storeIndex)
            // The scopes of all contexts above are held, so no ID becomes permanent meanwhile.
            addForeign(snapshot.temporaries)
            let object = object(of: snapshot)
            if !snapshot.temporaries.isEmpty, row.namesUnsaved { upward.addMention(object) }
            if object.flags.contains(.gone) {
                // The object's deletion was merged, and now the parent has the object again.
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

    /// The state of the tree before rows of some stores are read through the parent.
    final func stampBeforeRead(of stores: [OpenStore]) -> UInt64 {
        for store in stores { _ = self.store(at: Int32(store.index)) }
        return upward?.stamp(pinnedVersion.seenStores) ?? 0
    }

    /// Remembers the state of the tree in which faults were given their rows in advance.
    final func recordPrefetch(through upward: ParentLink, at stamp: UInt64, count: Int) {
        guard upward.prefetchStamp != stamp else { return }
        if upward.prefetchStamp != nil {
            // Rows of an earlier fetch may be outdated. They are dropped if that is cheap. Otherwise, all faults read
            // from the parent.
            guard
                identityMap.storedCount + identityMap.temporaryObjects.count <= max(WorkSize.searchedObjects, count * 4)
            else { return }
            forEachRegistered { if $0.flags.contains(.fault), $0.heldRow != nil { $0.forgetRow() } }
        }
        upward.prefetchStamp = stamp
    }
}
