import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Batches on objects that are made for them: long chains, orders that matter, and deletions that no batch may do.
extension SocietyProgram {
    func chain(_ stream: inout SeededStream) throws -> String? {
        let trouble =
            switch stream.below(5) {
            case 0: try moveByBatch(&stream)
            case 1: try computeByBatch(&stream)
            case 2: try deleteFriendsByBatch(&stream)
            case 3: try deleteHolderByBatch()
            default: try deleteChainByBatch(&stream)
            }
        if let trouble { return trouble }
        let reader = desk()
        for _ in 0..<3 { if let trouble = try ask(reader, stored, &stream) { return "after a batch, \(trouble)" } }
        if let trouble = try checkStore("after a batch") { return trouble }
        // The verifier is seldom used, as it reads the whole file.
        return try stream.chance(0.2) ? verify("after a batch") : nil
    }

    /// Makes and saves the objects that a drill needs, in another context.
    func given(_ edits: [SocietyEdit]) throws {
        let desk = desk()
        var seen = stored
        note("given:")
        for edit in edits { try make(edit, at: desk, &seen) }
        try desk.perform { try desk.context.save() }
        settle(seen, desk)
        note("end of given")
    }

    /// Makes people without relationships, and with different ranks.
    func newPeople(_ count: Int) throws -> [Int64] {
        let serials = (0..<count).map { _ in next() }
        try given(serials.enumerated().map { .newPerson($1, style: nil, rank: Int64($0 + 1)) })
        return serials
    }

    /// Demands that the file is sound, and that no file of external data is left over.
    func verify(_ moment: String) throws -> String? {
        guard run.kind == .sqlite else { return nil }
        return try StoreVerifier(storeURL: run.storeURL, model: StressModel.shared).problems().first.map {
            "\(moment), the verifier: \($0)"
        }
    }

    private func execute(_ request: NSPersistentStoreRequest) throws {
        let context = stack.context()
        try context.performAndWait { _ = try context.execute(request) }
    }

    /// A pupil who gets another teacher is the last one there, whatever the place was before.
    private func moveByBatch(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(7)
        try given(people[2...4].map { .teach($0, people[0]) } + people[5...6].map { .teach($0, people[1]) })
        let (mover, teacher) = (people[2 + stream.below(3)], people[1])
        note("batch update of the teacher of \(mover): \(teacher)")
        let request = NSBatchUpdateRequest(entityName: "Person")
        request.predicate = NSPredicate(format: "serial == %@", mover)
        request.propertiesToUpdate = ["teacher": ids[teacher] ?? NSNull()]
        try execute(request)
        stored.teach(mover, teacher)
        return nil
    }

    /// A batch that computes from other rows must use their former values.
    private func computeByBatch(_ stream: inout SeededStream) throws -> String? {
        var people = try newPeople(4)
        if stream.chance(0.5) { people.reverse() }
        try given(zip(people.dropFirst(), people).map { .teach($0, $1) })
        let serials = people.map(String.init).joined(separator: ", ")
        note("batch update of the ranks of \(serials): the sum of the pupils'")
        let request = NSBatchUpdateRequest(entityName: "Person")
        request.predicate = NSPredicate(format: "serial IN {\(serials)}")
        request.propertiesToUpdate = ["rank": NSExpression(format: "pupils.@sum.rank")]
        let before = stored
        try execute(request)
        for serial in people {
            let pupils = before.people[serial]?.pupils ?? []
            stored.people[serial]?.rank = pupils.reduce(0) { $0 + (before.people[$1]?.rank ?? 0) }
        }
        return nil
    }

    /// A deletion must take one friend away from each of the others, whichever side the friendship was made from.
    private func deleteFriendsByBatch(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(4)
        var pairs: [SocietyEdit] = []
        for one in people { for other in people where one < other { pairs.append(.befriend(one, other)) } }
        try given(pairs)
        let doomed = stream.pick(people)
        note("batch deletion of \(doomed)")
        try execute(NSBatchDeleteRequest(objectIDs: [ids[doomed]].compactMap { $0 }))
        stored.deletePerson(doomed)
        let request = NSFetchRequest<Person>(entityName: "Person")
        request.predicate = NSPredicate(format: "friends.@count == 2 AND serial >= %@", people[0])
        let context = stack.context()
        let count = try context.performAndWait { try context.count(for: request) }
        return count == 3 ? nil : "\(count) have two friends after the deletion of one of four, expected 3"
    }

    /// A batch must not delete an object to which a relationship without an inverse leads.
    private func deleteHolderByBatch() throws -> String? {
        let holder = try newPeople(1)[0]
        let desk = desk()
        let badge = try desk.perform {
            let badge = Badge(context: desk.context)
            badge.holder = try desk.person(holder)
            try desk.context.save()
            return badge.objectID
        }
        note("batch deletion of \(holder), who holds a badge")
        var isRefused = false
        let request = NSBatchDeleteRequest(objectIDs: [ids[holder]].compactMap { $0 })
        do { try execute(request) } catch let error as CocoaError
            where error.code == .validationRelationshipDeniedDelete
        { isRefused = true }
        let context = stack.context()
        let isHeld = try context.performAndWait {
            let found = try context.existingObject(with: badge) as? Badge
            let isHeld = found?.holder?.serial == holder
            found.map(context.delete)
            try context.save()
            return isHeld
        }
        return isRefused && isHeld ? nil : "a batch has deleted \(holder), to whom a badge leads"
    }

    /// A deletion must follow a chain to its end.
    private func deleteChainByBatch(_ stream: inout SeededStream) throws -> String? {
        let clubs = (0..<(3 + stream.below(4))).map { _ in next() }
        let member = try newPeople(1)[0]
        try given(
            clubs.map { .newClub($0) } + zip(clubs.dropFirst(), clubs).map { .lead($0, $1) }
                + [.join(member, stream.pick(clubs))]
        )
        let place = stream.below(2)
        note("batch deletion of club \(clubs[place])")
        try execute(NSBatchDeleteRequest(objectIDs: [ids[clubs[place]]].compactMap { $0 }))
        stored.deleteClub(clubs[place])
        return nil
    }
}
