import CoreData

/// A round with more children of one parent than any pool has threads.
///
/// Each child asks the parent from its own block. Meanwhile blocks of the parent are enqueued, which need a thread as
/// well.
struct WideRound {
    /// This is more than the 255 threads that Dispatch has for queues of one quality of service.
    private static let children = 300
    private let run: Run
    private let parent: NSManagedObjectContext
    private let pending: PendingBlocks

    init(_ run: Run, _ stack: NSPersistentStoreCoordinator) {
        self.run = run
        parent = stack.context(.mergeByPropertyObjectTrump)
        pending = PendingBlocks(run)
    }

    /// Plays the round on a few threads, and waits for all blocks.
    ///
    /// - Parameters:
    ///   - first: The number of the first worker.
    ///   - stream: The source of the draw.
    func play(_ first: Int, _ stream: inout SeededStream) {
        let parent = parent
        let begun = DispatchSemaphore(value: 0)
        let isIn = DispatchSemaphore(value: 0)
        let crowd = stream.below(255)
        let opened = pending.ticket("a block that holds the parent", 0)
        parent.perform {
            isIn.signal()
            // Wait until many children have a thread, and wait for the parent.
            for _ in 0..<crowd where begun.wait(timeout: .now() + 1) == .timedOut { break }
            opened()
        }
        isIn.wait()
        run.race(4, from: first) { worker in
            worker.beat("handing out blocks of many children")
            for number in 1...(Self.children / 4) {
                let child = NSManagedObjectContext(.privateQueue)
                child.parent = parent
                let asked = pending.ticket("a block that asks the parent", worker.number * Self.children + number)
                let saves = worker.stream.chance(0.2)
                child.perform {
                    begun.signal()
                    do {
                        let nodes = try child.fetch(NSFetchRequest<Node>(entityName: "Node"))
                        if nodes.isEmpty { run.find("a child of many finds no nodes") }
                        if saves {
                            nodes.first?.second += 1
                            try child.save()
                        }
                    } catch { run.find("a child of many: \(describe(error))") }
                    asked()
                }
                worker.tally.count("calls")
                guard worker.stream.chance(0.1) else { continue }
                let own = pending.ticket("a block of a parent that many wait for", 0)
                parent.perform { own() }
            }
        }
        pending.settle()
        parent.performAndWait { parent.reset() }
        run.count("wide-rounds")
    }
}
