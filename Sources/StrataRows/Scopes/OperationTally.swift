import Foundation

/// The work of stores for one operation of a context, counted while the slow-operation log or an instrument is on.
///
/// It lives in the frame of the call that runs the operation; see ``ConfinementScope``. Times are nanoseconds of the
/// monotonic clock as plain numbers: an instrument must cost next to nothing, and `Duration` counts with 128 bits.
public struct OperationTally {
    /// The time that SQLite worked for the operation, including the waits for connections and locks.
    public var storeNanoseconds: Int64 = 0
    /// Whether the operation is a single read of a store.
    ///
    /// Its time is then the store's, and the clock is read once less at each end.
    public let isOneRead: Bool
    /// Whether a store that is timed was asked, if ``isOneRead`` is set.
    public var hasAskedStore = false
    /// Rows that fetches have read.
    public var rows = 0
    /// Faults of objects and of relationships that had to be read from a store.
    public var faults = 0
    /// The time that the operation waited for a connection that reads.
    public var readerWait: Int64 = 0
    /// The time that the operation waited for its turn to write, and for other processes that wrote.
    public var writerWait: Int64 = 0
    /// The time that it took to copy the write-ahead log into the file.
    public var checkpointTime: Int64 = 0
    /// The code of the error that has kept the log from being copied; 0 for none.
    public var checkpointErrorCode = 0
    /// The statement of the last fetch, without values.
    public var statement: String?

    /// Makes a tally.
    ///
    /// By default it counts nothing yet.
    @inlinable
    public init(storeNanoseconds: Int64 = 0, rows: Int = 0, faults: Int = 0, isOneRead: Bool = false) {
        self.isOneRead = isOneRead
        self.storeNanoseconds = storeNanoseconds
        self.rows = rows
        self.faults = faults
    }

    /// Adds the work of an operation within this one.
    public mutating func add(_ inner: OperationTally) {
        storeNanoseconds += inner.storeNanoseconds
        rows += inner.rows
        faults += inner.faults
        readerWait += inner.readerWait
        writerWait += inner.writerWait
        checkpointTime += inner.checkpointTime
        if inner.checkpointErrorCode != 0 { checkpointErrorCode = inner.checkpointErrorCode }
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

    /// The tally of the current thread's operation; `nil` if nothing is counted.
    @inlinable
    @inline(__always)
    public static var current: UnsafeMutablePointer<OperationTally>? { ConfinementScope.tally }

    /// Runs `body`, and counts its time as the store's.
    @inlinable
    @inline(__always)
    public static func timingStore<R>(_ body: () throws -> R) rethrows -> R {
        let start = startTiming()
        defer { stopTiming(start) }
        return try body()
    }

    /// The present time; `nil` if nothing is counted.
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
