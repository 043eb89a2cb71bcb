import Foundation

/// A store that can tell what was changed in it, transaction by transaction.
///
/// Any thread may call any member.
package protocol HistoryStore: RowStore {
    /// Whether there is a history to read: one is being written, or was written once.
    var hasHistory: Bool { get }

    /// Whether changes are being recorded.
    var recordsHistory: Bool { get }

    /// The number of the last transaction, purged ones included; 0 before the first.
    func lastHistoryNumber() throws -> Int64

    /// The same, with what tells that transaction from another one that gets its number, if the store knows that.
    func lastHistoryPlace() throws -> HistoryPlace

    /// Whether this store object has written the transaction of that number itself.
    ///
    /// May be false for one that it has, if it was long ago.
    func hasWritten(_ number: Int64) -> Bool

    /// Forgets which transactions this store object has written, as their numbers may be given again.
    func forgetOwnTransactions()

    /// How often the history was found to have gone back, as from a backup, or on a server that has lost its end.
    ///
    /// Whoever has read it before knows of transactions that never were, and maybe not of others that have their numbers.
    var historySetBacks: UInt64 { get }

    /// Reads transactions in their order, with their changes if asked for: all of one moment.
    ///
    /// - Throws: 134301 if the query has to be answered completely and cannot be any more.
    func history(_ query: HistoryQuery) throws -> [HistoryRecord]

    /// How many of the transactions that a query is about are there now, its limit aside.
    func historyCount(_ query: HistoryQuery) throws -> Int

    /// The highest number that a transaction ever had, also if the store keeps no history any more; `nil` if there never was one.
    func lastGivenHistoryNumber() throws -> Int64?

    /// Lets the history of a new store, to which nobody has saved yet, begin behind the end of another one, whose place it takes.
    ///
    /// The next number is left out, and the one after it is that of a transaction without changes. So a reader
    /// who has come to the end of the other history learns that something is missing.
    func beginHistory(after number: Int64) throws

    /// Removes transactions from the beginning on, with their changes.
    ///
    /// Places before what is left are expired then.
    ///
    /// - Returns: How many.
    func deleteHistory(_ bound: HistoryBound) throws -> Int

    /// Removes single transactions, with their changes, all in one transaction of the database.
    ///
    /// The others keep their numbers, and no place expires by it. Transactions that are not there any more are passed
    /// over.
    ///
    /// - Parameter places: The places after the transactions, in their order.
    /// - Returns: How many.
    /// - Throws: Errors of the store; nothing is removed then.
    func pickOutOfHistory(_ places: [HistoryPlace]) throws -> Int

    // MARK: - Consumers

    /// Who reads the history, and how far each has come.
    func historyConsumers() throws -> [HistoryConsumerRecord]

    /// Notes how far a consumer has read.
    ///
    /// - Throws: 134301 for a place that is ahead of the history, or after a transaction that is not in it; of a consumer that is not known, also
    ///   for one that was purged.
    func setHistoryConsumer(_ name: String, to place: HistoryPlace) throws

    /// Forgets a consumer.
    func removeHistoryConsumer(_ name: String) throws

    /// Removes what all consumers have read, and before that forgets those not seen since a time, in seconds since the
    /// reference date.
    ///
    /// - Returns: How many transactions were removed.
    func purgeHistory(consumersLiveSince time: Double) throws -> Int
}

extension HistoryStore {
    /// None, for a store that shows it by an expired token alone.
    package var historySetBacks: UInt64 { 0 }

    package func lastHistoryPlace() throws -> HistoryPlace { HistoryPlace(number: try lastHistoryNumber()) }
}

/// A place in the history of one store: after a transaction.
package struct HistoryPlace: Sendable {
    /// The transaction's number; 0 for the place before the first.
    package var number: Int64
    /// What the transaction is, whatever its number.
    ///
    /// A server that has lost its last transactions gives their numbers to others. `nil` if it is unknown.
    package var transaction: UUID?

    package init(number: Int64, transaction: UUID? = nil) {
        self.number = number
        self.transaction = transaction
    }
}

/// The authors of transactions that the framework writes by itself.
package enum HistoryAuthor {
    /// Of the transaction with which the history of a store begins that was made of another one's objects.
    package static let migrationByObjects = "com.apple.coredata.schemamigrator: migration by objects"
}

/// A consumer as a store knows it.
package struct HistoryConsumerRecord: Sendable {
    package let name: String
    /// The last transaction that the consumer has read.
    package let number: Int64
    /// Seconds since the reference date.
    package let lastSeen: Double

    package init(name: String, number: Int64, lastSeen: Double) {
        self.name = name
        self.number = number
        self.lastSeen = lastSeen
    }
}

/// What part of a history is asked for.
package struct HistoryQuery: Sendable {
    /// Only transactions with higher numbers.
    ///
    /// None of them may have been purged; some may have been picked out.
    package var after: Int64?
    /// What the transaction with the number `after` has to be, if it is there; `nil` for any.
    package var afterTransaction: UUID?
    /// Only transactions up to this number.
    package var until: Int64?
    /// Only later transactions, in seconds since the reference date.
    package var since: Double?
    package var wantsChanges = true
    /// The most transactions to read; 0 for no limit.
    package var limit = 0

    package init(
        after: Int64? = nil,
        until: Int64? = nil,
        since: Double? = nil,
        wantsChanges: Bool = true,
        limit: Int = 0
    ) {
        self.after = after
        self.until = until
        self.since = since
        self.wantsChanges = wantsChanges
        self.limit = limit
    }

    /// Asks for the transactions after a place.
    package mutating func begin(after place: HistoryPlace?) {
        after = place?.number
        afterTransaction = place?.transaction
    }
}

/// The transactions before something, which itself is not meant.
package enum HistoryBound: Sendable {
    case number(Int64)
    /// Seconds since the reference date.
    case time(Double)
}

/// One transaction of a history.
package struct HistoryRecord: Sendable {
    package let transaction: HistoryTransactionRecord
    package var changes: [HistoryChangeRecord] = []

    package init(transaction: HistoryTransactionRecord, changes: [HistoryChangeRecord] = []) {
        self.transaction = transaction
        self.changes = changes
    }
}

/// What is known of a transaction besides its changes.
package final class HistoryTransactionRecord: Sendable {
    package let number: Int64
    /// Seconds since the reference date.
    package let time: Double
    package let author: String?
    package let bundleID: String?
    package let contextName: String?
    package let processID: String?
    /// What the transaction is, whatever its number; `nil` if the store keeps nothing of the kind.
    package let identifier: UUID?

    package init(
        number: Int64,
        time: Double,
        author: String?,
        bundleID: String?,
        contextName: String?,
        processID: String?,
        identifier: UUID? = nil
    ) {
        self.identifier = identifier
        self.number = number
        self.time = time
        self.author = author
        self.bundleID = bundleID
        self.contextName = contextName
        self.processID = processID
    }
}

extension HistoryTransactionRecord {
    /// The place after it.
    package var place: HistoryPlace { HistoryPlace(number: number, transaction: identifier) }
}

/// What may happen to a row.
///
/// The raw values are those of `NSPersistentHistoryChangeType` and of Apple's files.
package enum HistoryChangeKind: Int, Sendable {
    case insert = 0
    case update = 1
    case delete = 2
}

/// What happened to one row in a transaction.
package struct HistoryChangeRecord: Sendable {
    package let id: Int64
    package let kind: HistoryChangeKind
    package unowned(unsafe) let layout: EntityLayout
    package let key: Int64
    /// Which properties an update has changed; `nil` for other changes, and where it is not known.
    package let updated: HistoryMask?
    /// What is left of a deleted object, by attribute: transformable ones as their archives.
    package nonisolated(unsafe) let tombstone: [String: Any]?

    package init(
        id: Int64,
        kind: HistoryChangeKind,
        layout: EntityLayout,
        key: Int64,
        updated: HistoryMask?,
        tombstone: [String: Any]?
    ) {
        self.id = id
        self.kind = kind
        self.layout = layout
        self.key = key
        self.updated = updated
        self.tombstone = tombstone
    }

    // `tombstone` is a constant of values.
}
