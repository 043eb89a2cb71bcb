import StrataLocks
import StrataPredicates
import StrataRows
import Synchronization

/// The data that freezing computes for a whole model.
///
/// Immutable and immortal, so that rows and objects may refer to it without reference counting.
package final class FrozenModel: Sendable {
    /// All entities in depth-first order; the entity with number n is at index n - 1.
    package let entities: [NSEntityDescription]

    /// The entities by name.
    package let entitiesByName: [String: NSEntityDescription]

    /// The 32-byte version hashes by entity name.
    package let versionHashes: [String: Data]

    /// The model in the form that rows and stores use.
    package let schema: Schema

    /// The layout of each entity; that of the entity with number n is at index n - 1.
    package var layouts: [EntityLayout] { schema.entities }

    /// The number of the root of each entity's hierarchy; that of the entity with number n is at index n - 1.
    var rootNumbers: [Int] { schema.rootNumbers }

    /// The entities of classes that were looked up, by the identity of the class.
    let entitiesByClass = Locked<[ObjectIdentifier: NSEntityDescription]>([:])

    /// Whether missing classes have been reported.
    let hasReportedClasses = AtomicCell<Bool>(false)

    /// The properties, by entity and name, that were reported because they hold values of an undeclared type.
    let mismatches = Locked<Set<String>>([])

    /// Whether any relationship has no inverse.
    let hasOneWayRelationships: Bool

    /// Whether any to-many relationship has no inverse, so that a deleted member does not know its owners.
    let hasOneWayToMany: Bool

    init(entities: [NSEntityDescription], _ schema: Schema) {
        self.entities = entities
        self.schema = schema
        hasOneWayToMany = entities.contains { entity in
            entity.relationshipsByName.values.contains { $0.isToMany && $0.inverseRelationship == nil }
        }
        hasOneWayRelationships = entities.contains { entity in
            entity.properties.contains {
                ($0 as? NSRelationshipDescription).map { $0.inverseRelationship == nil } ?? false
            }
        }
        entitiesByName = EntityFacts.byName(entities) { $0.name }
        versionHashes = entitiesByName.mapValues(\.versionHash)
    }

    private let copy = OnceReference<CopyForStores>()

    /// The copy of the model that stores keep, made on first use; `nil` for a model that cannot be written.
    package func copyForStores(of model: NSManagedObjectModel) -> Data? {
        (copy.load() ?? copy.storeIfNil(CopyForStores(data: HigherTargets.all.modelData(model)))).data
    }

    private final class CopyForStores: Sendable {
        let data: Data?
        init(data: Data?) { self.data = data }
    }

    /// The entity with a number; `nil` if no entity has it (a number may come from a damaged file).
    package func entity(numbered number: Int) -> NSEntityDescription? {
        entities.indices.contains(number - 1) ? entities[number - 1] : nil
    }
}

/// The data that freezing computes for one entity.
package final class EntityFacts: @unchecked Sendable {
    // @unchecked Sendable: all properties are constants; the model is not retained but immortal.

    /// The entity's number, from 1.
    package let number: Int

    /// The numbers of the entity and of all its sub-entities, which are consecutive.
    package let subtree: ClosedRange<Int>

    /// The numbers in `subtree` of entities that are not abstract.
    package let concreteNumbers: [Int]

    /// The top of the inheritance tree.
    ///
    /// The reference is unowned, because an entity that is its own root would otherwise retain itself.
    package unowned(unsafe) let root: NSEntityDescription

    /// The model.
    ///
    /// Immortal once frozen.
    package unowned(unsafe) let model: NSManagedObjectModel

    /// All properties: inherited ones first.
    package let properties: [NSPropertyDescription]

    /// All properties by name.
    package let propertiesByName: [String: NSPropertyDescription]

    /// All attributes by name.
    package let attributesByName: [String: NSAttributeDescription]

    /// All relationships by name.
    package let relationshipsByName: [String: NSRelationshipDescription]

    /// The direct sub-entities by name.
    package let subentitiesByName: [String: NSEntityDescription]

    /// The 32-byte version hash.
    package let versionHash: Data

    init(
        entity: NSEntityDescription,
        model: NSManagedObjectModel,
        number: Int,
        subtree: ClosedRange<Int>,
        concreteNumbers: [Int],
        versionHash: Data
    ) {
        self.number = number
        self.subtree = subtree
        self.concreteNumbers = concreteNumbers
        self.model = model
        root = entity.ancestors.last ?? entity
        properties = entity.properties
        propertiesByName = Self.byName(properties) { $0.name }
        attributesByName = Self.byName(properties.compactMap { $0 as? NSAttributeDescription }) { $0.name }
        relationshipsByName = Self.byName(properties.compactMap { $0 as? NSRelationshipDescription }) { $0.name }
        subentitiesByName = entity.subentitiesByName
        self.versionHash = versionHash
    }

    /// A dictionary of elements by name; if two have the same name, then the later one counts.
    ///
    /// Elements without a name are omitted.
    package static func byName<Element>(_ elements: [Element], _ name: (Element) -> String?) -> [String: Element] {
        var found: [String: Element] = [:]
        for element in elements {
            if let name = name(element) { found[name] = element }
        }
        return found
    }
}

/// The order in which entities are numbered, in a model and in a store file.
package enum EntityNumbering {
    /// The entities depth first: roots by name, each followed by its sub-entities by name.
    ///
    /// Upper and lower case are treated as equal. If the super-entity of an entity is not among `entities`, then the
    /// entity counts as a root, so a part of a model (a configuration) can be ordered too.
    package static func order(_ entities: [NSEntityDescription]) -> [NSEntityDescription] {
        let members = Set(entities.map(ObjectIdentifier.init))
        let isMember = { (entity: NSEntityDescription) in members.contains(ObjectIdentifier(entity)) }
        var ordered: [NSEntityDescription] = []
        func visit(_ siblings: [NSEntityDescription]) {
            for entity in siblings.sorted(by: precedes) {
                ordered.append(entity)
                visit(entity.subentities.filter(isMember))
            }
        }
        visit(entities.filter { entity in entity.superentity.map { !isMember($0) } ?? true })
        return ordered
    }

    private static func precedes(_ left: NSEntityDescription, _ right: NSEntityDescription) -> Bool {
        let (leftName, rightName) = (left.name ?? "", right.name ?? "")
        let (leftFolded, rightFolded) = (leftName.lowercased(), rightName.lowercased())
        return leftFolded == rightFolded ? leftName < rightName : leftFolded < rightFolded
    }
}
