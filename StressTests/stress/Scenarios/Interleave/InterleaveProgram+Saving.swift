import CoreData

extension InterleaveProgram {
    /// Saves, and compares the stored rows and the notifications.
    func save(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) throws -> String? {
        let outcome = oracle.save(place)
        let isThorough = stream.chance(0.3)
        note(place, "save", 0)
        let box = NotificationBox()
        let tokens = [
            NSManagedObjectContext.didSaveObjectsNotification, NSManagedObjectContext.didSaveObjectIDsNotification,
        ].map { name in
            NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { box.told[name] = $0 }
        }
        defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
        do {
            try context.save()
            if outcome == .undefined { return try checkUndefined() }
            guard case .saved(let isChange) = outcome else { return "a save succeeds, expected was \(outcome)" }
            branches["saves", default: 0] += 1
            if let trouble = try checkStore(isThorough) { return trouble }
            guard isChange else { return nil }
            if run.isSabotaged("silent-save") {
                box.told[NSManagedObjectContext.didSaveObjectsNotification]?.userInfo = nil
            }
            return take(box, place)
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            if outcome == .undefined { return end() }
            let conflicts = (error.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSObject] ?? [])
                .compactMap { $0 as? NSMergeConflict }
            let told = Set(conflicts.compactMap { ($0.sourceObject as? Node)?.serial })
            guard outcome == .refused(told) else { return "a save conflicts over \(told), expected was \(outcome)" }
            branches["conflicts", default: 0] += 1
            return try checkStore(isThorough)
        } catch let error as CocoaError { return "a save gave \(describe(error))" }
    }

    /// Merges the last save of another context.
    func merge(_ place: Int, _ context: NSManagedObjectContext, _ stream: inout SeededStream) -> String? {
        let source = stream.below(contexts.count)
        guard source != place, let notification = notifications[source] else { return nil }
        guard oracle.merge(from: source, into: place) else { return end() }
        note(place, "merge from", Int64(source))
        context.mergeChanges(fromContextDidSave: notification)
        adoptFaults(place)
        branches["merges", default: 0] += 1
        return nil
    }

    /// Checks a save with an undefined outcome: only that no relationship leads to a row that has gone is promised.
    private func checkUndefined() throws -> String? {
        branches["undefined", default: 0] += 1
        let rows = try fetchedRows()
        for (serial, values) in rows where values[2] != 0 && rows[values[2]] == nil {
            return "object \(serial) is stored with the parent \(values[2]), which is gone"
        }
        return end()
    }

    /// Compares the notifications of a save, and keeps one of them for merges.
    private func take(_ box: NotificationBox, _ place: Int) -> String? {
        learnIDs()
        guard let objects = box.told[NSManagedObjectContext.didSaveObjectsNotification],
            let ids = box.told[NSManagedObjectContext.didSaveObjectIDsNotification]
        else { return "a save tells nobody that it has changed the store" }
        notifications[place] = branches["saves", default: 0] % 2 == 0 ? objects : ids
        return compare(place) { kind in
            Set((objects.userInfo?[kind.rawValue] as? Set<NSManagedObject> ?? []).map(\.objectID))
        }
            ?? compare(place) { kind in
                ids.userInfo?[kind.rawValue + "_objectIDs"] as? Set<NSManagedObjectID> ?? []
            }
    }

    /// Compares a notification of a save with what the oracle has saved.
    private func compare(
        _ place: Int,
        _ told: (NSManagedObjectContext.NotificationKey) -> Set<NSManagedObjectID>
    ) -> String? {
        guard let save = oracle.lastSaves[place] else { return "a save tells of changes that are none" }
        func numbers(_ kind: NSManagedObjectContext.NotificationKey) -> Set<Int64> { Set(told(kind).map(serialNumber)) }
        let (inserted, updated) = (numbers(.insertedObjects), numbers(.updatedObjects))
        for (name, shown, wanted) in [
            ("inserted", inserted, save.inserted), ("updated", updated, save.updated),
            ("deleted", numbers(.deletedObjects), save.deleted),
        ] where shown.subtracting(save.open) != wanted.subtracting(save.open) {
            return "a save tells of \(name) objects \(shown.sorted()), expected were \(wanted.sorted())"
        }
        oracle.lastSaves[place]?.told.formUnion(inserted.union(updated).union(save.deleted))
        let silent = save.updated.union(save.inserted).subtracting(inserted.union(updated))
        return silent.isEmpty ? nil : "a save tells nothing of objects \(silent.sorted()), which it has written"
    }
}

/// Carries notifications out of their handlers.
private final class NotificationBox: @unchecked Sendable {
    // @unchecked Sendable: a save calls the handlers on its own thread, before it returns.
    var told: [Notification.Name: Notification] = [:]
}
