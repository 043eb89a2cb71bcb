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

    /// The place up to which a fetch has looked, whether or not anything there matched; `nil` for a deletion.
    ///
    /// An addition to Apple's API. The next request begins there: then a consumer whose predicate leaves transactions
    /// out gets past these as well, so that they can be purged. The token names the stores that were asked, each with
    /// its last transaction at the time of the fetch; if a limit was reached, with the last one that was looked at.
    /// Stores that were not looked at stay as the request's token has them.
    ///
    /// If the limit of a request for changes is reached within a transaction, then the place is the one before it, and
    /// the next request gives its changes again. Such a limit has to be higher than the number of changes that any
    /// transaction has of those asked for.
    ///
    /// ```swift
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
    /// request.fetchRequest?.predicate = NSPredicate(format: "author != %@", "me")
    /// let result = try context.execute(request) as? NSPersistentHistoryResult
    /// token = result?.endToken ?? token  // past what "me" has saved, too
    /// ```
    public let endToken: NSPersistentHistoryToken?

    init(_ result: Any?, _ resultType: NSPersistentHistoryResultType, endToken: NSPersistentHistoryToken? = nil) {
        self.result = result
        self.resultType = resultType
        self.endToken = endToken
    }
}
