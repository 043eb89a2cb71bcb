import Foundation
import StrataRows

// The save of a child: instead of being written, changes go one level up.

extension NSManagedObjectContext {
    /// Moves all changes into the parent, all or none.
    ///
    /// - Parameters:
    ///   - upward: The way to the parent.
    ///   - before: Keeps everything that it takes to put the context back.
    ///   - saved: Takes what was saved.
    ///   - settle: Runs a resolution of conflicts, and the hooks of what that has changed.
    /// - Throws: What ``parentConflictPolicy`` throws; errors of a store that a fault of the parent could not be read
    ///   from; what `settle` throws.
    final func push(
        _ upward: ParentLink,
        _ before: StateBeforeResolution,
        _ saved: SavedChanges,
        settle: (() throws -> Void) throws -> Void
    ) throws {
        // Each attempt after the first is owed to a sibling that was faster.
        for _ in 0..<100 {
            let conflicts: [NSMergeConflict] = try visitParent(upward) { parent in
                let save = try ChildSave(of: self, into: parent)
                if parentConflictPolicy != nil {
                    let conflicts = try save.conflicts()
                    guard conflicts.isEmpty else { return conflicts }
                }
                let pairs = save.apply()
                takeOver(save, saved)
                for (object, target) in pairs { takeBack(object, from: target, in: parent) }
                // Handlers see both contexts as they are after the save.
                parent.processPendingChanges()
                return []
            }
            guard !conflicts.isEmpty else { return endPush() }
            try settle { try resolve(inTree: conflicts, before) }
        }
        throw CocoaError.described(
            .managedObjectMerge,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The parentConflictPolicy of \(describedName) resolved conflicts a hundred times, and there still were some."
            ]
        )
    }

    /// Takes the changed objects for clean: the parent has them now.
    private func takeOver(_ save: ChildSave, _ saved: SavedChanges) {
        let lost = Set(save.lost.map(ObjectIdentifier.init))
        for object in changeTracker.objects {
            object.flags.remove(.listed)
            let flags = object.flags
            if flags.contains(.gone) {
                // A policy has given it up, or its deletion was merged.
                bury(object)
            } else if flags.contains(.deleted) {
                if !flags.contains(.inserted) { saved.deleted.append(object) }
                saved.neverSaved.note(object)
                upward?.foreignIDs[object.key] = nil
                bury(object)
            } else if lost.contains(ObjectIdentifier(object)) {
                // The parent has deleted it: there is nothing to change any more.
                noteEvent(object, .eventDeleted)
                identityMap.noteLoss()
                bury(object)
            } else {
                if flags.contains(.inserted) { saved.inserted.append(object) } else { saved.updated.append(object) }
                if object.key < 0 { upward?.foreignIDs[object.key] = object.objectID }
                if object.changesNameUnsaved { upward?.noteMention(object) }
                object.commit()
            }
        }
        changeTracker.keepChanges([])
        forgetNeverSaved(saved)
    }

    /// Lets an object show what the parent has made of it, where that is not what the child had.
    private func takeBack(
        _ object: NSManagedObject,
        from target: NSManagedObject,
        in parent: NSManagedObjectContext
    ) {
        guard object.current?.buffer !== target.current?.buffer, !object.isFault,
            object.context === self, let merged = parent.snapshot(ofLoaded: target)
        else { return }
        object.current = merged.row
        noteForeign(merged.temporaries)
        if merged.row.namesUnsaved { upward?.noteMention(object) }
    }

    private func endPush() {
        changeTracker.endChecks()
        if undoManager == nil { identityMap.forgetPermanentKeys() }
    }

    // MARK: - Conflicts

    private func resolve(inTree conflicts: [NSMergeConflict], _ before: StateBeforeResolution) throws {
        guard let policy = parentConflictPolicy else { return }
        for conflict in conflicts { before.keep(conflict.sourceObject) }
        if policy.mergeType != .errorMergePolicyType || type(of: policy) != NSMergePolicy.self {
            // What hangs on the objects in question may change with them.
            changeTracker.objects.forEach { before.keep($0) }
        }
        undoManager?.disableUndoRegistration()
        defer { undoManager?.enableUndoRegistration() }
        try policy.resolve(mergeConflicts: conflicts)
        for conflict in conflicts { acceptResolution(inTree: conflict) }
        changeTracker.compact()
    }

    /// Makes sure that an object which a policy has left as it was is saved upon the parent's row.
    private func acceptResolution(inTree conflict: NSMergeConflict) {
        let object = conflict.sourceObject
        guard let base = conflict.baseRow, object.context === self, object.flags.isDisjoint(with: .gone) else { return }
        guard let newer = conflict.newerRow else {
            if !object.isInserted { resolveDeletedInStore(object, .overwriteMergePolicyType) }
            return
        }
        if object.flags.contains(.ownsRow) {
            if object.extras?.base?.buffer === base.buffer { object.extras?.base = newer }
        } else if object.current?.buffer === base.buffer {
            object.current = newer
        }
    }

    /// Tells those that follow what was saved into the parent.
    final func announceInParent(_ saved: SavedChanges) {
        guard let upward else { return }
        let message = ChangeMessage(saved, coordinator)
        saving.collector?.add(message)
        observers.committed(message)
        upward.parent.downward.tellFollowers(message, except: self, saving.collector)
    }

    /// Tells the children that follow.
    ///
    /// After handlers, which may wait for a child: one that merges waits for this context.
    final func announceToChildren(_ saved: SavedChanges) {
        guard downward.hasChildren else { return }
        downward.tellFollowers(ChangeMessage(saved, coordinator), saving.collector)
    }

    // MARK: - Permanent IDs

    /// Lets the contexts above make the IDs of objects permanent that they have not saved.
    final func obtainPermanentIDsFromParent(for objects: [NSManagedObject]) throws {
        guard let upward else { return }
        let ids = objects.filter { $0.context === self && $0.key < 0 && !$0.isInserted }.map(\.objectID)
        guard !ids.isEmpty else { return }
        try visitParent(upward) { parent in
            try parent.obtainPermanentIDs(for: ids.filter(\.isTemporaryID).map { parent.object(with: $0) })
        }
        settleForeign()
    }
}

extension NSManagedObject {
    /// Whether what the object is about to save names an object that is in no store.
    fileprivate final var changesNameUnsaved: Bool {
        if flags.contains(.ownsRow), let current {
            for slot in layout.referenceSlots {
                if let reference = current.reference(slot), reference.key < 0 { return true }
            }
        }
        return extras?.toMany.contains { $0?.addsUnsaved == true } ?? false
    }
}
