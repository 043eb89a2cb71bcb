import CoreData

/// Random programs over several contexts, one call at a time.
///
/// After each call, the framework must agree with an oracle.
enum Interleave: Scenario {
    static let name = "interleave"
    static let summary = "random programs over several contexts, call by call, against an oracle, file included"
    static let runsOnPostgreSQL = true
    static let work = (figure: "calls", floor: 500)
    static let programs = Knob("programs", 0, "programs to end after; 0 to go on until the time is over")
    static let length = Knob("calls", 60, "calls of a program")
    static let knobs = [programs, length]
    static let sabotages = [
        Sabotage("wrong-policy", "a save succeeds"), Sabotage("old-file", "is stored as"),
        Sabotage("silent-save", "a save tells"), Sabotage("lost-undo", "expected"),
        Sabotage("wrong-policy", "a save succeeds", store: .postgresql),
    ]

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let file = try run.kind == .sqlite ? NodeFile(run.storeURL, isLate: run.isSabotaged("old-file")) : nil
        let steps = SteppedPrograms(run, length: run.knob(length)) { stream in
            try InterleaveProgram(run, stack, file, &stream)
        }
        try steps.run(run.knob(programs), until: run.end)
        run.watchdog.leave(0)
        file?.close()
        try run.close(stack)
        try run.audit()
    }
}
