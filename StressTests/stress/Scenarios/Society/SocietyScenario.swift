import CoreData

/// Random drills in a society: edits with undo, queries, conflicts, merges, trees, pins and batches, each with one
/// right outcome.
enum SocietyScenario: Scenario {
    static let name = "society"
    static let summary =
        "drills with every kind of relationship: edits, undo, pages, conflicts, merges, trees, pins, batches"
    static let work = (figure: "drills", floor: 20)
    static let programs = Knob("programs", 0, "programs to end after; 0 to go on until the time is over")
    static let length = Knob("calls", 12, "drills of a program")
    static let knobs = [programs, length]
    static let parts = SocietyProgram.Drill.allCases.map(\.rawValue)
    static let sabotages = [
        Sabotage("lost-edit", "expected"), Sabotage("wrong-order", "answers"), Sabotage("lost-merge", "after a merge"),
        Sabotage("lost-pin", "a pinned context"),
    ]

    static func run(_ run: Run) throws {
        // Each read that is held keeps a connection.
        let options: [AnyHashable: Any]? =
            run.kind == .sqlite
            ? [
                NSPersistentHistoryTrackingKey: true, NSPersistentStoreConnectionPoolMaxSizeKey: 8,
                // Other scenarios are about losses of power.
                NSSQLitePragmasOption: ["synchronous": "OFF"],
            ] : nil
        let stack = try run.open(options)
        let steps = SteppedPrograms(run, length: run.knob(length)) { _ in try SocietyProgram(run, stack) }
        try steps.run(run.knob(programs), until: run.end)
        run.watchdog.leave(0)
        try run.close(stack)
        try run.audit()
    }
}
