import CoreDataEssentials
import Foundation

/// Fetches the changes in stores that keep a history, or deletes old parts of the history.
///
/// Pass it to ``NSManagedObjectContext/execute(_:)``. Stores are read one after the other; the transactions of each
/// store come in the order of their numbers. If no store has a history, then executing it throws 134091. The result is an
/// array with all transactions, so read a long history in portions, with a limit in ``fetchRequest``. A request is not
/// thread-safe.
///
/// See <doc:History>.
///
/// ```swift
/// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
/// let result = try context.execute(request) as? NSPersistentHistoryResult
/// print((result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0)
/// ```
public final class NSPersistentHistoryChangeRequest: NSPersistentStoreRequest {
    /// The kind of the request.
    enum Kind {
        case fetch(Start)
        case delete(Bound)
    }

    /// The place where a fetch starts.
    enum Start {
        /// The oldest transaction that exists.
        case beginning
        case token(NSPersistentHistoryToken)
        case date(Date)
    }

    /// The place where a deletion ends.
    enum Bound {
        /// The place before the first transaction: nothing is deleted.
        case beginning
        case token(NSPersistentHistoryToken)
        case date(Date)
    }

    private(set) var kind = Kind.fetch(.beginning)

    // MARK: - Fetching

    /// Requests the transactions after a date.
    ///
    /// Prefer a token: clocks can be set back, and a request with a date does not notice purged transactions. The time of
    /// a transaction is that of the process that wrote it, or that of the server for PostgreSQL.
    ///
    /// ```swift
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// let result = try context.execute(request) as? NSPersistentHistoryResult
    /// ```
    ///
    /// - Parameter date: The date; transactions with exactly this time are not included.
    /// - Returns: The request.
    public class func fetchHistory(after date: Date) -> Self { make(.fetch(.date(date))) }

    /// Requests the transactions after a token.
    ///
    /// Executing it throws 134301 (`NSPersistentHistoryTokenExpiredError`) if a transaction after the token's was
    /// purged. The error has the number of the oldest remaining transaction under
    /// `NSPersistentHistoryOldestTransactionNumberKey`. Transactions that a deletion with a ``fetchRequest`` has
    /// removed are skipped without an error. The same error is thrown if the token's transaction does not exist yet,
    /// because the store was replaced by an older copy. If the token does not name a store, then that store is read
    /// from its beginning. If the token names none of the stores, then 134501 is thrown.
    ///
    /// - Parameter token: A token; `nil` for the complete history.
    /// - Returns: The request.
    public class func fetchHistory(after token: NSPersistentHistoryToken?) -> Self {
        make(.fetch(token.map { .token($0) } ?? .beginning))
    }

    /// Requests the transactions after another one.
    ///
    /// - Parameter transaction: A transaction; `nil` for the complete history.
    /// - Returns: The request, which throws the same errors as one with the transaction's token.
    public class func fetchHistory(after transaction: NSPersistentHistoryTransaction?) -> Self {
        fetchHistory(after: transaction?.token)
    }

    /// Requests the transactions, or changes, that fulfil the predicate of a fetch request.
    ///
    /// - Parameter fetchRequest: A request for the entity of ``NSPersistentHistoryTransaction`` or of
    ///   ``NSPersistentHistoryChange``. See ``fetchRequest``.
    /// - Returns: The request.
    public class func fetchHistory(withFetch fetchRequest: NSFetchRequest<any NSFetchRequestResult>) -> Self {
        let request = fetchHistory(after: NSPersistentHistoryToken?.none)
        request.fetchRequest = fetchRequest
        return request
    }

    // MARK: - Deleting

    /// Deletes the transactions before a date; with a ``fetchRequest``, only those that it matches.
    ///
    /// Registered consumers of the history are not asked. A consumer that has not read such a transaction gets 134301.
    /// The purge of the coordinator (`purgePersistentHistory(consumersLiveSince:)`) keeps what they need.
    ///
    /// ```swift
    /// try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date(timeIntervalSinceNow: -7 * 86_400)))
    /// ```
    ///
    /// - Parameter date: The date. Transactions with exactly this time stay; so do all transactions after one that
    ///   stays, unless there is a predicate.
    /// - Returns: The request.
    public class func deleteHistory(before date: Date) -> Self { make(.delete(.date(date))) }

    /// Deletes the transactions before a token; with a ``fetchRequest``, only those that it matches.
    ///
    /// - Parameter token: The token. Its transaction stays, and so do the transactions of stores that it does not name.
    ///   `nil` deletes nothing.
    /// - Returns: The request.
    public class func deleteHistory(before token: NSPersistentHistoryToken?) -> Self {
        make(.delete(token.map { .token($0) } ?? .beginning))
    }

    /// Deletes the transactions before another one of its store, which stays; see ``fetchRequest``.
    ///
    /// With a ``fetchRequest``, only the transactions that it matches are deleted.
    ///
    /// - Parameter transaction: A transaction; `nil` deletes nothing.
    /// - Returns: The request.
    public class func deleteHistory(before transaction: NSPersistentHistoryTransaction?) -> Self {
        deleteHistory(before: transaction?.token)
    }

    private class func make(_ kind: Kind) -> Self {
        let request = Self()
        request.kind = kind
        if case .delete = kind { request.resultType = .statusOnly }
        return request
    }

    // MARK: - Properties

    /// The form of the result.
    ///
    /// Default ``NSPersistentHistoryResultType/transactionsAndChanges`` for a fetch,
    /// ``NSPersistentHistoryResultType/statusOnly`` for a deletion, which can also return its count.
    ///
    /// ```swift
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// request.resultType = .count
    /// print((try context.execute(request) as? NSPersistentHistoryResult)?.result as? Int ?? 0)
    /// ```
    public var resultType: NSPersistentHistoryResultType = .transactionsAndChanges

    /// The token with which the request was made; `nil` if it was made without one.
    public var token: NSPersistentHistoryToken? {
        switch kind {
        case .fetch(.token(let token)), .delete(.token(let token)): token
        default: nil
        }
    }

    /// A filter for the transactions or changes of the request; `nil` for all.
    ///
    /// A fetch request for transactions finds transactions, with all changes of each. A fetch request for changes finds
    /// changes: with ``NSPersistentHistoryResultType/transactionsAndChanges`` the result is an array of their
    /// transactions, each with only those changes that were found. The predicate and the limit are used; the limit
    /// counts transactions or changes, according to the entity. Sort descriptors, an offset and another entity make the
    /// request throw 134070: results come in the order of the history.
    ///
    /// In predicates on transactions, `token` compares with tokens: `token > %@` finds later transactions, as
    /// ``fetchHistory(after:)-(NSPersistentHistoryToken?)`` does; `<`, `<=` and `>=` have their usual meaning. The
    /// comparison uses the number that the other token has for the store of the transaction, or 0.
    ///
    /// A deletion with a predicate, or with a limit, deletes only the transactions that the filter finds before its
    /// bound. The others keep their numbers, and all tokens stay valid: a reader skips deleted transactions. So delete
    /// only transactions that no reader needs. In each store the deletion is one transaction. History is deleted by
    /// whole transactions: a deletion with a fetch request for changes throws 134070 and deletes nothing. Without
    /// predicate and limit all transactions before the bound are deleted, as without a fetch request.
    ///
    /// ```swift
    /// let imports = NSPersistentHistoryTransaction.fetchRequest
    /// imports?.predicate = NSPredicate(format: "author == %@", "import")
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// request.fetchRequest = imports
    /// let result = try context.execute(request) as? NSPersistentHistoryResult
    /// print((result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0)
    ///
    /// let cleaning = NSPersistentHistoryChangeRequest.deleteHistory(before: Date(timeIntervalSinceNow: -7 * 86_400))
    /// cleaning.fetchRequest = imports
    /// try context.execute(cleaning)  // all other transactions stay, even old ones
    /// ```
    public var fetchRequest: NSFetchRequest<any NSFetchRequestResult>?

    /// Always ``NSPersistentStoreRequestType/persistentHistoryRequestType``.
    public override var requestType: NSPersistentStoreRequestType { .persistentHistoryRequestType }

    /// Returns a copy that can be changed.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A request of the same class.
    public override func copy(with zone: NSZone? = nil) -> Any {
        let copy = super.copy(with: zone)
        (copy as? NSPersistentHistoryChangeRequest)?.copyOwnProperties(from: self)
        return copy
    }

    /// Copies the properties that this class declares.
    private func copyOwnProperties(from other: NSPersistentHistoryChangeRequest) {
        kind = other.kind
        resultType = other.resultType
        fetchRequest = other.fetchRequest?.duplicate()
    }
}
