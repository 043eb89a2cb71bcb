import CoreData
import StrataLocks

/// The data that the store keeps beside rows: files of portraits, the history, and how far consumers have read it.
extension SocietyProgram {
    func leave(_ stream: inout SeededStream) throws -> String? {
        switch stream.below(6) {
        case 0: return try swapPortraits(&stream)
        case 1: return try pinOverlapping(&stream)
        case 2: return try releaseBranch(&stream)
        case 3: return try loseElsewhere()
        case 4: return try shareConnections()
        default: return try purge(&stream)
        }
    }

    /// Rows that are written twice, because they swap a unique value, must leave no file behind.
    private func swapPortraits(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        try given(people.map { .code($0, "u\($0)") } + people.map { .portrait($0, Int64(4 + stream.below(90))) })
        let mine = desk()
        var seen = stored
        try make(.swapCodes(people[0], people[1]), at: mine, &seen)
        for serial in people { try make(.portrait(serial, Int64(100 + stream.below(90))), at: mine, &seen) }
        return try save(mine, seen, "after a swap") ?? verify("after a swap")
    }

    /// Contexts are pinned to different versions.
    ///
    /// Each must read the portrait of its version as long as it is pinned.
    private func pinOverlapping(_ stream: inout SeededStream) throws -> String? {
        guard run.kind == .sqlite else { return nil }
        let serial = try newPeople(1)[0]
        var pinned: [(desk: SocietyDesk, society: Society)] = []
        for number in 0..<(2 + stream.below(2)) {
            try given([.portrait(serial, Int64(100 + number * 20 + stream.below(20)))])
            note("pin")
            let desk = desk()
            try desk.perform {
                try desk.context.setQueryGenerationFrom(.current)
                // The first read determines the version.
                _ = try desk.context.count(for: NSFetchRequest<Tool>(entityName: "Tool"))
            }
            pinned.append((desk, stored))
        }
        try given([.portrait(serial, Int64(200 + stream.below(50)))])
        while !pinned.isEmpty {
            let one = pinned.remove(at: stream.below(pinned.count))
            note("read and unpin")
            if let trouble = try check(one.desk, one.society, "in a pinned context") { return trouble }
            try one.desk.perform {
                one.desk.letGo()
                one.desk.context.reset()
                try one.desk.context.setQueryGenerationFrom(nil)
            }
        }
        return try checkStore("after pins")
    }

    /// A club is deleted after others have given it a branch.
    ///
    /// The branch must be reported as changed in all ways.
    private func releaseBranch(_ stream: inout SeededStream) throws -> String? {
        let (head, branch) = (next(), next())
        try given([.newClub(head), .newClub(branch)])
        let mine = desk()
        _ = try mine.perform { try mine.club(head).branches.count }
        try given([.lead(branch, head)])
        let observer = desk()
        if let trouble = try check(observer, stored, "before a deletion") { return trouble }
        let mail = SocietyMail(
            stream.chance(0.6) ? .NSManagedObjectContextDidSaveObjectIDs : .NSManagedObjectContextDidSave,
            of: mine.context
        )
        defer { mail.stop() }
        let token = stack.currentPersistentHistoryToken(fromStores: nil)
        var seen = stored
        seen.lead(branch, 0)
        seen.deleteClub(head)
        note("deletion of club \(head)")
        try mine.perform {
            mine.context.delete(try mine.club(head))
            try mine.context.save()
        }
        settle(seen, desk())
        for message in mail.take() { observer.perform { observer.context.mergeChanges(fromContextDidSave: message) } }
        if let trouble = try checkStore("after a deletion") { return trouble }
        if let trouble = try check(observer, stored, "after the merge of a deletion") { return trouble }
        guard run.kind == .sqlite else { return nil }
        let told = try changes(since: token).filter { $0.changedObjectID == ids[branch] }
            .flatMap { $0.updatedProperties ?? [] }.map(\.name)
        return told == ["head"] ? nil : "the history tells \(told) of the branch of a club that was deleted"
    }

    /// The changes in the history since a token.
    func changes(since token: NSPersistentHistoryToken?) throws -> [NSPersistentHistoryChange] {
        let context = stack.context()
        return try context.performAndWait {
            let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
            let all = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
            return all.flatMap { $0.changes ?? [] }
        }
    }

    /// A purge must wait for the slowest consumer.
    ///
    /// A consumer never goes back.
    private func purge(_ stream: inout SeededStream) throws -> String? {
        guard run.kind == .sqlite else { return nil }
        let serial = try newPeople(1)[0]
        var tokens = [stack.currentPersistentHistoryToken(fromStores: nil)]
        let names = ["one", "other"]
        for name in names {
            if let token = tokens[0] { try stack.setPersistentHistoryToken(token, forConsumer: name) }
        }
        var places = [0, 0]
        for _ in 0..<6 {
            let edit: SocietyEdit = .rank(serial, (stored.people[serial]?.rank ?? 0) + 1)
            try given([edit])
            tokens.append(stack.currentPersistentHistoryToken(fromStores: nil))
            let who = stream.below(2)
            let place = stream.below(tokens.count)
            // A token before all consumers may have been purged, so it is left out.
            if place < places.min() ?? 0 { continue }
            note("\(names[who]) has read to \(place)")
            if let token = tokens[place] { try stack.setPersistentHistoryToken(token, forConsumer: names[who]) }
            places[who] = max(places[who], place)
            if stream.chance(0.6) { try stack.purgePersistentHistory() }
            for (name, place) in zip(names, places) {
                guard let token = try stack.persistentHistoryToken(forConsumer: name) else {
                    return "\(name) is unknown"
                }
                let count = try changes(since: token).count
                if count != tokens.count - 1 - place {
                    return "\(name) has read to \(place), and gets \(count) of \(tokens.count - 1) changes after that"
                }
            }
        }
        for name in names { try stack.removePersistentHistoryConsumer(named: name) }
        return nil
    }

    /// If a conflict shows that another coordinator has deleted an object, then the object must be gone for all
    /// contexts.
    private func loseElsewhere() throws -> String? {
        guard run.kind == .sqlite else { return nil }
        let serial = try newPeople(1)[0]
        guard let id = ids[serial] else { return nil }
        let mine = desk()
        try mine.perform { try mine.person(serial).rank = 50 }
        let second = try run.open([NSPersistentHistoryTrackingKey: true])
        defer { try? run.close(second) }
        note("deletion of \(serial) through another coordinator")
        let other = second.context()
        try other.performAndWait {
            let request = NSFetchRequest<Person>(entityName: "Person")
            request.predicate = NSPredicate(format: "serial == %@", serial)
            try other.fetch(request).forEach(other.delete)
            try other.save()
        }
        stored.deletePerson(serial)
        do {
            try mine.perform { try mine.context.save() }
            return "\(serial) was deleted through another coordinator, and a save of it was not refused"
        } catch let error as CocoaError where error.code == .managedObjectMerge {}
        let context = stack.context()
        let isThere = try context.performAndWait {
            do { _ = try context.existingObject(with: id) } catch let error as CocoaError
                where error.code == .managedObjectReferentialIntegrity
            { return false }
            return true
        }
        return isThere ? "\(serial) is found by its ID, though a conflict has shown that it is gone" : nil
    }

    /// Each reader that waits for a connection must get one in its turn.
    private func shareConnections() throws -> String? {
        guard run.kind == .sqlite else { return nil }
        note("six readers, two connections")
        let narrow = try run.open([NSPersistentHistoryTrackingKey: true, NSPersistentStoreConnectionPoolMaxSizeKey: 2])
        defer { try? run.close(narrow) }
        let count = stored.people.count
        let troubles = Locked<[String]>([])
        let group = DispatchGroup()
        for _ in 0..<6 {
            group.enter()
            Thread.detachNewThread {
                for _ in 0..<20 {
                    let context = narrow.context()
                    do {
                        let found = try context.performAndWait {
                            try context.fetch(NSFetchRequest<Person>(entityName: "Person")).count
                        }
                        if found != count { troubles.withLock { $0.append("\(found) people, expected \(count)") } }
                    } catch { troubles.withLock { $0.append(describe(error)) } }
                }
                group.leave()
            }
        }
        guard group.wait(timeout: .now() + 10) == .success else {
            return "readers that wait for a connection do not end"
        }
        return troubles.withLock { $0.first }
    }
}
