import CoreData

/// Followed results, and merges of notifications with little content. Contexts and results must show what is stored.
extension SocietyProgram {
    func follow(_ stream: inout SeededStream) throws -> String? {
        switch stream.below(7) {
        case 0: return try followInsertions(&stream)
        case 1: return try followEquals(&stream)
        case 2: return try followUpdate(&stream)
        case 3: return try followSection(&stream)
        case 4: return try mergeBatch(&stream)
        case 5: return try mergeBackwards(&stream)
        default: return try mergeRevival(&stream)
        }
    }

    /// Several insertions come at once.
    ///
    /// The delegate must get them in the order of their places.
    private func followInsertions(_ stream: inout SeededStream) throws -> String? {
        let observer = desk()
        var query = SocietyQuery()
        query.order = [("rank", stream.chance(0.5)), ("serial", stream.chance(0.5))]
        let results = try SocietyResults(observer, query)
        let news: [SocietyEdit] = (0..<5).map { _ in .newPerson(next(), style: nil, rank: Int64(stream.below(9))) }
        if stream.chance(0.5) {
            var seen = stored
            observer.perform { observer.context.processPendingChanges() }
            note("own: \(news)")
            for edit in news { edit.change(&seen) }
            try observer.perform {
                for edit in news {
                    guard case .newPerson(let serial, _, let rank) = edit else { continue }
                    let person = Person(context: observer.context)
                    (person.serial, person.rank) = (serial, rank)
                }
                observer.context.processPendingChanges()
                if let trouble = try results.check(seen) { throw StressError(trouble) }
                try observer.context.save()
            }
            for person in try observer.perform({ try observer.context.fetch(query.request(Person.self)) }) {
                observer.perform { learn(person.serial, person.objectID) }
            }
            stored = seen
            return try results.check(stored)
        }
        let mail = SocietyMail(.NSManagedObjectContextDidSave)
        defer { mail.stop() }
        try given(news)
        for message in mail.take() { observer.perform { observer.context.mergeChanges(fromContextDidSave: message) } }
        return try results.check(stored).map { "after a merge: \($0)" }
    }

    /// Where sort keys are equal and a limit cuts, the results must be those of a fetch.
    private func followEquals(_ stream: inout SeededStream) throws -> String? {
        try given((0..<3).map { _ in .newPerson(next(), style: nil, rank: Int64(stream.below(2))) })
        let observer = desk()
        var query = SocietyQuery()
        query.order = [("rank", stream.chance(0.5))]
        query.limit = 1 + stream.below(5)
        let results = try SocietyResults(observer, query)
        var seen = stored
        for _ in 0..<3 {
            let (serial, rank) = (stream.pick(seen.people.keys.sorted()), Int64(stream.below(2)))
            if stream.chance(0.5), seen.people[serial]?.rank != rank {
                try make(.rank(serial, rank), at: observer, &seen)
            } else {
                try make(.newPerson(next(), style: nil, rank: rank), at: observer, &seen)
            }
            if let trouble = try results.checkAgainstFetch() { return trouble }
        }
        // No check follows, as a save may change the order of equal keys.
        return try save(observer, seen, "after a save beside results")
    }

    /// The delegate must get a change of an object that stays in the results, even behind an offset.
    private func followUpdate(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(3)
        let observer = desk()
        var query = SocietyQuery()
        query.order = [("serial", true)]
        query.offset = stream.below(3)
        query.limit = stream.chance(0.3) ? 1_000 : 0
        let results = try SocietyResults(observer, query)
        let (serial, rank) = (people[stream.below(3)], Int64(50))
        if stream.chance(0.5) {
            var seen = stored
            try make(.rank(serial, rank), at: observer, &seen)
            if let trouble = try results.check(seen) { return trouble }
        } else {
            let mail = SocietyMail(.NSManagedObjectContextDidSave)
            defer { mail.stop() }
            _ = try observer.perform { try observer.person(serial).rank }
            try given([.rank(serial, rank)])
            for message in mail.take() {
                observer.perform { observer.context.mergeChanges(fromContextDidSave: message) }
            }
            if let trouble = try results.check(stored) { return trouble }
        }
        return results.hasToldOf(ids[serial]) ? nil : "followed results do not tell that \(serial) has changed"
    }

    /// A section must follow from its objects, whatever they are sorted by.
    private func followSection(_ stream: inout SeededStream) throws -> String? {
        let serial = try newPeople(1)[0]
        let observer = desk()
        let request = NSFetchRequest<Person>(entityName: "Person")
        request.predicate = NSPredicate(format: "serial == %@", serial)
        request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
        let controller = NSFetchedResultsController(
            fetchRequest: request,
            managedObjectContext: observer.context,
            sectionNameKeyPath: "rank",
            cacheName: nil
        )
        let listener = SocietyListener()
        controller.delegate = listener
        try observer.perform { try controller.performFetch() }
        var seen = stored
        for rank in [Int64(50), 60] {
            try make(.rank(serial, rank), at: observer, &seen)
            let names = observer.perform { (controller.sections ?? []).map(\.name) }
            if names != ["\(rank)"] { return "the sections are \(names), expected \(rank)" }
        }
        return try save(observer, seen, "after a save beside sections")
    }

    /// The notification of a batch has only the IDs of deleted objects.
    private func mergeBatch(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(4)
        let (doomed, club) = (people[0], next())
        try given([
            .newClub(club), .join(people[3], club), .join(doomed, club), .befriend(doomed, people[1]),
            .befriend(people[2], doomed), .teach(people[3], people[1]), .teach(doomed, people[1]),
        ])
        let observer = desk()
        if let trouble = try check(observer, stored, "before a merge") { return trouble }
        if stream.chance(0.5) {
            note("as a fault")
            try observer.perform { observer.context.refresh(try observer.person(doomed), mergeChanges: false) }
        }
        note("batch deletion of \(doomed), merge")
        let context = stack.context()
        guard let id = ids[doomed] else { return nil }
        try context.performAndWait { _ = try context.execute(NSBatchDeleteRequest(objectIDs: [id])) }
        stored.deletePerson(doomed)
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSDeletedObjectsKey: [id]],
            into: [observer.context]
        )
        return try check(observer, stored, "after the merge of a batch deletion")
    }

    /// The deletion of an object is merged before its insertion.
    private func mergeBackwards(_ stream: inout SeededStream) throws -> String? {
        let teacher = try newPeople(1)[0]
        let observer = desk()
        if let trouble = try check(observer, stored, "before a merge") { return trouble }
        var query = SocietyQuery()
        query.order = [("serial", true)]
        let results = try SocietyResults(observer, query)
        let mail = SocietyMail(
            stream.chance(0.4) ? .NSManagedObjectContextDidSaveObjectIDs : .NSManagedObjectContextDidSave
        )
        defer { mail.stop() }
        let late = next()
        try given([.newPerson(late, style: nil, rank: 1), .teach(late, teacher)])
        try given([.deletePerson(late)])
        note("merge, the last first")
        for message in mail.take().reversed() {
            observer.perform { observer.context.mergeChanges(fromContextDidSave: message) }
        }
        if let trouble = try results.check(stored) { return "after a merge: \(trouble)" }
        let ghosts = observer.perform {
            observer.context.processPendingChanges()
            return observer.context.registeredObjects.filter { !$0.isFault && !$0.isDeleted }
                .compactMap { ($0 as? Person)?.serial }.filter { stored.people[$0] == nil }
        }
        if !ghosts.isEmpty { return "after a merge the context has \(ghosts), who are gone" }
        return try check(observer, stored, "after a merge")
    }

    /// The former deletion of an object that has come back is merged last.
    private func mergeRevival(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        let serial = people[0]
        try given([.befriend(serial, people[1])])
        let (observer, reviver) = (desk(), desk(.mergeByPropertyObjectTrump))
        for one in [observer, reviver] { if let trouble = try check(one, stored, "before a merge") { return trouble } }
        let mail = SocietyMail(.NSManagedObjectContextDidSave)
        defer { mail.stop() }
        var seen = stored
        try make(.rank(serial, 50), at: reviver, &seen)
        try given([.deletePerson(serial)])
        note("save of what is gone")
        try reviver.perform { try reviver.context.save() }
        let reader = desk()
        let after = try reader.perform { try reader.picture() }
        if after.people[serial]?.rank != 50 { return "\(serial) was not brought back" }
        settle(after, reader)
        note("merge, the last first")
        for message in mail.take().reversed() {
            observer.perform { observer.context.mergeChanges(fromContextDidSave: message) }
        }
        return try check(observer, stored, "after the merge of a deletion that is over")
    }
}

/// A delegate, without which results are not followed.
private final class SocietyListener: NSObject, NSFetchedResultsControllerDelegate {
    func controllerDidChangeContent(_ controller: NSFetchedResultsController<NSFetchRequestResult>) {}
}
