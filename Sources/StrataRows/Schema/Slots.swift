import Foundation

/// One stored property of an entity: a persistent attribute (or a leaf of a composite one) or a to-one relationship.
public struct Slot: Sendable {
    /// The property's name; for the leaf of a composite attribute `composite.leaf`.
    public let name: String
    /// The position among the entity's slots, the same in every sub-entity.
    public let index: Int
    /// The first of the value's words in the row.
    public let word: Int
    /// The form of the value in a row.
    public let kind: SlotKind
    /// The attribute's type; `.undefined` for a relationship.
    public let type: AttributeType
    /// Whether the value may be nil.
    public let isOptional: Bool
    /// The number of the destination entity as declared; 0 for an attribute.
    public let destinationNumber: Int
    /// The relationship, for slots of kind ``SlotKind/reference``.
    public unowned(unsafe) let relationship: Relationship?
    /// The facts about an attribute besides its type; `nil` for a relationship.
    public unowned(unsafe) let traits: AttributeTraits?
    /// The description that the layer above has for the property, and keeps alive.
    public unowned(unsafe) let description: AnyObject & Sendable

    /// The relationship that leads back.
    public var inverse: Relationship? { relationship?.inverse }
    /// Whether the store computes the value.
    public var isDerived: Bool { traits?.isDerived ?? false }
    /// Whether a large value may be kept in a separate file.
    public var allowsExternalStorage: Bool { traits?.allowsExternalStorage ?? false }
    /// Whether the history keeps the value of a deleted object.
    public var keepsValueInHistory: Bool { traits?.keepsValueInHistory ?? false }

    /// The same slot, moved behind `words` words of null bits.
    func shifted(by words: Int) -> Slot {
        Slot(
            name: name,
            index: index,
            word: word + words,
            kind: kind,
            type: type,
            isOptional: isOptional,
            destinationNumber: destinationNumber,
            relationship: relationship,
            traits: traits,
            description: description
        )
    }
}

/// The facts about a stored attribute besides its type.
///
/// They are immortal, like the schema.
public final class AttributeTraits: Sendable {
    package let isDerived: Bool
    /// How the store computes the value; `nil` if the attribute is not derived, or if no store can compute it.
    package let derivation: Derivation?
    package let allowsExternalStorage: Bool
    package let keepsValueInHistory: Bool
    /// Whether the model has predicates that a value must fulfil.
    package let hasRules: Bool

    init(_ definition: AttributeDefinition) {
        isDerived = definition.isDerived
        derivation = definition.derivation.flatMap { Derivation($0) }
        allowsExternalStorage = definition.allowsExternalStorage
        keepsValueInHistory = definition.keepsValueInHistory
        hasRules = definition.hasRules
    }
}

/// One to-many relationship of an entity.
package struct ToManySlot: Sendable {
    package let name: String
    /// The position among the entity's to-many relationships, the same in every sub-entity.
    package let index: Int
    package let destinationNumber: Int
    package let isOrdered: Bool
    package let isTransient: Bool
    package unowned(unsafe) let relationship: Relationship

    /// The relationship that leads back.
    package var inverse: Relationship? { relationship.inverse }

    /// Whether the rows of the members hold all that is stored of the relationship.
    package var isToldByMembers: Bool {
        guard let inverse else { return false }
        return !inverse.isToMany && !isOrdered
    }
}

/// The place where an object keeps the value of a property.
package enum PropertyPlace: Sendable {
    /// A slot of the row.
    case slot(Int)
    /// One of the object's to-many states.
    case toMany(Int)
    /// A place in the object only, for a transient attribute or to-one relationship.
    case transient(Int)
    /// Several slots that together are one composite attribute.
    case composite(Int)
    /// No place: the property is the answer of a fetch request.
    case fetched

    /// The positions of the slots that hold the value: several of a composite attribute, none if no row has it.
    func slots(_ composites: [CompositeSlot]) -> [Int] {
        switch self {
        case .slot(let index): [index]
        case .composite(let index): composites[index].leaves
        case .toMany, .transient, .fetched: []
        }
    }
}

/// A transient property: it lives in the object, never in a row.
package struct TransientSlot: Sendable {
    package let name: String
    package let index: Int
    /// The relationship, if it is one.
    package unowned(unsafe) let relationship: Relationship?
    package unowned(unsafe) let description: AnyObject & Sendable
}

/// A composite attribute, flattened: its value is a dictionary of the elements' values.
package struct CompositeSlot: Sendable {
    package let name: String
    /// The slots of all leaves, in order of declaration.
    package let leaves: [Int]
    /// Whether the history keeps the values of deleted objects.
    package let keepsValueInHistory: Bool
    package unowned(unsafe) let description: AnyObject & Sendable
}

/// A slot whose words are a counted reference, in a form that can be read in a loop without counting references.
public struct CountedPlace {
    /// The slot's position.
    public let slot: Int
    /// The first of the value's words in the row.
    public let word: Int
    /// Whether the value is a `String`; otherwise it is `Data`.
    public let isString: Bool

    /// The place of a slot; `nil` if its words are not a counted reference.
    @inlinable
    public init?(_ slot: Slot) {
        guard slot.kind.isCounted else { return nil }
        self.slot = slot.index
        word = slot.word
        isString = slot.kind == .string
    }
}

/// The facts about a slot that validation needs, in a form that can be read in a loop without counting references.
package struct SlotRule {
    package let slot: Int
    /// Whether a value is required.
    package let isRequired: Bool
    /// Whether the model has predicates for the value.
    package let hasPredicates: Bool

    /// The rule for a slot; `nil` if any value is valid, and so is nil.
    init?(_ slot: Slot, hasRules: Bool) {
        // The store computes derived attributes.
        isRequired = !slot.isOptional && !slot.isDerived
        hasPredicates = hasRules
        guard isRequired || hasPredicates else { return nil }
        self.slot = slot.index
    }
}

/// A slot whose value can be NaN, in a form that can be read in a loop without counting references.
package struct NumberPlace {
    package let slot: Int
    private let word: Int
    private let isDecimal: Bool

    /// The place of a slot; `nil` if none of its values can be NaN, or if the store computes it.
    init?(_ slot: Slot) {
        guard !slot.isDerived, slot.kind == .double || slot.kind == .decimal else { return nil }
        self.slot = slot.index
        word = slot.word
        isDecimal = slot.kind == .decimal
    }

    /// Whether a row has NaN in the slot.
    package func isNaN(in row: UnsafeRow) -> Bool {
        guard !row.isNull(slot) else { return false }
        return isDecimal ? row.load(Decimal.self, word).isNaN : row.load(Double.self, word).isNaN
    }
}

extension Row {
    /// Whether a slot has NaN.
    package func isNaN(_ slot: Slot) -> Bool {
        guard let place = NumberPlace(slot) else { return false }
        return withExtendedLifetime(buffer) { place.isNaN(in: unsafe) }
    }

    /// The first slot with NaN, which no store keeps; `nil` if there is none.
    package var slotWithoutNumber: Slot? {
        let layout = layout
        return withExtendedLifetime(buffer) {
            let row = unsafe
            return layout.numberPlaces.first { $0.isNaN(in: row) }.map { layout.slots[$0.slot] }
        }
    }
}
