import Foundation

extension NSManagedObjectContext {
    /// Brings an object up to date.
    ///
    /// If the store cannot be read, then an object with changes keeps its values. The error goes to the coordinator's
    /// ``NSPersistentStoreCoordinator/unreportableErrorHandler``. A later save still finds a conflict.
    ///
    /// ```swift
    /// context.refresh(venue, mergeChanges: true)  // the newest values, with unsaved changes on top
    /// ```
    ///
    /// - Parameters:
    ///   - object: An object of this context.
    ///   - flag: With `true`, the stored values are read anew and the object's changes are put back on top. A later
    ///     save does not conflict with the values that were merged. An unsaved object is left alone. With `false`,
    ///     the changes are dropped and the object becomes a fault. An unsaved object then loses its insertion: it is
    ///     not saved, and the fault finds no row when it fires.
    /// - Complexity: Only an object whose changes are put back on top needs a read: that of its newest row.
    public func refresh(_ object: NSManagedObject, mergeChanges flag: Bool) {
        assertCurrent(#function)
        if object.context === self { ObjectRefresh(of: object, in: self).run(keepingChanges: flag) }
    }

    /// Brings every registered object up to date and keeps unsaved changes.
    ///
    /// Objects-did-change lists the objects of ``registeredObjects`` that had values, under `NSRefreshedObjectsKey`.
    ///
    /// O(number of registered objects).
    ///
    /// ```swift
    /// context.refreshAllObjects()  // everything is read anew when it is used
    /// ```
    public func refreshAllObjects() {
        assertCurrent(#function)
        let reachable = reachableObjects()
        for object in reachable where isStored(object) && object.hasLoadedValues { refresh(object, mergeChanges: true) }
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

    /// Drops all unsaved changes and the undo stack: values return to those last fetched or saved, without a fetch.
    ///
    /// ```swift
    /// venue.price = 0
    /// context.rollback()
    /// print(context.hasChanges)
    /// ```
    ///
    /// - Complexity: O(number of changed objects).
    public func rollback() {
        assertCurrent(#function)
        // Delete rules that have not been applied yet are no longer needed.
        changeTracker.keepDeletions([])
        forgetUndo()
        let objects = changeTracker.objects
        changeTracker.keepChanges([])
        for object in objects where object.context === self {
            let wasInserted = object.isInserted
            let wasAnnounced = !object.flags.contains(.eventInserted)
            object.flags.remove([.listed, .gone])
            object.discardChanges()
            if wasInserted {
                if wasAnnounced { addToEvent(object, as: .eventDeleted) }
                unregister(object)
            } else {
                // The object was changed although its values could not be read.
                if let row = object.current, row.version < 0 { object.turnIntoFault() }
                addToEvent(object, as: .eventRefreshed)
                object.awake(fromSnapshotEvents: .rollback)
            }
        }
        changeTracker.endChecks()
        failedReads.removeAll()
        processPendingChanges()
    }

    /// Forgets every object, every change, and the undo stack.
    ///
    /// If it is in doubt whether the last save was committed, then the next save does not find that out any more.
    /// Objects-did-change names the IDs of all ``registeredObjects`` under `NSInvalidatedAllObjectsKey`. Objects from
    /// before the reset may not be used any more: they are faults that read nil, zero or empty.
    ///
    /// ```swift
    /// context.reset()  // objects from before are not to be used any more
    /// print(context.registeredObjects.count)
    /// ```
    ///
    /// - Complexity: O(number of registered objects).
    public func reset() {
        assertCurrent(#function)
        saving.doubt = nil
        // The IDs are made before the changes release their objects.
        var ids: [NSManagedObjectID] = []
        for object in reachableObjects() { ids.append(object.objectID) }
        let hadObjects = !identityMap.isEmpty
        changeTracker.forgetAll()
        lastOrderedSet = nil
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
        leaveContext()
        flags = [.detached, .gone, .fault]
        current = nil
        extras = nil
    }
}
