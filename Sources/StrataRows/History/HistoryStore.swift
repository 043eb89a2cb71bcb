import Foundation

/// A store that knows its changes, transaction by transaction.
///
/// Any thread may call any member.
package protocol HistoryStore: RowStore {
    /// Whether there is a history to read: one is being written, or was written in the past.
    var hasHistory: Bool { get }

    /// Whether changes are being recorded.
    var recordsHistory: Bool { get }

    /// The number of the last transaction, even if it was purged; 0 before the first.
    func lastHistoryNumber() throws -> Int64

    /// The place of the last transaction.
    ///
    /// It has the transaction's identifier too, if the store knows that.
    func lastHistoryPlace() throws -> HistoryPlace

    /// Whether this store object has written the transaction of that number itself.
    ///
    /// The answer may be false for one that it wrote long ago.
    func hasWritten(_ number: Int64) -> Bool

    /// Forgets the transactions that this store object has written, because their numbers may be given again.
    func forgetOwnTransactions()

    /// How often the history was found to have gone back, because of a backup or a server that has lost its last part.
    ///
    /// A reader of the earlier history knows of transactions that do not exist. It may not know others that have got
    /// their numbers.
    var historySetBacks: UInt64 { get }

    /// Reads transactions in their order, with their changes if asked for, all as of one moment.
    ///
    /// - Throws: 134301 if the query requires a complete answer and part of it was purged.
    func history(_ query: HistoryQuery) throws -> [HistoryRecord]

    /// The number of transactions that a query matches now, without its limit.
    func historyCount(_ query: HistoryQuery) throws -> Int

    /// The highest number that a transaction ever had; `nil` if there never was one.
    ///
    /// It is known even if the store keeps no history any more.
    func lastGivenHistoryNumber() throws -> Int64?

    /// Lets the history of a new store begin after the end of another one, whose place the store takes.
    ///
    /// There must have been no save to the new store. The next number is left out, and a transaction without changes
    /// gets the number after it. So a reader that has come to the end of the other history learns that something is
    /// missing.
    func beginHistory(after number: Int64) throws

    /// Removes transactions from the beginning up to a bound, with their changes.
    ///
    /// Places before the remaining transactions are expired afterwards.
    ///
    /// - Returns: The number of removed transactions.
    func deleteHistory(_ bound: HistoryBound) throws -> Int

    /// Removes single transactions with their changes, all in one transaction of the database.
    ///
    /// The others keep their numbers, and no place expires. Transactions that are already gone are passed over.
    ///
    /// - Parameter places: The places after the transactions, in their order.
    /// - Returns: The number of removed transactions.
    /// - Throws: Errors of the store; nothing is removed then.
    func pickOutOfHistory(_ places: [HistoryPlace]) throws -> Int

    // MARK: - Consumers

    /// The readers of the history, and how far each has read.
    func historyConsumers() throws -> [HistoryConsumerRecord]

    /// Notes how far a consumer has read.
    ///
    /// - Throws: 134301 if the place is ahead of the history or after a transaction that is not in it. For a consumer
    ///   that is not known, also 134301 for a place that was purged.
    func setHistoryConsumer(_ name: String, to place: HistoryPlace) throws

    /// Forgets a consumer.
    func removeHistoryConsumer(_ name: String) throws

    /// Forgets the consumers last seen before a time, and then removes the transactions that all others have read.
    ///
    /// - Parameter time: Seconds since the reference date.
    /// - Returns: The number of removed transactions.
    /// - Throws: The errors of the store.
    func purgeHistory(consumersLiveSince time: Double) throws -> Int
}

extension HistoryStore {
    /// 0, for a store that shows a set-back only by an expired token.
    package var historySetBacks: UInt64 { 0 }

    package func lastHistoryPlace() throws -> HistoryPlace { HistoryPlace(number: try lastHistoryNumber()) }
}

/// A place in the history of one store: after a transaction.
package struct HistoryPlace: Sendable {
    /// The transaction's number; 0 for the place before the first.
    package var number: Int64
    /// The identity of the transaction, independent of its number; `nil` if it is unknown.
    ///
    /// A server that has lost its last transactions gives their numbers to others.
    package var transaction: UUID?

    package init(number: Int64, transaction: UUID? = nil) {
        self.number = number
        self.transaction = transaction
    }
}

/// The authors of transactions that the framework writes by itself.
package enum HistoryAuthor {
    /// The author of the first transaction in the history of a store that was made of the objects of another store.
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

/// The part of a history that is asked for.
package struct HistoryQuery: Sendable {
    /// The number that all wanted transactions exceed; `nil` for no lower bound.
    ///
    /// None of them may have been purged; some may have been picked out.
    package var after: Int64?
    /// The identity that the transaction with the number `after` must have, if it is there; `nil` for any.
    package var afterTransaction: UUID?
    /// The highest number of a wanted transaction; `nil` for no upper bound.
    package var until: Int64?
    /// The time after which wanted transactions were made, in seconds since the reference date; `nil` for any.
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

/// The end of the transactions to remove; it is not among them.
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

/// The facts about a transaction, without its changes.
package final class HistoryTransactionRecord: Sendable {
    package let number: Int64
    /// Seconds since the reference date.
    package let time: Double
    package let author: String?
    package let bundleID: String?
    package let contextName: String?
    package let processID: String?
    /// The identity of the transaction, independent of its number; `nil` if the store keeps none.
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
    /// The place after the transaction.
    package var place: HistoryPlace { HistoryPlace(number: number, transaction: identifier) }
}

/// The kinds of change of a row.
///
/// The raw values are those of `NSPersistentHistoryChangeType` and of Apple's files.
package enum HistoryChangeKind: Int, Sendable {
    case insert = 0
    case update = 1
    case delete = 2
}

/// The change of one row in a transaction.
package struct HistoryChangeRecord: Sendable {
    package let id: Int64
    package let kind: HistoryChangeKind
    package unowned(unsafe) let layout: EntityLayout
    package let key: Int64
    /// The properties that an update has changed; `nil` for other changes, and if they are not known.
    package let updated: HistoryMask?
    /// The values that are left of a deleted object, by attribute.
    ///
    /// Transformable ones are archives.
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
