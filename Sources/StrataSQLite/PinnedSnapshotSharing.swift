import StrataLocks

/// Knows which snapshots of a pool hold the newest version, so that they can be shared.
final class PinnedSnapshotSharing: Sendable {
    private struct State {
        /// Finds out whether a connection has committed; `nil` until a version is pinned.
        var detector: Connection?
        /// The answer of ``detector`` at the time when ``newest`` were pinned.
        var version: Int64 = 0
        var newest: [WeakSnapshot] = []
        /// The number of calls, by which ``newest`` are given out in turn.
        var last = 0
    }

    private struct WeakSnapshot {
        weak var snapshot: PinnedSnapshot?
    }

    private let state = Locked(State())
    /// The turn to use the detector.
    private let permit = FairSemaphore(permits: 1)

    /// Runs `body` when no other thread uses the detector.
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
    /// Only the holder of the turn may call it.
    func close() {
        let detector = state.withLock { state in
            defer { state.detector = nil }
            return state.detector
        }
        detector?.close()
    }

    /// A snapshot of the newest version.
    ///
    /// It is a new one if there is none, or if there are less than `limit` of that version and less than half of all
    /// connections are in use. Otherwise each present one is given out in turn. Only the holder of the turn may call
    /// it.
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
        // The snapshots are released outside the lock, because the end of one returns a connection.
        let (held, turn) = state.withLock { state in
            let living = state.version == version ? state.newest.compactMap(\.snapshot) : []
            state.version = version
            state.newest = living.map { WeakSnapshot(snapshot: $0) }
            state.last += 1
            return (living, state.last)
        }
        let living = held.filter { !$0.isLost }
        // Connections must be left for other versions.
        let canHaveMore =
            living.count < limit && pool.snapshotCount.value < pool.options.maximumSnapshots / 2
        if !living.isEmpty, !canHaveMore { return living[turn % living.count] }
        let made: PinnedSnapshot
        do {
            made = try pin()
        } catch {
            // Other versions use all connections.
            if error.code == .full, let shared = living.first { return shared }
            throw error
        }
        // If a connection has committed in between, it is not known which version it is, so it is not shared.
        if try detector.dataVersion() == version {
            state.withLock { $0.newest.append(WeakSnapshot(snapshot: made)) }
        }
        return made
    }
}

extension ConnectionPool {
    /// Pins the present version of the database, and shares it with others that have pinned the same one.
    ///
    /// The users of one version get up to ``PoolOptions/connectionsPerVersion``, and share these from then on. All but
    /// the first of a version come from the first half of ``PoolOptions/maximumSnapshots``, so that more versions than
    /// that half always fit.
    ///
    /// - Throws: The errors of ``pinSnapshot(timeout:)``.
    package func sharedSnapshot(timeout: Double? = nil) throws(SQLiteError) -> PinnedSnapshot {
        let timeout = timeout ?? options.timeout
        try checkOpen(.pin)
        guard isWriteAheadLogged else { return try pinSnapshot(timeout: timeout) }
        return try sharing.turn(timeout: timeout) { () throws(SQLiteError) in
            // The pool may have been closed during the wait for the turn.
            try checkOpen(.pin)
            return try sharing.snapshot(limit: options.connectionsPerVersion, self) { () throws(SQLiteError) in
                try pinSnapshot(timeout: timeout)
            }
        }
    }
}
