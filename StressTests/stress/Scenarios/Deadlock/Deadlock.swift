import CoreData
import Synchronization

/// Random legal calls between contexts, parents and the coordinator, with handlers that call back: all calls must
/// return.
///
/// Each block must run once. Rings of blocks that wait for each other must stop the program.
enum Deadlock: Scenario {
    static let name = "deadlock"
    static let summary = "random legal calls between contexts, handlers calling back in: all return; rings are stopped"
    static let work = (figure: "calls", floor: 500)
    static let threads = Knob("threads", 16, "threads that call")
    static let wide = Knob("wide", 200, "of so many rounds, one has 300 children of one parent wait for it; 0 for none")
    static let illegal = Knob("illegal", 4, "rings of waiting blocks, each in a process of its own, which has to stop")
    static let knobs = [threads, wide, illegal]
    static let sabotages = [
        Sabotage("hang", "has not come back", exit: .stalled), Sabotage("ring", "deadlock:", exit: nil),
        Sabotage("lost-block", "was never run"), Sabotage("block-twice", "has run twice"),
        Sabotage("hidden-ring", "was not stopped"),
    ]

    /// The highest numbers that were seen in a round, or at its end.
    private struct Peak {
        var threads = 0
        var nesting = 0
    }

    static func run(_ run: Run) throws {
        // Once is enough, as the rings have their own store.
        if run.kind == .sqlite { try IllegalRing.demandStops(run, run.knob(illegal)) }
        // Two coordinators can share a file. In memory each would have its own store.
        let stacks = try (0..<(run.kind.isShared ? 2 : 1)).map { _ in try run.open() }
        try forge(stacks[0])
        let isDone = Atomic(false)
        // Meanwhile the main thread serves its queue.
        Thread.detachNewThread {
            rounds(run, stacks)
            isDone.store(true, ordering: .releasing)
        }
        while !isDone.load(ordering: .acquiring) {
            run.watchdog.beat(-1, "the main queue")
            RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.02))
        }
        run.watchdog.beat(-1, "closing the stores")
        for stack in stacks { try run.close(stack) }
        run.watchdog.leave(-1)
        try run.audit()
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        try context.performAndWait {
            for serial in 0..<8 { Node(context: context).serial = Int64(serial) }
            try context.save()
        }
    }

    /// Draws one graph after the other, and lets threads call its contexts for a while.
    private static func rounds(_ run: Run, _ stacks: [NSPersistentStoreCoordinator]) {
        var stream = run.stream(-1)
        var peak = Peak()
        var mayBeWide = run.knob(wide) > 0
        var number = 0
        while !run.isOver {
            let (rest, count) = (run.end - .now, run.knob(threads))
            if mayBeWide, stream.below(run.knob(wide)) == 0 {
                WideRound(run, stream.pick(stacks)).play(number * count, &stream)
                #if DEBUG
                mayBeWide = false
                #endif
            } else {
                let grove = Grove(run, stacks, &stream)
                grove.play(number * count, count, until: .now + min(rest, .milliseconds(250)))
                peak.nesting = max(peak.nesting, grove.nesting)
            }
            let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
            peak.threads = max(peak.threads, tasks)
            number += 1
            run.count("rounds")
        }
        run.count("nesting", peak.nesting)
        run.count("peak-threads", peak.threads)
    }
}
