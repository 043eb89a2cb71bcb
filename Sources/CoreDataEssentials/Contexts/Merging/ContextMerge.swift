import StrataRows

/// One merge of changes that were made elsewhere into the objects of a context.
///
/// The order of its steps is the course of a merge:
///
///     merge → end the event → use the own keys → rows that no longer exist are deletions → read the parent's rows
///           → updates, insertions, deletions → end the event of the merge → did-merge → observers and children
///
/// Unsaved changes stay on top of what is merged. A value lives for one call of
/// ``NSManagedObjectContext/merge(_:)``, inside the context's scope.
struct ContextMerge {
    private let context: NSManagedObjectContext
    /// The changes; once the merge has begun, under the keys of the context, and as the rows are now.
    private var message: ChangeMessage
    private var rows: MergedRows
    /// The changes whose objects were refreshed.
    private var refreshed: [ChangeMessage.Change] = []
    /// The roots of deleted rows that loaded relationships may name.
    private var unknownRoots: Set<Int> = []

    init(of message: ChangeMessage, into context: NSManagedObjectContext) {
        self.context = context
        self.message = message
        rows = MergedRows(context)
    }

    /// Merges the changes, and notifies the observers and children of the context.
    mutating func run() {
        // Changes made here before are an event, and an undo step, by themselves.
        context.endEvent(isMerge: false)
        context.fileNewlySavedFaults()
        // The merged changes are newer than the version that the context was pinned to.
        context.advanceGeneration()
        message = rows.deletingAbsentRows(in: withOwnKeys(message))
        guard !message.isEmpty else { return }
        rows.prepare(for: message)
        for change in message.updated { mergeUpdate(change) }
        for change in message.inserted { mergeInsertion(change) }
        let back = rows.areBack(message.deleted)
        for change in message.deleted {
            if back.contains(RowName(change)) { mergeReturn(change) } else { mergeDeletion(change) }
        }
        if !unknownRoots.isEmpty { reloadRelationships(to: unknownRoots) }
        context.endEvent(isMerge: true)
        postDidMerge()
        acceptVersions()
        context.observers.committed(message)
        context.downward.notifyFollowers(message)
    }

    // MARK: - Keys

    /// The changes under the keys that the context uses for the objects, without those of objects of another tree.
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

    /// The change under the key that the context uses for the object; `nil` for an object of another tree.
    private func withOwnKeys(_ change: ChangeMessage.Change) -> ChangeMessage.Change? {
        guard let id = change.temporaryID else { return change }
        let (key, store) = id.current
        if let store, context.identityMap.temporaryObjects[change.key] == nil {
            return ChangeMessage.Change(key: key, layout: change.layout, store: store)
        }
        // The parent has the object; a context without a parent has either inserted it, or does not know it.
        return context.upward == nil ? nil : change
    }

    // MARK: - Updates and insertions

    private mutating func mergeUpdate(_ change: ChangeMessage.Change) {
        guard let object = held(change) else { return context.observers.addUnregistered(change) }
        if bringUpToDate(object, change) { refreshed.append(change) }
    }

    private func mergeInsertion(_ change: ChangeMessage.Change) {
        let storeIndex = Int32(change.store.index)
        if let known = change.object(in: context) {
            // The object was fetched before the message came, or it was deleted and exists again.
            bringUpToDate(known, change)
        } else if let id = change.temporaryID {
            context.addToEvent(context.makeForeignFault(id, storeIndex: storeIndex), as: .eventInserted)
        } else {
            let fault = context.makeFault(key: change.key, layout: change.layout, storeIndex: storeIndex)
            context.addToEvent(fault, as: .eventInserted)
        }
    }

    /// Merges the deletion of a row that exists again.
    private func mergeReturn(_ change: ChangeMessage.Change) {
        guard let object = change.object(in: context) else { return context.observers.addUnregistered(change) }
        bringUpToDate(object, change)
    }

    /// The object of a change, if it is in use or has changes.
    ///
    /// If an object is registered but not in use, its row is forgotten, as if the object had been released and made
    /// again.
    private func held(_ change: ChangeMessage.Change) -> NSManagedObject? {
        let (root, storeIndex) = (change.layout.rootNumber, Int32(change.store.index))
        // This comes before the object is looked up, since then this code would hold it.
        guard change.key > 0, context.makeFaultIfForgotten(key: change.key, root: root, storeIndex: storeIndex) else {
            return change.object(in: context)
        }
        let object = change.object(in: context)
        object?.forgetWhatWasRead()
        return nil
    }

    /// Brings an object up to date with a change.
    ///
    /// - Returns: Whether the object was refreshed; `false` if it was refreshed before and was not read since.
    @discardableResult
    private func bringUpToDate(_ object: NSManagedObject, _ change: ChangeMessage.Change) -> Bool {
        guard !object.isInserted else { return false }
        object.noteValues(relationships: change.relationships)
        context.downward.countStateChange()
        if object.flags.contains(.gone) {
            // The deletion was merged or found before, and the row has been inserted again since.
            switch rows.newest(of: object) {
            case .found(let row): context.bringBack(object, row)
            case .missing: return false
            case .unreadable:
                object.flags.remove([.gone, .deleted, .deletePropagated])
                object.turnIntoFault()
            }
        } else if object.isFault {
            // The fault has to be filled with the newest row, and a row that a fetch has brought is not that any more.
            object.forgetWhatWasRead()
        } else {
            switch rows.newest(of: object) {
            case .found(let row):
                object.rebase(onto: row)
                object.awake(fromSnapshotEvents: .refresh)
            case .missing:
                markAsDeleted(object)
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
                context.observers.addUnregistered(change)
                return false
            }
            object.flags.insert(.mergedFault)
        }
        context.addRefreshed(object)
        return true
    }

    // MARK: - Deletions

    private mutating func mergeDeletion(_ change: ChangeMessage.Change) {
        guard let object = held(change) else {
            if let forgotten = change.object(in: context) { context.unregister(forgotten) }
            context.observers.addUnregistered(change)
            unknownRoots.insert(change.layout.rootNumber)
            return
        }
        // The former relationships of a fault without a row are not known.
        if object.isFault, object.current == nil { unknownRoots.insert(change.layout.rootNumber) }
        markAsDeleted(object)
    }

    /// Applies a deletion of the row made elsewhere: the object is deleted here too, and stays readable while it is in
    /// use.
    ///
    /// An object with unsaved changes is left as it is. So the next save finds the conflict, and the changes are not
    /// lost.
    private func markAsDeleted(_ object: NSManagedObject) {
        guard !object.flags.contains(.gone) else { return }
        if object.isUpdated && !object.isDeleted && object.hasPersistentChangedValues { return }
        if object.isFault, let row = object.current, row.version > 0 { object.realise(row) }
        object.discardChanges()
        object.flags.remove(.conflictDetection)
        context.addToEvent(object, as: .eventDeleted)
        object.flags.insert([.deleted, .deletePropagated, .gone])
        context.identityMap.countLoss()
        leaveRelationships(of: object)
        context.changeTracker.addMergedDeletion(of: object)
    }

    /// Removes a deleted object from the relationships that are loaded here.
    ///
    /// The store has done this for the stored relationships already.
    private func leaveRelationships(of object: NSManagedObject) {
        guard !object.isFault else { return }
        for slot in object.layout.referenceSlots {
            guard let inverse = slot.inverse, inverse.isToMany,
                let reference = object.readableRow().reference(slot),
                let owner = context.registered(reference, near: object),
                let index = owner.layout.toMany(named: inverse.name)?.index
            else { continue }
            var changed = SlotSet()
            changed.insert(index)
            owner.noteValues(relationships: changed)
            owner.extras?.toMany[index]?.turnIntoFault()
        }
    }

    /// Makes loaded relationships be loaded again if they may name deleted rows that have no objects here.
    ///
    /// - Complexity: O(registered objects), if there are to-many relationships to such rows at all.
    private func reloadRelationships(to roots: Set<Int>) {
        let layouts = context.model.layouts
        func leadsThere(_ slot: ToManySlot) -> Bool { roots.contains(layouts[slot.destinationNumber - 1].rootNumber) }
        guard layouts.contains(where: { $0.toMany.contains(where: leadsThere) }) else { return }
        context.forEachRegistered { object in
            guard let extras = object.extras else { return }
            var changed = SlotSet()
            for slot in object.layout.toMany where leadsThere(slot) && extras.toMany[slot.index]?.isFault == false {
                changed.insert(slot.index)
            }
            if !changed.isEmpty { object.noteValues(relationships: changed) }
            for slot in object.layout.toMany where leadsThere(slot) { extras.toMany[slot.index]?.turnIntoFault() }
        }
    }

    // MARK: - Afterwards

    private func postDidMerge() {
        context.post(.didMergeIDs) { sets in
            let ids = message.ids
            sets.add(ids)
            if !refreshed.isEmpty {
                let areAll = refreshed.count == message.updated.count
                sets.add(.refreshedObjectIDs, areAll ? ids.updated : ChangedIDs.ids(of: refreshed))
            }
            sets.add(context.queryGenerationToken)
        }
    }

    /// Notes the versions of the merged rows, for saves of children; this context may have no objects for them.
    ///
    /// Nothing is read: if neither an object nor the row cache has the row, nothing is noted.
    private func acceptVersions() {
        guard context.downward.hasChildren else { return }
        for change in message.inserted + message.updated + message.deleted where change.key > 0 {
            if let object = change.object(in: context), !object.isFault, object.flags.isDisjoint(with: .gone) {
                context.acceptRefreshed(object)
            } else if context.upward == nil, let store = context.store(at: Int32(change.store.index)),
                let row = store.cache.knownRow(change.key, root: change.layout.rootNumber)
            {
                context.tree.acceptedVersions.accept(RowName(change), version: row.version)
            }
        }
        for change in message.deleted where change.key > 0 {
            // If the object is not gone, a change was kept in spite of the deletion, or the row exists again.
            let isGone =
                change.object(in: context)?.flags.contains(.gone)
                ?? (change.store.cache.knownRow(change.key, root: change.layout.rootNumber) == nil)
            if isGone { context.tree.acceptedVersions.accept(RowName(change), version: AcceptedVersions.gone) }
        }
    }
}

extension ChangeMessage.Change {
    /// The registered object of the row.
    func object(in context: NSManagedObjectContext) -> NSManagedObject? {
        context.registered(key: key, layout: layout, storeIndex: Int32(store.index))
    }
}
