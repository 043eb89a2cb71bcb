import Foundation
import StrataRows

/// The resolution of one conflict of versions, or over a deleted row, as a merge policy of a type decides.
///
/// The five policies change the row of the object directly, and then the relationships that follow from it. A value
/// lives for one conflict, inside the context's scope.
struct VersionResolution {
    private let object: NSManagedObject
    private let type: NSMergePolicyType
    private let context: NSManagedObjectContext

    init(of object: NSManagedObject, by type: NSMergePolicyType, in context: NSManagedObjectContext) {
        self.object = object
        self.type = type
        self.context = context
    }

    /// Resolves the conflict with a newer row; `nil` if the row was deleted.
    func run(_ newer: Row?) {
        guard let newer else { return restoreOrDelete() }
        let old = object.current
        if object.flags.contains(.deleted) {
            switch type {
            case .mergeByPropertyStoreTrumpMergePolicyType, .rollbackMergePolicyType:
                undoDeletion(row: newer)
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
            yieldOrders()
            // An object without any changes left is not saved, and is not reported as saved.
            if !object.hasPersistentChangedValues { object.discardChanges() }
        case .overwriteMergePolicyType:
            object.overwrite(newer)
            overwriteMembers()
        case .rollbackMergePolicyType: rollBack(to: newer)
        case .errorMergePolicyType: return
        }
        end(from: old)
    }

    /// Updates what follows from the row, after a resolution has changed it.
    ///
    /// - Parameter old: The row that the object had before.
    func end(from old: Row?) {
        updateInverses(from: old)
        context.addToEvent(object, as: .eventRefreshed)
        object.awake(fromSnapshotEvents: .mergePolicy)
    }

    // MARK: - Deleted rows

    /// Resolves a conflict over a deleted row whose object is changed, deleted or referred to in the context.
    func restoreOrDelete() {
        let storeWins = type == .mergeByPropertyStoreTrumpMergePolicyType || type == .rollbackMergePolicyType
        // An object that was never read cannot be restored.
        let isUnknown = object.isFault || object.flags.contains(.inaccessible)
        if storeWins || isUnknown || object.flags.contains(.deleted) {
            object.discardChanges()
            object.flags.insert([.deleted, .deletePropagated, .gone])
            context.identityMap.countLoss()
            context.addToEvent(object, as: .eventDeleted)
        } else {
            // The values in memory win: the row is inserted again under the same key, which no other row can have got.
            // Another context or process may do the same.
            if context.saving.isSaving, let base = object.baseRow {
                context.saving.revivedBases[RowName(object)] = base
            }
            if !object.flags.contains(.ownsRow), let row = object.current {
                object.current = row.copy()
                object.flags.insert(.ownsRow)
            }
            object.unshareRow()
            let known = object.extras?.base?.version ?? object.current?.version ?? 0
            let form = context.store(at: object.storeIndex)?.rows.versionForm ?? .counted
            object.current?.setVersion(Self.revivedVersion(after: RowVersion.shown(known, form)))
            object.extras?.base = nil
            object.flags.remove([.updated, .conflictDetection])
            object.flags.insert(.inserted)
            context.changeTracker.addToSave(object)
        }
    }

    /// The version with which a row that is inserted again continues.
    ///
    /// It is higher than all versions that the row has had. Otherwise another context that holds the row in a version
    /// after `known` could take an equal new version for its own. The number of versions after `known` is lost with the
    /// row, so the clock is used, in microseconds.
    private static func revivedVersion(after known: Int64) -> Int64 {
        max(known, Int64(Date().timeIntervalSince1970 * 1_000_000))
    }

    // MARK: - Deleted objects

    /// Undoes a deletion that lost a conflict, together with its effects through delete rules.
    ///
    /// The object and those that were deleted with it get their stored values again. The same holds for relationships
    /// to them, unless they were changed since.
    private func undoDeletion(row: Row) {
        context.undelete(object)
        object.discardChanges()
        object.current = row
        object.extras?.reloadRelationships()
        context.addToEvent(object, as: .eventRefreshed)
        for slot in object.layout.referenceSlots {
            guard let reference = row.reference(slot), let relationship = slot.relationship else { continue }
            restore(relationship, to: reference)
        }
        for slot in object.layout.toMany where !slot.isTransient {
            for reference in context.storedMembers(of: slot, ownedBy: object) ?? [] {
                restore(slot.relationship, to: reference)
            }
        }
        object.awake(fromSnapshotEvents: .mergePolicy)
    }

    private func restore(_ relationship: Relationship, to reference: ObjectReference) {
        // A delete rule cannot have changed an object that is not registered.
        guard let destination = context.registered(reference, near: object), destination.flags.isDisjoint(with: .gone)
        else {
            return
        }
        if destination.flags.contains(.deleted) {
            guard relationship.deleteRule == .cascade, let base = destination.baseRow else { return }
            VersionResolution(of: destination, by: type, in: context).undoDeletion(row: base)
        } else if relationship.deleteRule == .nullify, let inverse = relationship.inverse {
            undoNullification(of: inverse, of: destination)
        }
    }

    /// Restores the reference from `destination` to the object if it is stored and the relationship is empty now.
    private func undoNullification(of inverse: Relationship, of destination: NSManagedObject) {
        switch destination.layout.places[inverse.name] {
        case .toMany(let index):
            guard destination.extras?.toMany[index]?.removed.contains(object.reference) == true else { return }
            destination.changeToMany(destination.layout.toMany[index]) { $0.putBack(object.reference) }
        case .slot(let index):
            let slot = destination.layout.slots[index]
            guard destination.flags.contains(.ownsRow), destination.current?.reference(slot) == nil,
                destination.extras?.base?.reference(slot) == object.reference
            else { return }
            destination.writableRow().setReference(object.reference, slot)
        default: break
        }
    }

    // MARK: - Relationships

    /// Updates the other ends of to-one relationships that a resolution has changed.
    private func updateInverses(from old: Row?) {
        guard let old, let new = object.current else { return }
        for slot in object.layout.referenceSlots {
            guard let inverse = slot.inverse else { continue }
            let (former, latter) = (old.reference(slot), new.reference(slot))
            guard former != latter else { continue }
            if let former, let end = context.registered(former, near: object) { end.dropInverse(inverse, of: object) }
            if let latter, let end = context.registered(latter, near: object) { end.addInverse(inverse, of: object) }
        }
    }

    /// Replaces orders that were changed on both sides by the stored ones; members that were added here stay, at the
    /// end.
    private func yieldOrders() {
        guard let extras = object.extras else { return }
        for slot in object.layout.toMany where slot.isOrdered && !slot.isTransient {
            guard extras.toMany[slot.index]?.hasChanges == true,
                let stored = context.storedMembers(of: slot, ownedBy: object)
            else { continue }
            extras.toMany[slot.index]?.yieldOrder(to: stored)
        }
    }

    /// Makes loaded relationships be stored as they are in memory, whatever was added or removed elsewhere.
    private func overwriteMembers() {
        guard let extras = object.extras else { return }
        for slot in object.layout.toMany where !slot.isTransient {
            guard let content = extras.toMany[slot.index]?.content else { continue }
            let members = context.objects(for: content, near: object)
            if let inverse = slot.inverse, inverse.isToMany {
                // The other ends may have been loaded before they were changed elsewhere; then no difference would be
                // left to store.
                let stored = context.storedMembers(of: slot, ownedBy: object) ?? []
                for reference in Set(content).symmetricDifference(stored) {
                    context.registered(reference, near: object)?.reloadMembers(of: inverse)
                }
            }
            extras.toMany[slot.index]?.turnIntoFault()
            object.setMembers(members, slot)
        }
    }

    /// Resets the object to the stored values.
    ///
    /// Changed members of one-to-many relationships are kept: those changes belong to the members' rows, which are not
    /// reset.
    func rollBack(to newer: Row) {
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
            for member in state.added { context.registered(member, near: object)?.dropInverse(inverse, of: object) }
            for member in state.removed { context.registered(member, near: object)?.addInverse(inverse, of: object) }
        }
        object.discardChanges()
        object.current = newer
        object.extras?.reloadRelationships()
        for (index, state) in kept { object.extras?.toMany[index] = state }
        if !kept.isEmpty { object.flags.insert(.updated) }
    }
}

extension NSManagedObject {
    /// Bases the changes on a newer row; if both sides changed a property, the newer row's value wins.
    final func rebase(onto row: Row, storeWins: Bool) {
        guard storeWins, flags.contains(.ownsRow), let base = extras?.base, let old = current else {
            return rebase(onto: row)
        }
        let merged = row.copy()
        let (changedHere, changedElsewhere) = (changedSlotSet(), base.slots(differingFrom: row))
        for slot in layout.slots
        where changedHere.contains(slot.index) && !changedElsewhere.contains(slot.index) {
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
        let base = baseRow ?? old
        if !flags.contains(.ownsRow) {
            current = old.copy()
            flags.insert(.ownsRow)
        }
        writableExtras.base = row
        unshareRow()
        current?.setVersion(row.version)
        keepOneToOne(from: base, to: row)
    }
}
