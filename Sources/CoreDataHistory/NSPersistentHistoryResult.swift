import CoreDataEssentials
import Foundation

/// The form in which a request returns history.
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
    /// The default of a deletion.
    case statusOnly = 0
    /// The IDs of the changed objects, each once: `[NSManagedObjectID]`.
    case objectIDs = 1
    /// The number, an `Int`, of transactions, or of changes if the fetch request asks for changes.
    case count = 2
    /// Transactions without their changes: `[NSPersistentHistoryTransaction]`.
    case transactionsOnly = 3
    /// Changes: `[NSPersistentHistoryChange]`.
    case changesOnly = 4
    /// Transactions with their changes: `[NSPersistentHistoryTransaction]`.
    ///
    /// The default of a fetch.
    case transactionsAndChanges = 5
}

/// The result of a history request.
///
/// Immutable; any thread may use it.
///
/// ```swift
/// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
/// request.resultType = .objectIDs
/// let ids = (try context.execute(request) as? NSPersistentHistoryResult)?.result as? [NSManagedObjectID]
/// ```
public final class NSPersistentHistoryResult: NSPersistentStoreResult, @unchecked Sendable {
    // @unchecked Sendable: the properties are constants, and their contents are immutable.

    /// The form of the result.
    public let resultType: NSPersistentHistoryResultType

    /// The result, of the type that ``NSPersistentHistoryResultType`` describes.
    public let result: Any?

    /// The place up to which a fetch has read, whether or not anything matched; `nil` for a deletion.
    ///
    /// An addition to Apple's API. The next request begins there. A consumer whose predicate excludes transactions then
    /// moves past these too, so that they can be purged. The token names the stores that were read, each with its last
    /// transaction at the time of the fetch, or, if a limit was reached, with the last transaction that was read. For
    /// stores that were not read, the places of the request's token are kept.
    ///
    /// If the limit of a request for changes is reached within a transaction, then the place is the one before that
    /// transaction, and the next request returns its changes again. Such a limit has to be higher than the number of
    /// matching changes of any transaction.
    ///
    /// ```swift
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// request.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
    /// request.fetchRequest?.predicate = NSPredicate(format: "author != %@", "me")
    /// let result = try context.execute(request) as? NSPersistentHistoryResult
    /// token = result?.endToken ?? token  // also past the transactions of "me"
    /// ```
    public let endToken: NSPersistentHistoryToken?

    init(_ result: Any?, _ resultType: NSPersistentHistoryResultType, endToken: NSPersistentHistoryToken? = nil) {
        self.result = result
        self.resultType = resultType
        self.endToken = endToken
    }
}
