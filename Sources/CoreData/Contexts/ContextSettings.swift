import Foundation

/// What a context does in those cases where it can be told: the values of the public properties of the same names.
struct ContextSettings {
    var mergePolicy: NSMergePolicy = .error
    var parentConflictPolicy: NSMergePolicy?
    var retainsRegisteredObjects = false
    var propagatesDeletesAtEndOfEvent = true
    var shouldDeleteInaccessibleFaults = true
    var inaccessibleFaultHandler: ((NSManagedObject) -> Void)?
    var stalenessInterval: TimeInterval = -1
    var transactionAuthor: String?
    /// Whether saves leave out validation, since objects are written before they are complete: in a migration.
    var savesUnvalidated = false

    init() {}
}
