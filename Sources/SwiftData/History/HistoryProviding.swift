/// A store of your own that keeps a history.
///
/// ``ModelContext/fetchHistory(_:)`` and ``ModelContext/deleteHistory(_:)`` ask it if they are called with its type of
/// transactions.
///
/// ```swift
/// func allTransactions<Store: HistoryProviding>(of store: Store) throws -> [Store.HistoryType] {
///     try store.fetchHistory(HistoryDescriptor<Store.HistoryType>())
/// }
/// ```
public protocol HistoryProviding {
    /// The type of the transactions.
    associatedtype HistoryType: HistoryTransaction

    /// The type of the transactions.
    static var historyType: HistoryType.Type { get }

    /// Finds transactions.
    ///
    /// - Parameter descriptor: The description of the transactions.
    /// - Returns: The transactions, in order.
    /// - Throws: Any error.
    func fetchHistory(_ descriptor: HistoryDescriptor<HistoryType>) throws -> [HistoryType]

    /// Removes transactions.
    ///
    /// - Parameter descriptor: The description of the transactions.
    /// - Throws: Any error.
    func deleteHistory(_ descriptor: HistoryDescriptor<HistoryType>) throws
}
