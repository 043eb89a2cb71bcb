import Foundation
import StrataRows

// Turns conflicts that a store has found into conflicts for a merge policy, and applies the outcome.

extension NSManagedObjectContext {
    /// Lets the merge policy resolve the conflicts that a store has found.
    ///
    /// The number of attempts is limited. Conflicts of uniqueness constraints do not go away by themselves, so they get
    /// 100 attempts. Conflicts of versions get 1,000: in each attempt another writer was faster, and that can go on for
    /// long if several writers keep saving the same row.
    ///
    /// - Parameters:
    ///   - conflicts: The conflicts that the store has found.
    ///   - before: Keeps the state of all objects that change, so that it can be restored.
    ///   - attempt: The number of attempts of the save so far.
    /// - Throws: The error that the policy throws, and an error for conflicts that are still unresolved after the last
    ///   attempt.
    final func resolve(_ conflicts: [SavePlan.Conflict], before: StateBeforeResolution, attempt: Int) throws {
        var versions: [NSMergeConflict] = []
        var constraints: [NSConstraintConflict] = []
        for conflict in conflicts {
            switch conflict.kind {
            case .version(let layout, let key, _, let persisted):
                guard let object = registered(key: key, layout: layout, storeIndex: Int32(conflict.store.index)) else {
                    continue
                }
                before.keep(object)
                if object.isInserted, let persisted { turnIntoUpdate(object, of: persisted) }
                guard let base = object.baseRow else { continue }
                versions.append(
                    NSMergeConflict(source: object, base: base, newer: persisted, cached: conflict.cached)
                )
            case .missing(let target, _):
                versions.append(missingTarget(target, in: conflict, before: before))
            case .constraint(let entity, let attributes, let keys, let persisted):
                constraints.append(
                    constraintConflict(
                        attributes: attributes,
                        keys: keys,
                        layout: entity,
                        persisted: persisted,
                        storeIndex: Int32(conflict.store.index),
                        before: before
                    )
                )
            }
        }
        if attempt >= (versions.isEmpty ? 100 : 1_000) {
            if !versions.isEmpty { throw NSMergePolicy.error(.managedObjectMerge, versions + constraints) }
            throw NSMergePolicy.error(.managedObjectConstraintMerge, constraints)
        }
        let policy = settings.mergePolicy
        if policy.mergeType != .errorMergePolicyType || type(of: policy) != NSMergePolicy.self {
            // A policy may also change objects that are related to the conflicting ones.
            changeTracker.objects.forEach { before.keep($0) }
        }
        undoManager?.disableUndoRegistration()
        defer { undoManager?.enableUndoRegistration() }
        defer { saving.survivors = [:] }
        try policy.resolve(mergeConflicts: versions + constraints)
        followSurvivors()
        var lost: [RowName: NSMergeConflict] = [:]
        for conflict in versions {
            acceptResolution(of: conflict)
            let object = conflict.sourceObject
            guard conflict.newerRow == nil, object.context === self, object.flags.contains(.gone) else { continue }
            lost[RowName(object)] = conflict
        }
        try dropReferences(to: lost)
        changeTracker.compact()
    }

    /// The conflict over the deleted destination of a changed relationship.
    ///
    /// It is a conflict of the deleted object itself, as if that had been passed to `detectConflicts(for:)`.
    private func missingTarget(
        _ target: ObjectReference,
        in conflict: SavePlan.Conflict,
        before: StateBeforeResolution
    ) -> NSMergeConflict {
        let layout = layout(of: target)
        let storeIndex = Int32(conflict.store.index)
        let object =
            registered(key: target.key, layout: layout, storeIndex: storeIndex)
            ?? makeFault(key: target.key, layout: layout, storeIndex: storeIndex)
        before.keep(object)
        // The row is deleted, so only the data that was read before is available.
        if object.isFault, let row = object.current ?? conflict.cached, row.version > 0 { object.realise(row) }
        return NSMergeConflict(
            source: object,
            base: object.isFault ? nil : object.baseRow,
            newer: nil,
            cached: conflict.cached
        )
    }

    private func constraintConflict(
        attributes: [String],
        keys: [Int64],
        layout: EntityLayout,
        persisted: Row?,
        storeIndex: Int32,
        before: StateBeforeResolution
    ) -> NSConstraintConflict {
        let objects = keys.compactMap { registered(key: $0, layout: layout, storeIndex: storeIndex) }
        objects.forEach { before.keep($0) }
        let stored = persisted.map { row in
            registered(key: row.key, layout: row.layout, storeIndex: storeIndex)
                ?? makeFault(key: row.key, layout: row.layout, storeIndex: storeIndex)
        }
        if let stored { before.keep(stored) }
        return NSConstraintConflict(
            constraint: attributes,
            databaseObject: stored,
            databaseSnapshot: persisted.flatMap { row in stored?.snapshot(of: row) },
            objects: objects,
            snapshots: objects.map { object in object.baseRow.map { object.snapshot(of: $0) } ?? [:] },
            row: persisted
        )
    }

    /// Bases an object that a policy has dealt with on the newer version, so that the next attempt can save it.
    ///
    /// A policy of the user may have changed the object or left it as it was: in both cases the values in memory count.
    private func acceptResolution(of conflict: NSMergeConflict) {
        let object = conflict.sourceObject
        guard object.context === self else { return }
        guard let newer = conflict.newerRow else {
            if object.flags.isDisjoint(with: [.gone, .inserted]) {
                resolveDeletedInStore(object, .overwriteMergePolicyType)
            }
            return
        }
        guard object.flags.isDisjoint(with: .gone) else { return }
        if object.flags.contains(.ownsRow) {
            guard let base = object.extras?.base, base.version < newer.version else { return }
            object.extras?.base = newer
        } else if let current = object.current, current.version < newer.version {
            if object.flags.contains(.deleted) || !object.flags.contains(.updated) {
                object.current = newer
            } else {
                object.overwrite(newer)
            }
        }
    }

    /// Removes objects that stay deleted from the changed relationships of other objects.
    ///
    /// - Throws: `managedObjectMerge` (133020) if a relationship that is not optional leads to one.
    private func dropReferences(to lost: [RowName: NSMergeConflict]) throws {
        guard !lost.isEmpty else { return }
        for object in changeTracker.objects where object.flags.isDisjoint(with: [.gone, .deleted]) {
            let storeIndex = object.storeIndex >= 0 ? object.storeIndex : storeIndexForInsertion(of: object)
            func conflict(_ reference: ObjectReference, _ destination: Int) -> NSMergeConflict? {
                let root = model.layouts[destination - 1].rootNumber
                return lost[RowName(store: storeIndex, root: root, key: reference.key)]
            }
            for slot in object.layout.toMany {
                let isFewer =
                    object.extras?.toMany[slot.index]?.forget { conflict($0, slot.destinationNumber) != nil } ?? false
                if isFewer { addToEvent(object, as: .eventRefreshed) }
            }
            guard !object.isFault else { continue }
            let changed = object.changedSlotSet()
            for slot in object.layout.referenceSlots where object.isInserted || changed.contains(slot.index) {
                guard let target = object.readableRow().reference(slot),
                    let conflict = conflict(target, slot.destinationNumber)
                else { continue }
                guard slot.isOptional else { throw NSMergePolicy.error(.managedObjectMerge, [conflict]) }
                object.writableRow().setReference(nil, slot)
                addToEvent(object, as: .eventRefreshed)
            }
        }
    }
}
