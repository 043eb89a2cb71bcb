import Foundation
import StrataRows

// From what a store has refused to what a merge policy is asked, and back.

extension NSManagedObjectContext {
    /// Lets the merge policy resolve what a store has refused.
    ///
    /// It is given a hundred attempts for uniqueness constraints, which do not go away by themselves, and a thousand
    /// for versions. Each of these was overtaken by somebody who was faster, as happens for long if several others do
    /// nothing but save the same row.
    ///
    /// - Parameters:
    ///   - conflicts: What the store has refused.
    ///   - before: Keeps everything that it takes to put the context back.
    ///   - attempt: How often the save has been tried.
    /// - Throws: What the policy throws, and what it has left unresolved in the end.
    final func resolve(_ conflicts: [SavePlan.Conflict], _ before: StateBeforeResolution, _ attempt: Int) throws {
        var versions: [NSMergeConflict] = []
        var constraints: [NSConstraintConflict] = []
        for conflict in conflicts {
            switch conflict.kind {
            case .version(let layout, let key, _, let persisted):
                guard let object = registered(key: key, layout: layout, storeIndex: Int32(conflict.store.index)) else {
                    continue
                }
                before.keep(object)
                if object.isInserted, let persisted { takeForChange(object, of: persisted) }
                guard let base = object.baseRow else { continue }
                versions.append(
                    NSMergeConflict(source: object, base: base, newer: persisted, cached: conflict.cached)
                )
            case .missing(let target, _):
                versions.append(missingTarget(target, conflict, before))
            case .constraint(let entity, let attributes, let keys, let persisted):
                constraints.append(
                    constraintConflict(attributes, keys, entity, persisted, Int32(conflict.store.index), before)
                )
            }
        }
        if attempt >= (versions.isEmpty ? 100 : 1_000) {
            if !versions.isEmpty { throw NSMergePolicy.error(.managedObjectMerge, versions + constraints) }
            throw NSMergePolicy.error(.managedObjectConstraintMerge, constraints)
        }
        let policy = settings.mergePolicy
        if policy.mergeType != .errorMergePolicyType || type(of: policy) != NSMergePolicy.self {
            // What hangs on the objects in question may change with them.
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

    /// The conflict over a row that a changed relationship leads to and that somebody else has deleted: one of the
    /// deleted object itself, as if it had been named to `detectConflicts(for:)`.
    private func missingTarget(
        _ target: ObjectReference,
        _ conflict: SavePlan.Conflict,
        _ before: StateBeforeResolution
    ) -> NSMergeConflict {
        let layout = layout(of: target)
        let storeIndex = Int32(conflict.store.index)
        let object =
            registered(key: target.key, layout: layout, storeIndex: storeIndex)
            ?? makeFault(key: target.key, layout: layout, storeIndex: storeIndex)
        before.keep(object)
        // What was read of it before is all there is.
        if object.isFault, let row = object.current ?? conflict.cached, row.version > 0 { object.realise(row) }
        return NSMergeConflict(
            source: object,
            base: object.isFault ? nil : object.baseRow,
            newer: nil,
            cached: conflict.cached
        )
    }

    private func constraintConflict(
        _ attributes: [String],
        _ keys: [Int64],
        _ layout: EntityLayout,
        _ persisted: Row?,
        _ storeIndex: Int32,
        _ before: StateBeforeResolution
    ) -> NSConstraintConflict {
        let objects = keys.compactMap { registered(key: $0, layout: layout, storeIndex: storeIndex) }
        objects.forEach { before.keep($0) }
        let stored = persisted.map { row in
            registered(key: row.key, layout: row.layout, storeIndex: storeIndex)
                ?? makeFault(key: row.key, layout: row.layout, storeIndex: storeIndex)
        }
        if let stored { before.keep(stored) }
        return NSConstraintConflict(
            attributes,
            stored,
            persisted.flatMap { row in stored?.snapshot(of: row) },
            objects,
            objects.map { object in object.baseRow.map { object.snapshot(of: $0) } ?? [:] },
            persisted
        )
    }

    /// Makes sure that an object which a policy has dealt with is saved upon the newer version.
    ///
    /// A policy of the user's may have left the object as it was, or changed it: what is in memory then counts.
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

    /// Lets changes forget objects that stay deleted.
    ///
    /// - Throws: `managedObjectMerge` (133020) if a relationship that is not optional leads to one.
    private func dropReferences(to lost: [RowName: NSMergeConflict]) throws {
        guard !lost.isEmpty else { return }
        for object in changeTracker.objects where object.flags.isDisjoint(with: [.gone, .deleted]) {
            let storeIndex = object.storeIndex >= 0 ? object.storeIndex : storeIndexForInsertion(of: object)
            func conflict(_ reference: ObjectReference, _ destination: Int) -> NSMergeConflict? {
                let root = model.layouts[destination - 1].rootNumber
                return lost[RowName(storeIndex: storeIndex, root: root, key: reference.key)]
            }
            for slot in object.layout.toMany {
                let isFewer =
                    object.extras?.toMany[slot.index]?.forget { conflict($0, slot.destinationNumber) != nil } ?? false
                if isFewer { noteEvent(object, .eventRefreshed) }
            }
            guard !object.isFault else { continue }
            let changed = object.changedSlotSet()
            for slot in object.layout.referenceSlots where object.isInserted || changed.contains(slot.index) {
                guard let target = object.readableRow().reference(slot),
                    let conflict = conflict(target, slot.destinationNumber)
                else { continue }
                guard slot.isOptional else { throw NSMergePolicy.error(.managedObjectMerge, [conflict]) }
                object.writableRow().setReference(nil, slot)
                noteEvent(object, .eventRefreshed)
            }
        }
    }
}
