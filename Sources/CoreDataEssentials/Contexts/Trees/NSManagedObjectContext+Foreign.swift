import StrataRows

// "Foreign" objects: the parent has them, but no store does. In a child they are like stored objects with temporary
// keys, until a save of the root makes their IDs permanent in all contexts.

extension NSManagedObjectContext {
    /// Notes the unsaved objects that data from the parent names.
    final func addForeign(_ ids: [NSManagedObjectID]) {
        guard let upward else { return }
        for id in ids where identityMap.temporaryObjects[id.temporaryKey]?.isInserted != true {
            upward.foreignIDs[id.temporaryKey] = id
            // The object became permanent before it was noted; lowering the count makes sure that the next check finds
            // it.
            if id.isOfPermanentObject { upward.seenPromotions &-= 1 }
        }
    }

    /// Makes a fault for an unsaved object that the parent may have.
    package final func makeForeignFault(_ id: NSManagedObjectID, layout: EntityLayout? = nil, storeIndex: Int32 = -1)
        -> NSManagedObject
    {
        let layout = layout ?? id.layout
        let object = layout.objectClass.type(of: layout.entity).init(entity: layout.entity, insertInto: nil)
        object.key = id.temporaryKey
        object.storeIndex = storeIndex
        object.setKnownID(id)
        registerUnsaved(object)
        object.flags.insert(.fault)
        upward?.foreignIDs[id.temporaryKey] = id
        return object
    }

    /// The fault for an unsaved object that a relationship names; `nil` if no context above has it.
    final func foreignObject(for reference: ObjectReference, storeIndex: Int32) -> NSManagedObject? {
        guard let id = upward?.foreignIDs[reference.key] else { return nil }
        replaceForeignTemporaryKeys()
        let (key, store) = id.current
        if let store {
            return registered(key: key, layout: id.layout, storeIndex: Int32(store.index))
                ?? makeFault(key: key, layout: id.layout, storeIndex: Int32(store.index))
        }
        return makeForeignFault(id, storeIndex: storeIndex)
    }

    /// Replaces the temporary keys of foreign objects that have become permanent, here and wherever they are named.
    ///
    /// O(number of foreign objects, of objects that name them, and of changes); it does nothing if no ID became
    /// permanent.
    final func replaceForeignTemporaryKeys() {
        guard let upward else { return }
        let count = upward.root.downward.promotions.count
        let isOfTree = count != upward.seenPromotions
        // The tree does not count saves of other coordinators. Only a context with foreign objects can be affected by
        // them.
        let everywhere =
            upward.foreignIDs.isEmpty
            ? identityMap.seenPromotions : NSManagedObjectID.promotions.load(ordering: .acquiring)
        guard isOfTree || everywhere != identityMap.seenPromotions else { return }
        upward.seenPromotions = count
        identityMap.seenPromotions = everywhere
        var permanent = PermanentKeys()
        for (temporary, id) in upward.foreignIDs {
            // A save of the tree counts once all of its IDs are permanent; before that none of them may be used.
            guard id.isOfPermanentObject, isOfTree || !isOwn(id.current.store), let own = ownID(id),
                case (let key, let store?) = own.current
            else { continue }
            permanent.set(key, for: temporary)
            identityMap.setPermanentKey(key, for: temporary)
            guard let object = identityMap.temporaryObjects[temporary], !object.isInserted,
                object.layout === own.layout,
                registered(key: key, layout: object.layout, storeIndex: Int32(store.index)) == nil
            else { continue }
            object.setKnownID(own)
            refile(object, key: key, storeIndex: Int32(store.index))
        }
        guard permanent.count > 0 else { return }
        permanent.forEach { temporary, _ in upward.foreignIDs[temporary] = nil }
        upward.filterMentions { object in
            guard object.context === self else { return false }
            object.replaceForeignKeys(permanent)
            return object.namesUnsaved
        }
        for object in changeTracker.objects { object.replaceForeignKeys(permanent) }
    }
}

extension NSManagedObject {
    /// Replaces the keys of objects that have become permanent in all data of the object, including shared rows.
    fileprivate final func replaceForeignKeys(_ permanent: PermanentKeys) {
        replaceReferences(permanent)
        if !flags.contains(.ownsRow) { current = current?.replacing(permanent) }
        guard let extras else { return }
        extras.base = extras.base?.replacing(permanent)
        extras.eventBase = extras.eventBase?.replacing(permanent)
    }

    /// Whether a row or a relationship names an object by a temporary key.
    final var namesUnsaved: Bool {
        if current?.namesUnsaved == true || extras?.base?.namesUnsaved == true { return true }
        return extras?.toMany.contains { $0?.namesUnsaved == true } ?? false
    }
}

extension Row {
    /// Whether a to-one relationship names an object by a temporary key.
    var namesUnsaved: Bool {
        layout.referenceSlots.contains { reference($0).map { $0.key < 0 } ?? false }
    }

    /// The row, or a copy in which the keys of objects that have become permanent are replaced.
    func replacing(_ permanent: PermanentKeys) -> Row {
        var copy: Row?
        for slot in layout.referenceSlots {
            guard let reference = reference(slot), reference.key < 0, let key = permanent[reference.key] else {
                continue
            }
            let row = copy ?? self.copy()
            row.setReference(ObjectReference(key: key, entity: reference.entity), slot)
            copy = row
        }
        return copy ?? self
    }
}
