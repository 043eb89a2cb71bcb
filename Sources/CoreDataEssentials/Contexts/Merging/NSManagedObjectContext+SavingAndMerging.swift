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
    /// Each context merges on its own queue, after the blocks that were submitted to it before. It merges once, whether
    /// or not it follows saves automatically. No thread waits, so no context can block another one. May be called on
    /// any thread; saves as ``save()`` does, in a block of ``perform(schedule:_:)``.
    ///
    /// Cancelling the task does not shorten the wait.
    ///
    /// - Parameter contexts: The contexts that merge. For a root they are other roots, which may be on another
    ///   coordinator that has the same store open; for a child they are its siblings. Other contexts follow as usual.
    /// - Throws: As ``save()``. If some stores were saved and then one was not (134040), the contexts merge what was
    ///   saved.
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

    /// Merges a message when the context's turn comes, and suspends until that is done.
    private func mergeInTurn(_ message: ChangeMessage) async {
        let message = message.translated(to: persistentStoreCoordinator)
        guard !message.isEmpty else { return }
        await withCheckedContinuation { enqueueMerge(message, isRequested: true, $0) }
    }

    /// Saves all changes, and tries again after a conflict over different properties of the same objects.
    ///
    /// Such a conflict means that another context or process has saved other properties of these objects meanwhile.
    /// Before the next attempt, the objects are refreshed, and the changes made here are kept on top.
    ///
    /// ```swift
    /// venue.price += 1
    /// try context.save(retrying: 3)
    /// ```
    ///
    /// This method is meant for contexts with the error policy. Each attempt is a separate save, with hooks and
    /// notifications. Some conflicts end the attempts, since another writer's change would be lost silently:
    ///
    /// - Both sides have changed the same property, even to the same value. (Two callers that each subtract 10 from 100
    ///   have to arrive at 80.)
    /// - Both sides have changed the same order.
    /// - The object was deleted elsewhere, or was only passed to ``detectConflicts(for:)``.
    /// - The conflict is one of a uniqueness constraint.
    ///
    /// If an object is deleted here and was changed elsewhere, it stays deleted.
    ///
    /// - Parameter limit: The greatest number of times to try again.
    /// - Throws: As ``save()``; the conflict (133020) of the last attempt, or of an attempt that may not be repeated.
    ///   The context is then as it was before the call, except for objects that were refreshed before other attempts.
    ///   The changes in conflict still conflict in the next save.
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
                // This need not be the newest row: a still newer one was not compared yet, and leads to another
                // conflict.
                for conflict in conflicts {
                    ObjectRefresh(of: conflict.sourceObject, in: self).putChanges(onto: conflict.newerRow)
                }
                retries += 1
            }
        }
    }
}

extension NSMergeConflict {
    /// Whether a refresh ends the conflict without losing a change of either side, or a check that the context asked
    /// for.
    fileprivate var isHarmless: Bool {
        let object = sourceObject
        guard newVersionNumber != 0, object.hasChanges, let context = object.context else { return false }
        if object.isDeleted { return true }
        // A conflict that a program has made may have no rows, so nothing shows which properties have changed.
        guard let baseRow, let newerRow else { return false }
        let changed = object.changedSlotSet()
        for slot in object.layout.slots where changed.contains(slot.index) {
            guard context.hasSameValue(in: baseRow, and: newerRow, at: slot) else { return false }
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
