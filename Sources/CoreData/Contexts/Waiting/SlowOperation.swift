import Foundation
import StrataRows
import Synchronization

/// What the slow-operation log tells of one block that ran in a context.
public struct SlowOperation: Sendable, CustomStringConvertible {
    /// How the block came to run.
    public enum Kind: String, Sendable {
        /// By one of the forms of `perform`.
        case perform
        /// By `performAndWait`.
        case performAndWait
        /// As a job of an actor that lives on the context.
        case actor
    }

    /// The context, as messages name it.
    public let context: String
    /// How the block came to run.
    public let kind: Kind
    /// How long the block waited for the context's queue.
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
        return """
            CoreData: slow \(kind.rawValue) in \(context): waited \(milliseconds(queueWait)), \
            ran \(milliseconds(duration)), of which store \(milliseconds(storeTime)); \(rows) rows, \(faults) faults
            """
    }
}

/// The log of blocks that keep a context's queue busy, or wait for it, for too long.
///
/// Off by default. On with ``threshold``, or with `STRATA_SLOW_OPERATIONS` in the environment: the threshold in
/// milliseconds, 0 for every block. A block of another context that is waited for is told of by itself, and its work
/// does not count for the one that waits. Any thread may use it.
public enum SlowOperationLog {
    private struct Settings {
        var threshold: Duration?
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

    /// Who is told, on the thread of the block, when the block has ended but before its context's queue goes on.
    ///
    /// Default nil: a line on standard error.
    public static var handler: (@Sendable (SlowOperation) -> Void)? {
        get { settings.withLock { $0.handler } }
        set { settings.withLock { $0.handler = newValue } }
    }

    /// The moment of a block's submission, if the log is on.
    static func submission() -> ContinuousClock.Instant? {
        _ = environmentWasRead
        return isOn.load(ordering: .relaxed) ? .now : nil
    }

    private static let environmentWasRead: Bool = settings.withLock { _ in true }

    /// Runs a block and tells of it if it was slow.
    ///
    /// - Parameters:
    ///   - context: The context in whose scope the block runs.
    ///   - kind: How the block came there.
    ///   - submitted: What ``submission()`` gave.
    ///   - body: Runs the block, and counts its work in the tally.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    static func watching<T>(
        _ context: NSManagedObjectContext,
        _ kind: SlowOperation.Kind,
        _ submitted: ContinuousClock.Instant,
        _ body: (UnsafeMutablePointer<OperationTally>) throws -> T
    ) rethrows -> T {
        var tally = OperationTally()
        let start = ContinuousClock.now
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
            queueWait: waited,
            duration: ran,
            storeTime: tally.storeTime,
            rows: tally.rows,
            faults: tally.faults
        )
        if let handler { return handler(operation) }
        FileHandle.standardError.write(Data("\(operation)\n".utf8))
    }
}
