import CoreData

/// Batches must do in the store what the same changes of objects would do, delete rules included.
extension SocietyProgram {
    func changeByBatch(_ stream: inout SeededStream) throws -> String? {
        let context = stack.context()
        var after = stored
        let serial = stream.pick(stored.people.keys.sorted())
        switch stream.below(5) {
        case 0:
            let doomed = stored.people.keys.sorted().filter { _ in stream.chance(0.25) }
            note("batch deletion of \(doomed)")
            for one in doomed { after.deletePerson(one) }
            try execute(NSBatchDeleteRequest(objectIDs: doomed.compactMap { ids[$0] }), context)
        case 1:
            guard let club = stored.clubs.keys.sorted().randomElement(using: &stream) else { return nil }
            note("batch deletion of club \(club)")
            after.deleteClub(club)
            try execute(NSBatchDeleteRequest(objectIDs: [club].compactMap { ids[$0] }), context)
        case 2:
            guard let tool = stored.tools.keys.sorted().randomElement(using: &stream) else { return nil }
            note("batch deletion of tool \(tool)")
            after.deleteTool(tool)
            try execute(NSBatchDeleteRequest(objectIDs: [tool].compactMap { ids[$0] }), context)
        case 3:
            let rank = Int64(1 + stream.below(3))
            note("batch update of ranks from \(rank) on")
            for (serial, person) in stored.people where person.rank >= rank {
                after.people[serial]?.rank = person.rank + 1
            }
            let request = NSBatchUpdateRequest(entityName: "Person")
            request.predicate = NSPredicate(format: "rank >= %@", rank)
            request.propertiesToUpdate = ["rank": NSExpression(format: "rank + 1")]
            try execute(request, context)
        default:
            let teacher = stream.pick(stored.people.keys.sorted())
            guard teacher != serial, stored.people[serial]?.teacher != teacher, let id = ids[teacher] else {
                return nil
            }
            note("batch update of the teacher of \(serial): \(teacher)")
            after.teach(serial, teacher)
            let request = NSBatchUpdateRequest(entityName: "Person")
            request.predicate = NSPredicate(format: "serial == %@", serial)
            request.propertiesToUpdate = ["teacher": id]
            try execute(request, context)
        }
        settle(after, desk())
        return try checkStore("after a batch")
    }

    private func execute(_ request: NSPersistentStoreRequest, _ context: NSManagedObjectContext) throws {
        try context.performAndWait { _ = try context.execute(request) }
    }

    /// Inserts a person with the unique value of a stored one.
    ///
    /// The policy makes one out of the two.
    func upsert(_ stream: inout SeededStream) throws -> String? {
        guard
            let holder = stored.people.keys.sorted().filter({ stored.people[$0]?.code != nil }).randomElement(
                using: &stream
            ),
            let known = stored.people[holder], known.style == nil
        else { return nil }
        let memoryWins = stream.chance(0.7)
        let desk = desk(memoryWins ? .mergeByPropertyObjectTrump : .mergeByPropertyStoreTrump)
        if stream.chance(0.5) { try load(desk, &stream) }
        let friend = stream.pick(stored.people.keys.sorted())
        note("\(memoryWins ? "upsert" : "duplicate") of \(holder), with friend \(friend)")
        try desk.perform {
            let person = Person(context: desk.context)
            (person.serial, person.code, person.rank) = (holder, known.code, known.rank + 1)
            if friend != holder { person.friends = [try desk.person(friend)] }
            try desk.context.save()
        }
        var after = stored
        if memoryWins { after.people[holder]?.rank = known.rank + 1 }
        if friend != holder { after.befriend(holder, friend) }
        // It is not promised here what happens to the relationships of a duplicate that gives way.
        if !memoryWins { after = try desk.perform { try desk.picture() } }
        settle(after, self.desk())
        return try check(desk, after, "after an upsert") ?? checkStore("after an upsert")
    }
}
