import Foundation
import StrataRows

// The save of a child: its changes move one level up instead of being written.

extension NSManagedObjectContext {
    /// Moves all changes into the parent, or none.
    ///
    /// - Parameters:
    ///   - upward: The link to the parent.
    ///   - before: Keeps the state of all objects that change, so that it can be restored.
    ///   - saved: Receives the objects that were saved.
    ///   - runResolution: Runs a resolution of conflicts, and then the hooks of the objects that it has changed.
    /// - Throws: The error that ``parentConflictPolicy`` throws; errors of a store from which a fault of the parent
    ///   could not be read; errors of `runResolution`.
    final func push(
        through upward: ParentLink,
        before: StateBeforeResolution,
        recordingIn saved: SavedChanges,
        resolvingWith runResolution: (() throws -> Void) throws -> Void
    ) throws {
        // A further attempt is needed if a sibling was faster.
        for _ in 0..<100 {
            let conflicts: [NSMergeConflict] = try visitParent(upward) { parent in
                let save = try ChildSave(of: self, into: parent)
                if parentConflictPolicy != nil {
                    let conflicts = try save.conflicts()
                    guard conflicts.isEmpty else { return conflicts }
                }
                let pairs = save.apply()
                markAsPushed(save, recordingIn: saved)
                for (object, target) in pairs { update(object, from: target, in: parent) }
                // Handlers then see both contexts in their state after the save.
                parent.endEvent(isMerge: false)
                return []
            }
            guard !conflicts.isEmpty else { return endPush() }
            try runResolution { try resolve(inTree: conflicts, before) }
        }
        throw CocoaError.described(
            .managedObjectMerge,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "The parentConflictPolicy of \(describedName) resolved conflicts a hundred times, and there still were some."
            ]
        )
    }

    /// Marks the changed objects as unchanged: the parent has the changes now.
    private func markAsPushed(_ save: ChildSave, recordingIn saved: SavedChanges) {
        let lost = Set(save.lost.map(ObjectIdentifier.init))
        for object in changeTracker.objects {
            object.flags.remove(.listed)
            let flags = object.flags
            if flags.contains(.gone) {
                // A policy has dropped the object, or its deletion was merged.
                bury(object)
            } else if flags.contains(.deleted) {
                if !flags.contains(.inserted) { saved.deleted.append(object) }
                saved.neverSaved.insertIfNeverSaved(object)
                upward?.foreignIDs[object.key] = nil
                bury(object)
            } else if lost.contains(ObjectIdentifier(object)) {
                // The parent has deleted the object, so its changes do not apply any more.
                addToEvent(object, as: .eventDeleted)
                identityMap.countLoss()
                bury(object)
            } else {
                if flags.contains(.inserted) { saved.inserted.append(object) } else { saved.updated.append(object) }
                if object.key < 0 { upward?.foreignIDs[object.key] = object.objectID }
                if object.changesNameUnsaved { upward?.addMention(object) }
                object.commit()
            }
        }
        changeTracker.keepChanges([])
        forgetNeverSaved(saved)
    }

    /// Updates an object from the parent's object, if the parent's row differs from that of the child.
    private func update(
        _ object: NSManagedObject,
        from target: NSManagedObject,
        in parent: NSManagedObjectContext
    ) {
        guard object.current?.buffer !== target.current?.buffer, !object.isFault,
            object.context === self, let merged = parent.snapshot(ofLoaded: target)
        else { return }
        object.current = merged.row
        addForeign(merged.temporaries)
        if merged.row.namesUnsaved { upward?.addMention(object) }
    }

    private func endPush() {
        changeTracker.endChecks()
        if undoManager == nil { identityMap.forgetPermanentKeys() }
    }

    // MARK: - Conflicts

    private func resolve(inTree conflicts: [NSMergeConflict], _ before: StateBeforeResolution) throws {
        guard let policy = parentConflictPolicy else { return }
        for conflict in conflicts { before.keep(conflict.sourceObject) }
        try ConflictResolution.ask(policy, about: conflicts, in: self, before)
        for conflict in conflicts { acceptResolution(inTree: conflict) }
        changeTracker.compact()
    }

    /// Bases an object that a policy has left unchanged on the parent's row, so that the next attempt can save it.
    private func acceptResolution(inTree conflict: NSMergeConflict) {
        let object = conflict.sourceObject
        guard let base = conflict.baseRow, object.context === self, object.flags.isDisjoint(with: .gone) else { return }
        guard let newer = conflict.newerRow else {
            if !object.isInserted {
                VersionResolution(of: object, by: .overwriteMergePolicyType, in: self).restoreOrDelete()
            }
            return
        }
        if object.flags.contains(.ownsRow) {
            guard object.extras?.base?.buffer === base.buffer else { return }
            object.extras?.base = newer
            object.keepOneToOne(from: base, to: newer)
        } else if object.current?.buffer === base.buffer {
            object.current = newer
        }
    }

    /// Notifies followers of the changes that were saved into the parent.
    final func announceInParent(_ message: ChangeMessage) {
        guard let upward else { return }
        saving.collector?.add(message)
        observers.committed(message)
        upward.parent.downward.notifyFollowers(message, except: self, saving.collector)
    }

    /// Notifies the children that follow.
    ///
    /// This comes after handlers, which may wait for a child, because a child that merges waits for this context.
    final func announceToChildren(_ message: ChangeMessage) {
        guard downward.hasChildren else { return }
        downward.notifyFollowers(message, saving.collector)
    }

    // MARK: - Permanent IDs

    /// Makes the IDs of objects permanent that only contexts above have; these contexts do it.
    final func obtainPermanentIDsFromParent(for objects: [NSManagedObject]) throws {
        guard let upward else { return }
        let ids = objects.filter { $0.context === self && $0.key < 0 && !$0.isInserted }.map(\.objectID)
        guard !ids.isEmpty else { return }
        try visitParent(upward) { parent in
            try parent.givePermanentIDs(to: ids.filter(\.isTemporaryID).map { parent.objectOrFault(with: $0) })
        }
        replaceForeignTemporaryKeys()
    }
}

extension NSManagedObject {
    /// Whether the unsaved changes of the object name an object that is in no store.
    fileprivate final var changesNameUnsaved: Bool {
        if flags.contains(.ownsRow), let current {
            for slot in layout.referenceSlots {
                if let reference = current.reference(slot), reference.key < 0 { return true }
            }
        }
        return extras?.toMany.contains { $0?.addsUnsaved == true } ?? false
    }
}
