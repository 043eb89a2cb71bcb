import Foundation

/// In what form a request gives history.
///
/// ```swift
/// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
/// request.resultType = .count
/// let result = try context.execute(request) as? NSPersistentHistoryResult
/// print(result?.result as? Int ?? 0)
/// ```
public enum NSPersistentHistoryResultType: Int, Sendable {
    /// Whether the request has succeeded: a `Bool`.
    ///
    /// What a deletion gives unless told otherwise.
    case statusOnly = 0
    /// The IDs of the changed objects, each once: `[NSManagedObjectID]`.
    case objectIDs = 1
    /// How many there are: an `Int`, of transactions, or of changes if those are asked for by a fetch request.
    case count = 2
    /// Transactions without their changes: `[NSPersistentHistoryTransaction]`.
    case transactionsOnly = 3
    /// Changes: `[NSPersistentHistoryChange]`.
    case changesOnly = 4
    /// Transactions with their changes: `[NSPersistentHistoryTransaction]`.
    ///
    /// What a fetch gives unless told otherwise.
    case transactionsAndChanges = 5
}

/// What a history request gives.
///
/// Immutable; any thread may use it.
///
/// ```swift
/// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
/// request.resultType = .objectIDs
/// let ids = (try context.execute(request) as? NSPersistentHistoryResult)?.result as? [NSManagedObjectID]
/// ```
public final class NSPersistentHistoryResult: NSPersistentStoreResult, @unchecked Sendable {
    // @unchecked Sendable: constants, and what they hold is immutable.

    /// The form of the result.
    public let resultType: NSPersistentHistoryResultType

    /// The result, of the type that ``NSPersistentHistoryResultType`` says.
    public let result: Any?

    init(_ result: Any?, _ resultType: NSPersistentHistoryResultType) {
        self.result = result
        self.resultType = resultType
    }
}
