import CoreData

/// Fetches of several statements while others save: each result is of one moment.
///
/// Each team has counts of its members and its marks. Members and marks change together with these counts.
enum Answers: Scenario {
    static let name = "answers"
    static let summary = "fetches of several statements while others save; each answer is of one moment"
    static let runsOnPostgreSQL = true
    static let work = (figure: "answers", floor: 100)
    static let teams = Knob("teams", 5, "fewer teams mean more conflicts, and more changes of each")
    static let knobs = [teams]
    static let sabotages =
        [Sabotage("two-saves", "of another moment")]
        + Sabotage.ofGuard("no-common-snapshot", "of another moment", store: .postgresql)

    private static let membersOfTeam = 6
    private static let marks = 8

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let ids = try makeTeams(max(run.knob(teams), 2), stack)
        run.race(run.options.contexts) { worker in
            if worker.number % 2 == 0 { try change(worker, stack, ids) } else { try read(worker, stack) }
        }
        try run.close(stack)
        try run.audit()
    }

    /// The IDs of the teams and of the marks.
    private typealias IDs = (teams: [NSManagedObjectID], marks: [NSManagedObjectID])

    private static func makeTeams(_ count: Int, _ stack: NSPersistentStoreCoordinator) throws -> IDs {
        let context = stack.context()
        return try context.performAndWait {
            let marks = (0..<marks).map { _ in Mark(context: context) }
            let teams = (0..<count).map { number in
                let team = Node(context: context)
                (team.label, team.serial) = ("team", Int64(number))
                team.children = Set((0..<membersOfTeam).map { _ in Node(context: context) })
                (team.first, team.second) = (Int64(membersOfTeam), 0)
                return team
            }
            try context.save()
            return (teams.map(\.objectID), marks.map(\.objectID))
        }
    }

    // MARK: - Saving

    private static func change(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ ids: IDs) throws {
        let context = stack.context()
        context.stalenessInterval = 0
        while !worker.isOver {
            worker.beat("a change of two teams")
            let from = worker.stream.below(ids.teams.count)
            let to = (from + 1 + worker.stream.below(ids.teams.count - 1)) % ids.teams.count
            let mark = worker.stream.pick(ids.marks)
            let isHalved = worker.run.isSabotaged("two-saves")
            do {
                try worker.time("save") {
                    try context.performAndWait {
                        context.reset()
                        try move(ids.teams[from], ids.teams[to], mark, context, isHalved)
                        try context.save()
                    }
                }
                worker.tally.count("saves")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("conflicts")
            }
        }
    }

    /// Moves a member to another team, and adds a mark to the first team or removes it.
    private static func move(
        _ from: NSManagedObjectID,
        _ to: NSManagedObjectID,
        _ mark: NSManagedObjectID,
        _ context: NSManagedObjectContext,
        _ isHalved: Bool
    ) throws {
        guard let from = try context.existingObject(with: from) as? Node,
            let to = try context.existingObject(with: to) as? Node,
            let mark = try context.existingObject(with: mark) as? Mark
        else { throw StressError("a team or a mark is of another class") }
        if let member = from.children.first {
            member.parent = to
            if isHalved { try context.save() }
            (from.first, to.first) = (from.first - 1, to.first + 1)
        }
        let isMarked = from.marks.contains(mark)
        if isMarked { from.marks.remove(mark) } else { from.marks.insert(mark) }
        from.second += isMarked ? -1 : 1
    }

    // MARK: - Reading

    /// Fetches teams whose counts are wrong.
    ///
    /// There are none at any moment.
    ///
    /// The store for PostgreSQL evaluates `MATCHES` in the process, together with everything beside it in an OR. So
    /// it reads the teams, then their members, and then their marks.
    private static func read(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(
            format: "label == 'team' AND (children.@count != first OR marks.@count != second OR label MATCHES 'no.*')"
        )
        while !worker.isOver {
            worker.beat("a fetch of several statements")
            let context = stack.context()
            let found = try worker.time("fetch") {
                try context.performAndWait {
                    worker.stream.chance(0.5) ? try context.fetch(request).count : try context.count(for: request)
                }
            }
            if found > 0 { worker.tally.find("\(found) teams have members or marks of another moment") }
            worker.tally.count("answers")
        }
    }
}
