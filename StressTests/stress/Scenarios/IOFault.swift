import CStrataSQLite
import CoreData

/// Fails each file operation of a fixed script in turn, once or from then on: every call gives a documented error or
/// succeeds, what was acknowledged is there, and the context can go on once the fault is gone.
enum IOFault: Scenario {
    static let name = "iofault"
    static let summary = "fails every file operation of a script in turn: no acknowledged save is lost, none is torn"
    static let stores = [StoreKind.sqlite]
    static let seconds = 20.0
    static let work = (figure: "points", floor: 20)
    static let stride = Knob("stride", 0, "operations from one failing point to the next; 0 to fit the time")
    static let knobs = [stride]
    static let sabotages = [Sabotage("lying-disk", "point")]

    /// Codes of errors that an I/O fault may end in, as documented.
    private static let documented: Set<CocoaError.Code> = [
        .sqlite, .fileWriteOutOfSpace, .fileReadCorruptFile, .persistentStoreOpen, .fileReadNoSuchFile,
        .persistentStoreTimeout,
    ]

    /// What goes wrong at a point.
    private struct Kind {
        let name: String
        let plan: FaultFileSystem.Plan

        init(_ name: String, _ code: Int32, isSticky: Bool, reads: Bool) {
            self.name = name
            plan = FaultFileSystem.Plan(isSticky: isSticky, code: code, countsReads: reads)
        }
    }

    private static let kinds = [
        Kind("no space, once", SQLITE_FULL, isSticky: false, reads: false),
        Kind("no space, for good", SQLITE_FULL, isSticky: true, reads: false),
        Kind("I/O error, once", SQLITE_IOERR, isSticky: false, reads: true),
        Kind("I/O error, for good", SQLITE_IOERR, isSticky: true, reads: true),
    ]

    static func run(_ run: Run) throws {
        FaultFileSystem.install(FaultFileSystem.Plan())
        // Without faults, to learn how many operations there are.
        var lengths: [Bool: Int] = [:]
        for reads in [false, true] {
            let script = FaultScript(run, "without faults", documented)
            try script.play(FaultFileSystem.Plan(countsReads: reads))
            lengths[reads] = script.operations
            if script.failures > 0 { run.find("without faults \(script.failures) calls fail") }
        }
        run.count("operations", lengths[true] ?? 0)
        // Every point if asked for; else as many as fit, in an order that the seed draws.
        let step = run.knob(stride)
        var work = kinds.flatMap { kind in
            Swift.stride(from: 1, through: lengths[kind.plan.countsReads] ?? 0, by: max(step, 1)).map { (kind, $0) }
        }
        var stream = run.stream(0)
        if step == 0 { work.shuffle(using: &stream) }
        for (kind, point) in work where step > 0 || !run.isOver {
            run.watchdog.beat(0, "a script with a fault")
            var plan = kind.plan
            plan.point = point
            plan.lies = run.isSabotaged("lying-disk")
            let script = FaultScript(run, "\(kind.name) at point \(point)", documented)
            try script.play(plan)
            run.count("points")
            run.count("faults", script.faults)
            run.count("failed-calls", script.failures)
        }
        run.count("all-points", work.count)
        run.watchdog.leave(0)
    }
}
