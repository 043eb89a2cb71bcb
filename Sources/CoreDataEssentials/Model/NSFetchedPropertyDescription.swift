import StrataPredicates

/// A one-way query that looks like a relationship.
///
/// Its value is an array, fetched when it is first read.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let neighbours = NSFetchedPropertyDescription()
/// neighbours.name = "neighbours"
/// let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
/// request.predicate = NSPredicate(format: "city == $FETCH_SOURCE.city")
/// neighbours.fetchRequest = request
/// ```
open class NSFetchedPropertyDescription: NSPropertyDescription, @unchecked Sendable {
    // @unchecked Sendable: like the superclass; the request is frozen together with the property.

    /// The query.
    ///
    /// Its predicate may use `$FETCH_SOURCE` (the object) and `$FETCHED_PROPERTY` (this description).
    open var fetchRequest: NSFetchRequest<NSFetchRequestResult>? { willSet { assertMutable() } }

    override func adopt(_ other: NSPropertyDescription) {
        super.adopt(other)
        guard let other = other as? NSFetchedPropertyDescription else { return }
        fetchRequest = other.fetchRequest?.duplicate()
    }

    override func freeze() {
        fetchRequest?.freeze()
        super.freeze()
    }
}
