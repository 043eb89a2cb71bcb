import CoreData
import Synchronization

/// Random legal calls between contexts, parents and the coordinator, with handlers that call back in: all of them return.
enum Deadlock: Scenario {
    static let name = "deadlock"
    static let summary = "random legal perform and performAndWait calls, handlers calling back in: all return"
    static let work = (figure: "calls", floor: 500)
    static let threads = Knob("threads", 16, "threads that call, more than any pool is wide")
    static let knobs = [threads]
    static let sabotages = [
        Sabotage("hang", "has not come back", exit: .stalled), Sabotage("ring", "deadlock:", exit: nil),
    ]

    /// A tree of contexts: the first are roots, and each knows its parent.
    private struct Grove: Sendable {
        let coordinator: NSPersistentStoreCoordinator
        let contexts: [NSManagedObjectContext]
    }

    static func run(_ run: Run) throws {
        let stack = try run.open()
        try forge(stack)
        var contexts = (0..<2).map { _ in stack.context(.mergeByPropertyObjectTrump) }
        let main = NSManagedObjectContext(.mainQueue)
        main.persistentStoreCoordinator = stack
        main.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        contexts.append(main)
        for level in [0..<3, 3..<6] {
            for parent in level {
                let child = NSManagedObjectContext(.privateQueue)
                child.parent = contexts[parent]
                contexts.append(child)
            }
        }
        for context in contexts { context.automaticallyMergesChangesFromParent = true }
        let grove = Grove(coordinator: stack, contexts: contexts)
        // A handler that waits upwards and enqueues sideways, on the saving context's queue.
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didSaveObjectsNotification,
            object: nil,
            queue: nil
        ) { notification in
            guard let context = notification.object as? NSManagedObjectContext else { return }
            if let parent = context.parent { parent.performAndWait { _ = parent.hasChanges } }
            stack.performAndWait {}
            grove.contexts[0].perform {}
            run.count("handlers")
        }
        defer { NotificationCenter.default.removeObserver(token) }
        let isDone = Atomic(false)
        let pending = DispatchGroup()
        // The main thread serves its queue meanwhile.
        Thread.detachNewThread {
            run.race(run.knob(threads)) { try play($0, grove, pending) }
            pending.wait()
            isDone.store(true, ordering: .releasing)
        }
        while !isDone.load(ordering: .acquiring) {
            run.watchdog.beat(-1, "the main queue")
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.02))
        }
        run.watchdog.leave(-1)
        try run.close(stack)
        try run.audit()
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        try context.performAndWait {
            for serial in 0..<8 { Node(context: context).serial = Int64(serial) }
            try context.save()
        }
    }

    private static func play(_ worker: Worker, _ grove: Grove, _ pending: DispatchGroup) throws {
        if worker.number < 2, worker.run.isSabotaged("hang") {
            // Waiting by other means than the framework's cannot be seen, only its length.
            return grove.contexts[worker.number].performAndWait {
                worker.beat("a semaphore that nobody signals")
                DispatchSemaphore(value: 0).wait()
            }
        }
        if worker.run.isSabotaged("ring") {
            let (one, other) = (grove.contexts[worker.number % 2], grove.contexts[(worker.number + 1) % 2])
            while true { one.performAndWait { other.performAndWait {} } }
        }
        while !worker.isOver {
            worker.beat("a call")
            let start = worker.stream.pick(grove.contexts)
            try worker.time("call") { try call(start, worker, grove, pending, depth: 0) }
        }
    }

    /// One call, with what is called inside it.
    private static func call(
        _ context: NSManagedObjectContext,
        _ worker: Worker,
        _ grove: Grove,
        _ pending: DispatchGroup,
        depth: Int
    ) throws {
        worker.tally.count("calls")
        switch worker.stream.below(5) {
        case 0:
            pending.enter()
            context.perform {
                _ = context.hasChanges
                pending.leave()
            }
        case 1:
            pending.enter()
            Task {
                await context.perform { context.processPendingChanges() }
                pending.leave()
            }
        default:
            try context.performAndWait {
                try act(context, worker)
                guard depth < 6 else { return }
                // Legal from here: upwards with waiting, anywhere without, and the context itself.
                var way: [NSManagedObjectContext] = [context]
                while let parent = way[way.count - 1].parent { way.append(parent) }
                if worker.stream.chance(0.6) {
                    try call(worker.stream.pick(way), worker, grove, pending, depth: depth + 1)
                }
                if worker.stream.chance(0.3) { grove.coordinator.performAndWait { worker.tally.count("calls") } }
                if worker.stream.chance(0.3) {
                    pending.enter()
                    worker.stream.pick(grove.contexts).perform { pending.leave() }
                }
            }
        }
    }

    private static func act(_ context: NSManagedObjectContext, _ worker: Worker) throws {
        switch worker.stream.below(6) {
        case 0:
            let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
            nodes.randomElement(using: &worker.stream)?.first += 1
        case 1: try context.save()
        case 2: _ = try context.count(for: NSFetchRequest<Node>(entityName: "Node"))
        default: break
        }
    }
}
