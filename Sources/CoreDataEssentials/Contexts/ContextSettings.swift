import Foundation

/// The settings of a context: the values of its public properties of the same names.
struct ContextSettings {
    var mergePolicy: NSMergePolicy = .error
    var parentConflictPolicy: NSMergePolicy?
    var retainsRegisteredObjects = false
    var propagatesDeletesAtEndOfEvent = true
    var shouldDeleteInaccessibleFaults = true
    var inaccessibleFaultHandler: ((NSManagedObject) -> Void)?
    var stalenessInterval: TimeInterval = -1
    var transactionAuthor: String?
    var readRules: ReadRules?
    /// Whether saves leave out validation.
    ///
    /// A migration sets it, since it writes objects before they are complete.
    var savesUnvalidated = false

    init() {}
}
