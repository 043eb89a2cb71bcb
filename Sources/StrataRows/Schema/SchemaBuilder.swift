import StrataLocks
import Synchronization

/// Makes the layouts of a schema.
///
/// It makes relationships first, and then the places of properties, one hierarchy after the other. The layouts come
/// last, because they depend on the number of slots in the whole hierarchy.
struct SchemaBuilder {
    private let definitions: [EntityDefinition]
    /// The relationships that each entity declares, indexed by the entity's number less one.
    private let declared: [[String: Relationship]]

    init(_ definitions: [EntityDefinition]) {
        self.definitions = definitions
        declared = definitions.map { entity in
            var relationships: [String: Relationship] = [:]
            for property in entity.properties {
                guard case .relationship(let definition) = property.kind else { continue }
                let relationship = Relationship(
                    property.name,
                    isOptional: property.isOptional,
                    definition: definition,
                    description: property.description
                )
                // It is immortal, like the layouts.
                relationships[property.name] = Unmanaged.passRetained(relationship).takeUnretainedValue()
            }
            return relationships
        }
    }

    func build() -> [EntityLayout] {
        var drafts: [EntityDraft] = []
        for (index, definition) in definitions.enumerated() {
            let parent = definition.parent.map { drafts[$0 - 1] }
            drafts.append(EntityDraft(definition, number: index + 1, parent: parent, declared: declared[index]))
        }
        // Sub-entities are numbered directly after their super-entity.
        var ends = definitions.indices.map { $0 + 1 }
        for (index, definition) in definitions.enumerated().reversed() {
            if let parent = definition.parent { ends[parent - 1] = max(ends[parent - 1], ends[index]) }
        }
        var mostSlots: [Int: Int] = [:]
        for draft in drafts { mostSlots[draft.rootNumber] = max(mostSlots[draft.rootNumber] ?? 0, draft.slots.count) }
        var layouts: [EntityLayout] = []
        for (index, draft) in drafts.enumerated() {
            let slotCount = mostSlots[draft.rootNumber] ?? 0
            let subtree = (index + 1)...ends[index]
            let layout = EntityLayout(
                draft,
                parent: draft.definition.parent.map { layouts[$0 - 1] },
                subtree: subtree,
                concreteNumbers: subtree.filter { !definitions[$0 - 1].isAbstract },
                nullWords: slotCount > 32 ? (slotCount - 32 + 63) / 64 : 0
            )
            layouts.append(Unmanaged.passRetained(layout).takeUnretainedValue())
        }
        link(layouts)
        return layouts
    }

    private func link(_ layouts: [EntityLayout]) {
        for (index, entity) in definitions.enumerated() {
            for property in entity.properties {
                guard case .relationship(let definition) = property.kind,
                    let relationship = declared[index][property.name]
                else { continue }
                relationship.link(
                    declaredBy: layouts[index],
                    to: definition.destination.map { layouts[$0 - 1] },
                    inverse: definition.inverse.flatMap { declared[$0.entity - 1][$0.name] }
                )
            }
        }
    }
}

/// An unfinished layout.
///
/// The places are known, but not the number of null words, which depends on the whole hierarchy.
final class EntityDraft {
    let definition: EntityDefinition
    let number: Int
    let rootNumber: Int
    private(set) var slots: [Slot]
    private(set) var toMany: [ToManySlot]
    private(set) var transients: [TransientSlot]
    private(set) var composites: [CompositeSlot]
    private(set) var places: [String: PropertyPlace]
    private(set) var relationships: [String: Relationship]
    /// The default values, by the index of the slot, and whether new objects start with them.
    private(set) var defaultValues: [(slot: Int, value: Any, isInitial: Bool)]
    /// The slots of the innermost optional composite attribute around an element, by the index of the element's slot.
    private(set) var optionalElements: [Int: Range<Int>]
    /// Whether the model has predicates for a slot, by its index.
    private(set) var rules: [Bool]
    private(set) var wordCount: Int
    /// The scopes of the entities from the root to this one.
    let scopes: [UInt32]
    private(set) var declarationDepths: [String: Int]
    private(set) var propertyInfo: [String: [String: String]]
    var depth: Int { scopes.count - 1 }

    private static let lastScope = AtomicCell<UInt32>(0)

    init(_ definition: EntityDefinition, number: Int, parent: EntityDraft?, declared: [String: Relationship]) {
        self.definition = definition
        self.number = number
        rootNumber = parent?.rootNumber ?? number
        scopes = (parent?.scopes ?? []) + [Self.lastScope.add(1, ordering: .relaxed).newValue]
        declarationDepths = parent?.declarationDepths ?? [:]
        propertyInfo = parent?.propertyInfo ?? [:]
        slots = parent?.slots ?? []
        toMany = parent?.toMany ?? []
        transients = parent?.transients ?? []
        composites = parent?.composites ?? []
        places = parent?.places ?? [:]
        relationships = (parent?.relationships ?? [:]).merging(declared) { $1 }
        defaultValues = parent?.defaultValues ?? []
        optionalElements = parent?.optionalElements ?? [:]
        rules = parent?.rules ?? []
        wordCount = parent?.wordCount ?? 0
        let inherited = places
        for property in definition.properties.sorted(by: { $0.name < $1.name }) where inherited[property.name] == nil {
            note(property.userInfo, property.name)
            add(property, declared[property.name])
        }
        for name in places.keys where inherited[name] == nil { declarationDepths[name] = depth }
    }

    private func note(_ userInfo: [String: String], _ name: String) {
        if !userInfo.isEmpty { propertyInfo[name] = userInfo }
    }

    private func add(_ property: PropertyDefinition, _ relationship: Relationship?) {
        switch property.kind {
        case .fetched: places[property.name] = .fetched
        case .transient: addTransient(property, nil)
        case .relationship(let definition):
            guard let relationship else { return }
            addRelationship(for: property, as: relationship, to: definition.destination ?? 0)
        case .attribute(let definition): addAttribute(property.name, for: property, as: definition)
        case .composite(let elements, let keepsValueInHistory):
            let first = slots.count
            addLeaves(elements, prefix: property.name, isOptional: property.isOptional)
            places[property.name] = .composite(composites.count)
            composites.append(
                CompositeSlot(
                    name: property.name,
                    leaves: Array(first..<slots.count),
                    keepsValueInHistory: keepsValueInHistory,
                    description: property.description
                )
            )
        }
    }

    private func addTransient(_ property: PropertyDefinition, _ relationship: Relationship?) {
        places[property.name] = .transient(transients.count)
        transients.append(
            TransientSlot(
                name: property.name,
                index: transients.count,
                relationship: relationship,
                description: property.description
            )
        )
    }

    private func addRelationship(for property: PropertyDefinition, as relationship: Relationship, to destination: Int) {
        if relationship.isToMany {
            relationship.place(at: .toMany(toMany.count))
            places[property.name] = .toMany(toMany.count)
            toMany.append(
                ToManySlot(
                    name: property.name,
                    index: toMany.count,
                    destinationNumber: destination,
                    isOrdered: relationship.isOrdered,
                    isTransient: relationship.isTransient,
                    relationship: relationship
                )
            )
        } else if relationship.isTransient {
            addTransient(property, relationship)
        } else {
            relationship.place(at: .slot(slots.count))
            addSlot(
                property.name,
                for: property,
                kind: .reference,
                type: .undefined,
                destination: destination,
                relationship: relationship,
                traits: nil
            )
        }
    }

    private func addAttribute(_ name: String, for property: PropertyDefinition, as definition: AttributeDefinition) {
        if let value = definition.defaultValue {
            defaultValues.append((slots.count, value, definition.startsWithDefault))
        }
        let traits = Unmanaged.passRetained(AttributeTraits(definition)).takeUnretainedValue()
        addSlot(
            name,
            for: property,
            kind: definition.type.slotKind,
            type: definition.type,
            relationship: nil,
            traits: traits
        )
    }

    private func addLeaves(_ elements: [PropertyDefinition], prefix: String, isOptional: Bool) {
        let first = slots.count
        for element in elements {
            let name = prefix + "." + element.name
            note(element.userInfo, name)
            switch element.kind {
            case .composite(let nested, _): addLeaves(nested, prefix: name, isOptional: element.isOptional)
            case .attribute(let definition): addAttribute(name, for: element, as: definition)
            // Elements are always stored attributes.
            case .relationship, .transient, .fetched: break
            }
        }
        guard isOptional else { return }
        let leaves = first..<slots.count
        for index in leaves where optionalElements[index] == nil { optionalElements[index] = leaves }
    }

    private func addSlot(
        _ name: String,
        for property: PropertyDefinition,
        kind: SlotKind,
        type: AttributeType,
        destination: Int = 0,
        relationship: Relationship?,
        traits: AttributeTraits?
    ) {
        places[name] = .slot(slots.count)
        rules.append(traits?.hasRules ?? false)
        slots.append(
            Slot(
                name: name,
                index: slots.count,
                word: wordCount,
                kind: kind,
                type: type,
                isOptional: property.isOptional,
                destinationNumber: destination,
                relationship: relationship,
                traits: traits,
                description: property.description
            )
        )
        wordCount += kind.wordCount
    }
}
