import CoreDataEssentials

/// The kind of a change to an object in a transaction.
///
/// ```swift
/// let changes = NSPersistentHistoryChangeRequest.fetchHistory(after: Date.distantPast)
/// changes.resultType = .changesOnly
/// let result = (try context.execute(changes) as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryChange]
/// print(result?.filter { $0.changeType == .insert }.count ?? 0)
/// ```
public enum NSPersistentHistoryChangeType: Int, Sendable {
    /// The object is new.
    case insert = 0
    /// Properties of the object were changed.
    case update = 1
    /// The object was deleted.
    case delete = 2
}
