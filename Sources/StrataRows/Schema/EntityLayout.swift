import StrataPredicates

/// The parts of a layout that are needed to make a row, in a form that can be passed on without counting references.
public struct UnsafeRowShape {
    /// The layout, which is immortal.
    public let layout: Unmanaged<EntityLayout>
    /// The number of words behind the row's header.
    public let wordCount: Int
    /// The number of words with null bits beyond those of the header.
    public let nullWords: Int

    @usableFromInline
    init(layout: Unmanaged<EntityLayout>, wordCount: Int, nullWords: Int) {
        self.layout = layout
        self.wordCount = wordCount
        self.nullWords = nullWords
    }
}

/// One entity of a schema, and the place of each of its properties: computed once, when a model is frozen.
///
/// A sub-entity's layout starts with its super-entity's, so code that knows a property's place in an entity finds it
/// at the same place in every sub-entity. Layouts live as long as the process, because rows and objects point at them
/// without counting: a reference count that every core writes to would serialise all readers on one cache line.
public final class EntityLayout: Sendable {
    // MARK: - The entity

    package let name: String
    /// The entity's number in its schema, from 1.
    package let number: Int
    /// The class of the entity's objects, as the model names it.
    package let className: String?
    /// Whether only sub-entities have objects.
    package let isAbstract: Bool
    /// The number of the root of the entity's hierarchy.
    package let rootNumber: Int
    /// The numbers of the entity and of all its sub-entities.
    ///
    /// They are consecutive.
    package let subtree: ClosedRange<Int>
    /// The numbers in `subtree` of entities that are not abstract.
    package let concreteNumbers: [Int]
    /// The super-entity.
    package unowned(unsafe) let parent: EntityLayout?
    /// All relationships by name, including inherited and transient ones.
    package let relationships: [String: Relationship]
    /// The uniqueness constraints that the entity declares, as far as rows have all their values.
    package let uniquenessConstraints: [UniquenessConstraint]
    /// The indexes that the entity declares.
    package let indexes: [IndexDefinition]
    package let versionHash: Data
    /// The version hash by a former rule, if that gave another one.
    ///
    /// Stores that have it are of this version.
    package let formerVersionHash: Data?
    /// An object that the layer above keeps with the entity, and keeps alive.
    package unowned(unsafe) let companion: AnyObject & Sendable
    /// Numbers, unique in the process, for the root entity, the one below it, and this one.
    ///
    /// A typed accessor caches a slot for one of them. Each stands for a subtree. A property that the top of the
    /// subtree declares has the same place in all of it.
    public let scopes: (root: UInt32, branch: UInt32, own: UInt32)

    /// The schema that the entity belongs to.
    package var schema: Schema { joinedSchema.unsafelyUnwrapped }
    // It is set once, at the end of the making of the schema, before other code can see the layout.
    nonisolated(unsafe) private unowned(unsafe) var joinedSchema: Schema?

    // MARK: - Its properties

    package let slots: [Slot]
    package let toMany: [ToManySlot]
    package let transients: [TransientSlot]
    package let composites: [CompositeSlot]
    /// The slots of the innermost optional composite attribute around an element, by the index of the element's slot.
    ///
    /// If all of these slots are nil, the attribute has no value, and then none of its elements is required.
    package let optionalElements: [Int: Range<Int>]
    /// The place of each property, by name.
    package let places: [String: PropertyPlace]

    /// The number of words that hold null bits beyond the 32 of the row's header.
    public let nullWords: Int
    /// The number of words behind the row's header.
    public let wordCount: Int
    // Only the initialiser writes these.
    /// The slots whose words are counted references, in separate memory, because each row that is freed reads it.
    nonisolated(unsafe) public let countedPlaces: UnsafeBufferPointer<CountedPlace>
    /// The rules that validation checks, in separate memory.
    // Only the initialiser writes it.
    nonisolated(unsafe) package let rules: UnsafeBufferPointer<SlotRule>
    /// The slots whose value may be NaN, in separate memory, because each save of an object reads it.
    // Only the initialiser writes it.
    nonisolated(unsafe) package let numberPlaces: UnsafeBufferPointer<NumberPlace>
    /// The to-many relationships whose number of members has limits.
    package let limitedToMany: [ToManySlot]
    /// Whether the members of any to-many relationship have an order.
    package let hasOrderedToMany: Bool
    /// The slots that hold to-one relationships.
    package let referenceSlots: [Slot]
    /// The number of levels below the root at which each property is declared, by name.
    private let declarationDepths: [String: Int]
    /// Whether any slot is of a derived attribute, which the store computes.
    package let hasDerivedSlots: Bool
    /// A row with the model's default values, from which inserted objects start.
    @inlinable
    public var defaults: Row { defaultRow.unsafelyUnwrapped }
    // It is set once, at the end of the initialiser, before other code can see the layout.
    @usableFromInline nonisolated(unsafe) var defaultRow: Row?
    // These are seldom used, so they come after the members that are read for each object.
    /// A row with all default values, including those of elements whose composite attribute starts without a value.
    package var elementDefaults: Row { elementDefaultRow.unsafelyUnwrapped }
    // It is set once, at the end of the initialiser.
    nonisolated(unsafe) private var elementDefaultRow: Row?
    /// The texts of the entity's user info.
    package let userInfo: [String: String]
    /// The texts of the user info of properties that have some, by name, including those of super-entities.
    package let propertyInfo: [String: [String: String]]
    /// The places of the slots by name, for code that looks a name up for each value.
    let placesByName: NamedPlaces

    init(_ draft: EntityDraft, parent: EntityLayout?, subtree: ClosedRange<Int>, concreteNumbers: [Int], nullWords: Int)
    {
        let definition = draft.definition
        name = definition.name
        number = draft.number
        className = definition.className
        isAbstract = definition.isAbstract
        rootNumber = draft.rootNumber
        self.subtree = subtree
        self.concreteNumbers = concreteNumbers
        self.parent = parent
        relationships = draft.relationships
        indexes = definition.indexes
        userInfo = definition.userInfo
        propertyInfo = draft.propertyInfo
        versionHash = definition.versionHash
        formerVersionHash = definition.formerVersionHash
        companion = definition.companion
        scopes = (draft.scopes[0], draft.scopes[min(1, draft.depth)], draft.scopes[draft.depth])
        self.nullWords = nullWords
        slots = draft.slots.map { $0.shifted(by: nullWords) }
        toMany = draft.toMany
        transients = draft.transients
        composites = draft.composites
        optionalElements = draft.optionalElements
        places = draft.places
        placesByName = NamedPlaces(slots)
        let stored = slots
        uniquenessConstraints = definition.uniquenessConstraints.compactMap { names in
            let places = names.map { draft.places[$0]?.slots(draft.composites) ?? [] }
            guard !places.isEmpty, places.allSatisfy({ !$0.isEmpty }) else { return nil }
            return UniquenessConstraint(properties: names, slots: places.joined().map { stored[$0] })
        }
        wordCount = nullWords + draft.wordCount
        countedPlaces = Self.allocate(slots.compactMap(CountedPlace.init))
        rules = Self.allocate(slots.compactMap { SlotRule($0, hasRules: draft.rules[$0.index]) })
        numberPlaces = Self.allocate(slots.compactMap(NumberPlace.init))
        limitedToMany = toMany.filter { slot in
            let relationship = slot.relationship
            return relationship.minCount > 0 || relationship.maxCount > 1
        }
        hasOrderedToMany = toMany.contains(where: \.isOrdered)
        referenceSlots = slots.filter { $0.kind == .reference }
        declarationDepths = draft.declarationDepths
        hasDerivedSlots = slots.contains(where: \.isDerived)
        defaultRow = row(of: draft.defaultValues.filter(\.isInitial))
        elementDefaultRow = row(of: draft.defaultValues)
    }

    private func row(of values: [(slot: Int, value: Any, isInitial: Bool)]) -> Row {
        let row = Row(layout: self, key: 0)
        for (index, value, _) in values {
            // A default of the wrong type was refused when the model was validated.
            try? row.setAny(value, slots[index])
        }
        return row
    }

    func join(_ schema: Schema) { joinedSchema = schema }

    /// Allocates separate memory, which lives as long as the layout, that is for ever.
    private static func allocate<Element>(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
        let memory = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = memory.initialize(from: elements)
        return UnsafeBufferPointer(memory)
    }

    /// The facts that are needed to make a row of this layout.
    @inlinable
    public var rowShape: UnsafeRowShape {
        UnsafeRowShape(layout: Unmanaged.passUnretained(self), wordCount: wordCount, nullWords: nullWords)
    }

    /// The slot of that name, if the property is stored in the row.
    package func slot(named name: String) -> Slot? {
        guard case .slot(let index)? = places[name] else { return nil }
        return slots[index]
    }

    /// The slots of the property of that name: several of a composite attribute, none if the row does not store it.
    package func slots(named name: String) -> [Slot] {
        places[name]?.slots(composites).map { slots[$0] } ?? []
    }

    /// The slots that the entity declares itself.
    package var ownSlots: ArraySlice<Slot> { slots.dropFirst(parent?.slots.count ?? 0) }

    /// The to-many relationships that the entity declares itself.
    package var ownToMany: ArraySlice<ToManySlot> { toMany.dropFirst(parent?.toMany.count ?? 0) }

    /// The entity at the top of the hierarchy.
    package var root: EntityLayout { schema.entities[rootNumber - 1] }

    /// Whether this is `other` or one of its sub-entities.
    package func isKind(of other: EntityLayout) -> Bool {
        self === other || (schema === other.schema && other.subtree.contains(number))
    }

    /// Whether slots of another entity of the hierarchy are inherited from the same declarations as this entity's own.
    package func shares(_ others: [Slot]) -> Bool {
        others.allSatisfy { $0.index < slots.count && slots[$0.index].description === $0.description }
    }

    /// The to-many relationship of that name.
    package func toMany(named name: String) -> ToManySlot? {
        guard case .toMany(let index)? = places[name] else { return nil }
        return toMany[index]
    }

    /// The scope that a property's place may be cached for: the widest in which the place is known to be the same.
    package func scope(ofProperty name: String) -> UInt32 {
        switch declarationDepths[name] {
        case 0: scopes.root
        case 1: scopes.branch
        default: scopes.own
        }
    }

    /// Whether `scope` belongs to this entity or to one above it.
    @inlinable
    @inline(__always)
    public func isIn(scope: UInt32) -> Bool {
        scope == scopes.root || scope == scopes.branch || scope == scopes.own
    }
}
