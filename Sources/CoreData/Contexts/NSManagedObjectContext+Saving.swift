import Foundation

#if FaultPoints
import StrataLocks
#endif

// A save, from top to bottom:
//
//     save → end the event → will-save → willSave() until quiet → validate → change sets → stores
//          ↖ conflicts: the merge policy resolves them, and the change sets are made anew ↙
//          → new rows, permanent keys → didSave() → did-save
//
// Nothing in the context changes before the stores have committed, so a failed save leaves it as it was.

extension NSManagedObjectContext {
    /// Saves all changes to the stores, each store's in one transaction; or, of a child, moves them into the parent.
    ///
    /// A child's save writes nothing: only the root's does, and makes temporary IDs permanent. It runs inside the parent's
    /// scope, so it waits for what the parent is doing; its cost grows with the number of changes, not with what the
    /// parent has registered. Of a context on the coordinator: when this returns, the changes survive the end of the process. When it throws, the context is as it was before, and
    /// the same save succeeds once the cause is gone. Without changes it does nothing.
    ///
    /// - Throws: Validation errors (1550–1699; several in 1560), `managedObjectMerge` (133020) and
    ///   `managedObjectConstraintMerge` (133021) under the error policy (of a child: ``parentConflictPolicy``), errors of the store (134000–134999), such as
    ///   `persistentStoreTimeout` (134090) when others write for too long.
    public func save() throws {
        assertCurrent(#function)
        guard !saving.isSaving else {
            fatalError("CoreData: save() was called while \(describedName) is saving; wait for didSave.")
        }
        processPendingChanges()
        changeTracker.compact()
        checkInvariants()
        guard !changeTracker.objects.isEmpty || !changeTracker.checkedObjects.isEmpty else { return }
        guard let coordinator else {
            throw CocoaError(
                .persistentStoreSave,
                userInfo: [NSLocalizedDescriptionKey: "\(describedName) has no persistentStoreCoordinator to save to."]
            )
        }
        saving.begin()
        defer { saving.end() }
        post(.NSManagedObjectContextWillSave)
        try sendWillSave()
        try validateChanges()
        #if FaultPoints
        try FaultPoint.saveValidated.reach()
        #endif
        let saved = SavedChanges()
        let before = StateBeforeResolution(self)
        do {
            if let upward { try push(upward, before, saved) } else { try write(to: coordinator, before, saved) }
        } catch {
            before.restore()
            guard !saved.isEmpty else { throw error }
            announce(saved)
            throw incompleteSave(error)
        }
        announce(saved)
    }

    // MARK: - Hooks and validation

    /// Sends `willSave()` to every changed object, and again to those that changed in it, until nothing changes.
    private func sendWillSave() throws {
        try propagateDeletes()
        var round = changeTracker.objects
        var rounds = 0
        while !round.isEmpty {
            rounds += 1
            guard rounds <= 1000 else {
                throw CocoaError(
                    .persistentStoreSave,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            """
                        willSave() of \(round.count) objects changes them each time it is called, for the 1000th time. \
                        Compare before you set a property there.
                        """,
                        NSAffectedObjectsErrorKey: round,
                    ]
                )
            }
            for object in round where object.flags.isDisjoint(with: [.gone, .detached]) { object.willSave() }
            if !propagatesDeletesAtEndOfEvent { try propagateDeletes() }
            round = changeTracker.eventObjects
            processPendingChanges()
        }
        try propagateDeletes()
        changeTracker.compact()
    }

    private func validateChanges() throws {
        var errors: [any Error] = []
        for object in changeTracker.objects where !object.flags.contains(.gone) {
            // Only its relationships are changed, and its row may have gone: that is a conflict, not a missing value.
            if object.isFault, object.flags.contains(.updated) { object.fireFault() }
            guard object.flags.isDisjoint(with: [.gone, .inaccessible]) else { continue }
            do {
                if object.flags.contains(.deleted) {
                    if !object.flags.contains(.inserted) { try object.validateForDelete() }
                } else if object.flags.contains(.inserted) {
                    try object.validateForInsert()
                } else if object.flags.contains(.updated) {
                    try object.validateForUpdate()
                }
            } catch {
                errors.append(error)
            }
        }
        try ValidationErrors.throwIfAny(errors)
    }

    // MARK: - Writing

    private func write(
        to coordinator: NSPersistentStoreCoordinator,
        _ before: StateBeforeResolution,
        _ saved: SavedChanges
    ) throws {
        // Each attempt after the first is owed to another writer that was faster, or to a policy that resolves nothing.
        for attempt in 1... {
            try obtainPermanentIDsForStoresOfOnesOwn(coordinator)
            let plan = try SavePlan(self, coordinator)
            // Rows that conflicts bring to light are newer than what the cache may hold.
            let reads = plan.stores.map { ($0.store, $0.store.cache.beginRead()) }
            defer { for (store, read) in reads { store.cache.endRead(read) } }
            let conflicts: [SavePlan.Conflict]
            do {
                conflicts = try ConfinementScope.enter(self) { try coordinator.save(plan) }
            } catch {
                takeOver(plan, saved, before)
                throw error
            }
            takeOver(plan, saved, before)
            guard !conflicts.isEmpty else { return takeOverRest(saved) }
            for conflict in conflicts {
                if let read = reads.first(where: { $0.0 === conflict.store })?.1 { conflict.enterRow(read) }
            }
            try seeingNewest { try resolve(conflicts, before, attempt) }
        }
    }

    // MARK: - Afterwards

    /// Takes the objects of the stores that have committed for clean.
    private func takeOver(_ plan: SavePlan, _ saved: SavedChanges, _ before: StateBeforeResolution) {
        guard !plan.committed.isEmpty else { return }
        let permanent = plan.permanentKeys
        let isAll = plan.committed.count == plan.stores.count
        var rest: [NSManagedObject] = []
        for object in changeTracker.objects {
            let isGone = object.flags.contains(.gone)
            guard !isGone, isAll || plan.committed.contains(Int(plan.slotOfInserted(object))) else {
                rest.append(object)
                continue
            }
            object.flags.remove(.listed)
            before.forget(object)
            takeOver(object, plan, saved)
        }
        changeTracker.keepChanges(rest)
        if permanent.count > 0 {
            for object in saved.objects { object.replaceReferences(permanent) }
        }
        for (store, rows) in plan.reread {
            for row in rows { saved.reread.append(takeReread(row, store)) }
        }
    }

    private func takeOver(_ object: NSManagedObject, _ plan: SavePlan, _ saved: SavedChanges) {
        let flags = object.flags
        if flags.contains(.deleted) {
            if !flags.contains(.inserted) {
                saved.deleted.append(object)
                noteDeleted(object)
            }
            bury(object)
        } else if flags.contains(.inserted) {
            saved.inserted.append(object)
            if object.key < 0, let key = plan.permanentKeys[object.key] {
                if undoManager != nil { identityMap.note(permanentKey: key, for: object.key) }
                refile(object, key: key, storeSlot: plan.slotOfInserted(object))
            }
            noteWritten(object)
            object.commit()
        } else {
            saved.updated.append(object)
            noteWritten(object)
            object.commit()
        }
    }

    /// Ends a save that has succeeded: forgets what a policy has dropped, and what never was.
    private func takeOverRest(_ saved: SavedChanges) {
        for object in changeTracker.objects {
            object.flags.remove(.listed)
            if object.flags.contains(.deleted) { bury(object) } else { object.commit() }
        }
        changeTracker.keepChanges([])
        if model.hasOneWayToMany, !saved.deleted.isEmpty { forgetInOneWayRelationships(saved.deleted) }
        changeTracker.endChecks()
        if undoManager == nil { identityMap.forgetPermanentKeys() }
    }

    /// Takes objects whose deletion is saved out of the relationships that they do not know of.
    private func forgetInOneWayRelationships(_ deleted: [NSManagedObject]) {
        var keysByRoot: [Int32: [Int: Set<Int64>]] = [:]
        for object in deleted {
            keysByRoot[object.storeSlot, default: [:]][object.layout.rootNumber, default: []].insert(object.key)
        }
        forEachRegistered { object in
            guard let keysByRoot = keysByRoot[object.storeSlot] else { return }
            object.forgetInOneWayRelationships { reference in
                keysByRoot[layout(of: reference).rootNumber]?.contains(reference.key) ?? false
            }
        }
    }

    /// Forgets an object whose deletion is saved.
    ///
    /// It stays readable for those who hold it.
    final func bury(_ object: NSManagedObject) {
        object.leaveLooseRelationships()
        unregister(object)
        object.flags.remove([.deleted, .inserted, .updated, .deletePropagated, .ownsRow, .writable])
        object.flags.insert(.gone)
        object.extras?.base = nil
    }

    /// Tells the objects and everybody else what was saved.
    private func announce(_ saved: SavedChanges) {
        #if FaultPoints
        FaultPoint.saveAnnouncing.pass()
        #endif
        advanceGeneration(now: true)
        // Before hooks and handlers, which may save as well: whoever follows is told of saves in their order.
        if upward == nil { coordinator?.announce(saved, from: self) } else { announceInParent(saved) }
        for object in saved.objects { object.didSave() }
        // A handler may save again.
        saving.end()
        post(.didSave) { sets in
            sets.add(.insertedObjects, saved.inserted)
            sets.add(.updatedObjects, saved.updated)
            sets.add(.deletedObjects, saved.deleted)
            sets.add(ChangeMessage(saved, coordinator))
            sets.add(queryGenerationToken)
        }
        post(.didSaveIDs) { sets in
            sets.add(.insertedObjectIDs, idsOf: saved.inserted)
            if saved.reread.isEmpty {
                sets.add(.updatedObjectIDs, idsOf: saved.updated)
            } else {
                // With the rows that the store has changed of its own accord, of which there may be no objects here.
                sets.add(.updatedObjectIDs, idsOf: ChangeMessage(saved, coordinator).updated)
            }
            sets.add(.deletedObjectIDs, idsOf: saved.deleted)
            sets.add(queryGenerationToken)
        }
        announceToChildren(saved)
        processPendingChanges()
        sweepIfGrown()
    }

    private func incompleteSave(_ error: any Error) -> CocoaError {
        CocoaError(
            .persistentStoreIncompleteSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Some stores were saved, and then one was not: \(error.localizedDescription) What was not saved is still unsaved.",
                NSUnderlyingErrorKey: error,
            ]
        )
    }

    // MARK: - Permanent IDs

    /// Makes the IDs of unsaved objects permanent without saving them.
    ///
    /// Objects that have one are left alone.
    ///
    /// - Throws: An error of the store; nothing has changed then.
    public func obtainPermanentIDs(for objects: [NSManagedObject]) throws {
        assertCurrent(#function)
        try ConfinementScope.enter(self) {
            if upward != nil { try obtainPermanentIDsFromParent(for: objects) }
            try makePermanent(objects)
        }
    }

    /// Gives the new objects of stores that are told of objects their IDs.
    private func obtainPermanentIDsForStoresOfOnesOwn(_ coordinator: NSPersistentStoreCoordinator) throws {
        let slots = coordinator.openStores.filter { $0.store.isToldOfObjects && !$0.store.isReadOnly }.map {
            Int32($0.slot)
        }
        guard !slots.isEmpty else { return }
        let unsaved = changeTracker.objects.filter { object in
            object.flags.intersection([.inserted, .deleted, .gone]) == .inserted && object.key < 0
                && slots.contains(storeSlotForInsertion(of: object))
        }
        if !unsaved.isEmpty { try obtainPermanentIDs(for: unsaved) }
    }

    private func makePermanent(_ objects: [NSManagedObject]) throws {
        var seen: Set<ObjectIdentifier> = []
        let unsaved = objects.filter { object in
            object.context === self && object.key < 0 && object.isInserted
                && seen.insert(ObjectIdentifier(object)).inserted
        }
        guard !unsaved.isEmpty, let coordinator else { return }
        var byStore: [Int: [NSManagedObject]] = [:]
        for object in unsaved { byStore[Int(storeSlotForInsertion(of: object)), default: []].append(object) }
        var reserved: [(store: OpenStore, objects: [NSManagedObject], keys: [Int64])] = []
        for (slot, objects) in byStore {
            guard let store = coordinator.openStore(at: slot), store.isOpen else {
                throw CocoaError(
                    .persistentStoreOperation,
                    userInfo: [
                        NSLocalizedDescriptionKey: "No store is open that could hold the objects.",
                        NSAffectedObjectsErrorKey: objects,
                    ]
                )
            }
            reserved.append((store, objects, try store.store.keys(for: objects)))
        }
        var permanent = KeyMap<Int64>(minimumCapacity: unsaved.count)
        (upward?.root ?? self).downward.promotions.promote {
            for (store, objects, keys) in reserved {
                for (object, key) in zip(objects, keys) {
                    let temporary = object.key
                    permanent.set(key, for: temporary)
                    identityMap.note(permanentKey: key, for: temporary)
                    if let id = TemporaryIDs.take(temporary) {
                        object.adopt(store.ids.adopt(id, key: key, store: store))
                    }
                    refile(object, key: key, storeSlot: Int32(store.slot))
                    object.unshareRow()
                    object.current?.setKey(key)
                }
            }
        }
        replaceKeys(permanent, of: unsaved)
    }

    /// Lets everything that names objects by their temporary keys name them by the permanent ones.
    private func replaceKeys(_ permanent: KeyMap<Int64>, of objects: [NSManagedObject]) {
        if model.hasOneWayRelationships {
            // Who points at an object without an inverse can be found only by looking everywhere.
            for object in changeTracker.objects { object.replaceReferences(permanent) }
            return
        }
        var related: [ObjectIdentifier: NSManagedObject] = [:]
        for object in objects {
            for slot in object.layout.referenceSlots {
                guard let other = object.current?.reference(slot).flatMap({ registered($0, near: object) }) else {
                    continue
                }
                related[ObjectIdentifier(other)] = other
            }
            for state in object.extras?.toMany ?? [] {
                for reference in state?.content ?? state.map({ Array($0.added) }) ?? [] {
                    guard let other = registered(reference, near: object) else { continue }
                    related[ObjectIdentifier(other)] = other
                }
            }
        }
        for other in related.values { other.replaceReferences(permanent) }
    }
}

/// What one save has written, over all its attempts and stores.
///
/// Confined to the context's queue.
final class SavedChanges {
    var inserted: [NSManagedObject] = []
    var updated: [NSManagedObject] = []
    var deleted: [NSManagedObject] = []
    /// Rows that the stores have changed on their own meanwhile: derived attributes, rounded values.
    fileprivate(set) var reread: [ChangeMessage.Change] = []

    var objects: [NSManagedObject] { inserted + updated + deleted }
    var isEmpty: Bool { inserted.isEmpty && updated.isEmpty && deleted.isEmpty }
}

/// Errors of several objects as one.
enum ValidationErrors {
    /// Throws one error as itself, several as `validationMultipleErrors` (1560).
    static func throwIfAny(_ errors: [any Error]) throws {
        guard let first = errors.first else { return }
        guard errors.count > 1 else { throw first }
        // An object with several failures has already combined its own.
        let flat = errors.flatMap { error -> [NSError] in
            let error = error as NSError
            guard error.domain == NSCocoaErrorDomain, error.code == NSValidationMultipleErrorsError,
                let details = error.userInfo[NSDetailedErrorsKey] as? [NSError]
            else { return [error] }
            return details
        }
        let some = flat.prefix(3).map(\.localizedDescription).joined(separator: " ")
        throw CocoaError(
            .validationMultipleErrors,
            userInfo: [
                NSLocalizedDescriptionKey: "\(flat.count) values are not valid. \(some)",
                NSDetailedErrorsKey: flat,
            ]
        )
    }
}
