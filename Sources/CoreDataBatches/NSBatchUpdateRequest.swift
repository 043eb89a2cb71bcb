import CoreDataEssentials
import StrataPredicates

/// Changes properties of many rows in the store, with one statement and without making objects.
///
/// See <doc:Batches>.
///
/// ```swift
/// let update = NSBatchUpdateRequest(entityName: "Venue")
/// update.predicate = NSPredicate(format: "price > %d", 100)
/// update.propertiesToUpdate = ["openedAt": Date(), "price": NSExpression(format: "price - 10")]
/// try context.execute(update)
/// ```
///
/// Objects that contexts have loaded keep their values until they are refreshed or the result is merged. Contexts that
/// follow changes (``NSManagedObjectContext/automaticallyMergesChangesFromParent``) merge it automatically. The
/// versions of the rows advance, so a save based on an older version finds a conflict. Nothing is validated, and no
/// hook is called.
///
/// A request is not thread-safe, but is not tied to a queue.
open class NSBatchUpdateRequest: NSPersistentStoreRequest {
    private var target = NamedEntity("")

    /// Creates a request for the entity with a name, which is looked up when the request is executed.
    ///
    /// ```swift
    /// let update = NSBatchUpdateRequest(entityName: "Venue")
    /// update.propertiesToUpdate = ["price": 0]
    /// try context.execute(update)
    /// ```
    ///
    /// - Parameter entityName: The name of an entity of the context's model.
    public init(entityName: String) {
        target = NamedEntity(entityName)
        super.init()
    }

    /// Creates a request for an entity.
    ///
    /// - Parameter entity: An entity of the context's model.
    public init(entity: NSEntityDescription) {
        target = NamedEntity(entity)
        super.init()
    }

    /// Creates a request without an entity, which every store refuses.
    @available(*, deprecated, message: "Use init(entityName:) or init(entity:)")
    public required init() { super.init() }

    /// Always ``NSPersistentStoreRequestType/batchUpdateRequestType``.
    open override var requestType: NSPersistentStoreRequestType { .batchUpdateRequestType }

    /// The entity whose rows are changed.
    ///
    /// If the request was made with a name and has not been executed, then the program stops.
    open var entity: NSEntityDescription {
        guard let entity = target.entity else {
            fatalError(
                "CoreData: the entity \"\(entityName)\" of a batch update is not known before the request is executed; use entityName."
            )
        }
        return entity
    }

    /// The name of the entity.
    open var entityName: String { target.name }

    /// The predicate for the rows to change.
    ///
    /// Default `nil`, for all rows of the entity. Unsaved changes are ignored.
    ///
    /// ```swift
    /// let update = NSBatchUpdateRequest(entityName: "Venue")
    /// update.predicate = NSPredicate(format: "city.name == %@", "Porto")
    /// update.propertiesToUpdate = ["price": 0]
    /// try context.execute(update)
    /// ```
    open var predicate: NSPredicate?

    /// Whether rows of sub-entities are changed too.
    ///
    /// Default `true`.
    open var includesSubentities = true

    /// The new values, by the names or descriptions of properties.
    ///
    /// Default `nil`, which makes the request fail. A value is a constant of the attribute's type; an `NSExpression` on
    /// the row, evaluated for each row before it changes; or `NSNull` for nil. A to-one relationship takes an object or
    /// an `NSManagedObjectID`. To-many relationships, derived attributes and transient attributes are refused.
    ///
    /// ```swift
    /// let update = NSBatchUpdateRequest(entityName: "Venue")
    /// update.propertiesToUpdate = ["price": NSExpression(format: "price + 1"), "openedAt": NSNull()]
    /// try context.execute(update)
    /// ```
    open var propertiesToUpdate: [AnyHashable: Any]?

    /// The processor time, in seconds, that each store may take.
    ///
    /// An addition to Apple's API, like ``NSFetchRequest/evaluationTimeLimit``. Default `nil`: the limit is 10 seconds
    /// for a predicate or a new value that can run without end, and there is no limit for others. A batch that would
    /// take longer throws 134070 and changes nothing.
    open var evaluationTimeLimit: TimeInterval?

    /// The contents of the result.
    ///
    /// Default ``NSBatchUpdateRequestResultType/statusOnlyResultType``.
    ///
    /// ```swift
    /// let update = NSBatchUpdateRequest(entityName: "Venue")
    /// update.propertiesToUpdate = ["price": 0]
    /// update.resultType = .updatedObjectIDsResultType
    /// let ids = (try context.execute(update) as? NSBatchUpdateResult)?.result as? [NSManagedObjectID] ?? []
    /// NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: ids], into: [context])
    /// ```
    open var resultType: NSBatchUpdateRequestResultType = .statusOnlyResultType

    /// Returns a copy that can be changed.
    ///
    /// - Parameter zone: Ignored.
    /// - Returns: A request of the same class.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = super.copy(with: zone)
        (copy as? NSBatchUpdateRequest)?.copyOwnProperties(from: self)
        return copy
    }

    /// Copies the properties that this class declares.
    private func copyOwnProperties(from other: NSBatchUpdateRequest) {
        target = other.target
        predicate = other.predicate
        includesSubentities = other.includesSubentities
        propertiesToUpdate = other.propertiesToUpdate
        evaluationTimeLimit = other.evaluationTimeLimit
        resultType = other.resultType
    }

    /// Notes the entity that was found for the name.
    func resolve(to entity: NSEntityDescription) { target.resolve(to: entity) }

    /// The rows to change, in the form of a fetch specification.
    var specification: FetchSpecification {
        var specification = target.specification
        specification.predicate = predicate
        specification.includesSubentities = includesSubentities
        specification.evaluationTimeLimit = evaluationTimeLimit
        return specification
    }

    /// The entity and the properties, without values.
    open override var description: String {
        let names = (propertiesToUpdate ?? [:]).keys.map(Self.name).sorted().joined(separator: ", ")
        return "NSBatchUpdateRequest (\(entityName): \(names)\(predicate.map { " where \($0)" } ?? ""))"
    }

    /// The property name of a key of ``propertiesToUpdate``.
    static func name(_ key: AnyHashable) -> String {
        switch key.base {
        case let name as String: name
        case let property as NSPropertyDescription: property.name
        default: "\(key.base)"
        }
    }
}

/// The contents of the result of a batch update.
///
/// ```swift
/// let update = NSBatchUpdateRequest(entityName: "Venue")
/// update.propertiesToUpdate = ["price": 5]
/// update.resultType = .updatedObjectIDsResultType
/// let ids = (try context.execute(update) as? NSBatchUpdateResult)?.result as? [NSManagedObjectID]
/// ```
public enum NSBatchUpdateRequestResultType: UInt, Sendable {
    /// Whether it succeeded.
    case statusOnlyResultType = 0
    /// The IDs of the rows that were changed.
    case updatedObjectIDsResultType = 1
    /// The number of rows that were changed.
    case updatedObjectsCountResultType = 2
}
