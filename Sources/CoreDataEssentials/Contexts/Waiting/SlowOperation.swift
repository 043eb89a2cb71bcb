import Foundation
import StrataLocks
import StrataRows
import Synchronization

/// An entry of the slow-operation log, about a block that ran in a context, or that waits for the main queue.
///
/// ```swift
/// SlowOperationLog.handler = { operation in print(operation.context, operation.duration, operation.rows) }
/// SlowOperationLog.threshold = .milliseconds(200)
/// ```
public struct SlowOperation: Sendable, CustomStringConvertible {
    /// The ways in which a block runs.
    ///
    /// ```swift
    /// SlowOperationLog.handler = { if $0.kind == .waiting { print($0) } }
    /// ```
    public enum Kind: String, Sendable {
        /// The block runs by one of the forms of `perform`.
        case perform
        /// The block runs by `performAndWait`.
        case performAndWait
        /// The block is a job of an actor that runs on the context.
        case actor
        /// The block does not run yet: a call of `performAndWait`, or one based on it, still waits for the main queue.
        case waiting
    }

    /// The name of the context in messages.
    public let context: String
    /// The way in which the block runs.
    public let kind: Kind
    /// The context in whose block the waiting call is made, and the queue that the call occupies.
    ///
    /// `nil` unless ``kind`` is `waiting`.
    public let waiter: String?
    /// The time that the block has waited for the context's queue.
    public let queueWait: Duration
    /// The time that the block ran, including the end of the event.
    public let duration: Duration
    /// The part of `duration` that was spent in SQLite, including waits for connections and locks.
    public let storeTime: Duration
    /// The number of rows that fetches of the block have read from SQLite stores.
    public let rows: Int
    /// The number of faults, of objects and of relationships, that were read one by one from SQLite stores.
    public let faults: Int

    /// The entry as one line of a log.
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

/// The log of blocks that keep a context's queue busy for too long, or wait for it for too long.
///
/// A call that waits for a context of the main queue is always reported when it has waited for ``waitThreshold``.
/// Otherwise the log is off by default. ``threshold`` turns it on, and so does `STRATA_SLOW_OPERATIONS` in the
/// environment, which is the threshold in milliseconds, 0 for every block. If a block waits for a block of another
/// context, each is reported separately, and the work of the one does not count for the other. Any thread may use the
/// log.
///
/// See <doc:Diagnostics>.
///
/// ```swift
/// SlowOperationLog.threshold = .milliseconds(200)  // writes a line to standard error for each longer block
/// SlowOperationLog.threshold = nil
/// ```
public enum SlowOperationLog {
    private struct Settings {
        var log: SlowLog<SlowOperation>
        var waitThreshold: Duration? = .seconds(5)
    }

    private static let settings: Locked<Settings> = {
        let text = EnvironmentVariable.value("STRATA_SLOW_OPERATIONS")
        let threshold = text.flatMap { Double($0) }.map { Duration.milliseconds($0) }
        isOn.store(threshold != nil, ordering: .relaxed)
        return Locked(Settings(log: SlowLog(threshold: threshold)))
    }()
    private static let isOn = AtomicCell(false)

    /// The time for waiting and running, taken together, from which on a block is reported.
    ///
    /// Default nil: the log is off. A change affects the blocks that are submitted afterwards.
    public static var threshold: Duration? {
        get { settings.withLock { $0.log.threshold } }
        set {
            settings.withLock { $0.log.threshold = newValue }
            isOn.store(newValue != nil, ordering: .relaxed)
        }
    }

    /// The time after which a call that waits for the main queue is reported, while it goes on waiting.
    ///
    /// Default 5 seconds; `nil` for never. It applies to calls of `performAndWait` on contexts of the main queue, and
    /// to reads of children from such contexts. A change affects later calls. Each call is reported once. Without such
    /// a report, a program that does not serve its main queue, or that blocks the main thread, would hang without a
    /// message.
    public static var waitThreshold: Duration? {
        get { settings.withLock { $0.waitThreshold } }
        set { settings.withLock { $0.waitThreshold = newValue } }
    }

    /// The function that receives the entries of the log.
    ///
    /// It is called on the thread of the block, when the block has ended but before its context's queue goes on. For a
    /// block that waits, it is called on another thread.
    ///
    /// Default nil: each entry is written to standard error, as one line.
    public static var handler: (@Sendable (SlowOperation) -> Void)? {
        get { settings.withLock { $0.log.handler } }
        set {
            // An object that only the former handler holds ends after the lock: its end may be code of the program.
            var handler = newValue
            settings.withLock { swap(&$0.log.handler, &handler) }
        }
    }

    /// The current time, if the log is on or the context's coordinator has an instrument; else `nil`.
    static func submission(to context: NSManagedObjectContext) -> ContinuousClock.Instant? {
        _ = environmentWasRead
        if isOn.load(ordering: .relaxed) { return .now }
        guard Instrumentation.isAnyOn, context.persistentStoreCoordinator?.instrumentation.listener != nil else {
            return nil
        }
        return .now
    }

    private static let environmentWasRead: Bool = settings.withLock { _ in true }

    /// Runs a block and reports it if it was slow.
    ///
    /// - Parameters:
    ///   - context: The context in whose scope the block runs.
    ///   - kind: The way in which the block runs.
    ///   - submitted: The result of ``submission(to:)``.
    ///   - body: Runs the block, and counts its work in the tally, if there is one.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body.
    static func watching<T>(
        _ context: NSManagedObjectContext,
        kind: SlowOperation.Kind,
        submitted: ContinuousClock.Instant,
        body: (UnsafeMutablePointer<OperationTally>?) throws -> T
    ) rethrows -> T {
        let start = ContinuousClock.now
        context.reportToInstrument(.contextWait, duration: start - submitted)
        // An instrument receives operations inside of the block as separate events.
        guard isOn.load(ordering: .relaxed) else { return try body(nil) }
        var tally = OperationTally()
        defer { reportIfSlow(in: context, kind: kind, waited: start - submitted, ran: .now - start, tally: tally) }
        return try body(&tally)
    }

    private static func reportIfSlow(
        in context: NSManagedObjectContext,
        kind: SlowOperation.Kind,
        waited: Duration,
        ran: Duration,
        tally: OperationTally
    ) {
        settings.withLock { $0.log }.report(
            SlowOperation(
                context: context.describedName,
                kind: kind,
                waiter: nil,
                queueWait: waited,
                duration: ran,
                storeTime: tally.storeTime,
                rows: tally.rows,
                faults: tally.faults
            ),
            ifSlow: waited + ran
        )
    }

    /// Reports a call that waits for a context of the main queue.
    static func reportWait(for context: NSManagedObjectContext, by waiter: String, since waited: Duration) {
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
        settings.withLock { $0.log }.report(operation)
    }
}
