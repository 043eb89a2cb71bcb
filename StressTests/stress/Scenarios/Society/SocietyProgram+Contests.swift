import CoreData

/// Arranged conflicts, and the outcome under each policy.
extension SocietyProgram {
    func contest(_ stream: inout SeededStream) throws -> String? {
        switch stream.below(4) {
        case 0: return try contestOrder(&stream)
        case 1: return try rollBackMemberships(&stream)
        case 2: return try takeUnseen(&stream)
        default: return try joinUnseen(&stream)
        }
    }

    /// Two contexts put the same pupils into different orders.
    private func contestOrder(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(4)
        let (teacher, pupils) = (people[0], Array(people[1...]))
        try given(pupils.map { .teach($0, teacher) })
        let memoryWins = stream.chance(0.5)
        let policy: NSMergePolicy =
            memoryWins
            ? stream.pick([.mergeByPropertyObjectTrump, .overwrite])
            : stream.pick([.mergeByPropertyStoreTrump, .rollback])
        note("\(memoryWins ? "memory" : "the store") wins")
        let mine = desk(policy)
        if let trouble = try check(mine, stored, "before a conflict") { return trouble }
        var seen = stored
        try make(.shuffle(teacher, [pupils[0], pupils[2], pupils[1]]), at: mine, &seen)
        try given([.shuffle(teacher, [pupils[1], pupils[0], pupils[2]])])
        note("save")
        try mine.perform { try mine.context.save() }
        if memoryWins { settle(seen, desk()) }
        return try check(mine, stored, "after a conflict of orders") ?? checkStore("after a conflict of orders")
    }

    /// An object that gives way as a whole must give up its new memberships, and get the old ones back, on both
    /// sides.
    private func rollBackMemberships(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(3)
        let club = next()
        try given([
            .newClub(club), .join(people[1], club), .join(people[0], club), .befriend(people[0], people[1]),
        ])
        let mine = desk(.rollback)
        if let trouble = try check(mine, stored, "before a conflict") { return trouble }
        var seen = stored
        if stream.chance(0.7) { try make(.part(people[0], people[1]), at: mine, &seen) }
        if stream.chance(0.7) { try make(.befriend(people[0], people[2]), at: mine, &seen) }
        try make(.rank(people[0], 60), at: mine, &seen)
        try given([.rank(people[0], 50)])
        note("save")
        try mine.perform { try mine.context.save() }
        return try check(mine, stored, "after a rollback") ?? checkStore("after a rollback")
    }

    /// A person takes a tool from an owner who was never loaded.
    private func takeUnseen(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(2)
        let tool = next()
        try given([.newTool(tool), .give(tool, people[0])])
        let mine = desk()
        note("\(people[1]) takes tool \(tool)")
        try mine.perform {
            _ = try mine.person(people[1]).tools.insert(mine.tool(tool))
            try mine.context.save()
        }
        stored.people[people[0]]?.tools.remove(tool)
        stored.people[people[1]]?.tools.insert(tool)
        return try checkStore("after a tool was taken")
    }

    /// Members join through their own side, and the club's order is not loaded: they must be the last ones, in the
    /// order of joining.
    private func joinUnseen(_ stream: inout SeededStream) throws -> String? {
        let people = try newPeople(6)
        let club = next()
        let teacher = people[0]
        try given(
            [.newClub(club), .join(people[5], club), .join(people[1], club)]
                + [SocietyEdit.teach(people[5], teacher), .teach(people[1], teacher)]
        )
        let mine = desk()
        var seen = stored
        for serial in people[2...4].shuffled(using: &stream) {
            note("\(serial) joins \(club), pupil of \(teacher)")
            seen.join(serial, club)
            seen.teach(serial, teacher)
            try mine.perform {
                let person = try mine.person(serial)
                person.clubs.insert(try mine.club(club))
                person.teacher = try mine.person(teacher)
                if stream.chance(0.5) { mine.context.processPendingChanges() }
            }
        }
        if stream.chance(0.5), let trouble = try check(mine, seen, "with new members") { return trouble }
        return try save(mine, seen, "after new members were saved")
    }
}
