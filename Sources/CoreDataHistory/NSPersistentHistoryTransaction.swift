import CoreDataEssentials
import Foundation
import StrataPredicates
import StrataRows

/// One save or batch that changed a store, as recorded in the store's history.
///
/// In a file that Apple's framework has migrated it may also be a migration, which has no changes.
///
/// Immutable; any thread may use it.
///
/// See <doc:History>.
///
/// ```swift
/// let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)) as? NSPersistentHistoryResult
/// for transaction in result?.result as? [NSPersistentHistoryTransaction] ?? [] {
///     print(transaction.timestamp, transaction.author ?? "nobody", transaction.changes?.count ?? 0)
/// }
/// ```
public final class NSPersistentHistoryTransaction: NSObject, NSCopying, @unchecked Sendable {
    // @unchecked Sendable: all properties are constants; a tombstone's values are property values, which no code
    // changes in place.

    let record: HistoryTransactionRecord
    private let store: OpenStore
    private let changeRecords: [HistoryChangeRecord]?

    init(_ record: HistoryTransactionRecord, _ changes: [HistoryChangeRecord]?, in store: OpenStore) {
        self.record = record
        self.store = store
        changeRecords = changes
    }

    /// The time when the transaction was written, by the clock of the process that wrote it.
    public var timestamp: Date { Date(timeIntervalSinceReferenceDate: record.time) }

    /// The changes, one for each object; `nil` if only transactions were requested.
    ///
    /// ```swift
    /// for change in transaction.changes ?? [] { print(change.changedObjectID) }
    /// ```
    ///
    /// - Complexity: O(number of changes) for each read of the property.
    public var changes: [NSPersistentHistoryChange]? {
        changeRecords?.map { NSPersistentHistoryChange($0, of: record, in: store) }
    }

    /// The number of the transaction in its store; numbers increase, and no number is used again.
    public var transactionNumber: Int64 { record.number }

    /// The UUID text of the store.
    public var storeID: String { store.store.identifier ?? "" }

    /// The bundle identifier of the program that wrote the transaction; empty if it had none.
    public var bundleID: String { record.bundleID ?? "" }

    /// The name of the process that wrote the transaction.
    public var processID: String { record.processID ?? "" }

    /// The name that the saving context had.
    public var contextName: String? { record.contextName }

    /// The transaction author that the saving context had.
    ///
    /// ```swift
    /// if transaction.author != "import" {
    ///     context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
    /// }
    /// ```
    public var author: String? { record.author }

    /// The place right after the transaction.
    ///
    /// ```swift
    /// token = transaction.token  // the next request begins here
    /// let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
    /// ```
    public var token: NSPersistentHistoryToken {
        NSPersistentHistoryToken([storeID: record.place])
    }

    /// The notification that a context posts after a save, with the IDs of this transaction's objects.
    ///
    /// Merge it into any context of the coordinator whose history was read
    /// (``NSManagedObjectContext/mergeChanges(fromContextDidSave:)``), inside that context's scope. The merge first
    /// forgets cached rows of the changed objects. The notification has the transaction's token under
    /// `NSPersistentHistoryTokenKey`. If the transaction was requested without changes, then there is nothing to merge.
    ///
    /// ```swift
    /// context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
    /// ```
    ///
    /// - Returns: A notification with sets of IDs under the inserted, updated and deleted keys.
    public func objectIDNotification() -> Notification {
        var ids: [NSPersistentHistoryChangeType: Set<NSManagedObjectID>] = [.insert: [], .update: [], .delete: []]
        for change in changes ?? [] { ids[change.changeType]?.insert(change.changedObjectID) }
        return Notification(
            name: NotificationInterest.didSaveIDs.name,
            object: nil,
            userInfo: [
                NSManagedObjectContext.NotificationKey.insertedObjectIDs.rawValue: ids[.insert] ?? [],
                NSManagedObjectContext.NotificationKey.updatedObjectIDs.rawValue: ids[.update] ?? [],
                NSManagedObjectContext.NotificationKey.deletedObjectIDs.rawValue: ids[.delete] ?? [],
                NSPersistentHistoryTokenKey: token,
            ]
        )
    }

    // MARK: - Asking for transactions by a predicate

    /// The entity that a fetch request for transactions has.
    ///
    /// Its attributes have the names of the properties: `author`, `bundleID`, `contextName`, `processID`, `storeID`,
    /// `timestamp`, `token`, `transactionNumber`, and `changes` is a relationship.
    ///
    /// - Parameter context: Any context; it has no effect.
    /// - Returns: The entity.
    public class func entityDescription(with context: NSManagedObjectContext) -> NSEntityDescription? {
        HistoryModel.shared.transaction
    }

    /// The entity of ``entityDescription(with:)``; `nil` until the process has opened a store with a history.
    public class var entityDescription: NSEntityDescription? {
        HistoryUse.hasBegun ? HistoryModel.shared.transaction : nil
    }

    /// A fetch request for transactions; `nil` until the process has opened a store with a history.
    ///
    /// Give it a predicate and pass it to ``NSPersistentHistoryChangeRequest/fetchHistory(withFetch:)``.
    public class var fetchRequest: NSFetchRequest<any NSFetchRequestResult>? {
        entityDescription.map(HistoryModel.request)
    }

    // MARK: - Identity

    /// Whether `object` is the same transaction of the same store.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? NSPersistentHistoryTransaction else { return false }
        return other.record.number == record.number && other.storeID == storeID
    }

    /// Equal for equal transactions.
    public override var hash: Int { record.number.hashValue }

    /// The transaction itself, which is immutable.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: The transaction itself.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    /// A summary for logs.
    public override var description: String {
        "<NSPersistentHistoryTransaction \(record.number) of \(storeID), author \(author ?? "none"), \(timestamp)>"
    }
}

extension NSPersistentHistoryTransaction: PredicateEntityMember {
    package func predicateValue(forKey key: String) throws -> Any? {
        switch key {
        case "author": author
        case "bundleID": bundleID
        case "contextName": contextName
        case "processID": processID
        case "storeID": storeID
        case "timestamp": timestamp
        case "token": token
        case "transactionNumber": transactionNumber
        case "changes": changes
        case "self", "SELF": self
        default: throw PredicateEvaluationError("a history transaction has no property \"\(key)\"")
        }
    }

    package func isKind(ofEntityNamed name: String) -> Bool { HistoryModel.shared.transaction.isNamed(name) }
}
