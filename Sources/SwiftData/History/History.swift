import Foundation

/// A save, as the history of a store has recorded it.
///
/// ```swift
/// func authors(_ transactions: [some HistoryTransaction]) -> Set<String> { Set(transactions.compactMap(\.author)) }
/// ```
public protocol HistoryTransaction: Hashable, Identifiable, Sendable {
    /// The type of the place in the history.
    associatedtype TokenType: Comparable, Hashable, Identifiable, Sendable
    /// The type of the transaction's number.
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable

    /// The time of the save.
    var timestamp: Date { get }
    /// The changes, in the order in which they were written.
    var changes: [HistoryChange] { get }
    /// The place of the transaction in the history.
    var token: TokenType { get }
    /// The number of the transaction in its store.
    var transactionIdentifier: TransactionIdentifier { get }
    /// The identifier of the store.
    var storeIdentifier: String { get }
    /// The author of the context that has saved.
    var author: String? { get }
}

/// A place in the histories of the stores.
///
/// ```swift
/// let tokens = notification.userInfo?[ModelContext.NotificationKey.historyTokens.rawValue] as? [String: any HistoryToken]
/// ```
public protocol HistoryToken: Comparable, Decodable, Encodable, Hashable, Identifiable, Sendable {
    /// The type of the value.
    associatedtype TokenType: Decodable, Encodable, Hashable, Sendable

    /// The value; `nil` before the first transaction.
    var tokenValue: TokenType? { get }

    /// The identifier of the store whose history it is a place of.
    var storeIdentifier: String { get }
}

extension HistoryToken {
    /// The first key in order if the value is a dictionary by store identifiers; otherwise an empty text.
    public var storeIdentifier: String { (tokenValue as? [String: Any])?.keys.min() ?? "" }
}

/// A change of one object.
///
/// ```swift
/// let identifiers = transaction.changes.map(\.changedPersistentIdentifier)
/// ```
public enum HistoryChange: Sendable {
    /// The object was inserted.
    case insert(any HistoryInsert)
    /// The object was updated.
    case update(any HistoryUpdate)
    /// The object was deleted.
    case delete(any HistoryDelete)

    /// The identifier of the object.
    public var changedPersistentIdentifier: PersistentIdentifier {
        switch self {
        case .insert(let change): change.changedPersistentIdentifier
        case .update(let change): change.changedPersistentIdentifier
        case .delete(let change): change.changedPersistentIdentifier
        }
    }
}

/// An insertion of an object of a class.
///
/// ```swift
/// if case .insert(let insert) = change, insert is any HistoryInsert<Trip> { print(insert.changedPersistentIdentifier) }
/// ```
public protocol HistoryInsert<Model>: Sendable {
    /// The class.
    associatedtype Model: PersistentModel
    /// The type of the transaction's number.
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
    /// The type of the change's number.
    associatedtype ChangeIdentifier: Comparable, Hashable, Sendable

    /// The number of the change in its store.
    var changeIdentifier: ChangeIdentifier { get }
    /// The number of the transaction in its store.
    var transactionIdentifier: TransactionIdentifier { get }
    /// The identifier of the object.
    var changedPersistentIdentifier: PersistentIdentifier { get }
}

/// An update of an object of a class.
///
/// ```swift
/// if case .update(let update) = change, let trip = update as? any HistoryUpdate<Trip> {
///     print(trip.updatedAttributes.count)
/// }
/// ```
public protocol HistoryUpdate<Model>: Sendable {
    /// The class.
    associatedtype Model: PersistentModel
    /// The type of the transaction's number.
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
    /// The type of the change's number.
    associatedtype ChangeIdentifier: Comparable, Hashable, Sendable
    /// The key path of a changed property.
    typealias PropertyUpdate = PartialKeyPath<Model> & Sendable

    /// The number of the change in its store.
    var changeIdentifier: ChangeIdentifier { get }
    /// The number of the transaction in its store.
    var transactionIdentifier: TransactionIdentifier { get }
    /// The identifier of the object.
    var changedPersistentIdentifier: PersistentIdentifier { get }
    /// The properties that were changed.
    var updatedAttributes: [any PartialKeyPath<Model> & Sendable] { get }
}

/// A deletion of an object of a class.
///
/// ```swift
/// if case .delete(let delete) = change, let trip = delete as? any HistoryDelete<Trip> {
///     print(trip.tombstone[\.name] ?? "")
/// }
/// ```
public protocol HistoryDelete<Model>: Sendable {
    /// The class.
    associatedtype Model: PersistentModel
    /// The type of the transaction's number.
    associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
    /// The type of the change's number.
    associatedtype ChangeIdentifier: Comparable, Hashable, Sendable

    /// The number of the change in its store.
    var changeIdentifier: ChangeIdentifier { get }
    /// The number of the transaction in its store.
    var transactionIdentifier: TransactionIdentifier { get }
    /// The identifier of the object.
    var changedPersistentIdentifier: PersistentIdentifier { get }
    /// The values that were kept, see `Schema.Attribute.Option.preserveValueOnDeletion`.
    var tombstone: HistoryTombstone<Model> { get }
}

/// The values that the history keeps of a deleted object.
///
/// ```swift
/// func kept(_ tombstone: HistoryTombstone<Trip>) -> String? { tombstone[\.name] as? String }
/// ```
public struct HistoryTombstone<Model: PersistentModel>: Sequence, @unchecked Sendable {
    // @unchecked Sendable: the values are those of attributes, and immutable; key paths of properties capture nothing.
    let values: [(keyPath: AnyKeyPath, value: any Sendable)]

    /// The value of a property; `nil` if none was kept.
    ///
    /// - Parameter keyPath: The key path of the property.
    /// - Returns: The value.
    public subscript(keyPath: PartialKeyPath<Model>) -> (any Sendable)? {
        values.first { $0.keyPath == keyPath }?.value
    }

    /// Goes through the values.
    ///
    /// ```swift
    /// func kept(_ tombstone: HistoryTombstone<Trip>) -> [Any] { tombstone.map { $0 } }
    /// ```
    public struct Iterator: IteratorProtocol {
        var rest: ArraySlice<any Sendable>

        /// The next value.
        ///
        /// - Returns: The value; `nil` at the end.
        public mutating func next() -> Any? { rest.popFirst() }
    }

    /// Goes through the values, in the order in which the class declares the properties.
    ///
    /// - Returns: An iterator.
    public func makeIterator() -> Iterator { Iterator(rest: values.map(\.value)[...]) }
}

/// The transactions that a fetch of the history returns, and their order.
///
/// ```swift
/// let imports = HistoryDescriptor<DefaultHistoryTransaction>(predicate: #Predicate { $0.author == "import" })
/// ```
public struct HistoryDescriptor<TransactionType: HistoryTransaction> {
    /// The condition; `nil` for all transactions.
    public var predicate: Predicate<TransactionType>?
    /// The largest number of transactions; 0 for all.
    public var fetchLimit: UInt64 = 0
    /// The order; that of the saves if it is empty.
    public var sortBy: [SortDescriptor<TransactionType>]

    /// Describes the transactions that satisfy a condition, in an order.
    ///
    /// - Parameters:
    ///   - predicate: The condition; `nil` for all transactions.
    ///   - sortBy: The order; that of the saves if it is empty.
    public init(predicate: Predicate<TransactionType>? = nil, sortBy: [SortDescriptor<TransactionType>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}
