import Foundation
import StrataRows
import Synchronization

/// What the slow-operation log tells of one block that ran in a context, or that waits for the main queue.
///
/// ```swift
/// SlowOperationLog.handler = { operation in print(operation.context, operation.duration, operation.rows) }
/// SlowOperationLog.threshold = .milliseconds(200)
/// ```
public struct SlowOperation: Sendable, CustomStringConvertible {
    /// How the block came to run.
    ///
    /// ```swift
    /// SlowOperationLog.handler = { if $0.kind == .waiting { print($0) } }
    /// ```
    public enum Kind: String, Sendable {
        /// By one of the forms of `perform`.
        case perform
        /// By `performAndWait`.
        case performAndWait
        /// As a job of an actor that lives on the context.
        case actor
        /// Not yet: a `performAndWait`, or what is built on it, still waits for the main queue.
        case waiting
    }

    /// The context, as messages name it.
    public let context: String
    /// How the block came to run.
    public let kind: Kind
    /// Who waits for the context: the context in whose block the call is made, and the queue that the call occupies.
    ///
    /// `nil` unless ``kind`` is `waiting`.
    public let waiter: String?
    /// How long the block waited for the context's queue, or has waited so far.
    public let queueWait: Duration
    /// How long the block ran, the end of the event included.
    public let duration: Duration
    /// How much of `duration` was spent in SQLite, waiting for connections and locks included.
    public let storeTime: Duration
    /// How many rows fetches of the block have read from SQLite stores.
    public let rows: Int
    /// How many faults, of objects and of relationships, one by one were read from SQLite stores.
    public let faults: Int

    /// One line for a log.
    public var description: String {
        func milliseconds(_ duration: Duration) -> String {
            String(
                format: "%.1f ms",
                Double(duration.components.seconds) * 1e3 + Double(duration.components.attoseconds) / 1e15
            )
        }
        if let waiter {
            return """
                CoreData: \(waiter) has waited for \(context) for \(milliseconds(queueWait)), and still does: nothing has served the \
                main queue meanwhile. It needs a run loop, dispatchMain() or an asynchronous main, and a main thread that \
                is not busy.
                """
        }
        return """
            CoreData: slow \(kind.rawValue) in \(context): waited \(milliseconds(queueWait)), \
            ran \(milliseconds(duration)), of which store \(milliseconds(storeTime)); \(rows) rows, \(faults) faults
            """
    }
}

/// The log of blocks that keep a context's queue busy, or wait for it, for too long.
///
/// What waits for a context of the main queue is told of in any case, when it has waited for ``waitThreshold``. Else the log
/// is off by default. On with ``threshold``, or with `STRATA_SLOW_OPERATIONS` in the environment: the threshold in
/// milliseconds, 0 for every block. A block of another context that is waited for is told of by itself, and its work
/// does not count for the one that waits. Any thread may use it.
///
/// See <doc:Diagnostics>.
///
/// ```swift
/// SlowOperationLog.threshold = .milliseconds(200)  // writes a line to standard error for each longer block
/// SlowOperationLog.threshold = nil
/// ```
public enum SlowOperationLog {
    private struct Settings {
        var threshold: Duration?
        var waitThreshold: Duration? = .seconds(5)
        var handler: (@Sendable (SlowOperation) -> Void)?
    }

    private static let settings: Mutex<Settings> = {
        let text = ProcessInfo.processInfo.environment["STRATA_SLOW_OPERATIONS"]
        let threshold = text.flatMap { Double($0) }.map { Duration.milliseconds($0) }
        isOn.store(threshold != nil, ordering: .relaxed)
        return Mutex(Settings(threshold: threshold))
    }()
    private static let isOn = Atomic(false)

    /// From what time on, waiting and running taken together, a block is told of.
    ///
    /// Default nil: the log is off. Blocks that were submitted before count from the next one on.
    public static var threshold: Duration? {
        get { settings.withLock { $0.threshold } }
        set {
            settings.withLock { $0.threshold = newValue }
            isOn.store(newValue != nil, ordering: .relaxed)
        }
    }

    /// After what time a call is told of that waits for the main queue, while it goes on waiting.
    ///
    /// Default 5 seconds; `nil` for never. Counts for calls of `performAndWait` on contexts of the main queue, and for what children
    /// of such contexts ask them, from the next call on. Each call is told of once. A program that serves no main queue, or
    /// that blocks the main thread, would hang in silence otherwise.
    public static var waitThreshold: Duration? {
        get { settings.withLock { $0.waitThreshold } }
        set { settings.withLock { $0.waitThreshold = newValue } }
    }

    /// Who is told, on the thread of the block, when the block has ended but before its context's queue goes on; of one
    /// that waits, on another thread.
    ///
    /// Default nil: a line on standard error.
    public static var handler: (@Sendable (SlowOperation) -> Void)? {
        get { settings.withLock { $0.handler } }
        set { settings.withLock { $0.handler = newValue } }
    }

    /// The moment of a block's submission to a context, if the log is on, or the context's coordinator has an instrument.
    static func submission(to context: NSManagedObjectContext) -> ContinuousClock.Instant? {
        _ = environmentWasRead
        if isOn.load(ordering: .relaxed) { return .now }
        guard Instrumentation.isAnyOn, context.persistentStoreCoordinator?.instrumentation.listener != nil else {
            return nil
        }
        return .now
    }

    private static let environmentWasRead: Bool = settings.withLock { _ in true }

    /// Runs a block and tells of it if it was slow.
    ///
    /// - Parameters:
    ///   - context: The context in whose scope the block runs.
    ///   - kind: How the block came there.
    ///   - submitted: What ``submission()`` gave.
    ///   - body: Runs the block, and counts its work in the tally, if there is one.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    static func watching<T>(
        _ context: NSManagedObjectContext,
        _ kind: SlowOperation.Kind,
        _ submitted: ContinuousClock.Instant,
        _ body: (UnsafeMutablePointer<OperationTally>?) throws -> T
    ) rethrows -> T {
        let start = ContinuousClock.now
        context.tellInstrument(.contextWait, duration: start - submitted)
        // Operations inside of the block count by themselves for an instrument.
        guard isOn.load(ordering: .relaxed) else { return try body(nil) }
        var tally = OperationTally()
        defer { tell(context, kind, start - submitted, .now - start, tally) }
        return try body(&tally)
    }

    private static func tell(
        _ context: NSManagedObjectContext,
        _ kind: SlowOperation.Kind,
        _ waited: Duration,
        _ ran: Duration,
        _ tally: OperationTally
    ) {
        let (threshold, handler) = settings.withLock { ($0.threshold, $0.handler) }
        guard let threshold, waited + ran >= threshold else { return }
        let operation = SlowOperation(
            context: context.describedName,
            kind: kind,
            waiter: nil,
            queueWait: waited,
            duration: ran,
            storeTime: tally.storeTime,
            rows: tally.rows,
            faults: tally.faults
        )
        tell(operation, handler)
    }

    /// Tells of a call that waits for a context of the main queue.
    static func tellOfWait(for context: NSManagedObjectContext, by waiter: String, since waited: Duration) {
        let operation = SlowOperation(
            context: context.describedName,
            kind: .waiting,
            waiter: waiter,
            queueWait: waited,
            duration: .zero,
            storeTime: .zero,
            rows: 0,
            faults: 0
        )
        tell(operation, handler)
    }

    private static func tell(_ operation: SlowOperation, _ handler: (@Sendable (SlowOperation) -> Void)?) {
        if let handler { return handler(operation) }
        FileHandle.standardError.write(Data("\(operation)\n".utf8))
    }
}
