extension NSManagedObjectContext {
    /// Saves all changes, and returns when other contexts have merged them.
    ///
    ///     try await background.save(mergingInto: [container.viewContext])
    ///     // The view context shows what was saved.
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

    /// Saves all changes; if others have saved the same objects meanwhile, refreshes those, keeps the changes made here
    /// on top, and tries again.
    ///
    ///     try context.save(retrying: 3)
    ///
    /// For contexts with the error policy, to which each attempt is a save of its own, hooks and notifications
    /// included. What both sides changed ends as it is in this context. Not tried again: a save that conflicts over a
    /// deleted object, over an object that is only named to ``detectConflicts(for:)``, or over a uniqueness constraint.
    ///
    /// - Parameter limit: How often to try again, at most.
    /// - Throws: As ``save()``; after the last attempt its conflict (133020). The context is as before the call then,
    ///   but for the refreshed objects.
    public func save(retrying limit: Int) throws {
        var retries = 0
        while true {
            do {
                return try save()
            } catch let error as CocoaError where error.code == .managedObjectMerge && retries < limit {
                let conflicts = error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict] ?? []
                guard !conflicts.isEmpty, conflicts.allSatisfy(\.canBeRefreshed) else { throw error }
                advanceGeneration()
                for conflict in conflicts { refresh(conflict.sourceObject, mergeChanges: true) }
                retries += 1
            }
        }
    }
}

extension NSMergeConflict {
    /// Whether a refresh ends the conflict without losing a change, or a doubt, of the context's.
    fileprivate var canBeRefreshed: Bool { newVersionNumber != 0 && sourceObject.hasChanges }
}
