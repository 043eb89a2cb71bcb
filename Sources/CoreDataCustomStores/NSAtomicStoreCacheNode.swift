import CoreDataEssentials
import Foundation
import StrataMemoryStore

/// One object of an atomic store, in memory: its attributes by name, and its relationships as other nodes.
///
/// A to-one relationship has a node, a to-many relationship a `Set` or, if it is ordered, an array of nodes. For a
/// relationship and its inverse, one side is sufficient.
///
/// Not thread-safe: it is used while the store loads and while it saves.
///
/// ```swift
/// let node = NSAtomicStoreCacheNode(objectID: id)
/// node.setValue("Hot Five", forKey: "name")
/// print(node.value(forKey: "name") ?? "")
/// ```
open class NSAtomicStoreCacheNode: NSObject {
    /// The object.
    public let objectID: NSManagedObjectID
    /// The values by property name; `nil` as long as there are none.
    open var propertyCache: NSMutableDictionary?

    /// Makes an empty node for an object.
    ///
    /// - Parameter moid: The ID of the object, made by ``NSAtomicStore/objectID(for:withReferenceObject:)``.
    public init(objectID moid: NSManagedObjectID) {
        objectID = moid
        super.init()
    }

    /// The value of a property.
    ///
    /// It reads ``propertyCache``. An override may keep values elsewhere.
    ///
    /// - Parameter key: The name of the property.
    /// - Returns: The value; `nil` if there is none.
    open func value(forKey key: String) -> Any? {
        let value = propertyCache?.object(forKey: NSString(string: key))
        return value is NSNull ? nil : value
    }

    /// Sets the value of a property; `nil` removes it.
    ///
    /// - Parameters:
    ///   - value: An attribute's value, a node for a to-one relationship, or a set of nodes; `nil` for none.
    ///   - key: The name of the property.
    open func setValue(_ value: Any?, forKey key: String) {
        guard let value else { return propertyCache?.removeObject(forKey: NSString(string: key)) ?? () }
        if propertyCache == nil { propertyCache = NSMutableDictionary() }
        propertyCache?.setObject(value, forKey: NSString(string: key))
    }
}
