import StrataRows

// Changes that a save of a child makes to single objects of the parent. Called inside the parent's scope.

extension NSManagedObjectContext {
    /// The registered object for an object of a child.
    final func registeredForChild(_ object: NSManagedObject) -> NSManagedObject? {
        let storeIndex = object.storeIndex
        if let known = registered(key: object.key, layout: object.layout, storeIndex: storeIndex) { return known }
        return object.key < 0 ? registeredForChild(object.objectID) : nil
    }

    /// The registered object of an ID that may have become permanent since a child met it.
    final func registeredForChild(_ id: NSManagedObjectID) -> NSManagedObject? {
        let (key, store) = id.current
        return registered(key: key, layout: id.layout, storeIndex: Int32(store?.index ?? 0))
    }

    /// Registers an object that a child has changed, with the data from the contexts above.
    final func registerForChild(_ found: Snapshot, isLoaded: Bool) -> NSManagedObject {
        addForeign(found.temporaries)
        let object = object(of: found)
        if isLoaded {
            if found.row.namesUnsaved { upward?.addMention(object) }
            object.realise(found.row)
        }
        return object
    }

    /// Registers an object that a child has inserted.
    ///
    /// The child has sent `awakeFromInsert` already.
    final func insertForChild(_ object: NSManagedObject, _ row: Row) {
        if object.context == nil {
            if object.key < 0 {
                registerUnsaved(object)
            } else {
                object.context = self
                object.flags.remove(.detached)
                if ConfinementScope.isChecked { object.flags.insert(.checked) }
                register(object, in: table(storeIndex: object.storeIndex, root: object.layout.rootNumber))
            }
        }
        upward?.foreignIDs[object.key] = nil
        recordForUndo(object, before: .absent)
        object.extras = nil
        object.current = row
        object.flags.remove([.fault, .inaccessible, .gone, .deleted, .deletePropagated, .writable])
        object.flags.insert([.inserted, .ownsRow, .rowShared, .eventInserted])
        list(object)
    }

    /// Deletes an object that a child has deleted.
    ///
    /// The child has sent `prepareForDeletion` already. The delete rules also apply to objects that only this context
    /// knows.
    final func deleteForChild(_ object: NSManagedObject) {
        guard object.flags.isDisjoint(with: [.deleted, .gone]) else { return }
        recordForUndo(object, before: nil)
        changeTracker.addFreshDeletion(of: object)
        object.flags.insert([.deleted, .eventDeleted])
        list(object)
    }
}
