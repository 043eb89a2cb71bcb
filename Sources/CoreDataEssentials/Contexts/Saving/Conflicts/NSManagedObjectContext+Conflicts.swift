import Foundation
import StrataRows

// The five policies resolve conflicts here, by changing rows directly.

extension NSManagedObjectContext {
    // MARK: - Versions

    /// Resolves one conflict of versions.
    final func resolve(_ conflict: NSMergeConflict, _ type: NSMergePolicyType) {
        let object = conflict.sourceObject
        guard let newer = conflict.newerRow else { return resolveDeletedInStore(object, type) }
        let old = object.current
        if object.flags.contains(.deleted) {
            switch type {
            case .mergeByPropertyStoreTrumpMergePolicyType, .rollbackMergePolicyType:
                undoDeletion(of: object, row: newer)
            default:
                object.rebase(onto: newer)
            }
            return
        }
        switch type {
        // An object that is only checked, by `detectConflicts(for:)`, has no changes that could win.
        case _ where !object.flags.contains(.updated): object.rebase(onto: newer)
        case .mergeByPropertyObjectTrumpMergePolicyType: object.rebase(onto: newer)
        case .mergeByPropertyStoreTrumpMergePolicyType:
            object.rebase(onto: newer, storeWins: true)
            yieldOrders(of: object)
            // An object without any changes left is not saved, and is not reported as saved.
            if !object.hasPersistentChangedValues { object.discardChanges() }
        case .overwriteMergePolicyType:
            object.overwrite(newer)
            overwriteMembers(of: object)
        case .rollbackMergePolicyType: rollBack(object, to: newer)
        case .errorMergePolicyType: return
        }
        updateInverses(of: object, from: old)
        addToEvent(object, as: .eventRefreshed)
        object.awake(fromSnapshotEvents: .mergePolicy)
    }

    /// Resolves a conflict over a deleted row whose object is changed, deleted or referred to in this context.
    final func resolveDeletedInStore(_ object: NSManagedObject, _ type: NSMergePolicyType) {
        let storeWins = type == .mergeByPropertyStoreTrumpMergePolicyType || type == .rollbackMergePolicyType
        // An object that was never read cannot be restored.
        let isUnknown = object.isFault || object.flags.contains(.inaccessible)
        if storeWins || isUnknown || object.flags.contains(.deleted) {
            object.discardChanges()
            object.flags.insert([.deleted, .deletePropagated, .gone])
            identityMap.countLoss()
            addToEvent(object, as: .eventDeleted)
        } else {
            // The values in memory win: the row is inserted again under the same key, which no other row can have got.
            // Another context or process may do the same.
            if saving.isSaving, let base = object.baseRow { saving.revivedBases[RowName(object)] = base }
            if !object.flags.contains(.ownsRow), let row = object.current {
                object.current = row.copy()
                object.flags.insert(.ownsRow)
            }
            object.unshareRow()
            let known = object.extras?.base?.version ?? object.current?.version ?? 0
            let form = store(at: object.storeIndex)?.rows.versionForm ?? .counted
            object.current?.setVersion(Self.revivedVersion(after: RowVersion.shown(known, form)))
            object.extras?.base = nil
            object.flags.remove([.updated, .conflictDetection])
            object.flags.insert(.inserted)
            changeTracker.addToSave(object)
        }
    }

    /// Turns an insertion into an update if the object's deleted row has been inserted again elsewhere.
    ///
    /// - Parameters:
    ///   - object: The object, inserted under the key of the row.
    ///   - stored: The row as it is now.
    final func turnIntoUpdate(_ object: NSManagedObject, of stored: Row) {
        object.flags.remove(.inserted)
        object.flags.insert(.updated)
        // If the object was restored in an earlier save or in a child, its changes are not known any more. Then all
        // values that differ from the stored row count as changed.
        object.writableExtras.base = saving.revivedBases[RowName(object)] ?? stored
        changeTracker.addToSave(object)
    }

    /// The version with which a row that is inserted again continues.
    ///
    /// It is higher than all versions that the row has had. Otherwise another context that holds the row in a version
    /// after `known` could take an equal new version for its own. The number of versions after `known` is lost with the
    /// row, so the clock is used, in microseconds.
    private static func revivedVersion(after known: Int64) -> Int64 {
        max(known, Int64(Date().timeIntervalSince1970 * 1_000_000))
    }

    // MARK: - Relationships

    /// Updates the other ends of to-one relationships that a resolution has changed.
    private func updateInverses(of object: NSManagedObject, from old: Row?) {
        guard let old, let new = object.current else { return }
        for slot in object.layout.referenceSlots {
            guard let inverse = slot.inverse else { continue }
            let (former, latter) = (old.reference(slot), new.reference(slot))
            guard former != latter else { continue }
            if let former, let end = registered(former, near: object) { end.dropInverse(inverse, of: object) }
            if let latter, let end = registered(latter, near: object) { end.addInverse(inverse, of: object) }
        }
    }

    /// Replaces orders that were changed on both sides by the stored ones; members that were added here stay, at the
    /// end.
    private func yieldOrders(of object: NSManagedObject) {
        guard let extras = object.extras else { return }
        for slot in object.layout.toMany where slot.isOrdered && !slot.isTransient {
            guard extras.toMany[slot.index]?.hasChanges == true,
                let stored = storedMembers(of: slot, ownedBy: object)
            else { continue }
            extras.toMany[slot.index]?.yieldOrder(to: stored)
        }
    }

    /// Makes loaded relationships be stored as they are in memory, whatever was added or removed elsewhere.
    private func overwriteMembers(of object: NSManagedObject) {
        guard let extras = object.extras else { return }
        for slot in object.layout.toMany where !slot.isTransient {
            guard let content = extras.toMany[slot.index]?.content else { continue }
            let members = objects(for: content, near: object)
            if let inverse = slot.inverse, inverse.isToMany {
                // The other ends may have been loaded before they were changed elsewhere; then no difference would be
                // left to store.
                let stored = storedMembers(of: slot, ownedBy: object) ?? []
                for reference in Set(content).symmetricDifference(stored) {
                    registered(reference, near: object)?.reloadMembers(of: inverse)
                }
            }
            extras.toMany[slot.index]?.turnIntoFault()
            object.setMembers(members, slot)
        }
    }

    /// Resets an object to the stored values.
    ///
    /// Changed members of one-to-many relationships are kept: those changes belong to the members' rows, which are not
    /// reset.
    private func rollBack(_ object: NSManagedObject, to newer: Row) {
        var kept: [(index: Int, state: ToManyState)] = []
        for slot in object.layout.toMany {
            guard var state = object.extras?.toMany[slot.index], state.hasChanges,
                let inverse = slot.inverse
            else { continue }
            guard inverse.isToMany else {
                state.forgetOrder()
                kept.append((slot.index, state))
                continue
            }
            for member in state.added { registered(member, near: object)?.dropInverse(inverse, of: object) }
            for member in state.removed { registered(member, near: object)?.addInverse(inverse, of: object) }
        }
        object.discardChanges()
        object.current = newer
        object.extras?.reloadRelationships()
        for (index, state) in kept { object.extras?.toMany[index] = state }
        if !kept.isEmpty { object.flags.insert(.updated) }
    }

    // MARK: - Constraints

    /// Resolves one conflict of a uniqueness constraint.
    ///
    /// New objects are merged into the object that survives: the stored object if there is one, else the first.
    /// Relationships to the merged objects lead to the survivor afterwards. A *stored* object that was changed into a
    /// duplicate gets its old values back if the store wins. If memory wins, the other stored object would have to be
    /// deleted, so the conflict is left unresolved.
    ///
    /// - Returns: Whether the conflict was resolved.
    final func resolve(_ conflict: NSConstraintConflict, _ type: NSMergePolicyType) -> Bool {
        let storeWins = type == .mergeByPropertyStoreTrumpMergePolicyType || type == .rollbackMergePolicyType
        var losers = conflict.conflictingObjects.filter { $0.context === self && !$0.flags.contains(.deleted) }
        let survivor: NSManagedObject
        if let database = conflict.databaseObject {
            survivor = database
            if let row = conflict.databaseRow { bringUpToDate(database, row) }
        } else {
            // Stored objects cannot be merged into others, so one of them survives, else the object that was inserted
            // first.
            guard let first = losers.first(where: { !$0.isInserted }) ?? losers.first else { return true }
            survivor = first
        }
        losers.removeAll { $0 === survivor }
        for loser in losers {
            if loser.isInserted {
                merge(loser, into: survivor, storeWins: storeWins, wholly: type == .overwriteMergePolicyType)
            } else {
                guard storeWins else { return false }
                revert(conflict.constraint, of: loser, wholly: type == .rollbackMergePolicyType)
            }
        }
        return true
    }

    private func bringUpToDate(_ object: NSManagedObject, _ row: Row) {
        if object.isFault { object.realise(row) } else { object.rebase(onto: row) }
        addToEvent(object, as: .eventRefreshed)
    }

    private func revert(_ constraint: [String], of object: NSManagedObject, wholly: Bool) {
        guard let base = object.extras?.base, object.flags.contains(.ownsRow) else { return }
        let old = object.current
        if wholly {
            rollBack(object, to: base)
        } else {
            for name in constraint {
                guard let slot = object.layout.slot(named: name) else { continue }
                object.copyValue(of: slot, from: base)
            }
        }
        updateInverses(of: object, from: old)
        addToEvent(object, as: .eventRefreshed)
        object.awake(fromSnapshotEvents: .mergePolicy)
    }

    /// Merges a new object into the survivor and removes it.
    private func merge(_ loser: NSManagedObject, into survivor: NSManagedObject, storeWins: Bool, wholly: Bool) {
        if !storeWins, let values = loser.current {
            let defaults = loser.layout.defaults
            for slot in loser.layout.slots where slot.index < survivor.layout.slots.count {
                let own = survivor.layout.slots[slot.index]
                guard own.name == slot.name, !survivor.readableRow().hasSameValue(as: values, in: slot) else {
                    continue
                }
                // If properties are merged one by one, a default value of the new object does not count.
                if !wholly, values.hasSameValue(as: defaults, in: slot) { continue }
                if slot.kind == .reference {
                    survivor.setToOne(loser.toOne(slot), own)
                } else {
                    survivor.copyValue(of: own, from: values)
                }
            }
        }
        moveRelationships(of: loser, to: survivor)
        drop(loser)
    }

    /// Moves all relationships of `loser` to `survivor`.
    private func moveRelationships(of loser: NSManagedObject, to survivor: NSManagedObject) {
        for slot in loser.layout.toMany {
            guard let own = survivor.layout.toMany(named: slot.name) else { continue }
            for member in loser.members(slot) {
                loser.removeMember(member, from: slot)
                survivor.addMember(member, to: own)
            }
        }
        for slot in loser.layout.referenceSlots { loser.setToOne(nil, slot) }
        if model.hasOneWayRelationships { saving.survivors[loser.reference] = survivor }
    }

    /// Replaces merged objects by their survivors in relationships without an inverse.
    ///
    /// The merged objects were never saved, so only changed objects can refer to them. One pass handles all of them.
    final func followSurvivors() {
        guard !saving.survivors.isEmpty else { return }
        func survivor(of reference: ObjectReference) -> NSManagedObject? {
            var last = saving.survivors[reference]
            while let next = last.flatMap({ saving.survivors[$0.reference] }) { last = next }
            return last
        }
        for object in changeTracker.objects where object.context === self && object.flags.isDisjoint(with: .gone) {
            for slot in object.layout.toMany where slot.inverse == nil {
                for lost in object.extras?.toMany[slot.index]?.added ?? [] {
                    guard let survivor = survivor(of: lost), let loser = registered(lost, near: object) else {
                        continue
                    }
                    object.removeMember(loser, from: slot)
                    object.addMember(survivor, to: slot)
                }
            }
            guard !object.isFault else { continue }
            for slot in object.layout.referenceSlots where slot.inverse == nil {
                guard let lost = object.readableRow().reference(slot), let survivor = survivor(of: lost) else {
                    continue
                }
                object.setToOne(survivor, slot)
            }
        }
    }

    /// Removes an unsaved object from the context for good.
    private func drop(_ object: NSManagedObject) {
        object.flags.remove([.inserted, .updated])
        object.flags.insert([.deleted, .deletePropagated, .gone])
        identityMap.countLoss()
        addToEvent(object, as: .eventDeleted)
    }
}

extension NSManagedObject {
    /// Bases the changes on a newer row; if both sides changed a property, the newer row's value wins.
    final func rebase(onto row: Row, storeWins: Bool) {
        guard storeWins, flags.contains(.ownsRow), let base = extras?.base, let old = current else {
            return rebase(onto: row)
        }
        let merged = row.copy()
        for slot in layout.slots
        where !base.hasSameValue(as: old, in: slot) && base.hasSameValue(as: row, in: slot) {
            merged.take(slot, from: old)
        }
        current = merged
        extras?.base = row
        extras?.forgetDecoded()
        extras?.reloadRelationships()
    }

    /// Bases the object on a newer row and keeps all values in memory, changed or not.
    final func overwrite(_ row: Row) {
        guard let old = current else { return }
        if !flags.contains(.ownsRow) {
            current = old.copy()
            flags.insert(.ownsRow)
        }
        writableExtras.base = row
        unshareRow()
        current?.setVersion(row.version)
    }
}
