import StrataRows

/// The resolution of one conflict of a uniqueness constraint, as a merge policy of a type decides.
///
/// New objects are merged into the object that survives: the stored object if there is one, else the first.
/// Relationships to the merged objects lead to the survivor afterwards. A *stored* object that was changed into a
/// duplicate gets its old values back if the store wins. If memory wins, the other stored object would have to be
/// deleted, so the conflict is left unresolved. A value lives for one conflict, inside the context's scope.
struct ConstraintResolution {
    private let conflict: NSConstraintConflict
    private let type: NSMergePolicyType
    private let countsDefaults: Bool
    private let context: NSManagedObjectContext

    init(of conflict: NSConstraintConflict, by policy: NSMergePolicy, in context: NSManagedObjectContext) {
        self.conflict = conflict
        type = policy.mergeType
        countsDefaults = policy.countsDefaults
        self.context = context
    }

    private var storeWins: Bool {
        type == .mergeByPropertyStoreTrumpMergePolicyType || type == .rollbackMergePolicyType
    }

    /// Resolves the conflict.
    ///
    /// - Returns: Whether it was resolved.
    func run() -> Bool {
        var losers = conflict.conflictingObjects.filter { $0.context === context && !$0.flags.contains(.deleted) }
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
                merge(loser, into: survivor)
            } else {
                guard storeWins else { return false }
                revert(loser)
            }
        }
        return true
    }

    private func bringUpToDate(_ object: NSManagedObject, _ row: Row) {
        if object.isFault { object.realise(row) } else { object.rebase(onto: row) }
        context.addToEvent(object, as: .eventRefreshed)
    }

    private func revert(_ object: NSManagedObject) {
        guard let base = object.extras?.base, object.flags.contains(.ownsRow) else { return }
        let old = object.current
        let resolution = VersionResolution(of: object, by: type, in: context)
        if type == .rollbackMergePolicyType {
            resolution.rollBack(to: base)
        } else {
            for name in conflict.constraint {
                guard let slot = object.layout.slot(named: name) else { continue }
                object.copyValue(of: slot, from: base)
            }
        }
        resolution.end(from: old)
    }

    /// Merges a new object into the survivor and removes it.
    private func merge(_ loser: NSManagedObject, into survivor: NSManagedObject) {
        if !storeWins, let values = loser.current {
            // If properties are merged one by one, a default value of the new object does not count. In a policy whose
            // objects set all values, only nil does not count.
            let unset = countsDefaults ? Row(layout: loser.layout, key: 0) : loser.layout.defaults
            let counting = values.slots(differingFrom: unset)
            for slot in loser.layout.slots where slot.index < survivor.layout.slots.count {
                let own = survivor.layout.slots[slot.index]
                guard own.name == slot.name, !survivor.readableRow().hasSameValue(as: values, in: slot) else {
                    continue
                }
                if type != .overwriteMergePolicyType, !counting.contains(slot.index) { continue }
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
        if context.model.hasOneWayRelationships { context.saving.survivors[loser.reference] = survivor }
    }

    /// Removes an unsaved object from the context for good.
    private func drop(_ object: NSManagedObject) {
        object.flags.remove([.inserted, .updated])
        object.flags.insert([.deleted, .deletePropagated, .gone])
        context.identityMap.countLoss()
        context.addToEvent(object, as: .eventDeleted)
    }

    /// Replaces merged objects by their survivors in relationships without an inverse.
    ///
    /// The merged objects were never saved, so only changed objects can refer to them. One pass handles all of them.
    static func followSurvivors(in context: NSManagedObjectContext) {
        let survivors = context.saving.survivors
        guard !survivors.isEmpty else { return }
        func survivor(of reference: ObjectReference) -> NSManagedObject? {
            var last = survivors[reference]
            while let next = last.flatMap({ survivors[$0.reference] }) { last = next }
            return last
        }
        for object in context.changeTracker.objects
        where object.context === context && object.flags.isDisjoint(with: .gone) {
            for slot in object.layout.toMany where slot.inverse == nil {
                for lost in object.extras?.toMany[slot.index]?.added ?? [] {
                    guard let survivor = survivor(of: lost), let loser = context.registered(lost, near: object) else {
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
}
