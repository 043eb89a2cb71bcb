import CoreDataEssentials
import Foundation
import StrataPredicates

/// Inserts many rows into the store, without registering objects.
///
/// See <doc:Batches>.
///
/// ```swift
/// var names = ["Oslo", "Bergen"].makeIterator()
/// let insert = NSBatchInsertRequest(entityName: "City") { (city: NSManagedObject) in
///     guard let name = names.next() else { return true }
///     (city as? City)?.name = name
///     return false
/// }
/// try context.execute(insert)
/// ```
///
/// All rows are made first, and then written in one transaction. Memory does not grow with their number, because rows
/// beyond a megabyte are kept in a temporary file. A handler runs on the thread that executes the request, with no lock
/// held, and may run for long.
///
/// Attributes without a given value have the model's defaults. A to-one relationship takes an `NSManagedObjectID`, or
/// an object, unless its inverse is to-one as well; to-many relationships cannot be set. Nothing is validated, and no
/// hook is called. If values break a uniqueness constraint, then the context's merge policy decides: under the error
/// policy the request throws 133021 and inserts nothing; object-trump changes the stored row, overwrite replaces its
/// values, and store-trump and rollback leave it.
///
/// A request is not thread-safe, but is not tied to a queue.
open class NSBatchInsertRequest: NSPersistentStoreRequest {
    private var target = NamedEntity("")

    /// Creates a request for rows that exist already.
    ///
    /// ```swift
    /// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
    /// try context.execute(insert)
    /// ```
    ///
    /// - Parameters:
    ///   - entityName: The entity, looked up when the request is executed.
    ///   - dictionaries: The values of each row, by property.
    public init(entityName: String, objects dictionaries: [[String: Any]]) {
        target = NamedEntity(entityName)
        objectsToInsert = dictionaries
        super.init()
    }

    /// Creates a request for rows that exist already.
    ///
    /// - Parameters:
    ///   - entity: The entity.
    ///   - dictionaries: The values of each row, by property.
    public init(entity: NSEntityDescription, objects dictionaries: [[String: Any]]) {
        target = NamedEntity(entity)
        objectsToInsert = dictionaries
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// ```swift
    /// var names = ["Oslo", "Bergen"].makeIterator()
    /// let insert = NSBatchInsertRequest(entityName: "City") { (row: NSMutableDictionary) in
    ///     guard let name = names.next() else { return true }
    ///     row["name"] = name
    ///     return false
    /// }
    /// try context.execute(insert)
    /// ```
    ///
    /// - Parameters:
    ///   - entityName: The entity, looked up when the request is executed.
    ///   - handler: A closure that puts the values of one row into an empty dictionary, by property, and returns
    ///     `false`. If there are no more rows, then it returns `true`, and the dictionary is ignored.
    public init(entityName: String, dictionaryHandler handler: @escaping (NSMutableDictionary) -> Bool) {
        target = NamedEntity(entityName)
        dictionaryHandler = handler
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// - Parameters:
    ///   - entity: The entity.
    ///   - handler: See ``init(entityName:dictionaryHandler:)``.
    public init(entity: NSEntityDescription, dictionaryHandler handler: @escaping (NSMutableDictionary) -> Bool) {
        target = NamedEntity(entity)
        dictionaryHandler = handler
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// This is the fastest of the three forms.
    ///
    /// - Parameters:
    ///   - entityName: The entity, looked up when the request is executed.
    ///   - handler: A closure that sets the properties of an object that has the model's defaults, and returns `false`.
    ///     If there are no more rows, then it returns `true`, and the object is ignored. The object belongs to no
    ///     context, and may be used only during the call.
    public init(entityName: String, managedObjectHandler handler: @escaping (NSManagedObject) -> Bool) {
        target = NamedEntity(entityName)
        managedObjectHandler = handler
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// - Parameters:
    ///   - entity: The entity.
    ///   - handler: See ``init(entityName:managedObjectHandler:)``.
    public init(entity: NSEntityDescription, managedObjectHandler handler: @escaping (NSManagedObject) -> Bool) {
        target = NamedEntity(entity)
        managedObjectHandler = handler
        super.init()
    }

    /// Creates a request without an entity, which every store refuses.
    @available(*, deprecated, message: "Use an initialiser with an entity")
    public required init() { super.init() }

    /// Always ``NSPersistentStoreRequestType/batchInsertRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .batchInsertRequestType }

    /// The entity of the rows; `nil` if the request was made with a name and has not been executed.
    open var entity: NSEntityDescription? { target.entity }

    /// The name of the entity.
    open var entityName: String { target.name }

    /// The values of each row, by property.
    ///
    /// They are used only if there is no handler.
    open var objectsToInsert: [[String: Any]]?

    /// The closure that makes the rows, one at a time, in a dictionary.
    open var dictionaryHandler: ((NSMutableDictionary) -> Bool)?

    /// The closure that makes the rows, one at a time, in an object that belongs to no context.
    open var managedObjectHandler: ((NSManagedObject) -> Bool)?

    /// The contents of the result.
    ///
    /// Default ``NSBatchInsertRequestResultType/statusOnly``.
    ///
    /// ```swift
    /// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
    /// insert.resultType = .count
    /// print((try context.execute(insert) as? NSBatchInsertResult)?.result as? Int ?? 0)
    /// ```
    open var resultType: NSBatchInsertRequestResultType = .statusOnly

    /// Returns a copy that can be changed.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A request of the same class.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = super.copy(with: zone)
        (copy as? NSBatchInsertRequest)?.copyOwnProperties(from: self)
        return copy
    }

    /// Copies the properties that this class declares.
    private func copyOwnProperties(from other: NSBatchInsertRequest) {
        target = other.target
        objectsToInsert = other.objectsToInsert
        dictionaryHandler = other.dictionaryHandler
        managedObjectHandler = other.managedObjectHandler
        resultType = other.resultType
    }

    /// Notes the entity that was found for the name.
    func resolve(to entity: NSEntityDescription) { target.resolve(to: entity) }

    /// The entity, in the form of a fetch specification.
    var specification: FetchSpecification { target.specification }

    /// The entity and the number of rows, if it is known.
    open override var description: String {
        let isOpen = dictionaryHandler != nil || managedObjectHandler != nil
        return "NSBatchInsertRequest (\(entityName): \(isOpen ? "a handler's" : "\(objectsToInsert?.count ?? 0)") rows)"
    }
}

/// The contents of the result of a batch insert.
///
/// ```swift
/// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"]])
/// insert.resultType = .count
/// print((try context.execute(insert) as? NSBatchInsertResult)?.result as? Int ?? 0)
/// ```
public enum NSBatchInsertRequestResultType: UInt, Sendable {
    /// Whether it succeeded, a `Bool`.
    case statusOnly = 0
    /// The IDs of the rows, an array of `NSManagedObjectID`: first those of new rows in the order in which they were
    /// inserted, then those of rows that were changed instead.
    case objectIDs = 1
    /// The number of rows that were inserted, or changed instead, an `Int`.
    case count = 2
}
