import StrataRows

/// One object as a parent shows it to a child.
///
/// The row is not written to as long as anybody shares it.
struct Snapshot {
    /// The key as the parent knows it, negative as long as the object has never been saved to a store.
    ///
    /// The row's own key may be of an earlier time.
    let key: Int64
    let storeIndex: Int32
    let row: Row
    /// The IDs of the unsaved objects that the row names, and of the object itself if it is one.
    let temporaries: [NSManagedObjectID]
}

// What a context answers to its children. Called inside its scope.

extension NSManagedObjectContext {
    /// The object as it is now, unsaved changes included; `nil` if it is deleted.
    ///
    /// A fault stays one. What the object owns is shared from now on: it is copied before it is written to again.
    final func snapshot(of object: NSManagedObject) throws -> Snapshot? {
        guard object.isFault else {
            if let error = failedReads.error(ofWrittenRowOf: object) { throw error }
            return snapshot(ofLoaded: object)
        }
        guard object.flags.isDisjoint(with: [.deleted, .gone, .inaccessible]),
            let row = try newestRow(ofFault: object)
        else { return nil }
        return snapshot(object.key, object.storeIndex, row)
    }

    /// As the other form, for an object that is no fault, so that nothing has to be read.
    final func snapshot(ofLoaded object: NSManagedObject) -> Snapshot? {
        guard object.flags.isDisjoint(with: [.fault, .deleted, .gone, .inaccessible]), let row = object.current else {
            return nil
        }
        if object.flags.contains(.ownsRow) {
            object.flags.insert(.rowShared)
            object.flags.remove(.writable)
        }
        let storeIndex = object.isInserted ? storeIndexForInsertion(of: object) : object.storeIndex
        return snapshot(object.key, storeIndex, row)
    }

    /// A row with the IDs of the unsaved objects that it names.
    final func snapshot(_ key: Int64, _ storeIndex: Int32, _ row: Row) -> Snapshot {
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

    /// The object of a key, as this context or those above know it; `nil` if there is none.
    ///
    /// What is not registered here stays so. `id` is the ID of an object that was unsaved when the child met it.
    final func snapshot(
        forKey key: Int64,
        _ layout: EntityLayout,
        _ storeIndex: Int32,
        _ id: NSManagedObjectID?
    ) throws -> Snapshot? {
        if let object = registered(key, layout, storeIndex, id) { return try snapshot(of: object) }
        if let upward {
            return try visitParent(upward) { try $0.snapshot(forKey: key, layout, storeIndex, id) }
        }
        guard let (key, store) = stored(key, storeIndex, id),
            let row = try newestRow(key: key, layout: layout, store: store, prefetched: nil)
        else { return nil }
        return snapshot(key, Int32(store.index), row)
    }

    /// The members of a to-many relationship as this context sees them, and the IDs of those that are unsaved.
    final func membersForChild(
        _ slot: ToManySlot,
        of owner: ObjectReference,
        _ storeIndex: Int32,
        _ id: NSManagedObjectID?
    ) throws -> (members: [ObjectReference], temporaries: [NSManagedObjectID]) {
        let layout = layout(of: owner)
        guard let object = registered(owner.key, layout, storeIndex, id) else {
            if let upward { return try visitParent(upward) { try $0.membersForChild(slot, of: owner, storeIndex, id) } }
            guard let (key, store) = stored(owner.key, storeIndex, id) else { return ([], []) }
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
        // Read afterwards: keys that it names may have become permanent on the way. The state is a copy: what the child
        // wants to know is not loaded here.
        var state = object.extras?.toMany[slot.index] ?? ToManyState(isOrdered: slot.isOrdered)
        if state.isFault { state.load(stored) }
        let members = (state.content ?? []).filter { member in
            registered(member, near: object)?.flags.isDisjoint(with: [.deleted, .gone]) ?? true
        }
        return (members, members.compactMap { $0.key < 0 ? temporaryID($0.key) : nil })
    }

    /// The registered object that a child means.
    final func registered(
        _ key: Int64,
        _ layout: EntityLayout,
        _ storeIndex: Int32,
        _ id: NSManagedObjectID?
    ) -> NSManagedObject? {
        if let object = registered(key: key, layout: layout, storeIndex: storeIndex) { return object }
        guard key < 0, let (key, store) = id.flatMap(ownID)?.current, let store else { return nil }
        return registered(key: key, layout: layout, storeIndex: Int32(store.index))
    }

    /// The permanent key that a child means, and its store, unless that was removed.
    private func stored(_ key: Int64, _ storeIndex: Int32, _ id: NSManagedObjectID?) -> (Int64, OpenStore)? {
        if key > 0 { return storeToRead(at: storeIndex).map { (key, $0) } }
        // The key of another coordinator's row would name some other row here.
        guard let (key, store) = id.flatMap(ownID)?.current, let store, store.isOpen else { return nil }
        return (key, store)
    }
}
