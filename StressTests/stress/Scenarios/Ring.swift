import CoreData

/// Contexts rotate objects in a ring.
///
/// There must always be one ring through all objects.
enum Ring: Scenario {
    static let name = "ring"
    static let summary = "rotates to-one relationships in threes: one ring through all objects, inverses agree"
    static let runsOnPostgreSQL = true
    static let work = (figure: "rotations", floor: 100)
    static let size = Knob("ring", 24, "the objects in the ring")
    static let knobs = [size]
    static let sabotages = [Sabotage("overwrite", "ring")]

    static func run(_ run: Run) throws {
        let count = max(run.knob(size), 5)
        let stack = try run.open()
        try forge(stack, count)
        let writers = run.options.contexts
        run.race(writers + max(1, writers / 2)) { worker in
            if worker.number < writers { try rotate(worker, stack) } else { try watch(worker, stack, count) }
        }
        try settle(run, stack, count)
        try run.close(stack)
        try run.audit()
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator, _ count: Int) throws {
        let context = stack.context()
        try context.performAndWait {
            let all = (0..<count).map { number in
                let account = Account(context: context)
                account.number = Int64(number)
                return account
            }
            for (number, account) in all.enumerated() { account.next = all[(number + 1) % count] }
            try context.save()
        }
    }

    /// Changes a → b → c → d to a → c → b → d, again and again, until the end.
    private static func rotate(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context(worker.run.isSabotaged("overwrite") ? .overwrite : .error)
        let ids = try Bank.accountIDs(context)
        while !worker.isOver {
            worker.beat("a rotation")
            let start = worker.stream.pick(ids)
            do {
                try worker.time("save") {
                    try context.performAndWait {
                        guard let a = try context.existingObject(with: start) as? Account, let b = a.next,
                            let c = b.next, let d = c.next, Set([a, b, c, d]).count == 4
                            // The objects were read at different times, which is allowed. The save would notice.
                        else { return context.reset() }
                        a.next = c
                        c.next = b
                        b.next = d
                        try context.save()
                    }
                }
                worker.tally.count("rotations")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("conflicts")
                context.performAndWait { context.reset() }
            }
        }
    }

    /// Reads the whole ring in one fetch, again and again.
    private static func watch(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ count: Int) throws {
        let context = stack.context()
        let request = NSFetchRequest<NSDictionary>(entityName: "Account")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["objectID", "next", "previous"]
        while !worker.isOver {
            worker.beat("reading the ring")
            var next: [NSManagedObjectID: NSManagedObjectID] = [:]
            var previous: [NSManagedObjectID: NSManagedObjectID] = [:]
            try worker.time("fetch") {
                try context.performAndWait {
                    for row in try context.fetch(request) {
                        guard let id = row["objectID"] as? NSManagedObjectID else { continue }
                        next[id] = row["next"] as? NSManagedObjectID
                        previous[id] = row["previous"] as? NSManagedObjectID
                    }
                }
            }
            worker.tally.count("reads")
            if let break_ = flaw(next, previous, count) { worker.tally.find("reader \(worker.number): \(break_)") }
        }
    }

    /// The fault of a ring; `nil` if there is none.
    private static func flaw<ID: Hashable>(_ next: [ID: ID], _ previous: [ID: ID], _ count: Int) -> String? {
        guard next.count == count, let start = next.keys.first else { return "the ring has \(next.count) links" }
        let odd = next.filter { previous[$0.value] != $0.key }
        if !odd.isEmpty {
            let links = odd.prefix(4).map { "\($0) → \($1) ← \(previous[$1].map { "\($0)" } ?? "nothing")" }
            return "in the ring \(odd.count) inverses disagree: \(links.joined(separator: ", "))"
        }
        var (at, steps) = (start, 0)
        repeat {
            guard let following = next[at] else { return "the ring is open" }
            at = following
            steps += 1
        } while at != start && steps <= count
        return steps == count ? nil : "the ring is closed after \(steps) objects of \(count)"
    }

    private static func settle(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ count: Int) throws {
        let context = stack.context()
        try context.performAndWait {
            var next: [NSManagedObjectID: NSManagedObjectID] = [:]
            var previous: [NSManagedObjectID: NSManagedObjectID] = [:]
            for account in try context.fetch(NSFetchRequest<Account>(entityName: "Account")) {
                next[account.objectID] = account.next?.objectID
                previous[account.objectID] = account.previous?.objectID
            }
            if let flaw = flaw(next, previous, count) { run.find("at the end \(flaw)") }
        }
    }
}
