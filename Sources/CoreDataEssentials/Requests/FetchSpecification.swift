import StrataPredicates
import StrataRows

/// The contents of a fetch request, without the type of its results.
///
/// A plain value, so that code that is not generic can take a fetch request, keep it, and change a copy of it.
package struct FetchSpecification {
    /// The entity to fetch, if it is known.
    package var entity: NSEntityDescription?

    /// The name of the entity, for a request that was made with a name only.
    package var entityName: String?

    /// The class whose entity is fetched, for a request that was made from a class only.
    package var managedClass: AnyClass?

    package var predicate: NSPredicate?
    package var sortDescriptors: [NSSortDescriptor]?
    package var fetchLimit = 0
    package var fetchOffset = 0
    package var fetchBatchSize = 0
    package var resultType: NSFetchRequestResultType = .managedObjectResultType
    package var includesSubentities = true
    package var includesPropertyValues = true
    package var includesPendingChanges = true
    package var returnsObjectsAsFaults = true
    package var returnsDistinctResults = false
    package var shouldRefreshRefetchedObjects = false
    package var relationshipKeyPathsForPrefetching: [String]? = []
    package var propertiesToFetch: [Any]?
    package var propertiesToGroupBy: [Any]?
    package var havingPredicate: NSPredicate?
    package var evaluationTimeLimit: TimeInterval?
    /// The lock that the fetch takes on the rows that it finds; `nil` for none.
    package var rowLocking: RowLocking?

    /// Makes an empty specification.
    package init() {}
}

/// A fetch request with any type of results.
package protocol AnyFetchRequest: NSPersistentStoreRequest {
    /// The contents of the request.
    var specification: FetchSpecification { get }
}
