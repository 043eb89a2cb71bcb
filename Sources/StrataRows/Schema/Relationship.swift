/// The action on the objects at the other end of a relationship when an object is deleted.
///
/// The raw values are those of `NSDeleteRule`.
package enum DeleteRule: UInt, Sendable {
    case noAction = 0
    case nullify = 1
    case cascade = 2
    case deny = 3
}

/// A relationship as rows and stores know it: one object for the entity that declares it and all that inherit it.
///
/// It is immortal, like the schema.
public final class Relationship: Sendable {
    package let name: String
    package let isToMany: Bool
    package let isOrdered: Bool
    package let isOptional: Bool
    package let isTransient: Bool
    package let deleteRule: DeleteRule
    /// The fewest and the most objects at the other end; 0 for no limit.
    package let minCount: Int
    package let maxCount: Int
    /// The description that the layer above has for the relationship, and keeps alive.
    package unowned(unsafe) let description: AnyObject & Sendable

    // It is set once, while the schema is made and no other code sees it.
    nonisolated(unsafe) private unowned(unsafe) var declaringEntity: EntityLayout?
    nonisolated(unsafe) private unowned(unsafe) var destinationEntity: EntityLayout?
    nonisolated(unsafe) private unowned(unsafe) var inverseRelationship: Relationship?
    nonisolated(unsafe) private var propertyPlace: PropertyPlace?

    init(_ name: String, isOptional: Bool, definition: RelationshipDefinition, description: AnyObject & Sendable) {
        self.name = name
        self.isOptional = isOptional
        self.description = description
        isToMany = definition.isToMany
        isOrdered = definition.isOrdered
        isTransient = definition.isTransient
        deleteRule = definition.deleteRule
        minCount = definition.minCount
        maxCount = definition.maxCount
    }

    func link(declaredBy entity: EntityLayout, to destination: EntityLayout?, inverse: Relationship?) {
        declaringEntity = entity
        destinationEntity = destination
        inverseRelationship = inverse
    }

    func place(at place: PropertyPlace) { propertyPlace = place }

    /// The entity that declares the relationship.
    package var entity: EntityLayout { declaringEntity.unsafelyUnwrapped }

    /// The entity of the objects at the other end, as declared.
    ///
    /// It is `nil` for a relationship without one. In a model in use, only transient relationships may lack it.
    package var destination: EntityLayout? { destinationEntity }

    /// The relationship that leads back.
    package var inverse: Relationship? { inverseRelationship }

    /// The place where objects keep the relationship, in all sub-entities too; `nil` if no layout has a place for it.
    package var place: PropertyPlace? { propertyPlace }

    /// Whether this side of a many-to-many relationship is the one whose memberships are given to the store.
    package var isCanonical: Bool {
        guard let inverse else { return true }
        return (entity.number, name) <= (inverse.entity.number, inverse.name)
    }

    /// Whether a destination can be deleted without a change of the relationship.
    package var mayDangle: Bool { inverse.map { $0.deleteRule == .noAction } ?? true }
}
