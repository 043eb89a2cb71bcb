import CoreData

/// Saves at a steady rate, directly and through children.
///
/// It deletes as many rows as it inserts.
enum SoakWriter {
    static func work(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        while !worker.isOver {
            worker.beat("a small save")
            let context = CountedContext(stack)
            let isThroughChild = worker.stream.chance(0.25)
            try SoakTimes.measure("save", worker) {
                if isThroughChild {
                    let child = CountedContext(below: context)
                    try child.performAndWait { try change(worker, child) }
                    try context.performAndWait { try context.save() }
                    worker.tally.count("child-saves")
                } else {
                    try context.performAndWait { try change(worker, context) }
                }
                slowDown(worker)
            }
            worker.tally.count("saves")
            if worker.run.isSabotaged("leak") { Leaks.keep(Array(repeating: UInt8(1), count: 200_000)) }
            if worker.run.isSabotaged("open-files") { _ = open("/dev/null", O_RDONLY) }
            if worker.run.isSabotaged("kept-contexts") { Leaks.keep(context) }
            usleep(1_000)
        }
    }

    private static func change(_ worker: Worker, _ context: NSManagedObjectContext) throws {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "serial == %@", worker.stream.below(Soak.rows))
        guard let node = try context.fetch(request).first else { return }
        SoakCensus.follow(node)
        node.first += 1
        node.label = String(repeating: "z", count: worker.stream.below(200))
        let own = Int64(1_000 + worker.number)
        let child = Node(context: context)
        child.serial = own
        request.predicate = NSPredicate(format: "serial == %@", own)
        request.includesPendingChanges = false
        for old in try context.fetch(request) { context.delete(old) }
        try context.save()
    }

    /// Makes saves slower and slower, for a sabotage.
    private static func slowDown(_ worker: Worker) {
        guard worker.run.isSabotaged("slower") else { return }
        let share = (ContinuousClock.now - worker.run.start) / (worker.run.end - worker.run.start)
        if share > 0.67 { SoakTimes.burn(.milliseconds(30)) }
    }
}

/// The memory that a sabotage never frees.
private enum Leaks {
    // nonisolated(unsafe): guarded by the lock.
    nonisolated(unsafe) private static var all: [Any] = []
    private static let lock = NSLock()

    static func keep(_ thing: Any) { lock.withLock { all.append(thing) } }
}
