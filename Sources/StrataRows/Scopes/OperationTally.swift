/// What one operation on a context has asked of the stores, counted while the slow-operation log or an instrument is on.
///
/// Lives in the frame of the call that runs the operation; see ``ConfinementScope``.
public struct OperationTally {
    /// How long SQLite was at work for the operation, waiting for connections and locks included.
    public var storeTime: Duration = .zero
    /// Rows that fetches have read.
    public var rows = 0
    /// Faults, of objects and of relationships, that had to be read from a store.
    public var faults = 0
    /// How long it waited for a connection that reads.
    public var readerWait: Duration = .zero
    /// How long it waited for its turn to write, and for other processes that wrote.
    public var writerWait: Duration = .zero
    /// How long copying the write-ahead log into the file took.
    public var checkpointTime: Duration = .zero
    /// The statement of the last fetch, without values.
    public var statement: String?

    /// A tally of nothing yet, unless it is said otherwise.
    @inlinable
    public init(storeTime: Duration = .zero, rows: Int = 0, faults: Int = 0) {
        self.storeTime = storeTime
        self.rows = rows
        self.faults = faults
    }

    /// Adds what an operation within this one has asked.
    public mutating func add(_ inner: OperationTally) {
        storeTime += inner.storeTime
        rows += inner.rows
        faults += inner.faults
        readerWait += inner.readerWait
        writerWait += inner.writerWait
        checkpointTime += inner.checkpointTime
        statement = inner.statement ?? statement
    }

    /// The tally of the operation that the current thread is in; `nil` if nobody wants to know.
    @inlinable
    @inline(__always)
    public static var current: UnsafeMutablePointer<OperationTally>? { ConfinementScope.tally }

    /// Runs `body`, whose time counts as the store's.
    @inlinable
    @inline(__always)
    public static func timingStore<R>(_ body: () throws -> R) rethrows -> R {
        let start = startTiming()
        defer { stopTiming(start) }
        return try body()
    }

    /// The time, if somebody wants to know.
    @inlinable
    @inline(__always)
    public static func startTiming() -> ContinuousClock.Instant? { current == nil ? nil : .now }

    /// Counts the time since `start` as the store's.
    @inlinable
    @inline(__always)
    public static func stopTiming(_ start: ContinuousClock.Instant?) {
        guard let start, let current else { return }
        current.pointee.storeTime += .now - start
    }
}
