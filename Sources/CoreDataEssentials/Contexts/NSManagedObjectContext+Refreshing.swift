import Foundation

extension NSManagedObjectContext {
    /// Does the work of ``refresh(_:mergeChanges:)``, which subclasses may override.
    final func bringUpToDate(_ object: NSManagedObject, mergeChanges flag: Bool) {
        if object.context === self { ObjectRefresh(of: object, in: self).run(keepingChanges: flag) }
    }

    /// Does the work of ``refreshAllObjects()``, which subclasses may override.
    final func bringAllUpToDate() {
        let reachable = reachableObjects()
        for object in reachable where isStored(object) && object.hasLoadedValues {
            bringUpToDate(object, mergeChanges: true)
        }
        // No code can reach the other objects. If they kept their values, then these would only be older than the
        // rest.
        var forgotten: [NSManagedObject] = []
        let isReachable = Set(reachable.map(ObjectIdentifier.init))
        forEachRegistered { object in
            if !isReachable.contains(ObjectIdentifier(object)), object.isDisposable, isStored(object) {
                forgotten.append(object)
            }
        }
        for object in forgotten where object.hasLoadedValues { object.turnIntoFault() }
    }

    /// Does the work of ``rollback()``, which subclasses may override.
    final func dropChanges() {
        // Delete rules that have not been applied yet are no longer needed.
        changeTracker.keepDeletions([])
        forgetUndo()
        let objects = changeTracker.objects
        changeTracker.keepChanges([])
        for object in objects where object.context === self {
            let wasInserted = object.isInserted
            let wasAnnounced = !object.flags.contains(.eventInserted)
            object.flags.remove([.listed, .gone])
            object.extras?.restoreTransients()
            object.discardChanges()
            if wasInserted {
                if wasAnnounced { addToEvent(object, as: .eventDeleted) }
                object.forgetTemporaryURI()
                unregister(object)
            } else {
                // The object was changed although its values could not be read.
                if let row = object.current, row.version < 0 { object.turnIntoFault() }
                addToEvent(object, as: .eventRefreshed)
                object.awake(fromSnapshotEvents: .rollback)
            }
        }
        changeTracker.endChecks()
        discardedSides.forget()
        failedReads.removeAll()
        endEvent(isMerge: false)
    }

    /// Does the work of ``reset()``, which subclasses may override.
    final func forgetObjects() {
        saving.doubt = nil
        // The IDs are made before the changes release their objects.
        var ids: [NSManagedObjectID] = []
        for object in reachableObjects() { ids.append(object.objectID) }
        let hadObjects = !identityMap.isEmpty
        changeTracker.forgetAll()
        lastOrderedSet = nil
        discardedSides.forget()
        failedReads.removeAll()
        notifyStoresOfReset()
        upward?.forgetAll()
        downward.countStateChange()
        for table in identityMap.tables {
            // Code that still holds an object may ask for its ID.
            table?.forEachHeldElsewhere { _ = $0.objectID }
            table?.forEach { $0.invalidate() }
        }
        identityMap.temporaryObjects.forEach { $0.invalidate() }
        identityMap.removeAll()
        rowsInAdvance.forgetPrefetches()
        advanceGeneration()
        rowsInAdvance.keepFetches([])
        forgetUndo()
        guard hadObjects else { return }
        // The notification is not posted by its public name: that would say that code may observe it, and from then
        // on all sets would be made.
        post(.didChange, [NSInvalidatedAllObjectsKey: ids])
        observers.contextWasReset()
    }
}

extension NSManagedObject {
    /// Whether the object has anything that a refresh drops: values, relationships, or a row that a fetch has
    /// brought.
    fileprivate var hasLoadedValues: Bool { !isFault || extras != nil || current != nil }

    /// Ends the object's life after a reset: the object loses its changes and its relationships.
    fileprivate func invalidate() {
        if flags.contains(.inserted) { forgetTemporaryURI() }
        leaveContext()
        flags = [.detached, .gone, .fault]
        current = nil
        extras = nil
    }
}
