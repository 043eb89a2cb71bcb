import Foundation
import Synchronization

/// How a slot's value lies in a row.
enum SlotKind: UInt8, Sendable {
    /// `Int16`, `Int32`, `Int64` and `Bool`: one word.
    case int
    /// `Double`, `Float`, and `Date` as seconds since the reference date: one word.
    case double
    /// A `String`, or a `URL` as its absolute text: two words, counted.
    case string
    /// `Data`, or a transformable's archive: two words, counted.
    case data
    /// Sixteen raw bytes: two words.
    case uuid
    /// A `Decimal`: three words.
    case decimal
    /// A to-one relationship: the key of the destination, then the number of its concrete entity.
    case reference

    /// The number of 64-bit words the value takes.
    var wordCount: Int {
        switch self {
        case .int, .double: 1
        case .string, .data, .uuid, .reference: 2
        case .decimal: 3
        }
    }

    /// Whether the words hold a counted reference, which the row must retain and release.
    var isCounted: Bool { self == .string || self == .data }
}

/// One stored property of an entity: a persistent attribute (or a leaf of a composite one) or a to-one relationship.
struct Slot: Sendable {
    /// The property's name; for the leaf of a composite attribute `composite.leaf`.
    let name: String
    /// The position among the entity's slots, the same in every sub-entity.
    let index: Int
    /// Where the value starts among the row's words.
    let word: Int
    let kind: SlotKind
    /// The attribute's type; `.undefinedAttributeType` for a relationship.
    let type: NSAttributeType
    /// The number of the destination entity as declared; 0 for an attribute.
    let destinationNumber: Int
    let isOptional: Bool
    /// The description, kept alive by the frozen model.
    unowned(unsafe) let property: NSPropertyDescription

    /// The attribute, for slots that hold one.
    var attribute: NSAttributeDescription? { property as? NSAttributeDescription }
    /// The relationship, for slots of kind ``SlotKind/reference``.
    var relationship: NSRelationshipDescription? { property as? NSRelationshipDescription }
    /// The relationship that leads back, kept alive as `property` is.
    unowned(unsafe) let inverse: NSRelationshipDescription?
}

/// One to-many relationship of an entity.
struct ToManySlot: Sendable {
    let name: String
    /// The position among the entity's to-many relationships, the same in every sub-entity.
    let index: Int
    let destinationNumber: Int
    let isOrdered: Bool
    let isTransient: Bool
    unowned(unsafe) let relationship: NSRelationshipDescription
    /// The relationship that leads back.
    unowned(unsafe) let inverse: NSRelationshipDescription?

    /// Whether its members' own rows tell all that is stored of it.
    var isToldByMembers: Bool {
        guard let inverse else { return false }
        return !inverse.isToMany && !isOrdered
    }
}

/// Where an object keeps the value of a property.
enum PropertyPlace: Sendable {
    /// In the row.
    case slot(Int)
    /// In the object's to-many states.
    case toMany(Int)
    /// In the object only: a transient attribute or to-one relationship.
    case transient(Int)
    /// Several slots that together are one composite attribute.
    case composite(Int)
    /// Nowhere: the answer of a fetch request.
    case fetched
}

/// A transient property: it lives in the object, never in a row.
struct TransientSlot: Sendable {
    let name: String
    let index: Int
    unowned(unsafe) let property: NSPropertyDescription
}

/// A composite attribute, flattened: its value is a dictionary of the elements' values.
struct CompositeSlot: Sendable {
    let name: String
    /// The slots of all leaves, in order of declaration.
    let leaves: [Int]
    unowned(unsafe) let property: NSCompositeAttributeDescription
}

/// A slot whose words are a counted reference, in a form that can be walked without counting anything.
struct CountedPlace {
    let slot: Int
    let word: Int
    /// Whether the value is a `String`, else `Data`.
    let isString: Bool

    /// The place of a slot; `nil` if its words are no counted reference.
    init?(_ slot: Slot) {
        guard slot.kind.isCounted else { return nil }
        self.slot = slot.index
        word = slot.word
        isString = slot.kind == .string
    }
}

/// What validation has to know of a slot, in a form that can be walked without counting anything.
struct SlotRule {
    let slot: Int
    /// Whether there has to be a value.
    let isRequired: Bool
    /// Whether the model has predicates for the value.
    let hasPredicates: Bool

    /// The rule for a slot; `nil` if any value will do, and none.
    init?(_ slot: Slot) {
        // The store computes what is derived.
        isRequired = !slot.isOptional && !(slot.property is NSDerivedAttributeDescription)
        hasPredicates = !slot.property.validationPredicates.isEmpty
        guard isRequired || hasPredicates else { return nil }
        self.slot = slot.index
    }
}

/// What making a row needs to know of its layout, in a form that can be passed on without counting anything.
struct UnsafeRowShape {
    let layout: Unmanaged<EntityLayout>
    let wordCount: Int
    let nullWords: Int
}

/// Where each property of one entity lies: computed once, when the entity's model is frozen.
///
/// A sub-entity's layout starts with its super-entity's, so code that knows a property's place in an entity finds it
/// at the same place in every sub-entity. Layouts live as long as the process, because rows and objects point at them
/// without counting: a reference count that every core writes to would serialise all readers on one cache line.
final class EntityLayout: Sendable {
    /// The entity.
    ///
    /// Frozen, so it may be read from any thread.
    unowned(unsafe) let entity: NSEntityDescription
    /// The entity's number in its frozen model, from 1.
    let number: Int
    /// Whether no object can be of this entity itself.
    let isAbstract: Bool
    /// The number of the root of the entity's hierarchy.
    let rootNumber: Int
    /// Numbers, unique in the process, for the root entity, the one below it, and this one: what a typed accessor
    /// caches a slot for.
    ///
    /// Each stands for a subtree, in which what its top declares lies at one place.
    let scopes: (root: UInt32, branch: UInt32, own: UInt32)

    let slots: [Slot]
    let toMany: [ToManySlot]
    let transients: [TransientSlot]
    let composites: [CompositeSlot]
    /// Where each property lies, by name.
    let places: [String: PropertyPlace]

    /// The number of words that hold null bits beyond the 32 of the row's header.
    let nullWords: Int
    /// The number of words behind the row's header.
    let wordCount: Int
    /// The slots whose words are counted references, in memory of its own: each row that goes asks for it.
    // Written by the initialiser alone.
    nonisolated(unsafe) let countedPlaces: UnsafeBufferPointer<CountedPlace>
    /// What validation has to look at, in memory of its own.
    // As above.
    nonisolated(unsafe) let rules: UnsafeBufferPointer<SlotRule>
    /// The to-many relationships whose number of members has limits.
    let limitedToMany: [ToManySlot]
    /// Whether the members of some to-many relationship have an order.
    let hasOrderedToMany: Bool
    /// The slots that hold to-one relationships.
    let referenceSlots: [Slot]
    /// How far below the root each property is declared, by name.
    private let declarationDepths: [String: Int]
    /// The class of the entity's objects.
    let objectClass = ObjectClassCache()
    /// Whether some slot is of a derived attribute, which the store computes.
    let hasDerivedSlots: Bool
    /// A row with the model's default values, from which inserted objects start.
    var defaults: Row { defaultRow.unsafelyUnwrapped }
    // Set once, at the end of the initialiser, before anybody else can see the layout.
    nonisolated(unsafe) private var defaultRow: Row?

    /// Lays out a whole hierarchy.
    ///
    /// - Parameter entities: The entities of one hierarchy, super-entities before sub-entities, already numbered.
    /// - Returns: The layouts, in the same order.
    static func layouts(ofHierarchy entities: [NSEntityDescription]) -> [EntityLayout] {
        var drafts: [Draft] = []
        var draftOf: [ObjectIdentifier: Draft] = [:]
        for entity in entities {
            let draft = Draft(
                entity: entity,
                parent: entity.superentity.flatMap { draftOf[ObjectIdentifier($0)] }
            )
            draftOf[ObjectIdentifier(entity)] = draft
            drafts.append(draft)
        }
        let slotCount = drafts.map(\.slots.count).max() ?? 0
        let nullWords = slotCount > 32 ? (slotCount - 32 + 63) / 64 : 0
        return drafts.map { EntityLayout(draft: $0, root: entities[0], nullWords: nullWords) }
    }

    private init(draft: Draft, root: NSEntityDescription, nullWords: Int) {
        entity = draft.entity
        number = draft.entity.entityNumber
        isAbstract = draft.entity.isAbstract
        rootNumber = root.entityNumber
        scopes = (draft.scopes[0], draft.scopes[min(1, draft.depth)], draft.scopes[draft.depth])
        self.nullWords = nullWords
        slots = draft.slots.map { $0.slot(shiftedBy: nullWords) }
        toMany = draft.toMany
        transients = draft.transients
        composites = draft.composites
        places = draft.places
        wordCount = nullWords + draft.wordCount
        countedPlaces = Self.allocate(slots.compactMap(CountedPlace.init))
        rules = Self.allocate(slots.compactMap(SlotRule.init))
        limitedToMany = toMany.filter { slot in
            let relationship = slot.relationship
            return !relationship.isOptional || relationship.minCount > 0 || relationship.maxCount > 1
        }
        hasOrderedToMany = toMany.contains(where: \.isOrdered)
        referenceSlots = slots.filter { $0.kind == .reference }
        declarationDepths = draft.declarationDepths
        hasDerivedSlots = slots.contains { $0.property is NSDerivedAttributeDescription }
        let defaults = Row(layout: self, key: 0)
        for slot in slots {
            guard let attribute = slot.attribute, let value = attribute.defaultValue else { continue }
            // A default of the wrong type was refused when the model was validated.
            try? defaults.setAny(value, slot)
        }
        defaultRow = defaults
    }

    /// Memory of its own, which lives as long as the layout: for ever.
    private static func allocate<Element>(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
        let memory = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = memory.initialize(from: elements)
        return UnsafeBufferPointer(memory)
    }

    /// The entity, for a call that shall not count it.
    var unmanagedEntity: Unmanaged<NSEntityDescription> {
        @inline(__always) get { Unmanaged.passUnretained(entity) }
    }

    /// How a row of this layout is made.
    var rowShape: UnsafeRowShape {
        UnsafeRowShape(layout: Unmanaged.passUnretained(self), wordCount: wordCount, nullWords: nullWords)
    }

    /// The slot of that name, if the property is stored in the row.
    func slot(named name: String) -> Slot? {
        guard case .slot(let index)? = places[name] else { return nil }
        return slots[index]
    }

    /// Whether slots of another entity of the hierarchy are this one's as well, inherited from one and the same.
    func shares(_ others: [Slot]) -> Bool {
        others.allSatisfy { $0.index < slots.count && slots[$0.index].property === $0.property }
    }

    /// The to-many relationship of that name.
    func toMany(named name: String) -> ToManySlot? {
        guard case .toMany(let index)? = places[name] else { return nil }
        return toMany[index]
    }

    /// The scope that a property's place may be cached for: the widest in which it is known to be the same.
    func scope(ofProperty name: String) -> UInt32 {
        switch declarationDepths[name] {
        case 0: scopes.root
        case 1: scopes.branch
        default: scopes.own
        }
    }

    /// Whether `scope` is of this entity or of one above it.
    @inline(__always)
    func isIn(scope: UInt32) -> Bool {
        scope == scopes.root || scope == scopes.branch || scope == scopes.own
    }
}

extension Slot {
    /// The same slot behind `words` words of null bits.
    fileprivate func slot(shiftedBy words: Int) -> Slot {
        Slot(
            name: name,
            index: index,
            word: word + words,
            kind: kind,
            type: type,
            destinationNumber: destinationNumber,
            isOptional: isOptional,
            property: property,
            inverse: inverse
        )
    }
}

/// A layout in the making: places are known, the number of null words (which depends on the whole hierarchy) is not.
private final class Draft {
    let entity: NSEntityDescription
    var slots: [Slot]
    var toMany: [ToManySlot]
    var transients: [TransientSlot]
    var composites: [CompositeSlot]
    var places: [String: PropertyPlace]
    var wordCount: Int
    /// The scopes of the entities from the root to this one.
    let scopes: [UInt32]
    var declarationDepths: [String: Int]
    var depth: Int { scopes.count - 1 }

    private static let lastScope = Mutex<UInt32>(0)

    init(entity: NSEntityDescription, parent: Draft?) {
        self.entity = entity
        let scope = Self.lastScope.withLock { last -> UInt32 in
            last += 1
            return last
        }
        scopes = (parent?.scopes ?? []) + [scope]
        declarationDepths = parent?.declarationDepths ?? [:]
        slots = parent?.slots ?? []
        toMany = parent?.toMany ?? []
        transients = parent?.transients ?? []
        composites = parent?.composites ?? []
        places = parent?.places ?? [:]
        wordCount = parent?.wordCount ?? 0
        let inherited = places
        for property in entity.properties.sorted(by: { $0.name < $1.name }) where inherited[property.name] == nil {
            add(property)
        }
        for name in places.keys where inherited[name] == nil { declarationDepths[name] = depth }
    }

    private func add(_ property: NSPropertyDescription) {
        switch property {
        case let relationship as NSRelationshipDescription where relationship.isToMany:
            places[property.name] = .toMany(toMany.count)
            toMany.append(
                ToManySlot(
                    name: property.name,
                    index: toMany.count,
                    destinationNumber: relationship.destinationEntity?.entityNumber ?? 0,
                    isOrdered: relationship.isOrdered,
                    isTransient: relationship.isTransient,
                    relationship: relationship,
                    inverse: relationship.inverseRelationship
                )
            )
            relationship.place = places[property.name]
        case is NSFetchedPropertyDescription:
            places[property.name] = .fetched
        case let property where property.isTransient:
            places[property.name] = .transient(transients.count)
            transients.append(TransientSlot(name: property.name, index: transients.count, property: property))
        case let relationship as NSRelationshipDescription:
            addSlot(
                relationship.name,
                .reference,
                .undefinedAttributeType,
                relationship,
                destination: relationship.destinationEntity?.entityNumber ?? 0
            )
            places[property.name] = .slot(slots.count - 1)
            relationship.place = places[property.name]
        case let composite as NSCompositeAttributeDescription:
            let first = slots.count
            addLeaves(of: composite, prefix: composite.name)
            places[property.name] = .composite(composites.count)
            composites.append(
                CompositeSlot(name: composite.name, leaves: Array(first..<slots.count), property: composite)
            )
        case let attribute as NSAttributeDescription:
            addSlot(attribute.name, SlotKind(attribute.attributeType), attribute.attributeType, attribute)
            places[property.name] = .slot(slots.count - 1)
        default:
            break
        }
    }

    private func addLeaves(of composite: NSCompositeAttributeDescription, prefix: String) {
        for element in composite.elements {
            let name = prefix + "." + element.name
            if let nested = element as? NSCompositeAttributeDescription {
                addLeaves(of: nested, prefix: name)
            } else {
                addSlot(name, SlotKind(element.attributeType), element.attributeType, element)
                places[name] = .slot(slots.count - 1)
            }
        }
    }

    private func addSlot(
        _ name: String,
        _ kind: SlotKind,
        _ type: NSAttributeType,
        _ property: NSPropertyDescription,
        destination: Int = 0
    ) {
        slots.append(
            Slot(
                name: name,
                index: slots.count,
                word: wordCount,
                kind: kind,
                type: type,
                destinationNumber: destination,
                isOptional: property.isOptional,
                property: property,
                inverse: (property as? NSRelationshipDescription)?.inverseRelationship
            )
        )
        wordCount += kind.wordCount
    }
}

extension SlotKind {
    /// The kind of words that an attribute of `type` takes.
    init(_ type: NSAttributeType) {
        switch type {
        case .integer16AttributeType, .integer32AttributeType, .integer64AttributeType, .booleanAttributeType:
            self = .int
        case .doubleAttributeType, .floatAttributeType, .dateAttributeType:
            self = .double
        case .stringAttributeType, .URIAttributeType:
            self = .string
        case .UUIDAttributeType:
            self = .uuid
        case .decimalAttributeType:
            self = .decimal
        default:
            self = .data
        }
    }
}
