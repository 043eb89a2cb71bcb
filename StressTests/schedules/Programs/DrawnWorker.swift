import CoreData
import StrataLocks

/// Makes the calls of one thread of a drawn program.
final class DrawnWorker: @unchecked Sendable {
    // @unchecked Sendable: one thread uses it, apart from constants.
    let context: NSManagedObjectContext
    let shared: NSManagedObjectContext
    let follower: NSManagedObjectContext
    let number: Int
    /// What the follower of the thread's coordinator has shown.
    let looks: FollowerLooks
    let ids: [NSManagedObjectID]
    let log: DrawnLog
    let place: Place
    /// The names of the boxes that this thread has inserted.
    var own: [String] = []
    /// The ends of blocks that were only submitted.
    var submitted: [Waiter] = []

    init(
        _ context: NSManagedObjectContext,
        _ common: (shared: NSManagedObjectContext, follower: NSManagedObjectContext, looks: FollowerLooks),
        _ number: Int,
        _ uris: [URL],
        _ log: DrawnLog,
        _ place: Place
    ) {
        (self.context, self.number, self.log, self.place) = (context, number, log, place)
        (shared, follower, looks) = common
        ids = uris.compactMap { context.persistentStoreCoordinator?.managedObjectID(forURIRepresentation: $0) }
    }

    func make(_ call: DrawnCall, _ serial: Int) throws {
        // The register begins with 0.
        let value = serial + 1
        switch call {
        case .add: try add(in: context, of: context)
        case .addInChild: try add(in: context.child(), of: context)
        case .readInChild:
            let child = shared.child()
            try child.performAndWait { _ = try child.existingObject(with: ids[0]).count }
        case .addShared: try add(in: shared, of: shared)
        case .addLater: addLater()
        case .addLocked: try addLocked(.seconds(60))
        case .addLockedBriefly:
            // The time is over at any moment: nothing may be stored then.
            do { try addLocked(.milliseconds(1 + serial % 8)) } catch let error as CocoaError
                where error.code == .persistentStoreTimeout
            {
                context.performAndWait {
                    context.rollback()
                    context.refreshAllObjects()
                }
            }
        case .write, .writeTold: try write(value, isTold: call == .writeTold)
        case .writeByBatch: try writeByBatch(value)
        case .writeElsewhere: try writeElsewhere(value)
        case .read: try read { self.context.refreshAllObjects() }
        case .readHeld:
            context.performAndWait { context.refreshAllObjects() }
            try read {}
        case .readByFetch: try readByFetch()
        case .readPinned: try readPinned()
        case .readVisiting: try readVisiting()
        case .look: look()
        case .readAsynchronously: try readAsynchronously(isCancelled: false)
        case .cancelFetch: try readAsynchronously(isCancelled: true)
        case .insert, .insertWithID: try insert(serial, hasID: call == .insertWithID)
        case .askID:
            if let shown = log.shown.withLock({ $0.last }) {
                let asked = (shown, shown.object.objectID)
                log.asked.withLock { $0.append(asked) }
            }
        case .insertByBatch: try insertByBatch(serial)
        case .delete: try deleteOwn()
        case .deleteByBatch: try deleteByBatch()
        case .follow, .unfollow:
            context.performAndWait {
                context.automaticallyMergesChangesFromParent = call == .follow
                // Earlier saves are not merged any more.
                context.refreshAllObjects()
            }
        case .refresh: context.performAndWait { context.refreshAllObjects() }
        case .reset: context.performAndWait { context.reset() }
        case .undo, .discard: undo(call == .undo)
        case .purge: try purge()
        }
    }

    /// Waits for the blocks that were only submitted.
    func finish() { for end in submitted { end.sleep() } }

    // MARK: - Additions

    private func add(in target: NSManagedObjectContext, of root: NSManagedObjectContext) throws {
        for _ in 0..<100 {
            let isDone = try root.performAndWait { try Self.addOnce(in: target, of: root, ids[0]) }
            guard !isDone else {
                log.additions.add(1, ordering: .relaxed)
                return
            }
        }
        place.find("100 attempts were in vain")
    }

    /// In one block: a merge between the two saves of a child's change would make it one of the new value.
    private static func addOnce(
        in target: NSManagedObjectContext,
        of root: NSManagedObjectContext,
        _ id: NSManagedObjectID
    ) throws -> Bool {
        do {
            try target.performAndWait {
                try target.existingObject(with: id).count += 1
                try target.save()
            }
            if target !== root { try root.save() }
            return true
        } catch let error as CocoaError where error.code == .managedObjectMerge {
            for used in [target, root] {
                used.performAndWait {
                    used.rollback()
                    used.refreshAllObjects()
                }
            }
            return false
        }
    }

    private func addLater() {
        let (shared, id, log, place, end) = (shared, ids[0], log, place, Waiter())
        submitted.append(end)
        shared.perform {
            defer { end.call() }
            for _ in 0..<100 {
                do {
                    guard try Self.addOnce(in: shared, of: shared, id) else { continue }
                    log.additions.add(1, ordering: .relaxed)
                    return
                } catch { return place.find("a submitted block fails: \(error)") }
            }
            place.find("100 attempts were in vain")
        }
    }

    private func addLocked(_ limit: Duration) throws {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
        request.predicate = NSPredicate(format: "name == 'counter'")
        request.rowLock = RowLock(.update)
        let id = ids[0]
        try context.performAndWait(locking: limit) {
            guard let counter = try context.fetch(request).first(where: { $0.objectID == id }) else {
                return place.find("a fetch that locks finds no counter")
            }
            counter.count += 1
            try context.save()
        }
        log.additions.add(1, ordering: .relaxed)
    }

    // MARK: - Boxes

    private func insert(_ serial: Int, hasID: Bool) throws {
        try context.performAndWait {
            let box = NSEntityDescription.insertNewObject(forEntityName: "Box", into: context)
            box.setValue("\(number).\(serial)", forKey: "name")
            let shown = DrawnLog.ShownObject(object: box, name: "\(number).\(serial)")
            log.shown.withLock { $0.append(shown) }
            if hasID { try context.obtainPermanentIDs(for: [box]) }
            try context.save()
        }
        note(inserted: serial)
    }

    private func insertByBatch(_ serial: Int) throws {
        let name = "\(number).\(serial)"
        let insert = NSBatchInsertRequest(entityName: "Box", objects: [["name": name, "count": 0]])
        try context.performAndWait { _ = try context.execute(insert) }
        note(inserted: serial)
    }

    private func note(inserted serial: Int) {
        own.append("\(number).\(serial)")
        log.names.withLock { _ = $0.insert("\(number).\(serial)") }
    }

    private func deleteOwn() throws {
        guard let name = own.popLast() else { return }
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
            request.predicate = NSPredicate(format: "name == %@", name)
            let found = try context.fetch(request)
            if found.count != 1 { place.find("\(found.count) boxes are called \(name)") }
            found.forEach(context.delete)
            try context.save()
        }
        log.names.withLock { _ = $0.remove(name) }
    }

    private func deleteByBatch() throws {
        guard let name = own.popLast() else { return }
        let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Box")
        request.predicate = NSPredicate(format: "name == %@", name)
        let delete = NSBatchDeleteRequest(fetchRequest: request)
        delete.resultType = .resultTypeCount
        try context.performAndWait {
            let result = try context.execute(delete) as? NSBatchDeleteResult
            if result?.result as? Int != 1 { place.find("a batch deletes \(result?.result ?? "nothing") for \(name)") }
        }
        log.names.withLock { _ = $0.remove(name) }
        context.performAndWait { context.refreshAllObjects() }
    }

    // MARK: - Others

    private func undo(_ isUndone: Bool) {
        context.performAndWait {
            context.undoManager = UndoManager()
            context.object(with: ids[0]).count += 1000
            context.processPendingChanges()
            if isUndone { context.undo() }
            context.rollback()
            context.undoManager = nil
        }
    }

    private func purge() throws {
        guard !place.isInMemory else { return }
        try context.performAndWait {
            let token = context.persistentStoreCoordinator?.currentPersistentHistoryToken(fromStores: nil)
            _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: token))
        }
    }
}

extension NSManagedObjectContext {
    fileprivate func child() -> NSManagedObjectContext {
        let child = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        child.parent = self
        return child
    }
}
