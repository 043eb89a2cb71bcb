import Foundation
import StrataRows

/// Who is told what a coordinator and its contexts do: a bridge to metrics, logs or traces.
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
    /// Takes one event, when what it tells of has ended.
    ///
    /// Called on whatever thread that was, several at once, with no lock held; mostly inside a context's scope, which goes on
    /// when this returns. So be quick, and do not use the context: it may be amid a fetch or a save.
    ///
    /// - Parameter event: What has happened, as plain values.
    func record(_ event: CoreDataEvent)
}

/// Something that a coordinator or one of its contexts has done, or has waited for.
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
    /// What was done.
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
        /// A save has met rows that others had changed; ``rows`` is their number. Takes no time.
        case conflict
        /// A block of `perform(retrying:_:)` is run again because of a conflict. Takes no time.
        case retry
        /// A context has merged what others saved; ``rows`` is the number of changed rows.
        case merge
        /// How long a block waited for its context's queue.
        case contextWait
        /// How long a fetch, a fault or a save waited for a connection of a store's pool. Only if it did.
        case readerWait
        /// How long a save or a batch waited for other writers. Only if it did.
        case writerWait
        /// An asynchronous fetch, from its start to its results; ``rows`` is their number.
        case asynchronousFetch
        /// A batch insert, update or delete; ``rows`` is the number of rows.
        case batch
        /// A store was migrated when it was added.
        case migration
        /// A commit has copied the write-ahead log into the file.
        case checkpoint
    }

    /// What was done.
    public let kind: Kind
    /// How long it took; zero for what takes no time.
    public var duration: Duration { .nanoseconds(nanoseconds) }
    /// How much of ``duration`` the stores took, waiting included; zero for stores other than those of SQL.
    public var storeTime: Duration { .nanoseconds(storeNanoseconds) }
    /// How many rows or objects it is about; see ``Kind``.
    public let rows: Int
    /// The ``NSManagedObjectContext/name`` of the context; `nil` if it has none, or no context is involved.
    public let context: String?
    /// The entity, where there is one; for the fault of a to-many relationship the name of that.
    public var entity: String? { texts?.entity ?? layout?.takeUnretainedValue().name }
    /// The last SQL statement of a fetch, with `?` (PostgreSQL: `$1`) in the place of every value; `nil` if no store of SQL was asked.
    public var statement: String? { texts?.statement }
    /// The file name of the store, for a migration.
    public var store: String? { texts?.store }
    /// The code of the error that ended it; `nil` if it has succeeded.
    ///
    /// A conflict that a merge policy throws has 133020 or 133021.
    public let errorCode: Int?

    /// Makes an event, for tests of an instrument.
    ///
    /// - Parameters:
    ///   - kind: What was done.
    ///   - duration: How long it took.
    ///   - storeTime: How much of that the stores took.
    ///   - rows: How many rows it is about.
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

    /// Makes an event of what was measured.
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

    /// What most events have nothing of: a fault of one object, of which there are the most, makes and frees no text.
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
    /// The entity of a row that was read, which is not counted: the layouts of models in use stay for the life of the process.
    private let layout: Unmanaged<EntityLayout>?

    /// ``duration`` in nanoseconds.
    public let nanoseconds: Int64
    /// ``storeTime`` in nanoseconds.
    let storeNanoseconds: Int64

    /// ``duration`` in seconds.
    public var seconds: Double { Double(nanoseconds) / 1e9 }
}

/// Several instruments in the place of one, told in their order.
///
/// ```swift
/// let metrics = PrometheusInstrument()
/// coordinator.instrument = CoreDataInstruments(metrics, SlowEventLines(from: .milliseconds(100)))
/// ```
public struct CoreDataInstruments: CoreDataInstrument {
    private let instruments: [any CoreDataInstrument]

    /// Puts instruments together.
    ///
    /// - Parameter instruments: Who is told, in this order.
    public init(_ instruments: any CoreDataInstrument...) { self.instruments = instruments }

    /// Tells all instruments of an event.
    ///
    /// - Parameter event: The event, which each instrument gets as it is.
    public func record(_ event: CoreDataEvent) {
        for instrument in instruments { instrument.record(event) }
    }
}

extension Duration {
    /// Nanoseconds, rounded towards zero.
    var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
