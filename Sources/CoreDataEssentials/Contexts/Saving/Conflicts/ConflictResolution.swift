import StrataRows

/// One resolution of the conflicts of a save by a merge policy.
///
///     what the store has found → conflicts of versions and of constraints → limit of attempts → the policy resolves
///         → follow merged objects → base objects on the newer rows → leave deleted objects
///
/// All objects that change are kept before, so that a save which fails restores them. A value lives for one attempt of
/// a save, inside the context's scope.
struct ConflictResolution {
    private let context: NSManagedObjectContext
    private let before: StateBeforeResolution
    private var versions: [NSMergeConflict] = []
    private var constraints: [NSConstraintConflict] = []

    /// Makes a resolution of conflicts that a store has found.
    ///
    /// - Parameters:
    ///   - conflicts: The conflicts.
    ///   - context: The context that saves.
    ///   - before: Keeps the state of all objects that change, so that it can be restored.
    init(of conflicts: [SavePlan.Conflict], in context: NSManagedObjectContext, before: StateBeforeResolution) {
        self.context = context
        self.before = before
        for conflict in conflicts { add(conflict) }
    }

    /// Lets the merge policy of the context resolve the conflicts.
    ///
    /// The number of attempts is limited. Conflicts of uniqueness constraints do not go away by themselves, so they get
    /// 100 attempts. Conflicts of versions get 1,000: in each attempt another writer was faster, and that can go on for
    /// long if several writers keep saving the same row.
    ///
    /// - Parameter attempt: The number of attempts of the save so far.
    /// - Throws: The error that the policy throws, and an error for conflicts that are still unresolved after the last
    ///   attempt.
    func run(attempt: Int) throws {
        if attempt >= (versions.isEmpty ? 100 : 1_000) {
            if !versions.isEmpty { throw NSMergePolicy.error(.managedObjectMerge, versions + constraints) }
            throw NSMergePolicy.error(.managedObjectConstraintMerge, constraints)
        }
        defer { context.saving.survivors = [:] }
        try Self.ask(context.settings.mergePolicy, about: versions + constraints, in: context, before)
        ConstraintResolution.followSurvivors(in: context)
        versions.forEach(accept)
        try dropReferences()
        context.changeTracker.compact()
    }

    /// Lets a policy resolve conflicts, after the state of all objects that it may change was kept.
    static func ask(
        _ policy: NSMergePolicy,
        about conflicts: [NSObject],
        in context: NSManagedObjectContext,
        _ before: StateBeforeResolution
    ) throws {
        if policy.mergeType != .errorMergePolicyType || type(of: policy) != NSMergePolicy.self {
            // A policy may also change objects that are related to the conflicting ones.
            context.changeTracker.objects.forEach { before.keep($0) }
        }
        try policy.resolve(mergeConflicts: conflicts)
    }

    // MARK: - Conflicts for the policy

    private mutating func add(_ conflict: SavePlan.Conflict) {
        let storeIndex = Int32(conflict.store.index)
        switch conflict.kind {
        case .version(let layout, let key, _, let persisted):
            guard let object = context.registered(key: key, layout: layout, storeIndex: storeIndex) else { return }
            before.keep(object)
            if object.isInserted, let persisted { turnIntoUpdate(object, of: persisted) }
            guard let base = object.baseRow else { return }
            versions.append(NSMergeConflict(source: object, base: base, newer: persisted, cached: conflict.cached))
        case .missing(let target, _):
            versions.append(missingTarget(target, in: conflict))
        case .constraint(let layout, let attributes, let keys, let persisted):
            let objects = keys.compactMap { context.registered(key: $0, layout: layout, storeIndex: storeIndex) }
            objects.forEach { before.keep($0) }
            let stored = persisted.map { known($0.key, $0.layout, storeIndex) }
            constraints.append(
                NSConstraintConflict(
                    constraint: attributes,
                    databaseObject: stored,
                    databaseSnapshot: persisted.flatMap { row in stored?.snapshot(of: row) },
                    objects: objects,
                    snapshots: objects.map { object in object.baseRow.map { object.snapshot(of: $0) } ?? [:] },
                    row: persisted
                )
            )
        }
    }

    /// The registered object of a row, or a new fault, with its state kept.
    private func known(_ key: Int64, _ layout: EntityLayout, _ storeIndex: Int32) -> NSManagedObject {
        let object =
            context.registered(key: key, layout: layout, storeIndex: storeIndex)
            ?? context.makeFault(key: key, layout: layout, storeIndex: storeIndex)
        before.keep(object)
        return object
    }

    /// The conflict over the deleted destination of a changed relationship.
    ///
    /// It is a conflict of the deleted object itself, as if that had been passed to `detectConflicts(for:)`.
    private func missingTarget(_ target: ObjectReference, in conflict: SavePlan.Conflict) -> NSMergeConflict {
        let object = known(target.key, context.layout(of: target), Int32(conflict.store.index))
        // The row is deleted, so only the data that was read before is available.
        if object.isFault, let row = object.current ?? conflict.cached, row.version > 0 { object.realise(row) }
        return NSMergeConflict(
            source: object,
            base: object.isFault ? nil : object.baseRow,
            newer: nil,
            cached: conflict.cached
        )
    }

    /// Turns an insertion into an update if the object's deleted row has been inserted again elsewhere.
    ///
    /// - Parameters:
    ///   - object: The object, inserted under the key of the row.
    ///   - stored: The row as it is now.
    private func turnIntoUpdate(_ object: NSManagedObject, of stored: Row) {
        object.flags.remove(.inserted)
        object.flags.insert(.updated)
        // If the object was restored in an earlier save or in a child, its changes are not known any more. Then all
        // values that differ from the stored row count as changed.
        object.writableExtras.base = context.saving.revivedBases[RowName(object)] ?? stored
        context.changeTracker.addToSave(object)
    }

    // MARK: - Afterwards

    /// Bases an object that a policy has dealt with on the newer version, so that the next attempt can save it.
    ///
    /// A policy of the user may have changed the object or left it as it was: in both cases the values in memory count.
    private func accept(_ conflict: NSMergeConflict) {
        let object = conflict.sourceObject
        guard object.context === context else { return }
        guard let newer = conflict.newerRow else {
            if object.flags.isDisjoint(with: [.gone, .inserted]) {
                VersionResolution(of: object, by: .overwriteMergePolicyType, in: context).restoreOrDelete()
            }
            return
        }
        guard object.flags.isDisjoint(with: .gone) else { return }
        if object.flags.contains(.ownsRow) {
            guard let base = object.extras?.base, base.version < newer.version else { return }
            object.extras?.base = newer
            object.keepOneToOne(from: base, to: newer)
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
    private func dropReferences() throws {
        var lost: [RowName: NSMergeConflict] = [:]
        for conflict in versions where conflict.newerRow == nil {
            let object = conflict.sourceObject
            if object.context === context, object.flags.contains(.gone) { lost[RowName(object)] = conflict }
        }
        guard !lost.isEmpty else { return }
        for object in context.changeTracker.objects where object.flags.isDisjoint(with: [.gone, .deleted]) {
            let storeIndex = object.storeIndex >= 0 ? object.storeIndex : context.storeIndexForInsertion(of: object)
            func conflict(_ reference: ObjectReference, _ destination: Int) -> NSMergeConflict? {
                let root = context.model.layouts[destination - 1].rootNumber
                return lost[RowName(store: storeIndex, root: root, key: reference.key)]
            }
            for slot in object.layout.toMany {
                let isFewer =
                    object.extras?.toMany[slot.index]?.forget { conflict($0, slot.destinationNumber) != nil } ?? false
                if isFewer { context.addToEvent(object, as: .eventRefreshed) }
            }
            guard !object.isFault else { continue }
            let changed = object.changedSlotSet()
            for slot in object.layout.referenceSlots where object.isInserted || changed.contains(slot.index) {
                guard let target = object.readableRow().reference(slot),
                    let conflict = conflict(target, slot.destinationNumber)
                else { continue }
                guard slot.isOptional else { throw NSMergePolicy.error(.managedObjectMerge, [conflict]) }
                object.writableRow().setReference(nil, slot)
                context.addToEvent(object, as: .eventRefreshed)
            }
        }
    }
}
