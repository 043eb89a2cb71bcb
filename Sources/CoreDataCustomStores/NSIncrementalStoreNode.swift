import CoreDataEssentials
import Foundation

/// The values of one object in an incremental store, with the version by which conflicts are found.
///
/// A store makes a node in ``NSIncrementalStore/newValuesForObject(with:with:)``. It may keep the node and return it
/// again; then it updates the node with ``update(withValues:version:)`` after a save or an external change.
///
/// Not thread-safe: it is used only during calls of the store.
///
/// ```swift
/// let node = NSIncrementalStoreNode(objectID: id, withValues: ["name": "Hot Five"], version: 1)
/// node.update(withValues: ["name": "Hot Six"], version: 2)
/// ```
open class NSIncrementalStoreNode: NSObject {
    /// The object of the values.
    public let objectID: NSManagedObjectID
    /// The version of the values.
    ///
    /// Two nodes of the same object with the same version have the same values. A higher version is newer.
    public private(set) var version: UInt64
    private var values: [String: Any]

    /// Makes a node.
    ///
    /// - Parameters:
    ///   - objectID: The ID of the object.
    ///   - values: The values of attributes, and the IDs of to-one destinations (`NSNull` for none), by property name.
    ///     A missing to-one relationship is requested by `newValue(forRelationship:forObjectWith:with:)`; a missing
    ///     attribute is nil. To-many relationships are always requested.
    ///   - version: The version of the values.
    public init(objectID: NSManagedObjectID, withValues values: [String: Any], version: UInt64) {
        self.objectID = objectID
        self.values = values
        self.version = version
        super.init()
    }

    /// Replaces the values, after a save or an external change.
    ///
    /// - Parameters:
    ///   - values: The values by property name, as in ``init(objectID:withValues:version:)``.
    ///   - version: The version of the values.
    open func update(withValues values: [String: Any], version: UInt64) {
        self.values = values
        self.version = version
    }

    /// The value of a property: an ID for a to-one relationship, `NSNull` for an empty one.
    ///
    /// - Parameter prop: A property of the object's entity.
    /// - Returns: The value; `nil` if the node does not have the property.
    open func value(for prop: NSPropertyDescription) -> Any? { values[prop.name] }
}
