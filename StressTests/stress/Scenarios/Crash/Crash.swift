import CoreData

/// A process saves and is killed, again and again, on the same file.
///
/// Every acknowledged save must be there, with its entry in the history. A save that was under way must be there
/// wholly or not at all.
///
/// Some processes do not save, but migrate the file to another version of its model and back. Each migration must be
/// there wholly or not at all, too.
///
/// Now and then the file is not checked in between. So the next process finds the log as it was left, and may die
/// while it recovers it.
enum Crash: Scenario {
    static let name = "crash"
    static let summary =
        "kills a saving process, by time, at the n-th file operation or at a named point: acknowledged saves are there"
    static let stores = [StoreKind.sqlite]
    static let runsOnPostgreSQL = true
    static let work = (figure: "saving-lives", floor: 4)
    static let databaseWork: (figure: String, floor: Int)? = (figure: "blows", floor: 2)
    static let lives = Knob("lives", 0, "lives to end after; 0 to go on until the time is over")
    static let knobs = [lives]
    static let parts = CrashDeath.kinds + CrashOfDatabase.kinds
    static let sabotages =
        [
            Sabotage("early-acknowledgement", ", acknowledged, is missing"),
            Sabotage("forgotten-deletion", "deleted them"),
            Sabotage("forgotten-value", "have the value"),
            Sabotage("forgotten-parent", "other parents"),
        ] + Sabotage.ofGuard(tornMigration, "opening the file gave") + CrashOfDatabase.sabotages
    /// The guard that makes a migration one transaction.
    private static let tornMigration = "no-migration-transaction"

    /// The number of lives that share a file.
    ///
    /// It is small, so that a check of the file stays quick.
    private static let livesOfFile = 20

    static func run(_ run: Run) throws {
        if run.kind == .postgresql { return try CrashOfDatabase.run(run, lives: run.knob(lives)) }
        var stream = run.stream(0)
        let limit = run.knob(lives)
        var file = CrashedFile(run, 0)
        var life = 0
        while limit > 0 ? life < limit : !run.isOverAndProven {
            run.watchdog.beat(0, "a life")
            if life > 0, life % livesOfFile == 0 { file = CrashedFile(run, life) }
            life += 1
            var death = CrashDeath(run.options.only, isHot: file.isHot, &stream)
            if run.isSabotaged(tornMigration) {
                death = .named(stream.pick(["migration.moved", "migration.written"]), 1)
            }
            let isMigrating = death.isOfMigration || stream.chance(0.15) && death.canBeOfMigration
            let role =
                isMigrating
                ? ["migration", file.url.path, file.migrations, death.text]
                : ["crash", file.url.path, file.ledger, "\(stream.next() >> 1)", death.text]
            let child = try Child(
                ["child"] + role + (run.options.sabotage.map { [$0] } ?? []),
                output: FileHandle.standardError
            )
            if case .time(let microseconds) = death {
                usleep(UInt32(microseconds))
                child.kill()
            }
            let status = child.wait()
            if status != -SIGKILL { run.find("life \(life) ended with \(status), not by the signal") }
            run.count("lives")
            run.count(death.figure)
            run.count("migrating-lives", isMigrating ? 1 : 0)
            run.count("hot-lives", file.isHot ? 1 : 0)
            file.noteEnd(death)
            // The last life of a file is always followed by a check, which also shows faults of all the lives before.
            let isLeft = stream.chance(0.4)
            if life % livesOfFile == 0 || !isLeft { try file.check(life) }
        }
        if file.isHot { try file.check(life) }
        run.watchdog.leave(0)
    }
}
