import StrataLocks
import Synchronization

/// Lets other threads stop and follow a fetch while a store reads for it.
///
/// Any thread may call any member. `report` is called with no lock held.
public final class FetchControl: Sendable {
    /// Receives the progress: the number of rows so far, and the number that there will be, if that is known.
    package typealias Report = @Sendable (_ read: Int, _ expected: Int?) -> Void

    private struct State {
        var read = 0
        var expected: Int?
        var isCounting = false
    }

    /// Stops the fetch.
    package let cancellation: Cancellation
    private let state: Locked<State>
    private let report: Report?
    private let estimate: Int?
    private let bearsReplicas = AtomicCell(false)

    /// Whether a replica, which may be a little behind its primary server, may answer.
    package var mayReadReplica: Bool {
        get { bearsReplicas.load(ordering: .acquiring) }
        set { bearsReplicas.store(newValue, ordering: .releasing) }
    }

    /// Makes the control of one fetch.
    ///
    /// - Parameters:
    ///   - cancellation: Stops the fetch.
    ///   - estimate: The number of rows to expect; `nil` lets the store count them, if there is a `report`.
    ///   - report: Called now and then on the reading thread.
    package init(cancellation: Cancellation = Cancellation(), estimate: Int? = nil, report: Report? = nil) {
        self.cancellation = cancellation
        self.estimate = estimate
        self.report = report
        state = Locked(State(expected: estimate))
    }

    // MARK: - Following

    /// Whether the store must count the rows before it reads them, in the same transaction.
    package var wantsCount: Bool { report != nil && estimate == nil }

    /// Notes that reading begins, for the first time or anew.
    package func begin() {
        guard let report else { return }
        state.withLock { state in
            state.read = 0
            state.expected = estimate
        }
        report(0, estimate)
    }

    /// The progress of a fetch at one moment, to go back to.
    package struct Position: Sendable {
        fileprivate let read: Int
        fileprivate let expected: Int?
    }

    package var position: Position { state.withLock { Position(read: $0.read, expected: $0.expected) } }

    /// Goes back to an earlier position, because the rows since then are read again.
    package func goBack(to position: Position) {
        guard let report else { return }
        let isTold = state.withLock { state in
            state.read = position.read
            state.expected = position.expected
            return !state.isCounting
        }
        if isTold { report(position.read, position.expected) }
    }

    /// Runs `body`, which reads rows only to count them, so that they are not reported.
    package func counting<R>(_ body: () throws -> R) rethrows -> R {
        state.withLock { $0.isCounting = true }
        defer { state.withLock { $0.isCounting = false } }
        return try body()
    }

    /// Notes how many rows one store will give.
    package func expect(_ count: Int) {
        guard let report else { return }
        let (read, expected) = state.withLock { state in
            state.expected = (state.expected ?? 0) + count
            return (state.read, state.expected)
        }
        report(read, expected)
    }

    /// Notes that more rows were read.
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

/// Counts the rows of a fetch and reports them to its control; without one it costs next to nothing.
public struct RowCounter {
    @usableFromInline let control: FetchControl?
    @usableFromInline var pending = 0

    /// Makes a counter that reports to a control; it does nothing if there is none.
    @inlinable
    public init(_ control: FetchControl?) { self.control = control }

    /// Counts one row.
    @inlinable
    @inline(__always)
    public mutating func count() {
        guard let control else { return }
        pending += 1
        if pending == WorkSize.reportedRows { tell(control) }
    }

    /// Reports the last rows.
    package mutating func finish() {
        if let control { tell(control) }
    }

    @usableFromInline
    mutating func tell(_ control: FetchControl) {
        control.add(pending)
        pending = 0
    }
}
