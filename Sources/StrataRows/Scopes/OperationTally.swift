import Foundation

/// What one operation on a context has asked of the stores, counted while the slow-operation log or an instrument is on.
///
/// Lives in the frame of the call that runs the operation; see ``ConfinementScope``. Times are nanoseconds of the monotonic clock as plain
/// numbers: an instrument is to cost next to nothing, and `Duration` counts with 128 bits.
public struct OperationTally {
    /// How long SQLite was at work for the operation, waiting for connections and locks included.
    public var storeNanoseconds: Int64 = 0
    /// Whether the operation is one read of a store and nothing else: its time is the store's then, and the clock is read once less at each end.
    public let isOneRead: Bool
    /// Whether a store that is timed was asked, where ``isOneRead``.
    public var hasAskedStore = false
    /// Rows that fetches have read.
    public var rows = 0
    /// Faults, of objects and of relationships, that had to be read from a store.
    public var faults = 0
    /// How long it waited for a connection that reads.
    public var readerWait: Int64 = 0
    /// How long it waited for its turn to write, and for other processes that wrote.
    public var writerWait: Int64 = 0
    /// How long copying the write-ahead log into the file took.
    public var checkpointTime: Int64 = 0
    /// The statement of the last fetch, without values.
    public var statement: String?

    /// A tally of nothing yet, unless it is said otherwise.
    @inlinable
    public init(storeNanoseconds: Int64 = 0, rows: Int = 0, faults: Int = 0, isOneRead: Bool = false) {
        self.isOneRead = isOneRead
        self.storeNanoseconds = storeNanoseconds
        self.rows = rows
        self.faults = faults
    }

    /// Adds what an operation within this one has asked.
    public mutating func add(_ inner: OperationTally) {
        storeNanoseconds += inner.storeNanoseconds
        rows += inner.rows
        faults += inner.faults
        readerWait += inner.readerWait
        writerWait += inner.writerWait
        checkpointTime += inner.checkpointTime
        statement = inner.statement ?? statement
    }

    /// ``storeNanoseconds`` as a duration.
    public var storeTime: Duration { .nanoseconds(storeNanoseconds) }

    /// The monotonic clock.
    @inlinable
    @inline(__always)
    public static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
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
    public static func startTiming() -> Int64? {
        guard let current else { return nil }
        guard current.pointee.isOneRead else { return now }
        current.pointee.hasAskedStore = true
        return nil
    }

    /// Counts the time since `start` as the store's.
    @inlinable
    @inline(__always)
    public static func stopTiming(_ start: Int64?) {
        guard let start, let current else { return }
        current.pointee.storeNanoseconds += now - start
    }
}
