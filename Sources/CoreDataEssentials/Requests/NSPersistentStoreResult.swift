import Foundation

/// The result of a context's `execute(_:)`.
///
/// Use the subclass that belongs to the request.
///
/// ```swift
/// let result: NSPersistentStoreResult = try context.execute(NSBatchDeleteRequest(objectIDs: [id]))
/// print(result is NSBatchDeleteResult)
/// ```
open class NSPersistentStoreResult: NSObject {}
