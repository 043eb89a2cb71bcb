import StrataRows

/// The state of one object that a parent passes to a child.
///
/// The row is not written to as long as it is shared.
struct Snapshot {
    /// The key that the parent uses; it is negative as long as the object has never been saved to a store.
    ///
    /// The row itself may still have an earlier key.
    let key: Int64
    let storeIndex: Int32
    let row: Row
    /// The IDs of the unsaved objects that the row names, and of the object itself if it is unsaved.
    let temporaries: [NSManagedObjectID]
}

// Answers of a context to its children. Called inside its scope.

extension NSManagedObjectContext {
    /// The current state of the object, including unsaved changes; `nil` if it is deleted.
    ///
    /// A fault stays a fault. The object's own row is shared from now on: it is copied before it is written to again.
    final func snapshot(of object: NSManagedObject) throws -> Snapshot? {
        guard object.isFault else {
            if let error = failedReads.error(ofWrittenRowOf: object) { throw error }
            return snapshot(ofLoaded: object)
        }
        guard object.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]),
            let row = try newestRow(ofFault: object)
        else { return nil }
        return snapshot(key: object.key, storeIndex: object.storeIndex, row: row)
    }

    /// Like ``snapshot(of:)``, for an object that is no fault, so that nothing has to be read.
    final func snapshot(ofLoaded object: NSManagedObject) -> Snapshot? {
        guard object.flags.isDisjoint(with: [.fault, .deleted, .gone, .inaccessible]), let row = object.current else {
            return nil
        }
        if object.flags.contains(.ownsRow) {
            object.flags.insert(.rowShared)
            object.flags.remove(.writable)
        }
        let storeIndex = object.isInserted ? storeIndexForInsertion(of: object) : object.storeIndex
        return snapshot(key: object.key, storeIndex: storeIndex, row: row)
    }

    /// A row with the IDs of the unsaved objects that it names.
    final func snapshot(key: Int64, storeIndex: Int32, row: Row) -> Snapshot {
        var temporaries: [NSManagedObjectID] = []
        if key < 0, let id = temporaryID(key) { temporaries.append(id) }
        for slot in row.layout.referenceSlots {
            if let reference = row.reference(slot), reference.key < 0, let id = temporaryID(reference.key) {
                temporaries.append(id)
            }
        }
        return Snapshot(key: key, storeIndex: storeIndex, row: row, temporaries: temporaries)
    }

    /// The ID of an unsaved object that this context, or one above, has.
    final func temporaryID(_ key: Int64) -> NSManagedObjectID? {
        identityMap.temporaryObjects[key]?.objectID ?? upward?.foreignIDs[key]
    }

    /// The object of a key, as this context or those above have it; `nil` if there is none.
    ///
    /// Objects are not registered here for that. `id` is the ID of an object that was unsaved when the child met it.
    final func snapshot(
        forKey key: Int64,
        layout: EntityLayout,
        storeIndex: Int32,
        id: NSManagedObjectID?
    ) throws -> Snapshot? {
        if let object = registered(childKey: key, layout: layout, storeIndex: storeIndex, id: id) {
            return try snapshot(of: object)
        }
        if let upward {
            return try visitParent(upward) {
                try $0.snapshot(forKey: key, layout: layout, storeIndex: storeIndex, id: id)
            }
        }
        guard let (key, store) = stored(childKey: key, storeIndex: storeIndex, id: id),
            let row = try newestRow(key: key, layout: layout, store: store, prefetched: nil)
        else { return nil }
        return snapshot(key: key, storeIndex: Int32(store.index), row: row)
    }

    /// The members of a to-many relationship as this context sees them, and the IDs of those that are unsaved.
    final func membersForChild(
        _ slot: ToManySlot,
        of owner: ObjectReference,
        storeIndex: Int32,
        id: NSManagedObjectID?
    ) throws -> (members: [ObjectReference], temporaries: [NSManagedObjectID]) {
        let layout = layout(of: owner)
        guard let object = registered(childKey: owner.key, layout: layout, storeIndex: storeIndex, id: id) else {
            if let upward {
                return try visitParent(upward) {
                    try $0.membersForChild(slot, of: owner, storeIndex: storeIndex, id: id)
                }
            }
            guard let (key, store) = stored(childKey: owner.key, storeIndex: storeIndex, id: id) else {
                return ([], [])
            }
            let members = try members(
                of: slot,
                ownedBy: ObjectReference(key: key, entity: owner.entity),
                in: store
            )
            return (members, [])
        }
        guard object.flags.isDisjoint(with: [.deleted, .gone]) else { return ([], []) }
        let isFault = object.extras?.toMany[slot.index]?.isFault ?? true
        let stored = isFault ? try readMembers(of: slot, ownedBy: object) : []
        // This comes after the read, since keys may have become permanent during it. The state is a copy, so the
        // relationship stays unloaded here.
        var state = object.extras?.toMany[slot.index] ?? ToManyState(isOrdered: slot.isOrdered)
        if state.isFault { state.load(stored) }
        let members = (state.content ?? []).filter { member in
            registered(member, near: object)?.flags.isDisjoint(with: [.deleted, .gone]) ?? true
        }
        return (members, members.compactMap { $0.key < 0 ? temporaryID($0.key) : nil })
    }

    /// The registered object of this context for a key of a child.
    final func registered(
        childKey key: Int64,
        layout: EntityLayout,
        storeIndex: Int32,
        id: NSManagedObjectID?
    ) -> NSManagedObject? {
        if let object = registered(key: key, layout: layout, storeIndex: storeIndex) { return object }
        guard key < 0, let (key, store) = id.flatMap(ownID)?.current, let store else { return nil }
        return registered(key: key, layout: layout, storeIndex: Int32(store.index))
    }

    /// The permanent key and the store for a key of a child; `nil` if the store was removed.
    private func stored(childKey key: Int64, storeIndex: Int32, id: NSManagedObjectID?) -> (Int64, OpenStore)? {
        if key > 0 { return storeToRead(at: storeIndex).map { (key, $0) } }
        // A key of another coordinator's row would name a different row here.
        guard let (key, store) = id.flatMap(ownID)?.current, let store, store.isOpen else { return nil }
        return (key, store)
    }
}
