import CoreData

/// Batches beside contexts that have the same rows: first stepped programs against an oracle, then a race.
enum Batch: Scenario {
    static let name = "batch"
    static let summary = "batch inserts, updates and deletions beside contexts with the same rows, against an oracle"
    static let runsOnPostgreSQL = true
    static let work = (figure: "rows", floor: 500)
    static let length = Knob("batch-calls", 50, "calls of a stepped program")
    static let parcels = Knob("parcels", 60, "the rows that batches and saves race for")
    static let knobs = [length, parcels, Machine.others]
    static let databaseWork = Bank.databaseWork
    static let sabotages =
        [
            Sabotage("overwrite", "acknowledged were"), Sabotage("halves", "half of a batch"),
            Sabotage("unmerged", "a context that follows"), Sabotage("silent-version", "a save succeeds"),
        ] + Sabotage.ofGuard("no-invalidation", "a context that follows")

    static func run(_ run: Run) throws {
        // The history must record batches as well, which the verifier checks at the end.
        let stack = try run.open(options(run))
        let middle = run.start + (run.end - run.start) / 2
        let programs = SteppedPrograms(run, length: run.knob(length)) { stream in
            try BatchProgram(run, stack, &stream)
        }
        try programs.run(0, until: middle)
        run.watchdog.leave(0)
        if run.options.program == nil {
            // The fault points for this are in the other engines.
            if run.kind != .postgresql { try BatchPoints.run(run, stack) }
            try BatchProgram.clear(stack)
            try BatchRace.run(run, stack)
        }
        try run.close(stack)
        try run.audit()
    }

    static func takePart(in run: Run) throws -> Data {
        let stack = try run.open(options(run))
        defer { try? run.close(stack) }
        return try JSONEncoder().encode(try BatchRace.takePart(run, stack))
    }

    /// The history also feeds the contexts that follow other processes.
    private static func options(_ run: Run) -> [AnyHashable: Any]? {
        guard run.kind.isShared else { return nil }
        return [NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }
}
