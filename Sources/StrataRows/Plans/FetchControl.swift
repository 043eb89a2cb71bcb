import StrataLocks
import Synchronization

/// Lets other threads stop and follow a fetch while a store reads for it.
///
/// Any thread may call any member. Handlers are called with no lock held.
public final class FetchControl: Sendable {
    /// Told of rows as they come: how many so far, and how many there will be, if that is known.
    package typealias Report = @Sendable (_ read: Int, _ expected: Int?) -> Void

    private struct State {
        var stop: (@Sendable () -> Void)?
        var read = 0
        var expected: Int?
        var isCounting = false
    }

    private let flag = Atomic(false)
    private let state: Locked<State>
    private let report: Report?
    private let estimate: Int?
    private let bearsReplicas = Atomic(false)

    /// Whether a server may answer that follows the one which is written to, and is a little behind.
    package var mayReadReplica: Bool {
        get { bearsReplicas.load(ordering: .acquiring) }
        set { bearsReplicas.store(newValue, ordering: .releasing) }
    }

    /// Makes the control of one fetch.
    ///
    /// - Parameters:
    ///   - estimate: How many rows to expect; `nil` lets the store count them, if there is a `report`.
    ///   - report: Called on the reading thread, now and then.
    package init(estimate: Int? = nil, report: Report? = nil) {
        self.estimate = estimate
        self.report = report
        state = Locked(State(expected: estimate))
    }

    // MARK: - Stopping

    package var isCancelled: Bool { flag.load(ordering: .acquiring) }

    /// Asks the store to stop.
    ///
    /// The second call does nothing.
    package func cancel() {
        guard !flag.exchange(true, ordering: .sequentiallyConsistent) else { return }
        // Under the lock, so that it does not stop what somebody else does there afterwards. It returns at once.
        state.withLock { $0.stop?() }
    }

    /// Runs `body`, which `stop` can end from another thread.
    ///
    /// What runs inside of another `body` has the stop of its own until it ends.
    package func running<R>(stoppedBy stop: @escaping @Sendable () -> Void, _ body: () throws -> R) rethrows -> R {
        let outer = state.withLock { state in
            defer { state.stop = stop }
            return state.stop
        }
        defer { state.withLock { $0.stop = outer } }
        // A canceller sets the flag and then looks for the handler. This does the reverse, so one of the two calls the
        // handler.
        if isCancelled { stop() }
        return try body()
    }

    // MARK: - Following

    /// Whether the store shall count before it reads, and in the same transaction.
    package var wantsCount: Bool { report != nil && estimate == nil }

    /// Begins to read, or begins again.
    package func begin() {
        guard let report else { return }
        state.withLock { state in
            state.read = 0
            state.expected = estimate
        }
        report(0, estimate)
    }

    /// How far the fetch is: a place to go back to.
    package struct Position: Sendable {
        fileprivate let read: Int
        fileprivate let expected: Int?
    }

    package var position: Position { state.withLock { Position(read: $0.read, expected: $0.expected) } }

    /// Forgets what was told since, as it is read again.
    package func goBack(to position: Position) {
        guard let report else { return }
        let isTold = state.withLock { state in
            state.read = position.read
            state.expected = position.expected
            return !state.isCounting
        }
        if isTold { report(position.read, position.expected) }
    }

    /// Runs `body`, which reads rows only to count them, so that they are not told.
    package func counting<R>(_ body: () throws -> R) rethrows -> R {
        state.withLock { $0.isCounting = true }
        defer { state.withLock { $0.isCounting = false } }
        return try body()
    }

    /// Tells how many rows one store will give.
    package func expect(_ count: Int) {
        guard let report else { return }
        let (read, expected) = state.withLock { state in
            state.expected = (state.expected ?? 0) + count
            return (state.read, state.expected)
        }
        report(read, expected)
    }

    /// Tells that more rows were read.
    package func add(_ count: Int) {
        guard let report, count > 0 else { return }
        let told = state.withLock { state -> (Int, Int?)? in
            guard !state.isCounting else { return nil }
            state.read += count
            return (state.read, state.expected)
        }
        if let told { report(told.0, told.1) }
    }
}

/// Counts the rows of a fetch for whoever follows it, at next to no cost if nobody does.
public struct RowCounter {
    @usableFromInline let control: FetchControl?
    @usableFromInline var pending = 0

    /// A counter for whoever follows; it does nothing if that is nobody.
    @inlinable
    public init(_ control: FetchControl?) { self.control = control }

    /// Counts one row.
    @inlinable
    @inline(__always)
    public mutating func count() {
        guard let control else { return }
        pending += 1
        if pending == 256 { tell(control) }
    }

    /// Tells of the last rows.
    package mutating func finish() {
        if let control { tell(control) }
    }

    @usableFromInline
    mutating func tell(_ control: FetchControl) {
        control.add(pending)
        pending = 0
    }
}
