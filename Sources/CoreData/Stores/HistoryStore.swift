import Foundation

/// A store that can tell what was changed in it, transaction by transaction.
///
/// Any thread may call any member.
protocol HistoryStore: RowStore {
    /// Whether there is a history to read: one is being written, or was written once.
    var hasHistory: Bool { get }

    /// Whether changes are being recorded.
    var recordsHistory: Bool { get }

    /// The number of the last transaction, purged ones included; 0 before the first.
    func lastHistoryNumber() throws -> Int64

    /// Whether this store object has written the transaction of that number itself.
    ///
    /// May be false for one that it has, if it was long ago.
    func hasWritten(_ number: Int64) -> Bool

    /// Forgets which transactions this store object has written, as their numbers may be given again.
    func forgetOwnTransactions()

    /// Reads transactions in their order, with their changes if asked for: all of one moment.
    ///
    /// - Throws: 134301 if the query has to be answered completely and cannot be any more.
    func history(_ query: HistoryQuery) throws -> [HistoryRecord]

    /// Removes transactions, with their changes.
    ///
    /// Gives: How many.
    func deleteHistory(_ bound: HistoryBound) throws -> Int

    // MARK: - Consumers

    /// Who reads the history, and how far each has come.
    func historyConsumers() throws -> [HistoryConsumerRecord]

    /// Notes how far a consumer has read.
    ///
    /// - Throws: 134301 for a number that is ahead of the history; of a consumer that is not known, also for one that was
    ///   purged.
    func setHistoryConsumer(_ name: String, to number: Int64) throws

    /// Forgets a consumer.
    func removeHistoryConsumer(_ name: String) throws

    /// Removes what all consumers have read, and before that forgets those not seen since a time, in seconds since the
    /// reference date.
    ///
    /// Gives: How many transactions were removed.
    func purgeHistory(consumersLiveSince time: Double) throws -> Int
}

/// A consumer as a store knows it.
struct HistoryConsumerRecord: Sendable {
    let name: String
    /// The last transaction that the consumer has read.
    let number: Int64
    /// Seconds since the reference date.
    let lastSeen: Double
}

/// What part of a history is asked for.
struct HistoryQuery: Sendable {
    /// Only transactions with higher numbers.
    ///
    /// They must all be there still.
    var after: Int64?
    /// Only transactions up to this number.
    var until: Int64?
    /// Only later transactions, in seconds since the reference date.
    var since: Double?
    var wantsChanges = true
    /// The most transactions to read; 0 for no limit.
    var limit = 0
}

/// The transactions before something, which itself is not meant.
enum HistoryBound: Sendable {
    case number(Int64)
    /// Seconds since the reference date.
    case time(Double)
}

/// One transaction of a history.
struct HistoryRecord: Sendable {
    let transaction: HistoryTransactionRecord
    var changes: [HistoryChangeRecord] = []
}

/// What is known of a transaction besides its changes.
final class HistoryTransactionRecord: Sendable {
    let number: Int64
    /// Seconds since the reference date.
    let time: Double
    let author: String?
    let bundleID: String?
    let contextName: String?
    let processID: String?

    init(
        number: Int64,
        time: Double,
        author: String?,
        bundleID: String?,
        contextName: String?,
        processID: String?
    ) {
        self.number = number
        self.time = time
        self.author = author
        self.bundleID = bundleID
        self.contextName = contextName
        self.processID = processID
    }
}

/// What happened to one row in a transaction.
struct HistoryChangeRecord: Sendable {
    let id: Int64
    let kind: NSPersistentHistoryChangeType
    unowned(unsafe) let layout: EntityLayout
    let key: Int64
    /// Which properties an update has changed; `nil` for other changes, and where it is not known.
    let updated: HistoryMask?
    /// What is left of a deleted object, by attribute.
    nonisolated(unsafe) let tombstone: [String: Any]?
    // `tombstone` is a constant of values.
}
