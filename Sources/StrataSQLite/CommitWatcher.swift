import Dispatch
import Synchronization

/// Tells of commits to a database: those of this process and of others.
///
/// The kernel tells of writes to the log. A write alone is no commit, and one that is gets visible a moment after the log was
/// written; so each event is followed by looks at the database's version, at first quickly one after another. A slow look
/// goes on for ever, in case a file system tells nothing (one in the network), and is the only one where the
/// system has no events.
///
/// Any thread may call any member.
package final class CommitWatcher: @unchecked Sendable {
    // @unchecked Sendable: the variables are touched on `queue` only, and in the initialiser and the deinitialiser.

    /// How a watcher paces itself, in seconds.
    package struct Pace: Sendable {
        /// The least time between two reports: commits in between are told as one.
        package var coalescing = 0.005
        /// The time between two looks if nothing happens.
        package var idle = 1.0
        /// The same where the system tells of no writes.
        package var polling = 0.05
        /// Whether to ask the system for events.
        package var usesEvents = true

        package init() {}
    }

    private static let shortestPause = 0.0002
    private static let longestPause = 0.2

    private let queue = DispatchQueue(label: "CoreData commits")
    private let isStopped = Atomic(false)
    /// Whether something has happened that no look has answered yet.
    private let isStirred = Atomic(false)
    private weak let pool: ConnectionPool?
    private let isMemory: Bool
    private let pace: Pace
    private let handler: @Sendable () -> Void

    /// Looks at the version; `nil` of a database in memory, and once stopped.
    private var detector: Connection?
    private var version: Int64 = 0
    private var token: FileEvents.Token?
    /// The pause before the next quick look; beyond the longest there is none.
    private var pause = longestPause * 2
    private var isLookScheduled = false
    private var hasNews = false
    private var isReportScheduled = false
    private var lastReport: UInt64 = 0

    /// Starts to watch.
    ///
    /// - Parameters:
    ///   - pool: The connections of the database.
    ///   - pace: How often to look and to report.
    ///   - handler: Called after commits, on a queue of the watcher's, not for each one. It must be short, and must not
    ///     stop the watcher.
    /// - Throws: What keeps the database from being read.
    package init(_ pool: ConnectionPool, pace: Pace = Pace(), handler: @escaping @Sendable () -> Void)
        throws(SQLiteError)
    {
        self.pool = pool
        self.pace = pace
        self.handler = handler
        isMemory = pool.isMemory
        if !isMemory {
            let detector = try pool.opening.openReader()
            // A look that waits for locks is made again.
            detector.busyWait.timeout = 0.1
            version = try detector.dataVersion()
            self.detector = detector
            if pace.usesEvents {
                let path = pool.isWriteAheadLogged ? detector.path + "-wal" : detector.path
                token = FileEvents.shared?.watch(path) { [weak self] in self?.stir() }
            }
            lookNowAndThen(every: token == nil ? pace.polling : pace.idle)
        }
        pool.addCommitObserver(ObjectIdentifier(self)) { [weak self] in self?.stir() }
    }

    deinit {
        end()
    }

    /// Ends the watch, and closes its connection.
    ///
    /// No call begins afterwards. Idempotent. Waits for a look at the database that is under way, and for the handler.
    package func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        queue.sync { end() }
    }

    private func end() {
        if let token { FileEvents.shared?.end(token) }
        token = nil
        pool?.removeCommitObserver(ObjectIdentifier(self))
        detector?.close()
        detector = nil
    }

    // MARK: - What happens

    /// Somebody has written to the log, or this process has committed.
    private func stir() {
        guard !isStirred.exchange(true, ordering: .sequentiallyConsistent) else { return }
        onQueue { watcher in
            watcher.isStirred.store(false, ordering: .sequentiallyConsistent)
            watcher.pause = Self.shortestPause
            watcher.look()
        }
    }

    /// Reads the version, reports a new one, and schedules the next quick look.
    private func look() {
        if isMemory {
            hasNews = true
        } else if let seen = try? detector?.dataVersion(), seen != version {
            // What cannot be read now can at the next look.
            version = seen
            hasNews = true
        }
        report()
        guard !isMemory, !isLookScheduled, pause <= Self.longestPause else { return }
        isLookScheduled = true
        onQueue(after: pause) { watcher in
            watcher.isLookScheduled = false
            watcher.look()
        }
        pause *= 2
    }

    private func lookNowAndThen(every seconds: Double) {
        onQueue(after: seconds) { watcher in
            watcher.look()
            watcher.lookNowAndThen(every: seconds)
        }
    }

    /// Calls the handler if there is news, but not too soon after the last time.
    private func report() {
        guard hasNews, !isReportScheduled else { return }
        let now = BusyWait.now()
        let early = pace.coalescing - Double(now &- lastReport) / 1e9
        guard early > 0 else {
            hasNews = false
            lastReport = now
            return handler()
        }
        isReportScheduled = true
        onQueue(after: early) { watcher in
            watcher.isReportScheduled = false
            watcher.report()
        }
    }

    private func onQueue(after seconds: Double = 0, _ body: @escaping @Sendable (CommitWatcher) -> Void) {
        let run: @Sendable () -> Void = { [weak self] in
            guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
            body(self)
        }
        if seconds > 0 { queue.asyncAfter(deadline: .now() + seconds, execute: run) } else { queue.async(execute: run) }
    }
}

extension ConnectionPool {
    /// Has `observer` called after each commit of this pool.
    ///
    /// That is before the next writer gets its turn, so it must be short, and must not use the pool.
    func addCommitObserver(_ owner: ObjectIdentifier, _ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.commitObservers[owner] = observer }
    }

    func removeCommitObserver(_ owner: ObjectIdentifier) {
        state.withLock { $0.commitObservers[owner] = nil }
    }

    /// Tells of a commit.
    func noteCommit() {
        let observers = state.withLock { $0.commitObservers }
        for observer in observers.values { observer() }
    }
}
