import StrataPredicates

/// A type of fetch results: managed objects, their IDs, dictionaries, or a count.
///
/// ```swift
/// let request = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
/// request.resultType = .managedObjectIDResultType
/// let ids = try context.fetch(request) as? [NSManagedObjectID]
/// ```
public protocol NSFetchRequestResult: NSObjectProtocol {}

extension NSDictionary: NSFetchRequestResult {}

extension NSNumber: NSFetchRequestResult {}

/// The form in which a fetch returns its results.
///
/// ```swift
/// let request = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
/// request.resultType = .managedObjectIDResultType
/// let ids = try context.fetch(request)
/// ```
public struct NSFetchRequestResultType: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Wraps the bits.
    ///
    /// - Parameter rawValue: The bits.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// Managed objects.
    ///
    /// This is the empty set.
    public static let managedObjectResultType: NSFetchRequestResultType = []

    /// The IDs of the objects.
    public static let managedObjectIDResultType = NSFetchRequestResultType(rawValue: 1)

    /// Dictionaries with the values of ``NSFetchRequest/propertiesToFetch``.
    public static let dictionaryResultType = NSFetchRequestResultType(rawValue: 2)

    /// One number: the count of matching objects.
    public static let countResultType = NSFetchRequestResultType(rawValue: 4)
}

extension NSFetchRequestResultType {
    /// The form of results with a given type; `nil` if the type does not determine the form.
    init?(of type: Any.Type) {
        switch type {
        case is NSManagedObject.Type: self = .managedObjectResultType
        case is NSManagedObjectID.Type: self = .managedObjectIDResultType
        case is NSDictionary.Type, is [String: Any].Type: self = .dictionaryResultType
        case is NSNumber.Type: self = .countResultType
        default: return nil
        }
    }
}
