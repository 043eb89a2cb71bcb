import Foundation
import StrataRows

/// A receiver of events of a coordinator and its contexts: a bridge to metrics, logs or traces.
///
/// See <doc:Instruments>.
///
/// ```swift
/// final class SaveTimes: CoreDataInstrument {
///     private let slowest = Mutex(0.0)
///
///     func record(_ event: CoreDataEvent) {
///         guard event.kind == .save else { return }
///         slowest.withLock { $0 = max($0, event.seconds) }
///     }
/// }
/// coordinator.instrument = SaveTimes()
/// ```
///
/// An addition to Apple's API.
public protocol CoreDataInstrument: Sendable {
    /// Receives one event, after the operation has ended.
    ///
    /// Called on the thread of the operation, on several threads at once, with no lock held. The thread is mostly
    /// inside a context's scope, which continues when this method returns. So return quickly, and do not use the
    /// context: it may be in the middle of a fetch or a save.
    ///
    /// - Parameter event: The event, as plain values.
    func record(_ event: CoreDataEvent)
}

/// An operation of a coordinator or one of its contexts, or a time of waiting.
///
/// It names entities, contexts and statements, and never has a value of an object.
///
/// ```swift
/// struct Lines: CoreDataInstrument {
///     func record(_ event: CoreDataEvent) { print(event.kind, event.seconds, event.rows, event.statement ?? "") }
/// }
/// coordinator.instrument = Lines()
/// ```
public struct CoreDataEvent: Sendable {
    /// The kind of the operation.
    ///
    /// ```swift
    /// let metrics = PrometheusInstrument()
    /// coordinator.instrument = metrics
    /// _ = try context.fetch(request)
    /// print(metrics.count(of: .fetch))
    /// ```
    public enum Kind: String, Sendable, CaseIterable {
        /// A fetch or a count of a context; ``rows`` is the number of results, or the count. A batched fetch ends with its first batch.
        case fetch
        /// A fault of one object, or of one relationship, that the row cache could not fill; ``rows`` is what the store had.
        case fault
        /// A call of `save()`, with hooks, validation and notifications; ``rows`` is the number of objects that were saved.
        case save
        /// A block reads objects one by one that one prefetch could read together; ``rows`` is their number; it takes no time.
        case repeatedReads
        /// A save found rows that others had changed; ``rows`` is their number; it takes no time.
        case conflict
        /// A block of `perform(retrying:_:)` runs again because of a conflict; it takes no time.
        case retry
        /// A context has merged the saves of others; ``rows`` is the number of changed rows.
        case merge
        /// The time that a block waited for its context's queue.
        case contextWait
        /// The time that a fetch, a fault or a save waited for a connection of a store's pool, if it waited.
        case readerWait
        /// The time that a save or a batch waited for other writers, if it waited.
        case writerWait
        /// An asynchronous fetch, from its start to its results; ``rows`` is their number.
        case asynchronousFetch
        /// A batch insert, update or delete; ``rows`` is the number of rows.
        case batch
        /// A store was migrated when it was added.
        case migration
        /// The write-ahead log of a SQLite store was copied into the file, beside other work; the next save or batch reports it.
        ///
        /// ``errorCode`` says why that was not possible. Nothing is lost then, and it is tried again later.
        case checkpoint
        /// A worker has begun a job; the duration is the time since the job was due.
        case jobWait
        /// A job is done; the duration of this event and of those below is the time since the worker has taken the job.
        case jobDone
        /// An attempt of a job has failed, and another one follows.
        case jobRetry
        /// A job has failed for good.
        case jobFailure
        /// A worker has cancelled a job.
        case jobCancellation
        /// A worker has put a job off or given it back, and the attempt does not count.
        case jobPostponement
        /// A worker has lost a job before its end: the lease had ended, or the job was deleted. Nothing of its context was saved.
        case jobLoss
    }

    /// The kind of the operation.
    public let kind: Kind
    /// The duration of the operation; zero for events that take no time.
    public var duration: Duration { .nanoseconds(nanoseconds) }
    /// The part of ``duration`` that the stores took, including waiting; zero for stores without SQL.
    public var storeTime: Duration { .nanoseconds(storeNanoseconds) }
    /// The number of rows or objects; see ``Kind``.
    public let rows: Int
    /// The ``NSManagedObjectContext/name`` of the context; `nil` if it has none, or no context is involved.
    ///
    /// For a job it is the name of the worker.
    public let context: String?
    /// The entity, if there is one; for a fault of a to-many relationship the name of the relationship.
    ///
    /// For repeated reads it is the entity and the relationship that would be prefetched, as in `Venue.city`. For a job it is
    /// the name of the job's type.
    public var entity: String? { texts?.entity ?? layout?.takeUnretainedValue().name }
    /// The last SQL statement of a fetch, with `?` (PostgreSQL: `$1`) for every value; `nil` if no SQL store was read.
    public var statement: String? { texts?.statement }
    /// The file name of the store, for a migration.
    public var store: String? { texts?.store }
    /// The code of the error that ended the operation; `nil` if it succeeded.
    ///
    /// A conflict that a merge policy throws has the code 133020 or 133021. For a job it is the code of the error that the
    /// handler has thrown.
    public let errorCode: Int?

    /// Makes an event, for tests of an instrument.
    ///
    /// - Parameters:
    ///   - kind: The kind of the operation.
    ///   - duration: The duration of the operation.
    ///   - storeTime: The part of the duration that the stores took.
    ///   - rows: The number of rows.
    ///   - context: The name of the context.
    ///   - entity: The entity.
    ///   - statement: The statement, without values.
    ///   - store: The file name of the store.
    ///   - errorCode: The code of the error.
    public init(
        kind: Kind,
        duration: Duration = .zero,
        storeTime: Duration = .zero,
        rows: Int = 0,
        context: String? = nil,
        entity: String? = nil,
        statement: String? = nil,
        store: String? = nil,
        errorCode: Int? = nil
    ) {
        self.init(
            kind: kind,
            nanoseconds: duration.wholeNanoseconds,
            storeNanoseconds: storeTime.wholeNanoseconds,
            rows: rows,
            context: context,
            entity: entity,
            statement: statement,
            store: store,
            errorCode: errorCode
        )
    }

    /// Makes an event from measurements.
    init(
        kind: Kind,
        nanoseconds: Int64,
        storeNanoseconds: Int64 = 0,
        rows: Int = 0,
        context: String?,
        layout: Unmanaged<EntityLayout>? = nil,
        entity: String? = nil,
        statement: String? = nil,
        store: String? = nil,
        errorCode: Int? = nil
    ) {
        self.kind = kind
        self.nanoseconds = nanoseconds
        self.storeNanoseconds = storeNanoseconds
        self.rows = rows
        self.context = context
        self.layout = layout
        let hasTexts = entity != nil || statement != nil || store != nil
        texts = hasTexts ? Texts(entity: entity, statement: statement, store: store) : nil
        self.errorCode = errorCode
    }

    /// The texts of an event.
    ///
    /// Most events have none: a fault of one object, the most frequent event, makes and frees no text.
    private final class Texts: Sendable {
        let entity: String?
        let statement: String?
        let store: String?

        init(entity: String?, statement: String?, store: String?) {
            self.entity = entity
            self.statement = statement
            self.store = store
        }
    }

    private let texts: Texts?
    /// The entity of a row that was read.
    ///
    /// The reference is not counted: layouts of models in use exist until the process ends.
    private let layout: Unmanaged<EntityLayout>?

    /// ``duration`` in nanoseconds.
    public let nanoseconds: Int64
    /// ``storeTime`` in nanoseconds.
    let storeNanoseconds: Int64

    /// ``duration`` in seconds.
    public var seconds: Double { Double(nanoseconds) / 1e9 }
}

/// Several instruments combined into one, which are notified in their order.
///
/// ```swift
/// let metrics = PrometheusInstrument()
/// coordinator.instrument = CoreDataInstruments(metrics, SlowEventLines(from: .milliseconds(100)))
/// ```
public struct CoreDataInstruments: CoreDataInstrument {
    private let instruments: [any CoreDataInstrument]

    /// Combines instruments.
    ///
    /// - Parameter instruments: The instruments, in the order in which they are notified.
    public init(_ instruments: any CoreDataInstrument...) { self.instruments = instruments }

    /// Passes an event to all instruments.
    ///
    /// - Parameter event: The event; each instrument gets it unchanged.
    public func record(_ event: CoreDataEvent) {
        for instrument in instruments { instrument.record(event) }
    }
}

extension Duration {
    /// The nanoseconds, rounded towards zero.
    package var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
