import Foundation

/// What `execute(_:)` of a context gives.
///
/// Use the subclass that belongs to the request.
///
/// ```swift
/// let result: NSPersistentStoreResult = try context.execute(NSBatchDeleteRequest(objectIDs: [id]))
/// print(result is NSBatchDeleteResult)
/// ```
open class NSPersistentStoreResult: NSObject {}
