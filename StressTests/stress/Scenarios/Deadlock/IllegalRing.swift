import CoreData

/// Blocks that wait for each other in a ring, which is not allowed.
///
/// The program must stop at once and name all of them.
///
/// Each ring is drawn from a seed, and closed in a separate process.
enum IllegalRing {
    /// A member of a ring: its block waits for the queue of the next member.
    private enum Member {
        case context(NSManagedObjectContext)
        case coordinator(NSPersistentStoreCoordinator)

        var context: NSManagedObjectContext? { if case .context(let context) = self { context } else { nil } }

        func performAndWait(_ body: () -> Void) {
            switch self {
            case .context(let context): context.performAndWait(body)
            case .coordinator(let coordinator): coordinator.performAndWait(body)
            }
        }
    }

    // MARK: - The process that has to stop

    /// Closes a ring, and waits for the framework to stop the process.
    ///
    /// If that does not happen, the system stops it after a while.
    ///
    /// - Parameter arguments: The seed, the seconds until the system stops it, and perhaps the name of a sabotage.
    /// - Throws: `StressError` if the first two are no numbers, and errors of opening a store.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 2, let seed = UInt64(arguments[0]), let seconds = UInt32(arguments[1]) else {
            throw StressError("child ring needs a seed and a number of seconds")
        }
        alarm(seconds)
        var stream = SeededStream(seed: seed, stream: 0)
        let members = try draw(&stream)
        let isHidden = arguments.count > 2 && arguments[2] == "hidden-ring"
        let isIn = DispatchSemaphore(value: 0)
        let go = DispatchSemaphore(value: 0)
        for (place, member) in members.enumerated() {
            let next = members[(place + 1) % members.count]
            let asks = stream.chance(0.5)
            let hops = stream.chance(0.3)
            Thread.detachNewThread {
                member.performAndWait {
                    isIn.signal()
                    go.wait()
                    // The framework itself also makes a child wait for its parent.
                    if isHidden, place == 0 {
                        DispatchSemaphore(value: 0).wait()
                    } else if asks, let context = member.context, let parent = context.parent, parent === next.context {
                        _ = try? context.count(for: NSFetchRequest<Node>(entityName: "Node"))
                    } else if hops {
                        NSManagedObjectContext(.privateQueue).performAndWait { next.performAndWait {} }
                    } else {
                        next.performAndWait {}
                    }
                }
            }
        }
        Thread.detachNewThread {
            for _ in members { isIn.wait() }
            for _ in members { go.signal() }
        }
        while true { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.02)) }
    }

    /// The members of a ring.
    ///
    /// Each waits for the next one, and the last one for the first.
    private static func draw(_ stream: inout SeededStream) throws -> [Member] {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        let shape = shape(&stream)
        coordinator.name = "ring \(shape.coordinator ?? -1)"
        var members: [Member] = []
        for place in 0..<shape.count {
            if place == shape.coordinator {
                members.append(.coordinator(coordinator))
                continue
            }
            let context = NSManagedObjectContext(place == shape.main ? .mainQueue : .privateQueue)
            context.name = "ring \(place)"
            if let parent = stream.pick(members + [.coordinator(coordinator)]).context {
                context.parent = parent
            } else {
                context.persistentStoreCoordinator = coordinator
            }
            members.append(.context(context))
        }
        // In some rings children come before their parents, in others after them.
        return stream.chance(0.5) ? members.reversed() : members
    }

    private static func shape(_ stream: inout SeededStream) -> (count: Int, main: Int?, coordinator: Int?) {
        let count = 2 + stream.below(5)
        let main = stream.chance(0.4) ? stream.below(count) : nil
        let coordinator = stream.chance(0.4) ? stream.below(count) : nil
        return (count, main, coordinator)
    }

    // MARK: - The process that watches

    /// Lets separate processes close rings, and demands that each process stops and names all members of its ring.
    ///
    /// - Parameters:
    ///   - run: The run that the rings are part of.
    ///   - count: The number of rings.
    /// - Throws: If a process cannot be started.
    static func demandStops(_ run: Run, _ count: Int) throws {
        for number in 0..<count {
            run.watchdog.beat(-2, "a ring in a process of its own")
            let seed = SeededStream(seed: run.options.seed, stream: UInt64(number) + 1_000_000).seed
            var stream = SeededStream(seed: seed, stream: 0)
            let members = shape(&stream)
            // The process ends before the watchdog would end this one.
            let seconds = max(Int(run.options.stall) - 1, 1)
            let words = ["child", "ring", "\(seed)", "\(seconds)"] + (run.options.sabotage.map { [$0] } ?? [])
            let (status, text) = try Child.output(words, isToTrap: true)
            run.count("illegal-rings")
            let again = "stress \(words.joined(separator: " "))"
            if status == -SIGALRM {
                run.find("a ring of \(members.count) was not stopped: \(again)")
            } else if status >= 0 || !text.contains("CoreData: deadlock: ") {
                run.find("a ring of \(members.count) ended with \(status): \(again)")
            }
            for place in 0..<members.count where place != members.main && status != -SIGALRM {
                if !text.contains("\"ring \(place)\"") {
                    run.find("a ring stops without naming ring \(place): \(again)")
                }
            }
        }
        run.watchdog.leave(-2)
    }
}
