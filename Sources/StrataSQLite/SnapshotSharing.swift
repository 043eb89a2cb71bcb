import StrataLocks

/// Knows which snapshots of a pool hold the version that is the newest, so that they can be shared.
final class SnapshotSharing: Sendable {
    private struct State {
        /// Tells whether somebody has committed; `nil` until something is pinned.
        var detector: Connection?
        /// What ``detector`` has said when ``newest`` were pinned.
        var version: Int64 = 0
        var newest: [WeakSnapshot] = []
        /// Counts the calls, so that ``newest`` are given out in turn.
        var last = 0
    }

    private struct WeakSnapshot {
        weak var snapshot: PinnedSnapshot?
    }

    private let state = Locked(State())
    /// For whoever uses the detector.
    private let permit = FairSemaphore(permits: 1)

    /// Runs `body` while no other thread does.
    func turn<R>(timeout: Double, _ body: () throws(SQLiteError) -> R) throws(SQLiteError) -> R {
        switch permit.acquire(timeout: timeout) {
        case .acquired: break
        case .timedOut(let waited): throw .timedOut(.pin, after: waited, blocker: .otherThread)
        case .cancelled: throw .cancelled(.pin)
        }
        defer { permit.release() }
        return try body()
    }

    /// Closes the detector.
    ///
    /// By the holder of the turn.
    func close() {
        let detector = state.withLock { state in
            defer { state.detector = nil }
            return state.detector
        }
        detector?.close()
    }

    /// A snapshot of the version that is the newest now: a new one as long as there are less than `limit` of that version and
    /// less than half of all connections are in use, or there is none; else each of them in turn.
    ///
    /// By the holder of the turn.
    func snapshot(
        limit: Int,
        _ pool: ConnectionPool,
        _ pin: () throws(SQLiteError) -> PinnedSnapshot
    ) throws(SQLiteError) -> PinnedSnapshot {
        let detector: Connection
        if let known = state.withLock({ $0.detector }) {
            detector = known
        } else {
            detector = try pool.opening.openReader()
            state.withLock { $0.detector = detector }
        }
        let version = try detector.dataVersion()
        // What is held here is let go of outside the lock, as its end gives a connection back.
        let (held, turn) = state.withLock { state in
            let living = state.version == version ? state.newest.compactMap(\.snapshot) : []
            state.version = version
            state.newest = living.map { WeakSnapshot(snapshot: $0) }
            state.last += 1
            return (living, state.last)
        }
        let living = held.filter { !$0.isLost }
        // Other versions are to find connections, too.
        let canHaveMore =
            living.count < limit && pool.state.withLock { $0.snapshotCount } < pool.options.maximumSnapshots / 2
        if !living.isEmpty, !canHaveMore { return living[turn % living.count] }
        let made: PinnedSnapshot
        do {
            made = try pin()
        } catch {
            // Other versions have all connections.
            if error.code == .full, let shared = living.first { return shared }
            throw error
        }
        // If somebody has committed in between nobody knows which version it is, so it is not shared.
        if try detector.dataVersion() == version {
            state.withLock { $0.newest.append(WeakSnapshot(snapshot: made)) }
        }
        return made
    }
}

extension ConnectionPool {
    /// Pins the version of the database as of now, together with others who have pinned the same one.
    ///
    /// Those who pin one version get up to ``PoolOptions/connectionsPerVersion``, and share these from then on. All but the first
    /// of a version come from the first half of ``PoolOptions/maximumSnapshots``, so that more versions than that half always fit.
    ///
    /// - Throws: As ``pinSnapshot(timeout:)``.
    package func sharedSnapshot(timeout: Double? = nil) throws(SQLiteError) -> PinnedSnapshot {
        let timeout = timeout ?? options.timeout
        try checkOpen(.pin)
        guard isWriteAheadLogged else { return try pinSnapshot(timeout: timeout) }
        return try sharing.turn(timeout: timeout) { () throws(SQLiteError) in
            // Those who waited for the turn may have waited for the end of the pool.
            try checkOpen(.pin)
            return try sharing.snapshot(limit: options.connectionsPerVersion, self) { () throws(SQLiteError) in
                try pinSnapshot(timeout: timeout)
            }
        }
    }
}
