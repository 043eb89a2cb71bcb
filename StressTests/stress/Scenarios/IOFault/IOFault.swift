import CStrataSQLite
import CoreData

/// Fails each file operation of a fixed script in turn, once or from then on.
///
/// Every call must succeed or give a documented error. Acknowledged work must be there, and the context must be able
/// to go on once the fault is gone.
enum IOFault: Scenario {
    static let name = "iofault"
    static let summary = "fails every file operation of a script in turn: no acknowledged save is lost, none is torn"
    static let stores = [StoreKind.sqlite]
    static let seconds = 20.0
    static let work = (figure: "points", floor: 20)
    static let stride = Knob("stride", 0, "operations from one failing point to the next; 0 to fit the time")
    static let point = Knob("point", 0, "the only operation to fail; 0 for all")
    static let knobs = [stride, point, migrating]
    static let parts = kinds.map(\.name)
    static let sabotages =
        [
            Sabotage("lying-disk", "acknowledged were"), Sabotage("second-fault", "though the fault came once"),
        ] + Sabotage.ofGuard(tornMigration, "migrating,")
        + Sabotage.ofGuard("no-failed-read-guard", "computed from what was not read")
    /// The guard that makes a migration one transaction.
    private static let tornMigration = "no-migration-transaction"
    /// The share of the points that fail a migration.
    static let migrating = Knob("migrating", 25, "of a hundred points, so many fail a migration")

    /// The documented error codes in which an I/O fault may end.
    private static let documented: Set<CocoaError.Code> = [
        .sqlite, .fileWriteOutOfSpace, .fileReadCorruptFile, .persistentStoreOpen, .fileReadNoSuchFile,
        .persistentStoreTimeout,
    ]

    /// The fault at a point.
    private struct Kind {
        let name: String
        let plan: FaultFileSystem.Plan
        /// The distance between two points.
        ///
        /// Faults at many similar places are tried at some of them only.
        let step: Int

        init(
            _ name: String,
            _ code: Int32,
            isSticky: Bool,
            _ operations: FaultFileSystem.Operations,
            step: Int = 1
        ) {
            self.name = name
            self.step = step
            plan = FaultFileSystem.Plan(isSticky: isSticky, code: code, operations: operations)
        }
    }

    private static let kinds = [
        Kind("no space, once", SQLITE_FULL, isSticky: false, .changes),
        Kind("no space, for good", SQLITE_FULL, isSticky: true, .changes),
        Kind("I/O error, once", SQLITE_IOERR, isSticky: false, [.changes, .reads]),
        Kind("I/O error, for good", SQLITE_IOERR, isSticky: true, [.changes, .reads]),
        Kind("failed lock, once", SQLITE_IOERR, isSticky: false, .locks, step: 3),
        Kind("failed lock, for good", SQLITE_IOERR, isSticky: true, .locks, step: 5),
        Kind("busy lock, once", SQLITE_BUSY, isSticky: false, .locks, step: 3),
        Kind("failed open, once", SQLITE_CANTOPEN, isSticky: false, .opens),
        Kind("failed opens, for good", SQLITE_CANTOPEN, isSticky: true, .opens),
        Kind("unmapped index, once", SQLITE_IOERR, isSticky: false, .maps),
        Kind("unmapped index, for good", SQLITE_IOERR, isSticky: true, .maps),
        Kind("short read, once", SQLITE_OK, isSticky: false, .pieces, step: 10),
        Kind("short reads, for good", SQLITE_OK, isSticky: true, .pieces, step: 40),
    ]

    /// The operations that the kinds count, under the names of figures.
    static let figures: [(String, FaultFileSystem.Operations)] = [
        ("changes", .changes), ("operations", [.changes, .reads]), ("locks", .locks), ("opens", .opens),
        ("maps", .maps), ("system-reads", .pieces),
    ]

    static func run(_ run: Run) throws {
        FaultFileSystem.install(FaultFileSystem.Plan())
        // This script has no faults, and shows how many operations there are.
        let dry = FaultScript(run, "without faults", documented, FaultFileSystem.Plan(), FaultScript.Habits())
        try dry.play()
        if dry.failures > 0 { run.find("without faults \(dry.failures) calls fail") }
        for (figure, operations) in figures {
            let count = dry.lengths[operations.rawValue] ?? 0
            if count == 0 { run.find("without faults there are no \(figure)") }
            run.count(figure, count)
        }
        let migration = FaultMigration(run, "without faults", documented, FaultFileSystem.Plan())
        try migration.play()
        if migration.failures > 0 { run.find("without faults a migration fails") }
        run.count("migration-changes", migration.lengths[FaultFileSystem.Operations.changes.rawValue] ?? 0)
        try FailedSum.run(run)
        let only = run.knob(point)
        // If a stride is given, then its points are all tried. Otherwise as many as fit are tried, in an order drawn
        // from the seed.
        let step = run.knob(stride)
        let chosen = kinds.indices.filter { [nil, kinds[$0].name].contains(run.options.only) }
        var work = chosen.flatMap { kind in
            let length = dry.lengths[kinds[kind].plan.operations.rawValue] ?? 0
            let step = only > 0 ? 1 : max(step, 1) * kinds[kind].step
            return Swift.stride(from: 1, through: length, by: step).map { (kind: kind, point: $0) }
        }
        if only > 0 { work = work.filter { $0.point == only } }
        var stream = run.stream(0)
        if step == 0 { work.shuffle(using: &stream) }
        for (number, point) in work where step > 0 || !run.isOver {
            run.watchdog.beat(0, "a script with a fault")
            let kind = kinds[number]
            var plan = kind.plan
            plan.point = point
            plan.lies = run.isSabotaged("lying-disk")
            if run.isSabotaged(tornMigration) || step == 0 && stream.below(100) < run.knob(migrating) {
                let length = migration.lengths[plan.operations.rawValue] ?? 0
                guard length > 0 else { continue }
                plan.point = 1 + stream.below(length)
                let script = FaultMigration(run, "\(kind.name) at point \(plan.point)", documented, plan)
                try script.play()
                run.count("points")
                run.count("migrations-with-faults")
                run.count("faults", script.faults)
                continue
            }
            // The habits are drawn for each point separately, so that they do not depend on the other points.
            var habits = run.stream(1 + number * 1_000_000 + point)
            let script = FaultScript(
                run,
                "\(kind.name) at point \(point)",
                documented,
                plan,
                FaultScript.Habits(drawnFrom: &habits)
            )
            try script.play()
            run.count("points")
            run.count("faults", script.faults)
            run.count("failed-calls", script.failures)
        }
        run.count("all-points", work.count)
        run.watchdog.leave(0)
    }
}
