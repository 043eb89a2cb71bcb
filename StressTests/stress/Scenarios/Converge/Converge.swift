import CoreData

/// Writers change a graph, and observers merge their saves.
///
/// Whenever all is quiet, every observer must show what is stored.
enum Converge: Scenario {
    static let name = "converge"
    static let summary = "observers merge what writers save, late and reordered, and end up with what is stored"
    static let runsOnPostgreSQL = true
    static let work = (figure: "agreements", floor: 3)
    static let nodes = Knob("nodes", 60, "the nodes of the graph, about")
    static let part = "saves"
    static let databaseWork = Bank.databaseWork
    static let knobs = [nodes, Machine.others]
    static let sabotages =
        [
            Sabotage("drop-merge", "shows"), Sabotage("skip-transaction", "history shows"),
            Sabotage("tell-twice", "as inserted twice"), Sabotage("keep-quiet", "was told of"),
            Sabotage("wrong-row", "what it was told"), Sabotage("unheard", "shows", store: .postgresql),
        ] + Sabotage.ofGuard("no-merge", "shows")
        + Sabotage.ofGuard("no-target-check", "that is not there", store: .postgresql)

    static func run(_ run: Run) throws {
        let stack = try run.open(options(run))
        let size = size(run)
        try forge(stack, size)
        let observers = try Observer.Feed.allCases.filter { run.kind.isShared || $0.isInside }.map { feed in
            // An observer that gets saves from outside has its own coordinator.
            try Observer(feed, feed.isInside ? stack : run.open(options(run)), run)
        }
        let mail = Mail(observers, run)
        for observer in observers { try observer.start() }
        let machines = try Machine.start(run)
        // Contexts that follow by themselves also follow the other processes.
        let changes = machines.isEmpty ? nil : try stack.followRemoteChanges()
        let writers = (0..<run.options.contexts).map { _ in stack.context() }
        var round = 0
        while !run.isOver {
            let end = min(ContinuousClock.now + .milliseconds(100), run.end)
            run.race(writers.count + 1 + machines.count, from: round * 100) { worker in
                let number = worker.number % 100
                if number > writers.count {
                    worker.beat("a round of another process")
                    let answer = try machines[number - writers.count - 1].ask("write")
                    if run.isSabotaged("unheard") { return }
                    mail.post(try JSONDecoder().decode([Mail.Telegram].self, from: Data(answer.utf8)))
                } else if number == writers.count {
                    while ContinuousClock.now < end { try mail.deliver(worker, all: false) }
                } else {
                    try write(worker, writers[number], number, size, mail, until: end)
                }
            }
            let last = Worker(run, round * 100 + 99)
            try last.time("agreeing") {
                try mail.deliver(last, all: true)
                try changes?.waitToCatchUp()
                try agree(run, stack, observers)
            }
            last.leave()
            run.count("agreements")
            round += 1
        }
        for machine in machines { _ = try machine.join() }
        changes?.stop()
        for observer in observers { try observer.stop() }
        try run.close(stack)
        try run.audit()
    }

    /// Writes for one round each time that the judging process asks for it, and answers with the saves.
    static func takePart(in run: Run) throws -> Data {
        let stack = try run.open(options(run))
        let mail = Mail([], run)
        let writers = (0..<run.options.contexts).map { _ in stack.context() }
        var round = 0
        while readLine() != nil {
            let end = ContinuousClock.now + .milliseconds(100)
            run.race(writers.count, from: round * 100) { worker in
                let number = worker.number % 100
                // No writer of another process has this number.
                let writer = run.machine * 100 + number
                try write(worker, writers[number], writer, size(run), mail, until: end)
            }
            try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(mail.takeOutgoing()) + Data("\n".utf8))
            round += 1
        }
        try run.close(stack)
        return Data()
    }

    private static func size(_ run: Run) -> Int {
        // With few nodes, those to which others lead are deleted more often.
        run.isSabotaged("no-target-check") ? 10 : max(run.knob(nodes), 4)
    }

    /// Shared stores keep a history, and post notifications of saves elsewhere; some observers get their changes from
    /// these.
    private static func options(_ run: Run) -> [AnyHashable: Any]? {
        guard run.kind.isShared else { return nil }
        return [NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator, _ count: Int) throws {
        let context = stack.context()
        try context.performAndWait {
            for serial in 0..<count {
                let node = Node(context: context)
                node.serial = Int64(serial)
                if serial % 6 == 0 { Mark(context: context).serial = Int64(serial) }
            }
            try context.save()
        }
    }

    // MARK: - Writing

    /// Changes a few objects and saves them, again and again.
    private static func write(
        _ worker: Worker,
        _ context: NSManagedObjectContext,
        _ number: Int,
        _ size: Int,
        _ mail: Mail,
        until end: ContinuousClock.Instant
    ) throws {
        while ContinuousClock.now < end {
            worker.beat("a writer's save")
            do {
                try worker.time("save") {
                    try context.performAndWait {
                        let all = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                        let marks = try context.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
                        for _ in 0...worker.stream.below(3) { change(context, all, marks, size, &worker.stream) }
                        // Others get time to delete the destinations of new relationships.
                        if worker.run.isSabotaged("no-target-check") { usleep(UInt32(worker.stream.below(20_000))) }
                        try mail.collecting(number, context) { try context.save() }
                    }
                }
                worker.tally.count("saves")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("conflicts")
                context.performAndWait { context.reset() }
            }
        }
    }

    private static func change(
        _ context: NSManagedObjectContext,
        _ all: [Node],
        _ marks: [Mark],
        _ size: Int,
        _ stream: inout SeededStream
    ) {
        let node = all.isEmpty ? nil : stream.pick(all)
        guard let node, !node.isDeleted else { return }
        switch stream.below(10) {
        case 0...2: node.first += 1
        case 3: node.label = "label \(stream.below(1_000))"
        case 4: node.second = Int64(stream.below(3))
        case 5: node.parent = stream.chance(0.2) ? nil : stream.pick(all.filter { !$0.isDeleted })
        case 6: if !marks.isEmpty { node.marks.insert(stream.pick(marks)) }
        case 7: if let mark = node.marks.randomElement(using: &stream) { node.marks.remove(mark) }
        case 8 where all.count > size / 2: context.delete(node)
        default:
            guard all.count < size * 2 else { return }
            let new = Node(context: context)
            new.serial = Int64(stream.below(1_000_000))
            new.parent = node
        }
    }

    // MARK: - Agreeing

    private static func agree(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ observers: [Observer]) throws {
        run.watchdog.beat(-1, "comparing observers with the store")
        defer { run.watchdog.leave(-1) }
        // The fresh coordinator, where there can be one, avoids the row cache that most observers share.
        let fresh = run.kind.isShared ? try run.open(options(run)) : stack
        let context = fresh.context()
        let stored = try context.performAndWait { try GraphPicture(context, prefetches: true) }
        for observer in observers { try observer.compare(with: stored) }
        if fresh !== stack { try run.close(fresh) }
    }
}
