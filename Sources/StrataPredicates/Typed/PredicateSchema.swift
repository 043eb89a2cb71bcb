/// What a predicate may name: the properties of an entity, as the layer that knows the model describes them.
///
/// Class-bound, because schemas point at each other in circles through their relationships.
package protocol PredicateSchema: AnyObject, Sendable {
    /// The entity's name, for error messages.
    var predicateEntityName: String { get }

    /// The property with a name, its own or inherited; `nil` if there is none.
    func predicateProperty(named name: String) -> PredicateProperty?
}

/// A property of an entity, or of a composite attribute, as a predicate sees it.
package enum PredicateProperty: Sendable {
    case attribute(PredicateAttribute)
    /// A composite attribute: no value by itself, but elements with values.
    case composite(any PredicateComposite)
    case toOne(PredicateRelationship)
    case toMany(PredicateRelationship)
    /// There is such a property, but nothing that a store could look at: a transient attribute, a fetched property.
    case unsupported(reason: String)
}

/// The elements of a composite attribute.
package protocol PredicateComposite: Sendable {
    func predicateProperty(named name: String) -> PredicateProperty?
}

/// The types of attributes.
package enum PredicateAttributeType: String, Hashable, Sendable {
    case bool
    case integer
    case double
    case decimal
    case date
    case string
    case uri
    case uuid
    case data
    case transformable
}

/// The token by which subjects are asked for an attribute's value, and by which a store finds its column.
package struct PredicateAttribute: Hashable, Sendable {
    package let name: String
    package let type: PredicateAttributeType
    /// The number that the schema gave the attribute; of no meaning here.
    package let slot: Int

    package init(name: String, type: PredicateAttributeType, slot: Int) {
        self.name = name
        self.type = type
        self.slot = slot
    }
}

/// The token by which subjects are asked for related objects, and by which a store finds the column or table.
package struct PredicateRelationship: Sendable {
    package let name: String
    /// The number that the schema gave the relationship; of no meaning here.
    package let slot: Int
    package let isToMany: Bool
    package let isOrdered: Bool
    package let destination: any PredicateSchema

    package init(name: String, slot: Int, isToMany: Bool, isOrdered: Bool = false, destination: any PredicateSchema) {
        self.name = name
        self.slot = slot
        self.isToMany = isToMany
        self.isOrdered = isOrdered
        self.destination = destination
    }
}
