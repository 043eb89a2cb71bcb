import Foundation
import StrataLocks
import StrataRows

extension NSManagedObjectContext {
    /// Does the work of ``save()``, which subclasses may override.
    final func saveChanges() throws {
        guard !saving.isSaving else {
            fatalError("CoreData: save() was called while \(describedName) is saving; wait for didSave.")
        }
        saving.shownSets = ShownSets()
        defer { saving.shownSets = nil }
        endEvent(isMerge: false)
        if !discardedSides.isEmpty { settleDiscardedSides() }
        changeTracker.compact()
        checkInvariants()
        guard let coordinator else {
            // A context that has no place to save to posts no notification.
            guard hasSomethingToSave else { return }
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [NSLocalizedDescriptionKey: "\(describedName) has no persistentStoreCoordinator to save to."]
            ).marked(.request)
        }
        if isOneTooMany { throw coordinator.tooManyContexts(self) }
        // The child's save ends in its parent, so only a root enters the coordinator's gate.
        if upward == nil { guard coordinator.gate.enter() else { throw coordinator.closedError } }
        defer { if upward == nil { coordinator.gate.leave() } }
        saving.begin()
        defer { saving.end() }
        let save = ContextSave(self, coordinator)
        try measured(.save, entity: nil, entersScope: false, rows: { save.savedCount }) {
            if saving.doubt != nil { try ContextSave(self, coordinator).resolveDoubt() }
            try save.run()
        }
    }

    /// Whether there are changes to be saved, or versions to be checked.
    package final var hasSomethingToSave: Bool {
        !changeTracker.objects.isEmpty || !changeTracker.checkedObjects.isEmpty
    }
}

/// One save of one context, from the will-save notification to the notifications after the save.
///
/// The code follows the course of a save:
///
///     save → end the event → will-save (→ did-save, if there is nothing to save) → willSave() until quiet → validate → change sets → stores
///          ↖ conflicts: the merge policy resolves them; willSave() and validation of the objects that this changed ↙
///          → new rows, permanent keys → contexts that follow are informed → didSave() → did-save
///
/// Before the stores have committed, only hooks and merge policies change the context. If the save fails, then what a
/// policy has changed is taken back (``StateBeforeResolution``).
///
/// A value lives for one call of ``NSManagedObjectContext/save()``, inside the context's scope.
struct ContextSave {
    let context: NSManagedObjectContext
    private let coordinator: NSPersistentStoreCoordinator
    /// The objects that were saved so far, over all attempts and stores.
    let saved = SavedChanges()

    init(_ context: NSManagedObjectContext, _ coordinator: NSPersistentStoreCoordinator) {
        self.context = context
        self.coordinator = coordinator
    }

    /// The number of objects that were saved so far.
    var savedCount: Int { saved.inserted.count + saved.updated.count + saved.deleted.count }

    /// Saves the changes of the context; the current event has ended before.
    func run() throws {
        context.post(.willSave)
        guard context.hasSomethingToSave else {
            if context.upward == nil { try ConfinementScope.enter(context) { try coordinator.saveMetadata() } }
            return post(ChangeMessage())
        }
        try sendWillSave()
        try validate(context.changeTracker.objects)
        try FaultPoint.saveValidated.reach()
        do {
            try writeOrRestore()
        } catch {
            guard !saved.isEmpty else { throw error }
            announce()
            throw incompleteSave(error)
        }
        context.checkInvariants()
        announce()
    }

    /// Hands all changes over to the stores or to the parent; if that fails, then what merge policies have changed is
    /// taken back.
    private func writeOrRestore() throws {
        let before = StateBeforeResolution(context)
        do {
            if let upward = context.upward {
                try context.push(through: upward, before: before, recordingIn: saved) { try runResolution($0) }
            } else {
                try write(to: coordinator, before)
            }
        } catch {
            before.restore()
            throw error
        }
        context.identityMap.letGoOfMemoryOfUnsaved()
    }

    // MARK: - Hooks and validation

    /// Sends `willSave()` to all changed objects, then to those that this has changed, until nothing changes any more.
    private func sendWillSave() throws {
        try context.propagateDeletes()
        var round = context.changeTracker.objects
        var rounds = 0
        while !round.isEmpty {
            rounds += 1
            guard rounds <= Self.mostRounds else { throw endlessRounds(round) }
            round.forEachBorrowed { object in
                if object.flags.isDisjoint(with: [.gone, .detached]) { object.willSave() }
            }
            // This comes first, so that what the delete rules change is in the round.
            try context.propagateDeletes()
            round = context.changeTracker.eventObjects
            context.endEvent(isMerge: false)
        }
        try context.propagateDeletes()
        context.changeTracker.compact()
    }

    /// The greatest number of rounds of `willSave()` in one save.
    private static let mostRounds = 1000

    private func endlessRounds(_ objects: [NSManagedObject]) -> CocoaError {
        CocoaError.described(
            .persistentStoreSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    """
                willSave() of \(objects.count) objects changes them each time it is called, for the 1000th time. \
                Compare before you set a property there.
                """,
                NSAffectedObjectsErrorKey: objects,
            ]
        ).marked(.request)
    }

    /// Resolves conflicts, then calls `willSave()` of the objects that the resolution has changed, and validates them.
    ///
    /// Without that, the save could store wrong values: values that follow from others, such as a number of members
    /// that `willSave()` computes, and values that no validation rule allows.
    ///
    /// The resolution belongs to the event that is going on, and does not end it: the save may have to take its changes
    /// back, so no observer is notified of them yet. The changes are not registered for undo either. This includes
    /// changes that hooks make.
    private func runResolution(_ resolve: () throws -> Void) throws {
        context.undoManager?.disableUndoRegistration()
        defer { context.undoManager?.enableUndoRegistration() }
        var event = context.changeTracker.setEventAside()
        defer { context.changeTracker.resumeEvent(with: event) }
        // If the resolution could not read what is stored, the save fails.
        try context.failingWithReads(resolve)
        var changed: [NSManagedObject] = []
        var rounds = 0
        while true {
            let listed = context.changeTracker.setEventAside()
            event += listed
            let round = listed.map(\.object).filter { object in
                object.hasChanges && object.flags.isDisjoint(with: [.gone, .detached])
            }
            guard !round.isEmpty else { break }
            rounds += 1
            guard rounds <= Self.mostRounds else { throw endlessRounds(round) }
            changed += round
            for object in round where object.flags.isDisjoint(with: [.gone, .detached]) { object.willSave() }
            try context.propagateDeletes()
        }
        context.changeTracker.compact()
        var seen: Set<ObjectIdentifier> = []
        try validate(changed.filter { seen.insert(ObjectIdentifier($0)).inserted })
    }

    private func validate(_ objects: [NSManagedObject]) throws {
        // This comes first: a rule must not complain about values that are missing because they could not be read.
        try context.requireReadValues()
        if context.settings.savesUnvalidated { return }
        var errors: [any Error] = []
        var isDeleting = false
        context.changeTracker.objects.forEachBorrowed { if $0.flags.contains(.deleted) { isDeleting = true } }
        objects.forEachBorrowed { object in
            guard object.flags.isDisjoint(with: [.gone, .detached]) else { return }
            // Only relationships of this object are changed. If its row was deleted, that is a conflict, not a missing
            // value.
            if object.isFault, object.flags.contains(.updated) { object.fireFault() }
            guard object.flags.isDisjoint(with: [.gone, .inaccessible]) else { return }
            do {
                if object.flags.contains(.deleted) {
                    if !object.flags.contains(.inserted) { try object.validateForDelete() }
                    try object.requireNoOwners()
                } else if object.flags.contains(.inserted) {
                    try object.validateForInsert()
                } else if object.flags.contains(.updated) {
                    try object.validateForUpdate()
                }
                if isDeleting, !object.flags.contains(.deleted) { try object.requireLivingDestinations() }
            } catch {
                errors.append(error)
            }
        }
        // Validation rules may have read other objects.
        try context.requireReadValues()
        try ValidationErrors.throwIfAny(errors)
    }

    // MARK: - Writing

    /// Writes all changes, in as many attempts as are needed; each attempt makes new change sets.
    private func write(to coordinator: NSPersistentStoreCoordinator, _ before: StateBeforeResolution) throws {
        // A further attempt is needed if another writer was faster, or if a merge policy has not resolved the conflict.
        for attempt in 1... {
            try context.obtainPermanentIDsForCustomStores(coordinator)
            let plan = try SavePlan(context, coordinator)
            let isDone = try plan.whileUnderWay {
                let conflicts: [SavePlan.Conflict]
                do {
                    conflicts = try ConfinementScope.enter(context) { try coordinator.save(plan) }
                } catch {
                    context.saving.doubt = plan.doubt
                    markCommittedAsSaved(plan, before: before)
                    // The store was migrated just now and nothing was written to it: the changes go to its successor.
                    guard plan.doubt == nil, plan.isOutdated else { throw error }
                    return false
                }
                markCommittedAsSaved(plan, before: before)
                guard !conflicts.isEmpty else { return true }
                context.reportToInstrument(.conflict, rows: conflicts.count)
                for conflict in conflicts { plan.enterRow(conflict) }
                try context.seeingNewest {
                    try runResolution {
                        try ConflictResolution(of: conflicts, in: context, before: before).run(attempt: attempt)
                    }
                }
                return false
            }
            if isDone { return markRestAsSaved() }
        }
    }

    // MARK: - Afterwards

    /// Marks the objects of the stores that have committed as unchanged.
    private func markCommittedAsSaved(_ plan: SavePlan, before: StateBeforeResolution) {
        guard !plan.committed.isEmpty else { return }
        let permanent = plan.permanentKeys
        saved.historyNumbers.merge(plan.historyNumbers) { $1 }
        let isAll = plan.committed.count == plan.stores.count
        var rest: [NSManagedObject] = []
        context.changeTracker.objects.forEachBorrowed { object in
            let isGone = object.flags.contains(.gone)
            guard !isGone, isAll || plan.committed.contains(Int(plan.storeIndexOfInserted(object))) else {
                return rest.append(object)
            }
            object.flags.remove(.listed)
            before.forget(object)
            markAsSaved(object, in: plan)
        }
        context.changeTracker.keepChanges(rest)
        if permanent.count > 0 {
            saved.forEach { $0.replaceReferences(permanent) }
        }
        for (store, rows) in plan.reread { saved.applyReread(rows, from: store, in: context) }
    }

    private func markAsSaved(_ object: NSManagedObject, in plan: SavePlan) {
        let flags = object.flags
        saved.neverSaved.insertIfNeverSaved(object)
        if flags.contains(.deleted) {
            if !flags.contains(.inserted) {
                saved.deleted.append(object)
                context.acceptDeletion(of: object)
            }
            context.bury(object)
        } else if flags.contains(.inserted) {
            saved.inserted.append(object)
            if object.key < 0, let key = plan.permanentKeys[object.key] {
                if context.undoManager != nil { context.identityMap.setPermanentKey(key, for: object.key) }
                context.refile(object, key: key, storeIndex: plan.storeIndexOfInserted(object))
            }
            context.acceptWritten(object)
            object.commit()
        } else {
            saved.updated.append(object)
            saved.relationships.append(object.changedToManySet())
            context.acceptWritten(object)
            object.commit()
        }
    }

    /// Ends a save that has succeeded: forgets objects that a merge policy has dropped, and new objects that were
    /// deleted.
    private func markRestAsSaved() {
        var lost: [NSManagedObject] = []
        for object in context.changeTracker.objects {
            object.flags.remove(.listed)
            if object.flags.contains(.gone) { lost.append(object) }
            saved.neverSaved.insertIfNeverSaved(object)
            if object.flags.contains(.deleted) { context.bury(object) } else { object.commit() }
        }
        context.changeTracker.keepChanges([])
        if context.model.hasOneWayToMany, !saved.deleted.isEmpty {
            forgetInRelationships(saved.deleted) { $0.inverse == nil }
        }
        context.forgetNeverSaved(saved)
        // The inverse relationships of these objects were not updated.
        if !lost.isEmpty { forgetInRelationships(lost) { _ in true } }
        context.changeTracker.endChecks()
        if context.undoManager == nil { context.identityMap.forgetPermanentKeys() }
    }

    /// Removes objects that are not stored any more from those loaded relationships for which `concerns` is true.
    private func forgetInRelationships(_ deleted: [NSManagedObject], _ concerns: (ToManySlot) -> Bool) {
        var keysByRoot: [Int32: [Int: Set<Int64>]] = [:]
        for object in deleted {
            keysByRoot[object.storeIndex, default: [:]][object.layout.rootNumber, default: []].insert(object.key)
        }
        context.forEachRegistered { object in
            guard let keysByRoot = keysByRoot[object.storeIndex] else { return }
            object.forgetMembers(concerns) { reference in
                keysByRoot[context.layout(of: reference).rootNumber]?.contains(reference.key) ?? false
            }
        }
    }

    /// Notifies the objects, observers and other contexts of what was saved.
    func announce() {
        FaultPoint.saveAnnouncing.pass()
        context.advanceGeneration(now: true)
        // This precedes hooks and handlers, which may save too: followers have to learn of saves in their order.
        var message = ChangeMessage(saved, coordinator)
        if context.upward == nil {
            coordinator.announce(save: message, from: context)
        } else {
            context.announceInParent(message)
        }
        saved.forEach { $0.didSave() }
        post(message)
        context.announceToChildren(message)
        message.letGoOfIDs()
        context.endEvent(isMerge: false)
        context.sweepIfGrown()
    }

    /// Posts the notifications of a save that has succeeded.
    private func post(_ message: ChangeMessage) {
        // A handler may save again, so this save has to have ended.
        context.saving.end()
        let token = coordinator.historyToken(after: saved)
        context.observers.values?.savedTransactions = saved.historyNumbers
        context.post(.didSave) { sets in
            sets.add(.insertedObjects, context.shownSet(of: saved.inserted))
            sets.add(.updatedObjects, context.shownSet(of: saved.updated))
            sets.add(.deletedObjects, context.shownSet(of: saved.deleted))
            sets.add(message)
            sets.add(context.queryGenerationToken)
            sets.add(token)
        }
        // No further notification of this save has sets of objects.
        context.saving.shownSets = nil
        context.post(.didSaveIDs) { sets in
            // The rows that the store itself has changed are included. This context may have no objects for them.
            sets.add(message.ids)
            sets.add(context.queryGenerationToken)
            sets.add(token)
        }
    }

    private func incompleteSave(_ error: any Error) -> CocoaError {
        CocoaError.described(
            .persistentStoreIncompleteSave,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "Some stores were saved, and then one was not: \(error.localizedDescription) What was not saved is still unsaved.",
                NSUnderlyingErrorKey: error,
            ]
        )
    }
}
