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
/// All rows are made first, and then written in one transaction; memory does not grow with their number, as more than a
/// megabyte of them waits in a temporary file. A handler runs on the thread that executes the request, with no lock held,
/// and may take its time.
///
/// Attributes that are not given have the model's defaults. A to-one relationship takes an `NSManagedObjectID`, or an object,
/// unless its inverse is to-one as well; to-many relationships cannot be set. Nothing is validated, and no hook is
/// called. Where values break a uniqueness constraint the context's merge policy decides: the request fails under the error
/// policy; object-trump changes the stored row, overwrite replaces its values, store-trump and rollback leave it.
///
/// A request belongs to whoever made it; nothing in it is tied to a queue.
open class NSBatchInsertRequest: NSPersistentStoreRequest {
    private var target = NamedEntity("")

    /// Creates a request for rows that are there already.
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

    /// Creates a request for rows that are there already.
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
    ///   - handler: Puts the values of one row into an empty dictionary, by property, and returns `false`; or returns
    ///     `true` when there are no more rows, and what it has put in then does not count.
    public init(entityName: String, dictionaryHandler handler: @escaping (NSMutableDictionary) -> Bool) {
        target = NamedEntity(entityName)
        dictionaryHandler = handler
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// - Parameters:
    ///   - entity: The entity.
    ///   - handler: As in ``init(entityName:dictionaryHandler:)``.
    public init(entity: NSEntityDescription, dictionaryHandler handler: @escaping (NSMutableDictionary) -> Bool) {
        target = NamedEntity(entity)
        dictionaryHandler = handler
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// The fastest of the three forms.
    ///
    /// - Parameters:
    ///   - entityName: The entity, looked up when the request is executed.
    ///   - handler: Sets the properties of an object that has the model's defaults and returns `false`; or returns `true` when
    ///     there are no more rows, and that object does not count. The object belongs to no context, and to the handler for
    ///     the time of the call only.
    public init(entityName: String, managedObjectHandler handler: @escaping (NSManagedObject) -> Bool) {
        target = NamedEntity(entityName)
        managedObjectHandler = handler
        super.init()
    }

    /// Creates a request for rows that a handler makes, one at a time.
    ///
    /// - Parameters:
    ///   - entity: The entity.
    ///   - handler: As in ``init(entityName:managedObjectHandler:)``.
    public init(entity: NSEntityDescription, managedObjectHandler handler: @escaping (NSManagedObject) -> Bool) {
        target = NamedEntity(entity)
        managedObjectHandler = handler
        super.init()
    }

    /// Creates a request without an entity, which no store takes.
    @available(*, deprecated, message: "Use an initialiser with an entity")
    public required init() { super.init() }

    /// Always ``NSPersistentStoreRequestType/batchInsertRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .batchInsertRequestType }

    /// The entity of the rows; `nil` while a request that was made with a name has not been executed.
    open var entity: NSEntityDescription? { target.entity }

    /// The name of the entity.
    open var entityName: String { target.name }

    /// The values of each row, by property.
    ///
    /// Counts only if there is no handler.
    open var objectsToInsert: [[String: Any]]?

    /// Makes the rows, one at a time, in a dictionary.
    open var dictionaryHandler: ((NSMutableDictionary) -> Bool)?

    /// Makes the rows, one at a time, in an object that belongs to no context.
    open var managedObjectHandler: ((NSManagedObject) -> Bool)?

    /// What the result has.
    ///
    /// Default ``NSBatchInsertRequestResultType/statusOnly``.
    ///
    /// ```swift
    /// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"], ["name": "Bergen"]])
    /// insert.resultType = .count
    /// print((try context.execute(insert) as? NSBatchInsertResult)?.result as? Int ?? 0)
    /// ```
    open var resultType: NSBatchInsertRequestResultType = .statusOnly

    /// Takes over all that describes `other`.
    package override func adopt(_ other: NSPersistentStoreRequest) {
        super.adopt(other)
        guard let other = other as? NSBatchInsertRequest else { return }
        target = other.target
        objectsToInsert = other.objectsToInsert
        dictionaryHandler = other.dictionaryHandler
        managedObjectHandler = other.managedObjectHandler
        resultType = other.resultType
    }

    /// Notes the entity that the name has turned out to mean.
    func note(_ entity: NSEntityDescription) { target.note(entity) }

    /// Which entity is meant, as a fetch says it.
    var specification: FetchSpecification { target.specification }

    /// The entity and the number of rows, where it is known.
    open override var description: String {
        let isOpen = dictionaryHandler != nil || managedObjectHandler != nil
        return "NSBatchInsertRequest (\(entityName): \(isOpen ? "a handler's" : "\(objectsToInsert?.count ?? 0)") rows)"
    }
}

/// What the result of a batch insert has.
///
/// ```swift
/// let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"]])
/// insert.resultType = .count
/// print((try context.execute(insert) as? NSBatchInsertResult)?.result as? Int ?? 0)
/// ```
public enum NSBatchInsertRequestResultType: UInt, Sendable {
    /// Whether it succeeded.
    case statusOnly = 0
    /// The IDs of the rows, in the order in which they were inserted; then those of rows that were changed instead.
    case objectIDs = 1
    /// How many rows were inserted, or changed instead.
    case count = 2
}
