import Foundation

/// A save that the history of a store has recorded.
///
/// ```swift
/// for save in try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()) {
///     print(save.timestamp, save.author ?? "", save.changes.count)
/// }
/// ```
public struct DefaultHistoryTransaction: HistoryTransaction {
    /// The number of the transaction in its store.
    public var id: Int64 { transactionIdentifier }
    /// The time of the save.
    public let timestamp: Date
    /// The changes, in the order in which they were written.
    public let changes: [HistoryChange]
    /// The place of the transaction in the history.
    public let token: DefaultHistoryToken
    /// The number of the transaction in its store.
    public let transactionIdentifier: Int64
    /// The identifier of the store.
    public let storeIdentifier: String
    /// The program that has saved.
    public let bundleIdentifier: String
    /// The process that has saved.
    public let processIdentifier: String
    /// The author of the context that has saved.
    public let author: String?

    /// Compares store and number.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: DefaultHistoryTransaction, rhs: DefaultHistoryTransaction) -> Bool {
        lhs.token == rhs.token
    }

    /// Hashes store and number.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(token) }
}

/// A place in the histories of the stores, which can be kept and compared.
///
/// ```swift
/// let place = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last?.token
/// let text = try JSONEncoder().encode(place)
/// ```
public struct DefaultHistoryToken: HistoryToken {
    /// The numbers of the last transactions by the identifiers of their stores.
    public let tokenValue: [String: Int64]?

    /// A number that is equal for equal tokens in one run of a program.
    public var id: Int { hashValue }

    /// The identifier of the store; that of the first in order if there are several.
    public var storeIdentifier: String { tokenValue?.keys.min() ?? "" }

    /// Whether each store of the left token has a smaller number in it than in the right one.
    ///
    /// Tokens of different stores have no order.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether the first comes before the second.
    public static func < (lhs: DefaultHistoryToken, rhs: DefaultHistoryToken) -> Bool {
        guard let left = lhs.tokenValue, let right = rhs.tokenValue else {
            return lhs.tokenValue == nil && rhs.tokenValue != nil
        }
        let common = left.filter { right[$0.key] != nil }
        return !common.isEmpty && common.allSatisfy { $0.value < right[$0.key, default: 0] }
    }
}

/// An insertion that the history of a store has recorded.
///
/// ```swift
/// if case .insert(let insert) = change, insert is DefaultHistoryInsert<Trip> { print("a new trip") }
/// ```
public struct DefaultHistoryInsert<Model: PersistentModel>: HistoryInsert, Hashable {
    /// The number of the change in its store.
    public let changeIdentifier: Int64
    /// The number of the transaction in its store.
    public let transactionIdentifier: Int64
    /// The identifier of the object.
    public let changedPersistentIdentifier: PersistentIdentifier
}

/// An update that the history of a store has recorded.
///
/// ```swift
/// if case .update(let update) = change, let trip = update as? DefaultHistoryUpdate<Trip> {
///     print(trip.updatedAttributes.contains { $0 as AnyKeyPath == \Trip.name })
/// }
/// ```
public struct DefaultHistoryUpdate<Model: PersistentModel>: HistoryUpdate, Hashable {
    /// The number of the change in its store.
    public let changeIdentifier: Int64
    /// The number of the transaction in its store.
    public let transactionIdentifier: Int64
    /// The identifier of the object.
    public let changedPersistentIdentifier: PersistentIdentifier
    /// The properties that were changed.
    public let updatedAttributes: [any PartialKeyPath<Model> & Sendable]

    /// Compares store and number.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.changeIdentifier == rhs.changeIdentifier
            && lhs.changedPersistentIdentifier == rhs.changedPersistentIdentifier
    }

    /// Hashes store and number.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(changeIdentifier)
        hasher.combine(changedPersistentIdentifier)
    }
}

/// A deletion that the history of a store has recorded.
///
/// ```swift
/// if case .delete(let delete) = change, let trip = delete as? DefaultHistoryDelete<Trip> {
///     print(trip.tombstone[\.name] ?? "")
/// }
/// ```
public struct DefaultHistoryDelete<Model: PersistentModel>: HistoryDelete, Hashable {
    /// The number of the change in its store.
    public let changeIdentifier: Int64
    /// The number of the transaction in its store.
    public let transactionIdentifier: Int64
    /// The identifier of the object.
    public let changedPersistentIdentifier: PersistentIdentifier
    /// The values that were kept.
    public let tombstone: HistoryTombstone<Model>

    /// Compares store and number.
    ///
    /// - Parameters:
    ///   - lhs: One value.
    ///   - rhs: Another one.
    /// - Returns: Whether they are equal.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.changeIdentifier == rhs.changeIdentifier
            && lhs.changedPersistentIdentifier == rhs.changedPersistentIdentifier
    }

    /// Hashes store and number.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(changeIdentifier)
        hasher.combine(changedPersistentIdentifier)
    }
}
