import CoreData

/// Reads in all possible ways, which the stream draws, with a small batch now and then.
enum SoakReader {
    private static let ways: [@Sendable (Worker, NSPersistentStoreCoordinator, CountedContext) throws -> Void] = [
        fetch, fetch, fetchFollowing, readPinned, fetchAsynchronously, walk, control, update, askParent,
    ]

    static func work(_ worker: Worker, _ stack: NSPersistentStoreCoordinator) throws {
        let following = CountedContext(stack)
        following.performAndWait { following.automaticallyMergesChangesFromParent = true }
        while !worker.isOver {
            worker.beat("a fetch")
            try worker.stream.pick(ways)(worker, stack, following)
            worker.tally.count("fetches")
            usleep(2_000)
        }
    }

    private static func request(_ worker: Worker) -> NSFetchRequest<Node> {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "first >= %@", worker.stream.below(4))
        request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
        request.fetchLimit = 50
        request.fetchBatchSize = worker.run.options.batchSize ?? 0
        return request
    }

    private static func read(_ worker: Worker, _ context: NSManagedObjectContext) throws {
        let request = request(worker)
        try SoakTimes.measure("fetch", worker) {
            try context.performAndWait {
                for node in try context.fetch(request) { _ = node.label }
                if let node = try context.fetch(request).first { SoakCensus.follow(node) }
            }
        }
    }

    private static func fetch(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _: CountedContext) throws {
        try read(worker, CountedContext(stack))
    }

    private static func fetchFollowing(
        _ worker: Worker,
        _: NSPersistentStoreCoordinator,
        _ following: CountedContext
    ) throws {
        try read(worker, following)
        // Objects without references may stay until the context looks for them. A reset removes them all.
        if worker.stream.chance(0.05) { following.performAndWait { following.reset() } }
    }

    private static func askParent(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _: CountedContext) throws {
        try read(worker, CountedContext(below: CountedContext(stack)))
    }

    /// Makes two counts of one version, which must agree.
    private static func readPinned(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _: CountedContext) throws {
        let context = CountedContext(stack)
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "first >= %@", worker.stream.below(50))
        let isPinned = worker.run.kind == .sqlite
        let (one, other) = try context.performAndWait {
            if isPinned { try context.setQueryGenerationFrom(.current) }
            return (try context.count(for: request), try context.count(for: request))
        }
        if isPinned, one != other { worker.tally.find("a pinned context counts \(one) rows, then \(other)") }
    }

    /// Makes a fetch with a completion block, half of which are cancelled.
    private static func fetchAsynchronously(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _: CountedContext
    ) throws {
        let context = CountedContext(stack)
        let done = DispatchSemaphore(value: 0)
        let asynchronous = NSAsynchronousFetchRequest(fetchRequest: request(worker)) { _ in done.signal() }
        let result = try context.performAndWait {
            try context.execute(asynchronous) as? NSPersistentStoreAsynchronousResult
        }
        if worker.stream.chance(0.5) { result?.cancel() }
        if done.wait(timeout: .now() + worker.run.options.stall) != .success {
            worker.tally.find("a completion block was not called")
        }
    }

    /// Loops over rows in batches, and takes only some of them.
    private static func walk(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _: CountedContext) throws {
        let context = CountedContext(stack)
        let most = worker.stream.below(300)
        let done = DispatchSemaphore(value: 0)
        Task {
            var count = 0
            let request = NSFetchRequest<Node>(entityName: "Node")
            for try await rows in context.rows(for: request, batchSize: 50) {
                count += rows.count
                if count >= most { break }
            }
        }
        .signal(done)
        if done.wait(timeout: .now() + worker.run.options.stall) != .success {
            worker.tally.find("a loop over rows has not ended")
        }
    }

    /// Makes a controller that is dropped at once.
    private static func control(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _: CountedContext) throws {
        let context = CountedContext(stack)
        let request = request(worker)
        try context.performAndWait {
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            try controller.performFetch()
            if let node = controller.fetchedObjects?.first { SoakCensus.follow(node) }
        }
    }

    /// Executes a batch that changes a few rows.
    private static func update(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _: CountedContext) throws {
        let context = CountedContext(stack)
        let batch = NSBatchUpdateRequest(entityName: "Node")
        let first = worker.stream.below(Soak.rows)
        batch.predicate = NSPredicate(format: "serial >= %@ AND serial < %@", first, first + 5)
        batch.propertiesToUpdate = ["second": worker.stream.below(1_000)]
        try context.performAndWait { _ = try context.execute(batch) }
        worker.tally.count("batches")
    }
}

extension Task where Failure == any Error {
    /// Signals when the task has ended, with or without an error.
    fileprivate func signal(_ semaphore: DispatchSemaphore) {
        Task<Void, Never> {
            _ = await result
            semaphore.signal()
        }
    }
}
