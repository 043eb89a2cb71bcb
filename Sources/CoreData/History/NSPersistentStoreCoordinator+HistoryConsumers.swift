import Foundation

/// Somebody who reads the histories of a coordinator's stores, as the stores know him.
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
    /// The name, by which all processes know the consumer.
    public let name: String
    /// How far the consumer has read in each store.
    public let token: NSPersistentHistoryToken
    /// When the consumer has last said so.
    public let lastSeen: Date
}

/// Named consumers, whose tokens the stores themselves keep: an addition to Apple's API.
///
/// Every process that reads a history, and has to read all of it, registers under a name of its own and says how far it has
/// come. What all of them have read can then be purged by anybody, without a guess at how long it is needed.
///
/// All of it may be called on any thread. Each call is one transaction in each store.
extension NSPersistentStoreCoordinator {
    /// Tells the stores how far a consumer has read, and registers it if it is new.
    ///
    /// A new consumer mostly starts with ``currentPersistentHistoryToken(fromStores:)``, *before* it reads the data itself. A
    /// token behind the one that is kept changes nothing but when the consumer was last seen.
    ///
    /// ```swift
    /// try coordinator.setPersistentHistoryToken(token, forConsumer: "search index")
    /// ```
    ///
    /// - Parameters:
    ///   - token: How far it has read. Stores that it does not name are left alone.
    ///   - name: The consumer's name.
    /// - Throws: 134091 if no store keeps a history, 134501 for a token of other stores, 134301 for a token that is ahead of
    ///   its store, or of a new consumer for one that is expired, as a fetch has it; and errors of writing.
    public func setPersistentHistoryToken(_ token: NSPersistentHistoryToken, forConsumer name: String) throws {
        let stores = try HistoryStores.keeping(openStores)
        try HistoryStores.requireKnown(token, among: openStores)
        for (store, entry) in stores {
            guard let place = token.places[entry.store.identifier ?? ""] else { continue }
            try store.setHistoryConsumer(name, to: place)
        }
    }

    /// How far a consumer has read.
    ///
    /// ```swift
    /// let place = try coordinator.persistentHistoryToken(forConsumer: "search index")  // nil: read everything anew
    /// ```
    ///
    /// - Parameter name: The consumer's name.
    /// - Returns: A token of the stores that know the consumer; `nil` if none does, for instance because a purge has given it up.
    /// - Throws: 134091 if no store keeps a history, and errors of reading.
    public func persistentHistoryToken(forConsumer name: String) throws -> NSPersistentHistoryToken? {
        try persistentHistoryConsumers().first { $0.name == name }?.token
    }

    /// All consumers that the stores know, by name.
    ///
    /// - Returns: One for each name.
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

    /// Lets the stores forget a consumer, so that nothing is kept for it any more.
    ///
    /// - Parameter name: The consumer's name; one that is not known is no error.
    /// - Throws: 134091 if no store keeps a history, and errors of writing.
    public func removePersistentHistoryConsumer(named name: String) throws {
        for (store, _) in try HistoryStores.keeping(openStores) { try store.removeHistoryConsumer(name) }
    }

    /// Purges the transactions that all live consumers have read.
    ///
    /// The last one that the slowest of them has read stays. In a store that no consumer is known to, nothing is purged.
    ///
    /// ```swift
    /// try coordinator.setPersistentHistoryToken(token, forConsumer: "search index")
    /// try coordinator.purgePersistentHistory(consumersLiveSince: .now - 14 * 86_400)
    /// ```
    ///
    /// - Parameter date: Consumers that have not told their token since then are given up: the stores forget them. Default: none is.
    /// - Returns: How many transactions were purged.
    /// - Throws: 134091 if no store keeps a history, and errors of writing.
    @discardableResult
    public func purgePersistentHistory(consumersLiveSince date: Date = .distantPast) throws -> Int {
        try HistoryStores.keeping(openStores).reduce(0) { count, source in
            try count + source.store.purgeHistory(consumersLiveSince: date.timeIntervalSinceReferenceDate)
        }
    }
}
