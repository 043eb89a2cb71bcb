import CoreData
import StrataLocks

extension DrawnWorker {
    // MARK: - Writing

    /// Writes the register in a save; if `isTold`, then a handler of the save looks at the follower.
    func write(_ value: Int, isTold: Bool) throws {
        let start = log.clock.now()
        let observer = isTold ? observeSave(value, start) : nil
        defer { if let observer { NotificationCenter.default.removeObserver(observer) } }
        try context.performAndWait {
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            defer { context.mergePolicy = NSMergePolicy.error }
            context.object(with: ids[1]).count = value
            try context.save()
        }
        let access = RegisterHistory.Access(value: value, start: start, end: log.clock.now())
        log.writes.withLock { $0.append(access) }
        looks.announce(access)
    }

    private func observeSave(_ value: Int, _ start: Int) -> any NSObjectProtocol {
        NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextDidSave,
            object: context,
            queue: nil
        ) { [self] _ in
            looks.announce(RegisterHistory.Access(value: value, start: start, end: log.clock.now()))
            look()
        }
    }

    func writeByBatch(_ value: Int) throws {
        let start = log.clock.now()
        let update = NSBatchUpdateRequest(entityName: "Box")
        update.propertiesToUpdate = ["count": value]
        update.predicate = NSPredicate(format: "name == 'register'")
        try context.performAndWait { _ = try context.execute(update) }
        let access = RegisterHistory.Access(value: value, start: start, end: log.clock.now())
        log.writes.withLock { $0.append(access) }
        context.performAndWait { context.refreshAllObjects() }
    }

    /// Writes the register as another program does, with another version of the row or with the same one.
    func writeElsewhere(_ value: Int) throws {
        guard !place.isInMemory else { return try write(value, isTold: false) }
        let start = log.clock.now()
        let version = value % 2 == 0 ? ", Z_OPT = Z_OPT + 1" : ""
        try OtherProgram(place).run("UPDATE ZBOX SET ZCOUNT = \(value)\(version) WHERE ZNAME = 'register'")
        let access = RegisterHistory.Access(value: value, start: start, end: log.clock.now())
        log.writes.withLock { $0.append(access) }
    }

    // MARK: - Reading

    private func note(_ value: Int, since start: Int) {
        let access = RegisterHistory.Access(value: value, start: start, end: log.clock.now())
        log.reads.withLock { $0.append(access) }
    }

    func read(_ prepare: () -> Void) throws {
        let start = log.clock.now()
        let value = try context.performAndWait {
            prepare()
            return try context.existingObject(with: ids[1]).count
        }
        note(value, since: start)
    }

    private static var request: NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
        request.predicate = NSPredicate(format: "name == 'register'")
        return request
    }

    func readByFetch() throws {
        let start = log.clock.now()
        let value = try context.performAndWait {
            context.refreshAllObjects()
            return try context.fetch(Self.request).first?.count ?? -1
        }
        note(value, since: start)
    }

    /// A pinned context sees one moment, which lies between the begin and the end of its first read.
    func readPinned() throws {
        guard let stack = context.persistentStoreCoordinator else { return }
        let pinned = stack.context()
        let start = log.clock.now()
        let first = try pinned.performAndWait {
            try pinned.setQueryGenerationFrom(.current)
            return try pinned.fetch(Self.request).first?.count ?? -1
        }
        note(first, since: start)
        guard !place.isInMemory else { return }
        let second = try pinned.performAndWait {
            pinned.refreshAllObjects()
            return try pinned.existingObject(with: ids[1]).count
        }
        place.expect(first == second, "a pinned context sees \(first), and then \(second)")
    }

    /// Reads in another context, from a block of this one.
    func readVisiting() throws {
        let start = log.clock.now()
        let (shared, id) = (shared, ids[1])
        let value = try context.performAndWait {
            try shared.performAndWait {
                shared.refresh(shared.object(with: id), mergeChanges: false)
                return try shared.existingObject(with: id).count
            }
        }
        note(value, since: start)
    }

    /// Asks the context that follows saves what it shows.
    func look() {
        let start = log.clock.now()
        let (follower, id) = (follower, ids[1])
        let value = follower.performAndWait { follower.object(with: id).count }
        looks.look(RegisterHistory.Access(value: value, start: start, end: log.clock.now()))
    }

    /// Starts a fetch that no thread waits for, and perhaps cancels it: its block is called once.
    func readAsynchronously(isCancelled: Bool) throws {
        let end = Waiter()
        let ends = Locked(0)
        let mine = own
        let request = NSFetchRequest<NSManagedObject>(entityName: "Box")
        let fetch = NSAsynchronousFetchRequest(fetchRequest: request) { [place] result in
            let names = (result.finalResult ?? []).map(\.name)
            if let error = result.operationError { place.find("a fetch fails: \(error)") }
            if !isCancelled, !mine.allSatisfy(names.contains) {
                place.find("a fetch finds \(names), not all of \(mine)")
            }
            let isFirst = ends.withLock { ends in
                ends += 1
                return ends == 1
            }
            if !isFirst { place.find("a fetch ends twice") }
            end.call()
        }
        let result = try context.performAndWait {
            UncheckedFetch(result: try context.execute(fetch) as? NSPersistentStoreAsynchronousResult)
        }
        if isCancelled { result.result?.cancel() }
        end.sleep()
    }
}

/// The handle of a fetch, which any thread may cancel.
private struct UncheckedFetch: @unchecked Sendable {
    // @unchecked Sendable: nothing but `cancel()` is called.
    let result: NSPersistentStoreAsynchronousResult?
}
