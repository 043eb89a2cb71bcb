import CoreDataEssentials
import Foundation

/// A named reader of the histories of a coordinator's stores, as the stores record it.
///
/// An addition to Apple's API.
///
/// See <doc:History>.
///
/// ```swift
/// try coordinator.setPersistentHistoryToken(token, forConsumer: "search index")
/// for consumer in try coordinator.persistentHistoryConsumers() { print(consumer.name, consumer.lastSeen) }
/// ```
public struct PersistentHistoryConsumer: Sendable, Hashable {
    /// The name under which all processes know the consumer.
    public let name: String
    /// The places up to which the consumer has read in each store.
    public let token: NSPersistentHistoryToken
    /// The time when the consumer last reported its token.
    public let lastSeen: Date
}

/// Named consumers, whose tokens are kept in the stores: an addition to Apple's API.
///
/// Every process that has to read a complete history registers under a unique name, and reports how far it has read.
/// Any process can then purge the transactions that all consumers have read, and need not guess how long they are
/// needed.
///
/// All methods may be called on any thread. Each call is one transaction in each store.
extension NSPersistentStoreCoordinator {
    /// Records in the stores how far a consumer has read, and registers it if it is new.
    ///
    /// A new consumer usually starts with ``currentPersistentHistoryToken(fromStores:)``, *before* it reads the data
    /// itself. If the token is behind the one that is kept, then only the time when the consumer was last seen changes.
    ///
    /// ```swift
    /// try coordinator.setPersistentHistoryToken(token, forConsumer: "search index")
    /// ```
    ///
    /// - Parameters:
    ///   - token: The place up to which it has read. Stores that the token does not name are not changed.
    ///   - name: The consumer's name.
    /// - Throws: 134091 if no store keeps a history, and 134501 for a token of other stores. 134301 for a token that is
    ///   ahead of its store. A new consumer's expired token throws 134301 too, as for a fetch. Errors of writing.
    public func setPersistentHistoryToken(_ token: NSPersistentHistoryToken, forConsumer name: String) throws {
        let stores = try HistoryStores.keeping(openStores)
        try HistoryStores.requireKnown(token, among: openStores)
        for (store, entry) in stores {
            guard let place = token.places[entry.store.identifier ?? ""] else { continue }
            try store.setHistoryConsumer(name, to: place)
        }
    }

    /// The place up to which a consumer has read.
    ///
    /// ```swift
    /// let place = try coordinator.persistentHistoryToken(forConsumer: "search index")  // nil: read everything anew
    /// ```
    ///
    /// - Parameter name: The consumer's name.
    /// - Returns: A token of the stores that know the consumer; `nil` if none does, for example because a purge has
    ///   removed it.
    /// - Throws: 134091 if no store keeps a history, and errors of reading.
    public func persistentHistoryToken(forConsumer name: String) throws -> NSPersistentHistoryToken? {
        try persistentHistoryConsumers().first { $0.name == name }?.token
    }

    /// All consumers that the stores know, sorted by name.
    ///
    /// - Returns: One consumer for each name.
    /// - Throws: 134091 if no store keeps a history, and errors of reading.
    public func persistentHistoryConsumers() throws -> [PersistentHistoryConsumer] {
        var found: [String: (numbers: [String: Int64], lastSeen: Double)] = [:]
        for (store, entry) in try HistoryStores.keeping(openStores) {
            for consumer in try store.historyConsumers() {
                var known = found[consumer.name] ?? ([:], consumer.lastSeen)
                known.numbers[entry.store.identifier ?? ""] = consumer.number
                known.lastSeen = max(known.lastSeen, consumer.lastSeen)
                found[consumer.name] = known
            }
        }
        return found.sorted { $0.key < $1.key }.map { name, known in
            PersistentHistoryConsumer(
                name: name,
                token: NSPersistentHistoryToken(transactionNumbers: known.numbers),
                lastSeen: Date(timeIntervalSinceReferenceDate: known.lastSeen)
            )
        }
    }

    /// Removes a consumer from the stores, so that no transactions are kept for it any more.
    ///
    /// - Parameter name: The consumer's name; an unknown name is no error.
    /// - Throws: 134091 if no store keeps a history, and errors of writing.
    public func removePersistentHistoryConsumer(named name: String) throws {
        for (store, _) in try HistoryStores.keeping(openStores) { try store.removeHistoryConsumer(name) }
    }

    /// Purges the transactions that all live consumers have read.
    ///
    /// The last transaction that the slowest consumer has read stays. In a store without known consumers, nothing is
    /// purged.
    ///
    /// ```swift
    /// try coordinator.setPersistentHistoryToken(token, forConsumer: "search index")
    /// try coordinator.purgePersistentHistory(consumersLiveSince: .now - 14 * 86_400)
    /// ```
    ///
    /// - Parameter date: Consumers that have not reported their token since then are removed from the stores. By
    ///   default none is removed.
    /// - Returns: The number of purged transactions.
    /// - Throws: 134091 if no store keeps a history, and errors of writing.
    @discardableResult
    public func purgePersistentHistory(consumersLiveSince date: Date = .distantPast) throws -> Int {
        try HistoryStores.keeping(openStores).reduce(0) { count, source in
            try count + source.store.purgeHistory(consumersLiveSince: date.timeIntervalSinceReferenceDate)
        }
    }
}
