import CoreData
import Synchronization

/// A random graph of contexts, and the calls that threads make in it.
///
/// A context waits only for contexts with a lower number, and parents have lower numbers than their children. So each
/// wait is legal, even between siblings and unrelated contexts, and there can be no ring.
final class Grove: Sendable {
    let run: Run
    let contexts: [NSManagedObjectContext]
    let pending: PendingBlocks
    /// The number of each context.
    private let places: [ObjectIdentifier: Int]
    private let deepest = Atomic(0)
    private let handled = Atomic(0)
    /// Whether the handlers of changes call back too, and not only those of saves.
    private let hearsChanges: Bool

    /// Draws a graph.
    ///
    /// - Parameters:
    ///   - run: The run that the graph is part of.
    ///   - stacks: The coordinators for its roots.
    ///   - stream: The source of the draw.
    init(_ run: Run, _ stacks: [NSPersistentStoreCoordinator], _ stream: inout SeededStream) {
        self.run = run
        pending = PendingBlocks(run)
        hearsChanges = stream.chance(0.5)
        let roots = 1 + stream.below(3)
        let count = roots + stream.below(10)
        // All main-queue contexts share one queue, so two of them would break the order of the numbers.
        let main = stream.chance(0.7) ? stream.below(count) : count
        let depth = 1 + stream.below(4)
        var depths: [Int] = []
        var contexts: [NSManagedObjectContext] = []
        for place in 0..<count {
            let context = NSManagedObjectContext(place == main ? .mainQueue : .privateQueue)
            context.name = "context \(place)"
            let parents = contexts.indices.filter { depths[$0] < depth }
            if place < roots {
                context.persistentStoreCoordinator = stream.pick(stacks)
                context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
                depths.append(0)
            } else {
                let parent = stream.pick(parents)
                context.parent = contexts[parent]
                depths.append(depths[parent] + 1)
            }
            context.automaticallyMergesChangesFromParent = stream.chance(0.7)
            contexts.append(context)
        }
        self.contexts = contexts
        places = Dictionary(uniqueKeysWithValues: contexts.enumerated().map { (ObjectIdentifier($1), $0) })
    }

    /// The largest number of calls inside each other.
    var nesting: Int { deepest.load(ordering: .relaxed) }

    /// Lets threads make calls until `end`, and waits for all blocks that they have enqueued.
    ///
    /// - Parameters:
    ///   - first: The number of the first worker.
    ///   - threads: The number of threads.
    ///   - end: The time at which they stop.
    func play(_ first: Int, _ threads: Int, until end: ContinuousClock.Instant) {
        var names: [Notification.Name] = [
            NSManagedObjectContext.didSaveObjectsNotification, .NSManagedObjectContextWillSave,
        ]
        if hearsChanges { names.append(.NSManagedObjectContextObjectsDidChange) }
        let tokens = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { [weak self] in
                self?.callBack($0)
            }
        }
        defer { for token in tokens { NotificationCenter.default.removeObserver(token) } }
        run.race(threads, from: first) { try self.work($0, first, until: end) }
        pending.settle()
    }

    /// A handler that waits for contexts above and enqueues blocks on any other, on whatever queue it is called.
    private func callBack(_ notification: Notification) {
        guard let context = notification.object as? NSManagedObjectContext,
            let place = places[ObjectIdentifier(context)]
        else { return }
        if let parent = context.parent { parent.performAndWait { _ = parent.hasChanges } }
        context.performAndWait { _ = try? context.count(for: NSFetchRequest<Node>(entityName: "Node")) }
        var root = context
        while let parent = root.parent { root = parent }
        root.persistentStoreCoordinator?.performAndWait {}
        let number = handled.add(1, ordering: .relaxed).newValue
        let other = (place + number) % contexts.count
        let ran = pending.ticket("a block of a handler", other)
        if number % 2 == 0 {
            contexts[other].perform { ran() }
        } else {
            let target = contexts[other]
            Task { await target.perform { ran() } }
        }
        run.count("handlers")
    }

    private func work(_ worker: Worker, _ first: Int, until end: ContinuousClock.Instant) throws {
        if worker.number < first + 2, run.isSabotaged("hang") {
            // A wait that does not go through the framework cannot be recognised, except by its length.
            return contexts[(worker.number - first) % contexts.count].performAndWait {
                worker.beat("a semaphore that nobody signals")
                DispatchSemaphore(value: 0).wait()
            }
        }
        if run.isSabotaged("ring"), contexts.count > 1 {
            let (one, other) = (contexts[worker.number % 2], contexts[(worker.number + 1) % 2])
            while true { one.performAndWait { other.performAndWait {} } }
        }
        while .now < end {
            worker.beat("a call")
            let start = worker.stream.below(contexts.count)
            try worker.time("call") { try call(start, worker, depth: 1) }
        }
    }

    /// Makes one call, with further calls inside it.
    private func call(_ place: Int, _ worker: Worker, depth: Int) throws {
        worker.tally.count("calls")
        let context = contexts[place]
        guard worker.stream.chance(0.6) else { return try enqueue(place, worker) }
        deepest.max(depth, ordering: .relaxed)
        try context.performAndWait {
            try act(context, worker)
            guard depth < 8 else { return }
            // From here it is legal to wait for ancestors, for the context itself, and for all contexts with lower
            // numbers, and to enqueue blocks anywhere.
            if worker.stream.chance(0.6) { try call(next(place, worker), worker, depth: depth + 1) }
            if worker.stream.chance(0.3) {
                var root = context
                while let parent = root.parent { root = parent }
                root.persistentStoreCoordinator?.performAndWait { worker.tally.count("calls") }
            }
            if worker.stream.chance(0.3) { try enqueue(worker.stream.below(contexts.count), worker, isInside: true) }
        }
    }

    /// A context for which this one may wait, often its parent.
    private func next(_ place: Int, _ worker: Worker) -> Int {
        let above = contexts[place].parent.flatMap { places[ObjectIdentifier($0)] }
        if worker.stream.chance(0.5), let above { return above }
        return worker.stream.below(place + 1)
    }

    private func enqueue(_ place: Int, _ worker: Worker, isInside: Bool = false) throws {
        let context = contexts[place]
        let kind = worker.stream.below(isInside ? 2 : 3)
        let ran = pending.ticket(["a block", "an awaited block", "a completion block"][kind], place)
        if run.isSabotaged("lost-block"), worker.stream.chance(0.001) { return }
        switch kind {
        case 0:
            context.perform {
                _ = context.hasChanges
                ran()
            }
        case 1:
            Task {
                await context.perform { context.processPendingChanges() }
                ran()
            }
        default:
            let request = NSFetchRequest<Node>(entityName: "Node")
            let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request) { result in
                _ = result.finalResult?.count
                ran()
            }
            _ = try context.performAndWait { try context.execute(asynchronous) }
        }
    }

    private func act(_ context: NSManagedObjectContext, _ worker: Worker) throws {
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
