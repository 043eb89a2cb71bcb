import CoreDataEssentials
import Foundation

/// The result of a batch insert.
///
/// It is not thread-safe.
///
/// ```swift
/// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"]])
/// insert.resultType = .objectIDs
/// let ids = (try context.execute(insert) as? NSBatchInsertResult)?.result as? [NSManagedObjectID]
/// ```
public final class NSBatchInsertResult: NSPersistentStoreResult {
    /// A Boolean, a number, or `[NSManagedObjectID]`, according to ``resultType``.
    public let result: Any?
    /// The kind of result that the request asked for.
    public let resultType: NSBatchInsertRequestResultType

    init(_ resultType: NSBatchInsertRequestResultType, _ changes: [StoreBatch]) {
        self.resultType = resultType
        switch resultType {
        case .statusOnly: result = NSNumber(value: true)
        case .count: result = NSNumber(value: changes.count)
        case .objectIDs: result = changes.ids([\.inserted, \.changed])
        }
    }
}

/// The result of a batch update.
///
/// It is not thread-safe.
///
/// ```swift
/// let update = NSBatchUpdateRequest(entityName: "Venue")
/// update.propertiesToUpdate = ["price": 0]
/// update.resultType = .updatedObjectsCountResultType
/// print((try context.execute(update) as? NSBatchUpdateResult)?.result as? Int ?? 0)
/// ```
public final class NSBatchUpdateResult: NSPersistentStoreResult {
    /// A Boolean, a number, or `[NSManagedObjectID]`, according to ``resultType``.
    public let result: Any?
    /// The kind of result that the request asked for.
    public let resultType: NSBatchUpdateRequestResultType

    init(_ resultType: NSBatchUpdateRequestResultType, _ changes: [StoreBatch]) {
        self.resultType = resultType
        switch resultType {
        case .statusOnlyResultType: result = NSNumber(value: true)
        case .updatedObjectsCountResultType: result = NSNumber(value: changes.count)
        case .updatedObjectIDsResultType: result = changes.ids([\.changed])
        }
    }
}

/// The result of a batch delete.
///
/// It is not thread-safe.
///
/// ```swift
/// let delete = NSBatchDeleteRequest(objectIDs: [id])
/// delete.resultType = .resultTypeCount
/// print((try context.execute(delete) as? NSBatchDeleteResult)?.result as? Int ?? 0)
/// ```
public final class NSBatchDeleteResult: NSPersistentStoreResult {
    /// A Boolean, a number, or `[NSManagedObjectID]`, according to ``resultType``.
    public let result: Any?
    /// The kind of result that the request asked for.
    public let resultType: NSBatchDeleteRequestResultType

    init(_ resultType: NSBatchDeleteRequestResultType, _ changes: [StoreBatch]) {
        self.resultType = resultType
        switch resultType {
        case .resultTypeStatusOnly: result = NSNumber(value: true)
        case .resultTypeCount: result = NSNumber(value: changes.count)
        case .resultTypeObjectIDs: result = changes.ids([\.deleted])
        }
    }
}
