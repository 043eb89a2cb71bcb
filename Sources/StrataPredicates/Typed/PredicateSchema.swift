/// The names that a predicate may use: the properties of an entity, as described by the layer that knows the model.
///
/// It is class-bound, because schemas refer to each other in cycles through their relationships.
package protocol PredicateSchema: AnyObject, Sendable {
    /// The entity's name, for error messages.
    var predicateEntityName: String { get }

    /// The property with a name, declared here or inherited; `nil` if there is none.
    func predicateProperty(named name: String) -> PredicateProperty?

    /// The number that distinguishes the model's entities in values; 0 if there is no inheritance.
    var predicateEntityNumber: Int { get }

    /// Another entity of the same model, by its name or that of its class; `nil` if there is none.
    func predicateSchema(named name: String) -> (any PredicateSchema)?

    /// Whether this is the other entity, or inherits from it.
    func isKind(of other: any PredicateSchema) -> Bool
}

extension PredicateSchema {
    package var predicateEntityNumber: Int { 0 }

    package func predicateSchema(named name: String) -> (any PredicateSchema)? { nil }

    package func isKind(of other: any PredicateSchema) -> Bool { self === other }
}

/// An entity that is used as a value in a predicate: `entity == %@`.
package protocol PredicateEntityReference {
    var predicateEntityName: String { get }
}

/// A live object of an entity, which has the properties of that entity and no others.
package protocol PredicateEntityMember {
    /// The value of a property.
    ///
    /// - Throws: ``PredicateEvaluationError`` if the object has no such property.
    func predicateValue(forKey key: String) throws -> Any?

    /// Whether the object is of the entity with this name, or with a class of this name, or of one that inherits from it.
    func isKind(ofEntityNamed name: String) -> Bool
}

/// A property of an entity, or of a composite attribute, as a predicate sees it.
package enum PredicateProperty: Sendable {
    case attribute(PredicateAttribute)
    /// A composite attribute.
    ///
    /// It has no value to compare with, but elements with values; it is nil if no element has one.
    case composite(any PredicateComposite)
    case toOne(PredicateRelationship)
    case toMany(PredicateRelationship)
    /// The property exists, but a store cannot read it: a transient attribute, a fetched property.
    case unsupported(reason: String)
}

/// The elements of a composite attribute.
package protocol PredicateComposite: Sendable {
    func predicateProperty(named name: String) -> PredicateProperty?

    /// The elements at any depth that are not composites themselves.
    var predicateLeaves: [PredicateAttribute] { get }
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
    /// The entity of an object.
    ///
    /// Every object has it beside its attributes.
    case entity
}

/// The token by which an attribute's value is read from a subject, and by which a store finds its column.
package struct PredicateAttribute: Hashable, Sendable {
    package let name: String
    package let type: PredicateAttributeType
    /// The number that the schema gave to the attribute.
    ///
    /// It has no meaning here.
    package let slot: Int

    package init(name: String, type: PredicateAttributeType, slot: Int) {
        self.name = name
        self.type = type
        self.slot = slot
    }

    /// The meaning of `entity` in a key path; the schema gives it no number.
    package static let entity = PredicateAttribute(name: "entity", type: .entity, slot: -1)
}

/// The token by which related objects are read from a subject, and by which a store finds the column or table.
package struct PredicateRelationship: Sendable {
    package let name: String
    /// The number that the schema gave to the relationship.
    ///
    /// It has no meaning here.
    package let slot: Int
    package let isToMany: Bool
    package let isOrdered: Bool
    /// Whether a related object can be deleted without a change of the relationship, because there is no inverse.
    package let mayDangle: Bool
    package let destination: any PredicateSchema

    package init(
        name: String,
        slot: Int,
        isToMany: Bool,
        isOrdered: Bool = false,
        mayDangle: Bool = false,
        destination: any PredicateSchema
    ) {
        self.mayDangle = mayDangle
        self.name = name
        self.slot = slot
        self.isToMany = isToMany
        self.isOrdered = isOrdered
        self.destination = destination
    }
}

extension PredicateRelationship {
    private static let castSlot = -1

    /// The step from an object to itself if it is of an entity or a sub-entity of it, and otherwise to nothing.
    package static func cast(to schema: any PredicateSchema) -> PredicateRelationship {
        PredicateRelationship(name: "CAST", slot: castSlot, isToMany: false, destination: schema)
    }

    /// Whether the step is a cast.
    ///
    /// Readers do not know casts.
    package var isCast: Bool { slot == Self.castSlot }
}
