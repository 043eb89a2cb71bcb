import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// The power fails at any moment of a script of saves, batches and checkpoints.
///
/// Writes that were not synced are lost, kept or torn, each by itself. The file must then hold the first steps of the
/// script, without gaps. If each save is synced, then all acknowledged steps must be among them.
enum PowerLoss: Scenario {
    static let name = "powerloss"
    static let summary =
        "drops and tears unsynced writes: acknowledged saves are there, or none from the middle missing"
    static let stores = [StoreKind.sqlite]
    static let seconds = 10.0
    static let work = (figure: "losses", floor: 50)
    static let steps = Knob("steps", 24, "saves and batches of a script")
    static let knobs = [steps]
    static let sabotages =
        [
            Sabotage("no-sync", "acknowledged"), Sabotage("normal", "acknowledged"),
            Sabotage("forgotten-changes", "their sum"),
        ] + Sabotage.ofGuard("no-migration-transaction", "cannot be opened: it lacks")

    static func run(_ run: Run) throws {
        var stream = run.stream(0)
        var number = 0
        while !run.isOver {
            number += 1
            // With NORMAL, the newest saves may be lost.
            let isFull = number % 2 == 1
            let script = PowerLossScript(
                isFull: isFull,
                synchronous: isFull && !run.isSabotaged("normal") ? "FULL" : "NORMAL",
                checkpointPages: stream.pick([4, 20, 1_000]),
                copiesBeside: stream.chance(0.5),
                hasHistory: stream.chance(0.3),
                seed: stream.next(),
                forgetsChanges: run.isSabotaged("forgotten-changes"),
                // Without this limit, the sabotages would get too little time.
                migrates: run.options.sabotage == nil || run.isSabotaged("no-migration-transaction")
            )
            run.watchdog.beat(0, "a script that is recorded")
            let folder = run.folder.appendingPathComponent("script-\(number)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let log = try RecordingFileSystem.record(folder, ignoresSyncs: run.isSabotaged("no-sync")) { log in
                try script.play(in: folder, run.knob(steps), log)
            }
            run.count("scripts")
            run.count("migrations", script.migrations.value)
            run.count("disk-operations", log.entries.count)
            try lose(run, script, log.entries, folder, &stream)
            try FileManager.default.removeItem(at: folder)
        }
        run.watchdog.leave(0)
    }

    /// Cuts the power at moments drawn from the seed, as long as the time of the run allows.
    private static func lose(
        _ run: Run,
        _ script: PowerLossScript,
        _ entries: [DiskLog.Entry],
        _ folder: URL,
        _ stream: inout SeededStream
    ) throws {
        let moments = Set((0..<60).map { _ in stream.below(entries.count + 1) })
        var state = DiskState()
        var acknowledged: Int64 = 0
        for place in 0...entries.count {
            if moments.contains(place), !run.isOver {
                run.watchdog.beat(0, "a loss of power")
                let fate = stream.pick(DiskState.Fate.allCases + [.mixed, .mixed])
                let files = state.afterPowerLoss(fate, &stream)
                run.count("losses")
                run.count("losses-with-unsynced", state.hasUnsynced ? 1 : 0)
                let name = "\(script), power lost at disk operation \(place) of \(entries.count), \(fate)"
                try check(run, script, name, files, acknowledged)
            }
            guard place < entries.count else { break }
            state.apply(entries[place])
            if case .mark(let step) = entries[place] { acknowledged = step }
        }
    }

    /// Opens the files after a loss, and compares them with the acknowledged steps.
    private static func check(
        _ run: Run,
        _ script: PowerLossScript,
        _ name: String,
        _ files: [String: [UInt8]],
        _ acknowledged: Int64
    ) throws {
        let folder = run.folder.appendingPathComponent("after")
        try? FileManager.default.removeItem(at: folder)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, content) in files {
            let file = folder.appendingPathComponent(name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(content).write(to: file)
        }
        let url = folder.appendingPathComponent("store.sqlite")
        do {
            let found = try script.steps(in: url)
            // If step n is there, then all steps before it are, as `steps` checks.
            let least = script.isFull ? acknowledged : 0
            if found < least { run.find("\(name): \(found) steps are there, acknowledged were \(acknowledged)") }
            run.count("steps-lost", Int(max(acknowledged - found, 0)))
            // A lost save may leave files of external data.
            for problem in try StoreVerifier(storeURL: url, model: StressModel.shared).problems()
            where !problem.hasSuffix("belongs to no row") {
                run.find("\(name): \(problem)")
            }
        } catch { run.find("\(name): \(describe(error))") }
    }
}
