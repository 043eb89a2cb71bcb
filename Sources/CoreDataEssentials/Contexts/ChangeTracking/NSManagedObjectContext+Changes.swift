import Foundation
import StrataRows

extension NSManagedObjectContext {
    // MARK: - Inserting

    /// Does the work of ``insert(_:)``, which subclasses may override.
    final func insertObject(_ object: NSManagedObject) {
        if let owner = object.context {
            guard owner === self else {
                fatalError(
                    "CoreData: \(object.objectID) belongs to \(owner.describedName), so it cannot be inserted into \(describedName)."
                )
            }
            guard object.flags.contains(.deleted) else { return }
            let wasApplied = object.flags.contains(.deletePropagated)
            undelete(object)
            if wasApplied { restoreRelationships(of: object) }
            return
        }
        guard !object.flags.contains(.gone) else {
            fatalError(
                "CoreData: a deleted object of entity \(object.entity.name ?? "") cannot be inserted again; make a new one."
            )
        }
        registerInsertion(of: object)
        let companions = insertCompanions(of: object)
        object.awakeFromInsert()
        for companion in companions { companion.awakeFromInsert() }
    }

    private func registerInsertion(of object: NSManagedObject) {
        object.layout.unmanagedEntity._withUnsafeGuaranteedRef { $0.registerObjectClass(type(of: object)) }
        if object.key != 0 { object.forgetFormerRelationships() }
        registerUnsaved(object)
        let values = object.current ?? object.layout.defaults.copy()
        values.setKey(object.key)
        object.current = values
        object.flags.insert([.inserted, .ownsRow, .eventInserted, .writable])
        list(object)
        recordForUndo(object, before: .absent)
    }

    /// Inserts the objects without a context that relationships of a new object lead to, directly or through others.
    ///
    /// - Returns: The objects, whose hooks have not been called yet.
    final func insertCompanions(of object: NSManagedObject) -> [NSManagedObject] {
        guard object.extras?.companions.isEmpty == false else { return [] }
        var inserted: [NSManagedObject] = []
        var rest = object.endCompanionship(in: self)
        while let next = rest.popLast() {
            guard next.context == nil else { continue }
            registerInsertion(of: next)
            inserted.append(next)
            rest += next.endCompanionship(in: self)
        }
        return inserted
    }

    /// Does the work of ``assign(_:to:)``, which subclasses may override.
    final func chooseStore(_ store: NSPersistentStore, for object: Any) {
        guard let object = object as? NSManagedObject, object.context === self else {
            fatalError("CoreData: assign(_:to:) takes an object of \(describedName).")
        }
        guard object.isInserted,
            object.key < 0 || object.storeIndex == coordinator?.openStore(of: store).map({ Int32($0.index) })
        else {
            fatalError("CoreData: \(object.objectID) is stored already; an object cannot move to another store.")
        }
        guard let open = coordinator?.openStore(of: store), open.entityNumbers.contains(object.layout.number) else {
            fatalError(
                "CoreData: the store \(store.url?.placeName ?? store.type) cannot hold entity \(object.entity.name ?? "")."
            )
        }
        object.storeIndex = Int32(open.index)
    }

    /// The store that an unsaved object will be saved into.
    package final func storeIndexForInsertion(of object: NSManagedObject) -> Int32 {
        if object.storeIndex >= 0 { return object.storeIndex }
        return Int32(coordinator?.storeForInsertion(of: object.layout)?.index ?? 0)
    }

    // MARK: - Deleting

    /// Does the work of ``delete(_:)``, which subclasses may override.
    final func deleteObject(_ object: NSManagedObject) {
        guard object.context === self else {
            fatalError(
                "CoreData: \(object.objectID) does not belong to \(describedName), so it cannot be deleted there."
            )
        }
        guard object.flags.isDisjoint(with: [.gone]) else { return }
        object.prepareForDeletion()
        guard !object.flags.contains(.deleted) else { return }
        recordForUndo(object, before: nil)
        changeTracker.addFreshDeletion(of: object)
        object.flags.insert([.deleted, .eventDeleted])
        list(object)
    }

    /// Takes back a deletion that was not saved.
    final func undelete(_ object: NSManagedObject) {
        recordForUndo(object, before: nil)
        object.flags.remove([.deleted, .eventDeleted, .deletePropagated])
        addToEvent(object, as: object.isInserted ? .eventInserted : .eventUpdated)
    }

    /// Adds an object again to the relationships from which delete rules have removed it, after its deletion was taken
    /// back.
    ///
    /// - Complexity: O(number of related objects). It reads them.
    final func restoreRelationships(of object: NSManagedObject) {
        func restore(_ relationship: Relationship?, _ others: [NSManagedObject]) {
            guard let relationship, let inverse = relationship.inverse,
                relationship.deleteRule == .nullify || relationship.deleteRule == .cascade
            else { return }
            for other in others {
                let pair = RelatedPair(object, relationship, other, inverse)
                pair.agree(pair.areRelatedAgain)
            }
        }
        for slot in object.layout.referenceSlots { restore(slot.relationship, [object.toOne(slot)].compactMap { $0 }) }
        for slot in object.layout.toMany where !slot.isTransient && slot.inverse != nil {
            restore(slot.relationship, object.members(slot))
        }
    }

    // MARK: - Keeping track

    /// Notes that an object's values or relationships have changed.
    final func markAsUpdated(_ object: NSManagedObject) {
        if object.flags.isDisjoint(with: [.inserted, .updated]) {
            recordForUndo(object, before: nil)
            object.flags.insert(.updated)
        } else if undoManager != nil {
            recordForUndo(object, before: nil)
        }
        if object.flags.isDisjoint(with: [.eventInserted]) { object.flags.insert(.eventUpdated) }
        list(object)
    }

    /// Notes a change that objects-did-change will report.
    final func addToEvent(_ object: NSManagedObject, as flag: ObjectFlags) {
        downward.countStateChange()
        object.flags.insert(flag)
        if changeTracker.addToEvent(object) { scheduleEndOfEvent() }
    }

    /// Notes that an object was refreshed, unless objects-did-change will report it as inserted, updated or deleted.
    final func addRefreshed(_ object: NSManagedObject) {
        if object.flags.isDisjoint(with: [.eventInserted, .eventUpdated, .eventDeleted]) {
            addToEvent(object, as: .eventRefreshed)
        }
    }

    /// Adds a changed object to those to be saved, and to the event.
    @inline(__always)
    final func list(_ object: NSManagedObject) {
        downward.countStateChange()
        if changeTracker.addToSaveAndEvent(object) { scheduleEndOfEvent() }
    }

    /// Does the work of ``detectConflicts(for:)``, which subclasses may override.
    final func checkVersion(of object: NSManagedObject) {
        guard object.context === self, isStored(object) else { return }
        if object.isFault { object.fireFault() }
        guard object.flags.isDisjoint(with: [.conflictDetection, .gone]) else { return }
        changeTracker.addToVersionChecks(object)
    }
}
