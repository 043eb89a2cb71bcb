import CoreData

/// What `crash` does beside a server of PostgreSQL: not only the process that saves dies, but sessions of the server and the server too.
///
/// A process that has lost its session, or its server, goes on: it saves again what was refused, and by the end of its life each
/// save that was acknowledged is there, once, and no other, but the last one perhaps.
enum CrashOfDatabase {
    /// What befalls a life before it ends.
    private enum Blow: String, CaseIterable {
        /// Nothing but its own end.
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
    /// So many lives share a store, so that looking at it stays quick.
    private static let livesOfStore = 20
    /// A server that has lost what it had acknowledged when it comes back.
    private static let forgetfulServer = "forgetful-server"
    /// Switches off that somebody asks what has become of a commit whose answer was lost.
    private static let blindRetry = "no-doubt-resolution"
    /// Switches off that keys are taken from a sequence before they are handed out.
    private static let keylessBlocks = "no-key-blocks"
    static let sabotages =
        [Sabotage(forgetfulServer, "as if it had been set back", exit: .harnessError, store: .postgresql)]
        + Sabotage.ofGuard(blindRetry, "not by the signal", store: .postgresql)
        + Sabotage.ofGuard(keylessBlocks, "not by the signal", store: .postgresql)

    static func run(_ run: Run, lives limit: Int) throws {
        // What was committed is kept when the server stops, though not when the machine does: nobody pulls its plug.
        let server = try DatabaseServer(
            run.folder.appendingPathComponent("server"),
            ["synchronous_commit=on", "full_page_writes=on"]
        )
        defer { server.stop() }
        try DatabasePlace.using(server.url) { try self.run(run, server, lives: limit) }
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
            // The first life of a run is not spared, so that none ends without a blow.
            let drawn = life == 1 && one == .client ? .sessions : one
            // Of lives that end by themselves there are more.
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
            // Until the first saves of the life are there, or it has found that something is wrong.
            let begun = Ledger(reading: place.ledger).acknowledged.count
            while Ledger(reading: place.ledger).acknowledged.count == begun, child.process.isRunning { usleep(2_000) }
            usleep(UInt32(stream.below(80_000)))
            switch blow {
            // Who asks for nothing else gets what was asked for.
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
            // Some lives go on afterwards, some do not even notice.
            if blow != .client { usleep(UInt32(stream.below(600_000))) }
            child.kill()
            let status = child.wait()
            if status != -SIGKILL { run.find("life \(life) ended with \(status), not by the signal") }
            run.count("lives")
            place.noteEnd(.time(0))
            run.watchdog.beat(0, "looking at a store")
            // The last life of a store is always looked at, and what is there then tells of all the others.
            if life % livesOfStore == 0 || isForgetful || !stream.chance(0.4) { try place.check(life) }
        }
        if place.isHot { try place.check(life) }
        run.watchdog.leave(0)
    }
}
