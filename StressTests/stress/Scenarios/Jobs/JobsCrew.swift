import CoreData
import StrataLocks

/// The processes of the scenario `jobs` that run jobs, and what happens to them.
final class JobsCrew: @unchecked Sendable {
    // @unchecked Sendable: only the thread that makes trouble uses it, and after its end the thread that has started it.

    /// Something that happens to workers.
    private enum Blow: CaseIterable {
        /// A process is killed.
        case kill
        /// A process stands still for longer than its leases.
        case stall
        /// A process is asked to end.
        case stop
        /// The server ends its sessions.
        case sessions
        /// The process of one of the server's sessions is killed.
        case backend
        /// The server crashes, and is started again.
        case server

        var isOfServer: Bool { self == .sessions || self == .backend || self == .server }
    }

    let lease: Duration
    private let run: Run
    private let server: DatabaseServer?
    private var children: [Child] = []
    private(set) var logs: [String] = []
    private var stream: SeededStream

    /// Starts the processes.
    init(_ run: Run, _ server: DatabaseServer?) throws {
        (self.run, self.server) = (run, server)
        lease = .milliseconds(run.knob(Jobs.lease))
        stream = run.stream(50)
        for _ in 0..<max(run.knob(Jobs.processes), 1) { children.append(try start()) }
    }

    /// The file for the log of one more worker.
    func newLog() -> String {
        let log = run.folder.appendingPathComponent("worker-\(logs.count + 1)").path
        logs.append(log)
        return log
    }

    private func start() throws -> Child {
        let place = run.kind.place(run.storeURL)
        return try Child(
            [
                "child", "jobs", place.isFileURL ? place.path : place.absoluteString, newLog(), "\(stream.next() >> 1)",
                "\(run.knob(Jobs.lease))", run.kind.rawValue,
            ] + (run.options.sabotage.map { [$0] } ?? []),
            output: FileHandle.standardError
        )
    }

    /// Lets something happen to one of the processes, or to the server.
    ///
    /// - Parameters:
    ///   - stream: Decides what happens.
    ///   - worker: The number of the thread that calls this, for the watchdog.
    /// - Throws: Errors of starting a process or the server.
    func strike(_ stream: inout SeededStream, _ worker: Int) throws {
        let blows = Blow.allCases.filter { server != nil || !$0.isOfServer }
        let victim = stream.below(children.count)
        run.count("blows")
        switch stream.pick(blows) {
        case .kill:
            children[victim].kill()
            _ = children[victim].wait()
            children[victim] = try start()
            run.count("killed")
        case .stall:
            let process = children[victim].process.processIdentifier
            Foundation.kill(process, SIGSTOP)
            usleep(UInt32(run.knob(Jobs.lease) * 1_000 / 4 * (4 + stream.below(4))))
            Foundation.kill(process, SIGCONT)
            run.count("stalled")
        case .stop:
            end(children[victim], worker)
            children[victim] = try start()
        case .sessions: run.count("ended-sessions", try server?.endSessions() ?? 0)
        case .backend: run.count("killed-backends", try server?.killSession() ?? 0)
        case .server:
            try server?.crash()
            run.count("server-crashes")
        }
    }

    /// Asks a process to end, which it must do by itself.
    private func end(_ child: Child, _ worker: Int) {
        Foundation.kill(child.process.processIdentifier, SIGTERM)
        let end = ContinuousClock.now + .seconds(60)
        while child.process.isRunning {
            run.watchdog.beat(worker, "waiting for a process to end")
            usleep(5_000)
            guard ContinuousClock.now > end else { continue }
            run.find("a worker that was asked to end runs on")
            child.kill()
        }
        let status = child.wait()
        // One that was asked so early that it did not handle the signal yet dies of it.
        if status != 0, status != -SIGTERM { run.find("a worker that was asked to end has ended with \(status)") }
        run.count("stopped")
    }

    /// Asks all processes to end.
    func stop(_ worker: Int) {
        for child in children { end(child, worker) }
        children = []
    }

    /// Kills the processes that are left.
    func killAll() {
        for child in children { child.kill() }
    }
}
