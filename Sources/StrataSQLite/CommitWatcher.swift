import Dispatch
import StrataLocks
import Synchronization

/// Reports commits to a database, by this process and by others.
///
/// The kernel reports writes to the log. A write alone is no commit, and a commit becomes visible a moment after the
/// log was written. So each event is followed by checks of the database's version, at first in quick succession. A slow
/// check goes on for ever, in case a file system reports nothing (such as one in the network). It is the only check if
/// the system has no events.
///
/// Any thread may call any member.
package final class CommitWatcher: @unchecked Sendable {
    // @unchecked Sendable: the variables are used only on `queue`, in the initialiser and in the deinitialiser.

    /// The intervals of a watcher, in seconds.
    package struct Pace: Sendable {
        /// The shortest time between two reports.
        ///
        /// Commits in between are reported as one.
        package var coalescing = 0.005
        /// The time between two checks if nothing happens.
        package var idle = 1.0
        /// The time between two checks if the system reports no writes.
        package var polling = 0.05
        /// Whether to ask the system for events.
        package var usesEvents = true

        package init() {}
    }

    private static let shortestPause = 0.0002
    private static let longestPause = 0.2

    private let queue = DispatchQueue(label: "CoreData commits")
    private let isStopped = AtomicCell(false)
    /// Whether an event has happened after which no check was made yet.
    private let isStirred = AtomicCell(false)
    private weak let pool: ConnectionPool?
    private let isMemory: Bool
    private let pace: Pace
    private let handler: @Sendable () -> Void

    /// How often the watcher has read the version.
    let lookCount = AtomicCell(0)
    /// Reads the version; `nil` for a database in memory, and after the watcher was stopped.
    private var detector: Connection?
    private var version: Int64 = 0
    private var token: FileEvents.Token?
    /// The pause before the next quick check.
    ///
    /// If it exceeds the longest pause, there is none.
    private var pause = longestPause * 2
    /// The time of the next quick check; the largest number if there is none.
    private var nextLook = UInt64.max
    private var hasNews = false
    private var isReportScheduled = false
    private var lastReport: UInt64 = 0

    /// Starts to watch.
    ///
    /// - Parameters:
    ///   - pool: The connections of the database.
    ///   - pace: The intervals of checks and reports.
    ///   - handler: Called after commits, on a queue of the watcher, but not for each commit. It must be short, and
    ///     must not stop the watcher.
    /// - Throws: Errors of reading the database.
    package init(_ pool: ConnectionPool, pace: Pace = Pace(), handler: @escaping @Sendable () -> Void)
        throws(SQLiteError)
    {
        self.pool = pool
        self.pace = pace
        self.handler = handler
        isMemory = pool.isMemory
        if !isMemory {
            let detector = try pool.opening.openReader()
            // If a check fails because of locks, it is repeated.
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
    /// No call of the handler begins afterwards. A second call of this method does nothing. The method waits for a
    /// check that is in progress, and for the handler.
    package func stop() {
        isStopped.store(true, ordering: .sequentiallyConsistent)
        Schedule.sync(on: queue) { end() }
    }

    private func end() {
        if let token { FileEvents.shared?.end(token) }
        token = nil
        pool?.removeCommitObserver(ObjectIdentifier(self))
        detector?.close()
        detector = nil
    }

    // MARK: - Events

    /// Notes that another program has written to the log, or that this process has committed.
    private func stir() {
        guard !isStirred.exchange(true, ordering: .sequentiallyConsistent) else { return }
        onQueue { watcher in
            // The report that is scheduled looks again. Until then no event needs to wake this queue.
            if !watcher.isReportScheduled { watcher.lookAfterEvent() }
        }
    }

    private func lookAfterEvent() {
        // A look before the next report may be made would only wake this queue once more.
        let early = secondsToReport
        guard early <= 0 else { return lookForReport(after: early) }
        isStirred.store(false, ordering: .sequentiallyConsistent)
        pause = Self.shortestPause
        look()
    }

    /// The seconds until the next report may be made; at most 0 if it may be made now.
    private var secondsToReport: Double { pace.coalescing - Double(BusyWait.now() &- lastReport) / 1e9 }

    /// Looks when a report may be made; events until then need no look.
    private func lookForReport(after seconds: Double) {
        isReportScheduled = true
        onQueue(after: seconds) { watcher in
            watcher.isReportScheduled = false
            watcher.lookAfterEvent()
        }
    }

    /// Reads the version, reports a new one, and schedules the next quick check.
    private func look() {
        lookCount.add(1, ordering: .relaxed)
        if isMemory {
            hasNews = true
        } else if let seen = try? detector?.dataVersion(), seen != version {
            // If the version cannot be read now, the next check will try again.
            version = seen
            hasNews = true
        }
        report()
        guard !isMemory, !isReportScheduled, pause <= Self.longestPause else { return }
        let wait = max(pause, secondsToReport)
        let time = BusyWait.now() &+ UInt64(wait * 1e9)
        // A check that an earlier event has put far off gives way to this one.
        guard time < nextLook else { return }
        nextLook = time
        onQueue(after: wait) { watcher in
            guard watcher.nextLook == time else { return }
            watcher.nextLook = .max
            guard !watcher.isReportScheduled else { return }
            // There may have been a report since this check was planned.
            let early = watcher.secondsToReport
            if early > 0 { watcher.lookForReport(after: early) } else { watcher.look() }
        }
        pause *= 2
    }

    private func lookNowAndThen(every seconds: Double) {
        // A scheduler of tests does not know this timer, as it never ends.
        queue.asyncAfter(deadline: .now() + seconds) { [weak self] in
            guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
            look()
            lookNowAndThen(every: seconds)
        }
    }

    /// Calls the handler if there is a new version, but not too soon after the last time.
    private func report() {
        guard hasNews, !isReportScheduled else { return }
        let early = secondsToReport
        guard early <= 0 else { return lookForReport(after: early) }
        hasNews = false
        lastReport = BusyWait.now()
        handler()
    }

    private func onQueue(after seconds: Double = 0, _ body: @escaping @Sendable (CommitWatcher) -> Void) {
        let run: @Sendable () -> Void = { [weak self] in
            guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
            body(self)
        }
        if seconds > 0 { Schedule.async(on: queue, after: seconds, run) } else { Schedule.async(on: queue, run) }
    }
}

extension ConnectionPool {
    /// Makes the pool call `observer` after each of its commits.
    ///
    /// The call comes before the next writer gets its turn, so it must be short, and must not use the pool.
    func addCommitObserver(_ owner: ObjectIdentifier, _ observer: @escaping @Sendable () -> Void) {
        state.withLock { $0.commitObservers[owner] = observer }
    }

    func removeCommitObserver(_ owner: ObjectIdentifier) {
        state.withLock { $0.commitObservers[owner] = nil }
    }

    /// Reports a commit to the observers.
    func noteCommit() {
        let observers = state.withLock { $0.commitObservers }
        for observer in observers.values { observer() }
    }
}
