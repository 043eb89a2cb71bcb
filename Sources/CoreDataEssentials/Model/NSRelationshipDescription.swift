import StrataPredicates
import StrataRows

/// The action on the objects at the other end of a relationship when an object is deleted.
///
/// ```swift
/// entity.managedObjectModel.entitiesByName["City"]?.relationshipsByName["venues"]?.deleteRule == .cascadeDeleteRule
/// ```
public enum NSDeleteRule: UInt, Sendable, CaseIterable {
    /// Leaves the other side as it is, even if it then points at nothing.
    case noActionDeleteRule = 0

    /// Clears the inverse relationship of the objects at the other end.
    case nullifyDeleteRule = 1

    /// Deletes the objects at the other end too.
    case cascadeDeleteRule = 2

    /// Refuses the deletion, with error 1600, while the relationship is not empty.
    case denyDeleteRule = 3
}

/// A relationship from objects of one entity to objects of another, or of the same.
///
/// Any thread may read it once a coordinator uses its model; before that it is not thread-safe.
///
/// ```swift
/// let (venue, city) = (NSEntityDescription(), NSEntityDescription())
/// let venues = NSRelationshipDescription()
/// (venues.name, venues.destinationEntity, venues.deleteRule) = ("venues", venue, .cascadeDeleteRule)
/// let home = NSRelationshipDescription()
/// (home.name, home.destinationEntity, home.maxCount) = ("city", city, 1)
/// (venues.inverseRelationship, home.inverseRelationship) = (home, venues)
/// ```
open class NSRelationshipDescription: NSPropertyDescription, LinkTarget, @unchecked Sendable {
    // @unchecked Sendable: like the superclass; every stored property is guarded by `assertMutable`, and any thread may
    // safely read the two links.

    let anchor = LinkAnchor()
    private let destination = ModelLink<NSEntityDescription>()
    private let inverse = ModelLink<NSRelationshipDescription>()

    /// The entity of the objects at the other end.
    ///
    /// The reference does not own the entity: the model keeps it alive.
    ///
    /// ```swift
    /// print(entity.relationshipsByName["city"]?.destinationEntity?.name ?? "")
    /// ```
    open var destinationEntity: NSEntityDescription? {
        get { destination.target }
        set {
            assertMutable()
            destination.target = newValue
        }
    }

    /// The inverse relationship.
    ///
    /// Set both sides. The reference does not own the inverse: the model keeps it alive.
    ///
    /// ```swift
    /// print(entity.relationshipsByName["city"]?.inverseRelationship?.name ?? "")
    /// ```
    open var inverseRelationship: NSRelationshipDescription? {
        get { inverse.target }
        set {
            assertMutable()
            inverse.target = newValue
        }
    }

    /// The maximum number of objects at the other end: 1 makes a to-one relationship, 0 a to-many without limit.
    ///
    /// Default 0.
    ///
    /// ```swift
    /// let home = NSRelationshipDescription()
    /// (home.name, home.maxCount) = ("city", 1)
    /// print(home.isToMany)  // false
    /// ```
    open var maxCount: Int = 0 { willSet { assertMutable() } }

    /// The minimum number of objects at the other end; validation checks it if the relationship is not empty.
    ///
    /// Default 0.
    open var minCount: Int = 0 { willSet { assertMutable() } }

    /// The action on the objects at the other end when an object is deleted.
    ///
    /// Default: their inverse is cleared.
    ///
    /// ```swift
    /// let venues = NSRelationshipDescription()
    /// (venues.name, venues.deleteRule) = ("venues", .cascadeDeleteRule)
    /// ```
    open var deleteRule: NSDeleteRule = .nullifyDeleteRule { willSet { assertMutable() } }

    /// Whether the objects of a to-many relationship keep an order.
    ///
    /// Default `false`.
    open var isOrdered: Bool = false { willSet { assertMutable() } }

    /// Whether there may be more than one object at the other end: ``maxCount`` is not 1.
    open var isToMany: Bool { maxCount != 1 }

    override func adopt(_ other: NSPropertyDescription) {
        super.adopt(other)
        guard let other = other as? NSRelationshipDescription else { return }
        destinationEntity = other.destinationEntity
        inverseRelationship = other.inverseRelationship
        maxCount = other.maxCount
        minCount = other.minCount
        deleteRule = other.deleteRule
        isOrdered = other.isOrdered
    }

    override func freeze() {
        destination.freeze()
        inverse.freeze()
        super.freeze()
    }
}
