import Foundation
import StrataLocks
import StrataRows

extension NSManagedObjectContext {
    /// Merges the changes that a notification reports.
    ///
    /// The notification is the did-save notification of another context (with objects or with IDs), or that of a
    /// transaction of the history (``NSPersistentHistoryTransaction/objectIDNotification()``).
    ///
    /// Registered objects are refreshed, and unsaved changes are kept on top. Deleted objects are marked as deleted,
    /// and inserted ones become reachable. Must be called inside this context's scope; the notification's objects are
    /// used by ID only. If a context on another coordinator has saved the changes, then they are read from the store,
    /// with any ``stalenessInterval``.
    ///
    /// ```swift
    /// let observer = NotificationCenter.default.addObserver(
    ///     forName: .NSManagedObjectContextDidSave, object: nil, queue: nil
    /// ) { note in
    ///     context.performAndWait { context.mergeChanges(fromContextDidSave: note) }
    /// }
    /// NotificationCenter.default.removeObserver(observer)
    /// ```
    ///
    /// - Parameter notification: A did-save notification, with objects or with IDs.
    public func mergeChanges(fromContextDidSave notification: Notification) {
        assertCurrent(#function)
        let message = ChangeMessage(userInfo: notification.userInfo ?? [:], coordinator)
        // This coordinator's row cache does not have changes that another coordinator or process has saved.
        if notification.userInfo?[NSPersistentHistoryTokenKey] != nil {
            message.invalidateRows()
        } else if let sender = notification.object as? NSManagedObjectContext,
            sender.persistentStoreCoordinator !== coordinator
        {
            message.invalidateRows()
        }
        merge(message)
    }

    /// Merges changes that were made elsewhere into several contexts, each on its own queue, and waits for all.
    ///
    /// This method waits as `performAndWait(_:)` does. If two blocks of different contexts each merge into the other's
    /// context at the same time, neither can continue, and the program stops. So call the method outside of any block,
    /// or inside a block of a context into which no other block merges. Or let contexts merge in turn
    /// (``automaticallyMergesChangesFromParent``, ``save(mergingInto:)``).
    ///
    /// ```swift
    /// let delete = NSBatchDeleteRequest(objectIDs: [id])
    /// delete.resultType = .resultTypeObjectIDs
    /// let deleted = (try context.execute(delete) as? NSBatchDeleteResult)?.result as? [NSManagedObjectID] ?? []
    /// NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectIDsKey: deleted], into: [context])
    /// ```
    ///
    /// - Parameters:
    ///   - changeNotificationData: IDs, or URIs of IDs, in arrays or sets under the inserted, updated and deleted keys
    ///     (those for objects or those for IDs). A batch request's result or a message of another process has this
    ///     form. The cached rows of these IDs are forgotten first.
    ///   - contexts: The contexts to merge into.
    public class func mergeChanges(
        fromRemoteContextSave changeNotificationData: [AnyHashable: Any],
        into contexts: [NSManagedObjectContext]
    ) {
        var known: [(coordinator: NSPersistentStoreCoordinator, message: ChangeMessage)] = []
        // A child that is listed together with its parent merges after it, since it takes data over from the parent.
        for context in contexts.map({ ($0, $0.contextQueue.depth) }).sorted(by: { $0.1 < $1.1 }).map(\.0) {
            guard let coordinator = context.persistentStoreCoordinator else { continue }
            if !known.contains(where: { $0.coordinator === coordinator }) {
                let message = ChangeMessage(userInfo: changeNotificationData, coordinator)
                message.invalidateRows()
                known.append((coordinator, message))
            }
            guard let message = known.first(where: { $0.coordinator === coordinator })?.message else { continue }
            context.performAndWait { context.merge(message) }
            context.observers.storesChangedElsewhere(message)
        }
    }

    /// Whether this context merges saves of other contexts automatically.
    ///
    /// Default false. A root merges the saves of other contexts on the same coordinator; a child merges the saves of
    /// its parent, and of others into its parent.
    ///
    /// Saves and batches through this coordinator are merged. Changes of other processes are merged only if a
    /// `RemoteChangeFollower` follows them. Unsaved changes of this context are kept.
    ///
    /// A child merges in a block on its own queue that reads from its parent, so it waits until the parent has finished
    /// what it is doing. If the parent is in a block that waits for the child, the child reads within that block.
    ///
    /// ```swift
    /// container.viewContext.automaticallyMergesChangesFromParent = true
    /// ```
    public var automaticallyMergesChangesFromParent: Bool {
        get {
            assertCurrentOrUnused(#function)
            return inbox.isFollowing
        }
        set {
            assertCurrentOrUnused(#function)
            inbox.isFollowing = newValue
            followParent(newValue)
        }
    }

    /// Takes in a message that the context merges when its turn comes.
    ///
    /// Called on the saving context's queue. Messages that wait are merged together. A requested message is merged even
    /// if the context does not follow; `waiter` is resumed when that is done.
    package final func enqueueMerge(
        _ message: ChangeMessage,
        isRequested: Bool = false,
        _ waiter: CheckedContinuation<Void, Never>? = nil
    ) {
        if FaultGuard.mergeDelivery.isOff, waiter == nil { return }
        inbox.post(message, isRequested: isRequested, waiter) {
            performInternally {
                let (message, waiters) = self.inbox.removeAll()
                self.merge(message)
                self.changeTracker.show(recentlyDeleted: [])
                for waiter in waiters { waiter.resume() }
            }
        }
    }

    /// Merges a message into the registered objects.
    final func merge(_ message: ChangeMessage) {
        guard !message.isEmpty else { return }
        measured(.merge, entity: nil, entersScope: false, rows: { message.count }) { apply(message) }
    }

    private func apply(_ message: ChangeMessage) {
        // Changes made here before are an event, and an undo step, by themselves.
        processPendingChanges()
        fileNewlySavedFaults()
        // The merged changes are newer than the version that the context was pinned to.
        advanceGeneration()
        let message = deletingAbsentRows(in: withOwnKeys(message))
        guard !message.isEmpty else { return }
        prepareMergedRows()
        let parentRows = parentRows(for: message)
        var refreshed: [ChangeMessage.Change] = []
        for change in message.updated {
            guard let object = held(change) else {
                observers.addUnregistered(change)
                continue
            }
            if mergeUpdate(of: object, change, parentRows) { refreshed.append(change) }
        }
        for change in message.inserted {
            let storeIndex = Int32(change.store.index)
            if let known = registered(key: change.key, layout: change.layout, storeIndex: storeIndex) {
                // The object was fetched before the message came, or it was deleted and exists again.
                mergeUpdate(of: known, change, parentRows)
            } else if let id = change.temporaryID {
                addToEvent(makeForeignFault(id, storeIndex: storeIndex), as: .eventInserted)
            } else {
                addToEvent(
                    makeFault(key: change.key, layout: change.layout, storeIndex: storeIndex),
                    as: .eventInserted
                )
            }
        }
        var unknownRoots: Set<Int> = []
        let back = rowsThatAreBack(message.deleted)
        for change in message.deleted {
            guard !back.contains(RowName(change)) else {
                mergeReturn(change)
                continue
            }
            guard let object = held(change) else {
                if let forgotten = registered(of: change) { unregister(forgotten) }
                observers.addUnregistered(change)
                unknownRoots.insert(change.layout.rootNumber)
                continue
            }
            // The former relationships of a fault without a row are not known.
            if object.isFault, object.current == nil { unknownRoots.insert(change.layout.rootNumber) }
            mergeDeletion(of: object)
        }
        if !unknownRoots.isEmpty { reloadRelationships(to: unknownRoots) }
        endEvent(isMerge: true)
        post(.didMergeIDs) { sets in
            let ids = message.ids
            sets.add(ids)
            if !refreshed.isEmpty {
                let areAll = refreshed.count == message.updated.count
                sets.add(.refreshedObjectIDs, areAll ? ids.updated : ChangedIDs.ids(of: refreshed))
            }
            sets.add(queryGenerationToken)
        }
        acceptMerged(message)
        observers.committed(message)
        downward.notifyFollowers(message)
    }

    private func registered(of change: ChangeMessage.Change) -> NSManagedObject? {
        registered(key: change.key, layout: change.layout, storeIndex: Int32(change.store.index))
    }

    /// The object of a change, if it is in use or has changes.
    ///
    /// If an object is registered but not in use, its row is forgotten, as if the object had been released and made
    /// again.
    private func held(_ change: ChangeMessage.Change) -> NSManagedObject? {
        guard change.key > 0 else { return registered(of: change) }
        let storeIndex = Int32(change.store.index)
        guard makeFaultIfForgotten(key: change.key, root: change.layout.rootNumber, storeIndex: storeIndex) else {
            return registered(of: change)
        }
        if let object = registered(of: change) {
            object.current = nil
            object.forgetMembers()
        }
        return nil
    }

    /// The changes under the keys that this context uses for the objects, without those of objects of another tree.
    private func withOwnKeys(_ message: ChangeMessage) -> ChangeMessage {
        var message = message
        // A list that names only stored objects, as most lists do, stays as it is.
        if namesUnsaved(message.inserted) { message.inserted = message.inserted.compactMap { withOwnKeys($0) } }
        if namesUnsaved(message.updated) { message.updated = message.updated.compactMap { withOwnKeys($0) } }
        if namesUnsaved(message.deleted) { message.deleted = message.deleted.compactMap { withOwnKeys($0) } }
        return message
    }

    private func namesUnsaved(_ changes: [ChangeMessage.Change]) -> Bool {
        changes.contains { $0.temporaryID != nil }
    }

    /// The change under the key that this context uses for the object; `nil` for an object of another tree.
    private func withOwnKeys(_ change: ChangeMessage.Change) -> ChangeMessage.Change? {
        guard let id = change.temporaryID else { return change }
        let (key, store) = id.current
        if let store, identityMap.temporaryObjects[change.key] == nil {
            return ChangeMessage.Change(key: key, layout: change.layout, store: store)
        }
        // The parent has the object; a context without a parent has either inserted it, or does not know it.
        return upward == nil ? nil : change
    }

    private func mergeReturn(_ change: ChangeMessage.Change) {
        let storeIndex = Int32(change.store.index)
        guard let object = registered(key: change.key, layout: change.layout, storeIndex: storeIndex) else {
            return observers.addUnregistered(change)
        }
        mergeUpdate(of: object, change, nil)
    }

    /// Makes loaded relationships be loaded again if they may name deleted rows that have no objects here.
    ///
    /// - Complexity: O(registered objects), if there are to-many relationships to such rows at all.
    private func reloadRelationships(to roots: Set<Int>) {
        let leadThere = model.layouts.contains { layout in
            layout.toMany.contains { roots.contains(model.layouts[$0.destinationNumber - 1].rootNumber) }
        }
        guard leadThere else { return }
        forEachRegistered { object in
            guard let extras = object.extras else { return }
            for slot in object.layout.toMany where roots.contains(model.layouts[slot.destinationNumber - 1].rootNumber)
            {
                extras.toMany[slot.index]?.turnIntoFault()
            }
        }
    }

    /// Brings an object up to date with a change.
    ///
    /// - Returns: Whether the object was refreshed; `false` if it was refreshed before and was not read since.
    @discardableResult
    private func mergeUpdate(
        of object: NSManagedObject,
        _ change: ChangeMessage.Change,
        _ parentRows: ParentRows?
    ) -> Bool {
        guard !object.isInserted else { return false }
        downward.countStateChange()
        if object.flags.contains(.gone) {
            // The deletion was merged or found before, and the row has been inserted again since.
            let found = mergedRow(of: object, parentRows)
            if case .missing = found { return false }
            if case .found(let row) = found {
                bringBack(object, row)
            } else {
                object.flags.remove([.gone, .deleted, .deletePropagated])
                object.turnIntoFault()
            }
        } else if object.isFault {
            // The fault has to be filled with the newest row, and a row that a fetch has brought is not that any more.
            object.current = nil
            object.forgetMembers()
        } else {
            switch mergedRow(of: object, parentRows) {
            case .found(let row):
                object.rebase(onto: row)
                object.awake(fromSnapshotEvents: .refresh)
            case .missing:
                mergeDeletion(of: object)
                return false
            case .unreadable:
                // A fault is read again when it is next used. If the object has changes, they would be lost with that,
                // so it stays as it is, and the next save finds the conflict.
                if !object.hasChanges { object.turnIntoFault() }
            }
        }
        if object.isFault {
            guard !object.flags.contains(.mergedFault) else {
                // There was nothing to refresh. Observers of results judge the object by its row.
                observers.addUnregistered(change)
                return false
            }
            object.flags.insert(.mergedFault)
        }
        if object.flags.isDisjoint(with: [.eventInserted, .eventUpdated, .eventDeleted]) {
            addToEvent(object, as: .eventRefreshed)
        }
        return true
    }

    /// Applies a deletion of the row made elsewhere: the object is deleted here too, and stays readable while it is in
    /// use.
    ///
    /// An object with unsaved changes is left as it is. So the next save finds the conflict, and the changes are not
    /// lost.
    private func mergeDeletion(of object: NSManagedObject) {
        guard !object.flags.contains(.gone) else { return }
        if object.isUpdated && !object.isDeleted && object.hasPersistentChangedValues { return }
        if object.isFault, let row = object.current, row.version > 0 { object.realise(row) }
        object.discardChanges()
        object.flags.remove(.conflictDetection)
        addToEvent(object, as: .eventDeleted)
        object.flags.insert([.deleted, .deletePropagated, .gone])
        identityMap.countLoss()
        leaveRelationships(of: object)
        changeTracker.addMergedDeletion(of: object)
    }

    /// Removes a deleted object from the relationships that are loaded here.
    ///
    /// The store has done this for the stored relationships already.
    private func leaveRelationships(of object: NSManagedObject) {
        guard !object.isFault else { return }
        for slot in object.layout.referenceSlots {
            guard let inverse = slot.inverse, inverse.isToMany,
                let reference = object.readableRow().reference(slot),
                let owner = registered(reference, near: object),
                let index = owner.layout.toMany(named: inverse.name)?.index
            else { continue }
            owner.extras?.toMany[index]?.turnIntoFault()
        }
    }
}

extension NSManagedObject {
    /// Makes the relationships of a fault be read again; pending changes are kept.
    fileprivate func forgetMembers() {
        guard let extras else { return }
        for index in extras.toMany.indices { extras.toMany[index]?.turnIntoFault() }
    }
}
