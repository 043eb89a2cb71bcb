import Foundation

/// The values of one object as an incremental store knows them, with the version that conflicts are found by.
///
/// A store makes one in ``NSIncrementalStore/newValuesForObject(with:with:)``. It may keep the node and give it again;
/// then ``update(withValues:version:)`` tells what a save or the outside has changed.
///
/// Not thread-safe: used only while the store is being asked something.
///
/// ```swift
/// let node = NSIncrementalStoreNode(objectID: id, withValues: ["name": "Hot Five"], version: 1)
/// node.update(withValues: ["name": "Hot Six"], version: 2)
/// ```
open class NSIncrementalStoreNode: NSObject {
    /// The object that the values are of.
    public let objectID: NSManagedObjectID
    /// The version of the values.
    ///
    /// Two nodes of one object with the same version hold the same values. A higher one is newer.
    public private(set) var version: UInt64
    private var values: [String: Any]

    /// Makes a node.
    ///
    /// - Parameters:
    ///   - objectID: The ID of the object.
    ///   - values: By property name: the values of attributes, and the IDs of to-one destinations (`NSNull` for none).
    ///     A to-one relationship that is missing is asked for by `newValue(forRelationship:forObjectWith:with:)`, an
    ///     attribute that is missing is nil. To-many relationships are always asked for.
    ///   - version: The version of the values.
    public init(objectID: NSManagedObjectID, withValues values: [String: Any], version: UInt64) {
        self.objectID = objectID
        self.values = values
        self.version = version
        super.init()
    }

    /// Replaces the values, after a save or a change from outside.
    ///
    /// - Parameters:
    ///   - values: The values by the properties' names, as ``init(objectID:withValues:version:)`` takes them.
    ///   - version: The version of the values.
    open func update(withValues values: [String: Any], version: UInt64) {
        self.values = values
        self.version = version
    }

    /// The value of a property: an ID for a to-one relationship, `NSNull` for an empty one.
    ///
    /// - Parameter prop: A property of the object's entity.
    /// - Returns: `nil` if the node does not have the property.
    open func value(for prop: NSPropertyDescription) -> Any? { values[prop.name] }
}
