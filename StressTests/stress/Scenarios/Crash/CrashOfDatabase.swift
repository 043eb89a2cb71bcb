import CoreData

/// The scenario `crash` on a PostgreSQL server: the saving process dies, and also sessions of the server and the
/// server itself.
///
/// A process that has lost its session, or its server, goes on, and repeats a save that was refused. At the end of
/// its life each acknowledged save must be there, once. No other save may be there, except perhaps the last one.
enum CrashOfDatabase {
    /// The event that a life suffers before it ends.
    private enum Blow: String, CaseIterable {
        /// There is no event.
        case client
        /// The server ends its sessions.
        case sessions
        /// The process of one of its sessions is killed, and the server recovers.
        case backend
        /// The server crashes, and is started again.
        case server
    }

    /// The kinds of blows.
    static var kinds: [String] { Blow.allCases.map(\.rawValue) }
    /// The number of lives that share a store.
    ///
    /// It is small, so that a check of the store stays quick.
    private static let livesOfStore = 20
    /// A sabotage: the server comes back without what it has acknowledged.
    private static let forgetfulServer = "forgetful-server"
    /// The guard that asks for the outcome of a commit whose answer was lost.
    private static let blindRetry = "no-doubt-resolution"
    /// The guard that takes keys from a sequence before they are handed out.
    private static let keylessBlocks = "no-key-blocks"
    /// The guard that notices another run of the server.
    private static let blindRestart = "no-run-check"
    static let sabotages =
        [Sabotage(forgetfulServer, "as if it had been set back", exit: .harnessError, store: .postgresql)]
        + Sabotage.ofGuard(blindRetry, "not by the signal", store: .postgresql)
        + Sabotage.ofGuard(keylessBlocks, "not by the signal", store: .postgresql)
        + Sabotage.ofGuard(blindRestart, "after the server was started again", store: .postgresql)

    static func run(_ run: Run, lives limit: Int) throws {
        // With these settings, commits survive the end of the server. They need not survive a loss of power, which is
        // not tried here.
        let server = try DatabaseServer(
            run.folder.appendingPathComponent("server"),
            ["synchronous_commit=on", "full_page_writes=on"]
        )
        defer { server.stop() }
        try DatabasePlace.using(server.url) {
            if run.options.only == nil { try RestartedServer.run(run, server) }
            try self.run(run, server, lives: limit)
        }
    }

    private static func run(_ run: Run, _ server: DatabaseServer, lives limit: Int) throws {
        let isForgetful = run.isSabotaged(forgetfulServer)
        var stream = run.stream(0)
        var place = CrashedFile(run, 0)
        var life = 0
        while limit > 0 ? life < limit : !run.isOverAndProven {
            run.watchdog.beat(0, "a life")
            if life > 0, life % livesOfStore == 0 { place = CrashedFile(run, life) }
            life += 1
            let one = stream.pick(Blow.allCases)
            // The first life of a run always gets a blow, so that no run ends without one.
            let drawn = life == 1 && one == .client ? .sessions : one
            // Lives without a blow are the most frequent.
            let blow =
                isForgetful
                ? .server
                : run.isSabotaged(keylessBlocks) ? .client : run.options.only.flatMap { Blow(rawValue: $0) } ?? drawn
            let child = try Child(
                ["child", "crash", run.kind.place(place.url).absoluteString, place.ledger, "\(stream.next() >> 1)"]
                    + ["time:0"] + (run.options.sabotage.map { [$0] } ?? []),
                output: FileHandle.standardError
            )
            defer { child.kill() }
            // Wait until the first saves of the life are there, or until it has ended because something is wrong.
            let begun = Ledger(reading: place.ledger).acknowledged.count
            while Ledger(reading: place.ledger).acknowledged.count == begun, child.process.isRunning { usleep(2_000) }
            usleep(UInt32(stream.below(80_000)))
            switch blow {
            // A life without a blow counts if the command line asks for nothing else.
            case .client: run.count("blows", run.options.only == nil ? 0 : 1)
            case .sessions:
                let ended = try server.endSessions()
                run.count("ended-sessions", ended)
                run.count("blows", min(ended, 1))
            case .backend:
                let killed = try server.killSession()
                run.count("killed-backends", killed)
                run.count("blows", killed)
            case .server:
                try server.crash(isForgetful: isForgetful)
                run.count("server-crashes")
                run.count("blows")
            }
            // Some lives go on afterwards, and some do not even notice.
            if blow != .client { usleep(UInt32(stream.below(600_000))) }
            child.kill()
            let status = child.wait()
            if status != -SIGKILL { run.find("life \(life) ended with \(status), not by the signal") }
            run.count("lives")
            place.noteEnd(.time(0))
            run.watchdog.beat(0, "looking at a store")
            // The last life of a store is always followed by a check, which also shows faults of all the lives
            // before.
            if life % livesOfStore == 0 || isForgetful || !stream.chance(0.4) { try place.check(life) }
        }
        if place.isHot { try place.check(life) }
        run.watchdog.leave(0)
    }
}
