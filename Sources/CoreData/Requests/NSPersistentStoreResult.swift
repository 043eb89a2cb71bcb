import Foundation

/// What `execute(_:)` of a context gives.
///
/// Use the subclass that belongs to the request.
open class NSPersistentStoreResult: NSObject {}
