import Foundation
import StrataRows

#if FaultPoints
import StrataLocks
#endif

extension NSManagedObjectContext {
    /// Saves all changes to the stores, each store's in one transaction; or, of a child, moves them into the parent.
    ///
    /// A child's save writes nothing: only the root's does, and makes temporary IDs permanent. It runs inside the
    /// parent's scope, so it waits for what the parent is doing. Its cost grows with the number of changes, not with
    /// what the parent has registered.
    ///
    /// When the save of a context on the coordinator returns, the changes survive the end of the process. When it
    /// throws, the context is as it was before, and the same save succeeds once the cause is gone.
    ///
    /// Without changes it posts will-save and did-save, with nothing in them, and writes the metadata that was set for
    /// stores since (``NSPersistentStoreCoordinator/setMetadata(_:for:)``); that costs next to nothing. With changes it
    /// writes the metadata of the stores that have changes.
    ///
    /// If the last save ended in doubt (134030 with `NSPersistentStoreSaveInDoubtKey`), the context first asks the
    /// store what has become of it. If it was committed, its changes count as saved, are announced as saved, and are
    /// not stored once more.
    ///
    /// See <doc:Saving>.
    ///
    /// ```swift
    /// venue.price += 1
    /// if context.hasChanges { try context.save() }
    /// ```
    ///
    /// - Throws: Validation errors (1550–1699; several in 1560). Under the error policy (of a child:
    ///   ``parentConflictPolicy``) `managedObjectMerge` (133020) and `managedObjectConstraintMerge` (133021). Errors of
    ///   the store (134000–134999), such as `persistentStoreTimeout` (134090) when others write for too long, and
    ///   `persistentStoreSave` (134030) with `NSPersistentStoreSaveInDoubtKey` as long as it is not known whether the
    ///   last save was committed. `managedObjectMerge` (133020), too, if that was committed although its new objects
    ///   were dropped here since.
    public func save() throws {
        assertCurrent(#function)
        guard !saving.isSaving else {
            fatalError("CoreData: save() was called while \(describedName) is saving; wait for didSave.")
        }
        processPendingChanges()
        changeTracker.compact()
        checkInvariants()
        guard let coordinator else {
            // Nothing is announced for a context that has no place to save to.
            guard hasSomethingToSave else { return }
            throw CocoaError.described(
                .persistentStoreSave,
                userInfo: [NSLocalizedDescriptionKey: "\(describedName) has no persistentStoreCoordinator to save to."]
            ).marked(.request)
        }
        if isOneTooMany { throw coordinator.tooManyContexts(self) }
        // A child's save ends in its parent.
        if upward == nil { guard coordinator.gate.enter() else { throw coordinator.closedError } }
        defer { if upward == nil { coordinator.gate.leave() } }
        saving.begin()
        defer { saving.end() }
        let save = ContextSave(self, coordinator)
        try measured(.save, nil, entersScope: false, rows: { save.savedCount }) {
            if saving.doubt != nil { try ContextSave(self, coordinator).settleDoubt() }
            try save.run()
        }
    }

    /// Whether there are changes to be saved, or versions to be checked.
    fileprivate final var hasSomethingToSave: Bool {
        !changeTracker.objects.isEmpty || !changeTracker.checkedObjects.isEmpty
    }
}

/// One save of one context, from the notification before it to those after it.
///
/// Reads from top to bottom as the save goes:
///
///     save → end the event → will-save (→ did-save, if there is nothing to save) → willSave() until quiet → validate → change sets → stores
///          ↖ conflicts: the merge policy resolves them, willSave() and validation of what that has changed ↙
///          → new rows, permanent keys → didSave() → did-save
///
/// Nothing in the context changes before the stores have committed, so a failed save leaves it as it was.
///
/// Lives for one call of ``NSManagedObjectContext/save()``, inside the context's scope.
struct ContextSave {
    let context: NSManagedObjectContext
    private let coordinator: NSPersistentStoreCoordinator
    /// What was saved so far, over all attempts and stores.
    let saved = SavedChanges()

    init(_ context: NSManagedObjectContext, _ coordinator: NSPersistentStoreCoordinator) {
        self.context = context
        self.coordinator = coordinator
    }

    /// How many objects were saved so far.
    var savedCount: Int { saved.inserted.count + saved.updated.count + saved.deleted.count }

    /// Saves the changes of the context, whose event has ended.
    func run() throws {
        context.post(.willSave)
        guard context.hasSomethingToSave else {
            if context.upward == nil { try ConfinementScope.enter(context) { try coordinator.saveMetadata() } }
            return post()
        }
        try sendWillSave()
        try validate(context.changeTracker.objects)
        #if FaultPoints
        try FaultPoint.saveValidated.reach()
        #endif
        let before = StateBeforeResolution(context)
        do {
            if let upward = context.upward {
                try context.push(upward, before, saved) { try settle($0) }
            } else {
                try write(to: coordinator, before)
            }
        } catch {
            before.restore()
            guard !saved.isEmpty else { throw error }
            announce()
            throw incompleteSave(error)
        }
        context.checkInvariants()
        announce()
    }

    // MARK: - Hooks and validation

    /// Sends `willSave()` to every changed object, and again to those that changed in it, until nothing changes.
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
            if !context.propagatesDeletesAtEndOfEvent { try context.propagateDeletes() }
            round = context.changeTracker.eventObjects
            context.processPendingChanges()
        }
        try context.propagateDeletes()
        context.changeTracker.compact()
    }

    /// How often `willSave()` may change something.
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

    /// Resolves conflicts, and then does for what has changed with that what the save has done for all changes before:
    /// values that follow from others, such as a number of members kept in `willSave()`, would be stored wrong, and
    /// values that no rule allows would be stored.
    ///
    /// The event, which the resolution belongs to, goes on: nobody is told of changes that the save may have to put back.
    /// Nor are the changes of hooks steps of undo, as those that they follow are none.
    private func settle(_ resolve: () throws -> Void) throws {
        context.undoManager?.disableUndoRegistration()
        defer { context.undoManager?.enableUndoRegistration() }
        var event = context.changeTracker.setEventAside()
        defer { context.changeTracker.resumeEvent(with: event) }
        // A resolution that could not read what is stored decides nothing.
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
        // Before a rule finds fault with values that are missing because they were not read.
        try context.requireReadValues()
        if context.settings.savesUnvalidated { return }
        var errors: [any Error] = []
        var isDeleting = false
        context.changeTracker.objects.forEachBorrowed { if $0.flags.contains(.deleted) { isDeleting = true } }
        objects.forEachBorrowed { object in
            guard object.flags.isDisjoint(with: [.gone, .detached]) else { return }
            // Only its relationships are changed, and its row may have gone: that is a conflict, not a missing value.
            if object.isFault, object.flags.contains(.updated) { object.fireFault() }
            guard object.flags.isDisjoint(with: [.gone, .inaccessible]) else { return }
            do {
                if object.flags.contains(.deleted) {
                    if !object.flags.contains(.inserted) { try object.validateForDelete() }
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
        // Rules have read other objects.
        try context.requireReadValues()
        try ValidationErrors.throwIfAny(errors)
    }

    // MARK: - Writing

    /// Writes all changes, as often as it takes: each attempt makes the change sets anew.
    private func write(to coordinator: NSPersistentStoreCoordinator, _ before: StateBeforeResolution) throws {
        // Each attempt after the first is owed to another writer that was faster, or to a policy that resolves nothing.
        for attempt in 1... {
            try context.obtainPermanentIDsForStoresOfOnesOwn(coordinator)
            let plan = try SavePlan(context, coordinator)
            let isDone = try plan.whileUnderWay {
                let conflicts: [SavePlan.Conflict]
                do {
                    conflicts = try ConfinementScope.enter(context) { try coordinator.save(plan) }
                } catch {
                    context.saving.doubt = plan.doubt
                    takeOver(plan, before)
                    // Nothing was written to a store that was just migrated: the changes go to the one in its place.
                    guard plan.doubt == nil, plan.isOutdated else { throw error }
                    return false
                }
                takeOver(plan, before)
                guard !conflicts.isEmpty else { return true }
                context.tellInstrument(.conflict, rows: conflicts.count)
                for conflict in conflicts { plan.enterRow(conflict) }
                try context.seeingNewest { try settle { try context.resolve(conflicts, before, attempt) } }
                return false
            }
            if isDone { return takeOverRest() }
        }
    }

    // MARK: - Afterwards

    /// Takes the objects of the stores that have committed for clean.
    private func takeOver(_ plan: SavePlan, _ before: StateBeforeResolution) {
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
            takeOver(object, plan)
        }
        context.changeTracker.keepChanges(rest)
        if permanent.count > 0 {
            saved.forEach { $0.replaceReferences(permanent) }
        }
        for (store, rows) in plan.reread {
            for row in rows { saved.reread.append(context.takeReread(row, store)) }
        }
    }

    private func takeOver(_ object: NSManagedObject, _ plan: SavePlan) {
        let flags = object.flags
        saved.neverSaved.note(object)
        if flags.contains(.deleted) {
            if !flags.contains(.inserted) {
                saved.deleted.append(object)
                context.noteDeleted(object)
            }
            context.bury(object)
        } else if flags.contains(.inserted) {
            saved.inserted.append(object)
            if object.key < 0, let key = plan.permanentKeys[object.key] {
                if context.undoManager != nil { context.identityMap.note(permanentKey: key, for: object.key) }
                context.refile(object, key: key, storeIndex: plan.storeIndexOfInserted(object))
            }
            context.noteWritten(object)
            object.commit()
        } else {
            saved.updated.append(object)
            context.noteWritten(object)
            object.commit()
        }
    }

    /// Ends a save that has succeeded: forgets what a policy has dropped, and what never was.
    private func takeOverRest() {
        var lost: [NSManagedObject] = []
        for object in context.changeTracker.objects {
            object.flags.remove(.listed)
            if object.flags.contains(.gone) { lost.append(object) }
            saved.neverSaved.note(object)
            if object.flags.contains(.deleted) { context.bury(object) } else { object.commit() }
        }
        context.changeTracker.keepChanges([])
        if context.model.hasOneWayToMany, !saved.deleted.isEmpty {
            forgetInRelationships(saved.deleted) { $0.inverse == nil }
        }
        context.forgetNeverSaved(saved)
        // Of these no inverse was told.
        if !lost.isEmpty { forgetInRelationships(lost) { _ in true } }
        context.changeTracker.endChecks()
        if context.undoManager == nil { context.identityMap.forgetPermanentKeys() }
    }

    /// Takes objects that are not stored any more out of the loaded relationships that `concerns` names.
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

    /// Tells the objects and everybody else what was saved.
    func announce() {
        #if FaultPoints
        FaultPoint.saveAnnouncing.pass()
        #endif
        context.advanceGeneration(now: true)
        // Before hooks and handlers, which may save as well: whoever follows is told of saves in their order.
        if context.upward == nil { coordinator.announce(saved, from: context) } else { context.announceInParent(saved) }
        saved.forEach { $0.didSave() }
        post()
        context.announceToChildren(saved)
        context.processPendingChanges()
        context.sweepIfGrown()
    }

    /// Posts the notifications of a save that has succeeded.
    private func post() {
        // A handler may save again.
        context.saving.end()
        let token = coordinator.historyToken(after: saved)
        context.post(.didSave) { sets in
            sets.add(.insertedObjects, saved.inserted)
            sets.add(.updatedObjects, saved.updated)
            sets.add(.deletedObjects, saved.deleted)
            sets.add(ChangeMessage(saved, coordinator))
            sets.add(context.queryGenerationToken)
            sets.add(token)
        }
        context.post(.didSaveIDs) { sets in
            sets.add(.insertedObjectIDs, idsOf: saved.inserted)
            if saved.reread.isEmpty {
                sets.add(.updatedObjectIDs, idsOf: saved.updated)
            } else {
                // With the rows that the store has changed of its own accord, of which there may be no objects here.
                sets.add(.updatedObjectIDs, idsOf: ChangeMessage(saved, coordinator).updated)
            }
            sets.add(.deletedObjectIDs, idsOf: saved.deleted)
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
