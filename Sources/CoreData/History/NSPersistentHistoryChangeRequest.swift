import Foundation

/// Asks for what was changed in stores that keep a history, or removes what is old of it.
///
/// Hand it to ``NSManagedObjectContext/execute(_:)``. Stores are asked one after the other; of each the transactions come in
/// the order of their numbers. A request belongs to whoever made it.
///
/// See <doc:History>.
///
/// ```swift
/// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
/// let result = try context.execute(request) as? NSPersistentHistoryResult
/// print((result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0)
/// ```
public final class NSPersistentHistoryChangeRequest: NSPersistentStoreRequest {
    /// What the request does.
    enum Kind {
        case fetch(Start)
        case delete(Bound)
    }

    /// Where a fetch starts.
    enum Start {
        /// With the oldest transaction that is there.
        case beginning
        case token(NSPersistentHistoryToken)
        case date(Date)
    }

    /// Where a deletion ends.
    enum Bound {
        /// Before the first transaction: nothing is deleted.
        case beginning
        case token(NSPersistentHistoryToken)
        case date(Date)
    }

    private(set) var kind = Kind.fetch(.beginning)

    // MARK: - Fetching

    /// Asks for the transactions after a date.
    ///
    /// Clocks can be set back, and purged transactions are not missed: prefer a token.
    ///
    /// ```swift
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// let result = try context.execute(request) as? NSPersistentHistoryResult
    /// ```
    ///
    /// - Parameter date: Transactions of that very time do not belong to it.
    /// - Returns: The request.
    public class func fetchHistory(after date: Date) -> Self { make(.fetch(.date(date))) }

    /// Asks for the transactions after a token.
    ///
    /// Executing it throws 134301 (`NSPersistentHistoryTokenExpiredError`) if a transaction after the token's was
    /// purged; the error has the number of the oldest one that is left under
    /// `NSPersistentHistoryOldestTransactionNumberKey`. Those that a deletion with a ``fetchRequest`` has removed are
    /// passed over without an error. It throws the same if the token's transaction is yet to come, since the store was
    /// replaced by an older copy. A store that the token does not name is read from its beginning; a token that names
    /// none of the stores makes it throw 134501.
    ///
    /// - Parameter token: A token; `nil` for all that is there.
    /// - Returns: The request.
    public class func fetchHistory(after token: NSPersistentHistoryToken?) -> Self {
        make(.fetch(token.map { .token($0) } ?? .beginning))
    }

    /// Asks for the transactions after another one.
    ///
    /// - Parameter transaction: A transaction; `nil` for all that is there.
    /// - Returns: The request, which throws as one with the transaction's token.
    public class func fetchHistory(after transaction: NSPersistentHistoryTransaction?) -> Self {
        fetchHistory(after: transaction?.token)
    }

    /// Asks for the transactions, or changes, that fulfil the predicate of a fetch request.
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

    /// Removes the transactions before a date; with a ``fetchRequest``, those of them that it matches.
    ///
    /// ```swift
    /// try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date(timeIntervalSinceNow: -7 * 86_400)))
    /// ```
    ///
    /// - Parameter date: Transactions of that very time stay, and so do all after one that stays, unless there is a
    ///   predicate.
    /// - Returns: The request.
    public class func deleteHistory(before date: Date) -> Self { make(.delete(.date(date))) }

    /// Removes the transactions before a token; with a ``fetchRequest``, those of them that it matches.
    ///
    /// - Parameter token: Its own transaction stays, and so do those of stores that it does not name. `nil` removes nothing.
    /// - Returns: The request.
    public class func deleteHistory(before token: NSPersistentHistoryToken?) -> Self {
        make(.delete(token.map { .token($0) } ?? .beginning))
    }

    /// Removes the transactions before another one of its store, which stays; with a ``fetchRequest``, those of them
    /// that it matches.
    ///
    /// - Parameter transaction: A transaction; `nil` removes nothing.
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

    // MARK: - What is asked for

    /// The form of the result.
    ///
    /// Default ``NSPersistentHistoryResultType/transactionsAndChanges`` for a fetch,
    /// ``NSPersistentHistoryResultType/statusOnly`` for a deletion, which may be asked for its count too.
    ///
    /// ```swift
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// request.resultType = .count
    /// print((try context.execute(request) as? NSPersistentHistoryResult)?.result as? Int ?? 0)
    /// ```
    public var resultType: NSPersistentHistoryResultType = .transactionsAndChanges

    /// The token that the request was made with, if it was.
    public var token: NSPersistentHistoryToken? {
        switch kind {
        case .fetch(.token(let token)), .delete(.token(let token)): token
        default: nil
        }
    }

    /// Which transactions or changes to find, of those that the request asks for; `nil` for all.
    ///
    /// A request for transactions finds these, and all changes of them. One for changes finds changes: with
    /// ``NSPersistentHistoryResultType/transactionsAndChanges`` its result is an array of their transactions, each with those
    /// of its changes that were found. Predicate and limit count; the limit counts what the request is for. Sort
    /// descriptors, an offset and another entity make the request throw 134070: results come in the order of the history.
    ///
    /// In predicates on transactions, `token` compares with tokens: `token > %@` finds what came after, as
    /// ``fetchHistory(after:)-(NSPersistentHistoryToken?)`` does, and `<`, `<=` and `>=` say what they say. What counts is the
    /// number that the other token has for the store of the transaction, or 0.
    ///
    /// A request that deletes with a predicate, or with a limit, removes what this finds before its bound, and nothing
    /// else. The others keep their numbers, and all tokens stay good: a reader passes over what was removed.
    /// So remove what no reader needs. In each store it is one transaction. History is deleted by whole transactions: a
    /// deletion with a request for changes throws 134070 and deletes nothing. Without predicate and limit all before
    /// the bound goes, as without a fetch request.
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
    /// try context.execute(cleaning)  // what else there is stays, however old
    /// ```
    public var fetchRequest: NSFetchRequest<any NSFetchRequestResult>?

    /// Always ``NSPersistentStoreRequestType/persistentHistoryRequestType``.
    public override var requestType: NSPersistentStoreRequestType { .persistentHistoryRequestType }

    /// Takes over all that describes `other`.
    package override func adopt(_ other: NSPersistentStoreRequest) {
        super.adopt(other)
        guard let other = other as? NSPersistentHistoryChangeRequest else { return }
        kind = other.kind
        resultType = other.resultType
        fetchRequest = other.fetchRequest?.duplicate()
    }
}
