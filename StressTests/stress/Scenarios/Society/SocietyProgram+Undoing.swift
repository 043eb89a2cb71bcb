import CoreData

/// Undo takes back the changes of this context, and none of others.
extension SocietyProgram {
    func undoBeside(_ stream: inout SeededStream) throws -> String? {
        switch stream.below(4) {
        case 0: return try undoUponDeletion(&stream)
        case 1: return try undoOrder(&stream)
        case 2: return try undoResolved(&stream)
        default: return try undoBesideMerge(&stream)
        }
    }

    /// Others make changes, and a desk merges them.
    private func mergeOthers(_ edits: [SocietyEdit], _ desk: SocietyDesk) throws {
        let mail = SocietyMail(.NSManagedObjectContextDidSave)
        defer { mail.stop() }
        try given(edits)
        note("merge")
        for message in mail.take() { desk.perform { desk.context.mergeChanges(fromContextDidSave: message) } }
    }

    /// Objects that others have deleted must not come back.
    private func undoUponDeletion(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        let mine = desk(undoes: true)
        var seen = stored
        try make(.rank(people[0], 50), at: mine, &seen)
        try make(.rank(people[1], 60), at: mine, &seen)
        if let trouble = try save(mine, seen, "after a save") { return trouble }
        try mergeOthers([.deletePerson(people[0])], mine)
        note("undo of all")
        for _ in 0..<2 { mine.perform { mine.context.undo() } }
        var wanted = stored
        wanted.people[people[1]]?.rank = 2
        if let trouble = try check(mine, wanted, "after undo beside a deletion") { return trouble }
        return try save(mine, wanted, "after undo beside a deletion and a save")
    }

    /// A pupil who has come since must stay, behind the others.
    private func undoOrder(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(4)
        let (teacher, pupils) = (people[0], Array(people[1...]))
        try given(pupils.map { .teach($0, teacher) })
        let mine = desk(undoes: true)
        _ = try mine.perform { try mine.person(teacher).pupils.map(\.serial) }
        var seen = stored
        try make(.shuffle(teacher, [pupils[2], pupils[0], pupils[1]]), at: mine, &seen)
        if let trouble = try save(mine, seen, "after a save") { return trouble }
        let late = next()
        let place = stream.below(4)
        try mergeOthers([.newPerson(late, style: nil, rank: 0), .place(late, teacher, place)], mine)
        if let trouble = try check(mine, stored, "after a merge") { return trouble }
        note("undo")
        mine.perform { mine.context.undo() }
        var wanted = stored
        wanted.people[teacher]?.pupils = pupils + [late]
        if let trouble = try check(mine, wanted, "after undo of an order") { return trouble }
        return try save(mine, wanted, "after undo of an order and a save")
    }

    /// The changes that a policy has brought are no step of undo.
    private func undoResolved(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        let mine = desk(stream.chance(0.5) ? .mergeByPropertyStoreTrump : .mergeByPropertyObjectTrump, undoes: true)
        if let trouble = try check(mine, stored, "before a conflict") { return trouble }
        var seen = stored
        try make(.name(people[0], "mine"), at: mine, &seen)
        try given([.rank(people[0], 50), .teach(people[0], people[1])])
        note("save")
        try mine.perform { try mine.context.save() }
        var wanted = stored
        wanted.people[people[0]]?.name = "mine"
        settle(wanted, desk())
        if let trouble = try check(mine, wanted, "after a resolved save") ?? checkStore("after a resolved save") {
            return trouble
        }
        note("undo")
        mine.perform { mine.context.undo() }
        wanted.people[people[0]]?.name = nil
        if let trouble = try check(mine, wanted, "after undo of a resolved save") { return trouble }
        return try save(mine, wanted, "after undo of a resolved save and another")
    }

    /// A merge does not belong to the step of the change just before it.
    private func undoBesideMerge(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        let mine = desk(undoes: true)
        if let trouble = try check(mine, stored, "before a merge") { return trouble }
        note("change that is in no event yet")
        let target = stream.pick(people)
        try mine.perform { try mine.person(target).rank = 50 }
        try mergeOthers([.name(people[0], "theirs"), .befriend(people[0], people[1])], mine)
        var wanted = stored
        wanted.people[target]?.rank = 50
        if let trouble = try check(mine, wanted, "after a merge") { return trouble }
        note("undo")
        mine.perform { mine.context.undo() }
        return try check(mine, stored, "after a merge and undo")
    }
}
