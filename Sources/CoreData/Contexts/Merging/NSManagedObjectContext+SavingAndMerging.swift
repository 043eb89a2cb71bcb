extension NSManagedObjectContext {
    /// Saves all changes, and returns when other contexts have merged them.
    ///
    /// ```swift
    /// let background = container.newBackgroundContext()
    /// await background.perform { Venue(context: background).name = "Coliseu" }
    /// try await background.save(mergingInto: [container.viewContext])
    /// // The view context shows what was saved.
    /// ```
    ///
    /// Each context merges on its own queue, after the blocks submitted to it before, whether it follows saves by
    /// itself or not, and is told once. No thread waits, so nobody can block anybody else. May be called on any thread;
    /// saves as ``save()`` does, as a block of ``perform(schedule:_:)``.
    ///
    /// Cancelling the task does not shorten the wait.
    ///
    /// - Parameter contexts: Where to merge: of a root context other roots, also of another coordinator that has the
    ///   same store open; of a child its siblings. Contexts that are not named follow as always.
    /// - Throws: As ``save()``. If some stores were saved before one was not (134040), the contexts merge what was.
    nonisolated(nonsending) public func save(mergingInto contexts: [NSManagedObjectContext]) async throws {
        let targets = contexts.filter { $0 !== self }
        let (message, result) = await perform { self.saveCollecting(for: targets) }
        await withTaskGroup(of: Void.self) { group in
            for context in targets { group.addTask { await context.mergeInTurn(message) } }
        }
        try result.get()
    }

    private func saveCollecting(for contexts: [NSManagedObjectContext]) -> (ChangeMessage, Result<Void, any Error>) {
        let outer = saving.collector
        let collector = SaveCollector(for: contexts)
        saving.collector = collector
        defer { saving.collector = outer }
        let result = Result { try save() }
        let message = collector.message
        outer?.add(message)
        return (message, result)
    }

    /// Merges a message in turn, and suspends until that is done.
    private func mergeInTurn(_ message: ChangeMessage) async {
        let message = message.translated(to: persistentStoreCoordinator)
        guard !message.isEmpty else { return }
        await withCheckedContinuation { enqueueMerge(message, isRequested: true, $0) }
    }

    /// Saves all changes; if others have saved other properties of the same objects meanwhile, refreshes those objects,
    /// keeps the changes made here on top, and tries again.
    ///
    /// ```swift
    /// venue.price += 1
    /// try context.save(retrying: 3)
    /// ```
    ///
    /// For contexts with the error policy, to which each attempt is a save of its own, hooks and notifications
    /// included. Not tried again, since somebody's change would be lost without a word: a save that conflicts over a
    /// property that both sides have changed, be it to the same value (two who take 10 from 100 have to arrive at 80), or
    /// over an order that both sides have changed. Nor a save that conflicts over an object that others have deleted,
    /// over one that is only named to ``detectConflicts(for:)``, or over a uniqueness constraint. An object that is
    /// deleted here goes, whatever others have changed of it.
    ///
    /// - Parameter limit: How often to try again, at most.
    /// - Throws: As ``save()``; the conflict (133020) of an attempt that is not tried again, or was the last. The context
    ///   is as before the call then, but for objects that were refreshed before other attempts: changes that a conflict
    ///   is thrown over still conflict in the next save.
    public func save(retrying limit: Int) throws {
        var retries = 0
        while true {
            do {
                return try save()
            } catch let error as CocoaError where error.code == .managedObjectMerge && retries < limit {
                let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                guard !conflicts.isEmpty, conflicts.allSatisfy({ conflict in seeingNewest { conflict.isHarmless } })
                else { throw error }
                advanceGeneration()
                // Not the newest row there is: what is still newer was compared with nothing, and conflicts in its turn.
                for conflict in conflicts { refreshChanged(conflict.sourceObject, onto: conflict.newerRow) }
                retries += 1
            }
        }
    }
}

extension NSMergeConflict {
    /// Whether a refresh ends the conflict without losing a change of either side, or a doubt of the context's.
    fileprivate var isHarmless: Bool {
        let object = sourceObject
        guard newVersionNumber != 0, object.hasChanges, let context = object.context else { return false }
        if object.isDeleted { return true }
        // Of a conflict that a policy has made by hand nobody knows what has changed.
        guard let baseRow, let newerRow else { return false }
        let changed = object.changedSlotSet()
        for slot in object.layout.slots where changed.contains(slot.index) {
            guard context.hasSameValue(baseRow, newerRow, slot) else { return false }
        }
        guard object.changesOrders, let extras = object.extras else { return true }
        for slot in object.layout.toMany where slot.isOrdered && !slot.isTransient {
            guard let state = extras.toMany[slot.index], state.isReordered else { continue }
            guard let stored = context.storedMembers(of: slot, ownedBy: object),
                !state.isOrderOvertaken(by: stored)
            else { return false }
        }
        return true
    }
}
