import CoreDataEssentials
import CoreDataModelFiles
import StrataModelFiles
import StrataPredicates

/// Makes a model from classes that are marked with `@ManagedObject`.
///
/// It first makes the entities with their attributes, and then all parts that refer to other entities, like the reader
/// of files.
struct ClassModelBuilder {
    /// A class with its entity.
    private struct Described {
        let type: NSManagedObject.Type
        let info: ManagedEntityInfo
        let entity: NSEntityDescription
        let properties: [ClassProperty]
    }

    private var described: [Described] = []
    private var places: [ObjectIdentifier: Int] = [:]

    /// Fills an empty model.
    ///
    /// - Throws: An error that names the class and the property.
    mutating func fill(_ model: NSManagedObjectModel, with types: [NSManagedObject.Type]) throws(ModelError) {
        for type in types { try add(type) }
        try checkNames()
        try setParents()
        model.entities = described.map(\.entity)
        for place in described { try connect(place) }
        for place in described { try checkInverses(of: place) }
        for place in described { try addFacts(to: place) }
        try addConfigurations(to: model)
        do {
            try ModelValidation(model: model).check()
        } catch {
            throw named(error)
        }
    }

    // MARK: - Entities

    /// Adds a class, after the superclass from which it inherits properties.
    private mutating func add(_ type: NSManagedObject.Type) throws(ModelError) {
        guard places[ObjectIdentifier(type)] == nil else { return }
        guard let info = type.managedEntity, info.type == type else {
            throw ModelError.class(type, property: nil, reason: "it is not marked @ManagedObject")
        }
        if let parent = Self.parent(of: type) { try add(parent) }
        let entity = NSEntityDescription()
        entity.name = ManagedClasses.bareName(of: type)
        entity.managedObjectClassName = ManagedClasses.fullName(of: type)
        for trait in info.traits { if case .name(let name) = trait.part { entity.name = name } }
        var properties: [ClassProperty] = []
        for info in Self.ownProperties(of: type) { properties.append(try ClassProperty(info, of: type)) }
        entity.properties = properties.map(\.property)
        places[ObjectIdentifier(type)] = described.count
        described.append(Described(type: type, info: info, entity: entity, properties: properties))
    }

    /// The next superclass that is an entity itself.
    private static func parent(of type: NSManagedObject.Type) -> NSManagedObject.Type? {
        var current: AnyClass? = _getSuperclass(type)
        while let superclass = current as? NSManagedObject.Type {
            if superclass.managedEntity?.type == superclass { return superclass }
            current = _getSuperclass(superclass)
        }
        return nil
    }

    /// The properties that a class declares itself, without those that override a superclass's property.
    private static func ownProperties(of type: NSManagedObject.Type) -> [ManagedPropertyInfo] {
        let inherited = (_getSuperclass(type) as? NSManagedObject.Type)?.managedProperties ?? []
        let names = Set(inherited.map(\.name))
        return type.managedProperties.dropFirst(inherited.count).filter { !names.contains($0.name) }
    }

    private func checkNames() throws(ModelError) {
        var owners: [String: NSManagedObject.Type] = [:]
        for place in described {
            let name = place.entity.name ?? ""
            if let other = owners.updateValue(place.type, forKey: name) {
                throw ModelError.class(
                    place.type,
                    property: nil,
                    reason:
                        "its entity has the name \"\(name)\", which that of class \(String(reflecting: other)) has too"
                )
            }
        }
    }

    private func setParents() throws(ModelError) {
        var parents: [String: String] = [:]
        for place in described {
            guard let parent = Self.parent(of: place.type), let index = places[ObjectIdentifier(parent)] else {
                continue
            }
            parents[place.entity.name ?? ""] = described[index].entity.name
        }
        try InheritanceTree.connect(described.map(\.entity), parents: parents)
    }

    // MARK: - Relationships

    private func entity(of type: NSManagedObject.Type) -> NSEntityDescription? {
        places[ObjectIdentifier(type)].map { described[$0].entity }
    }

    private func connect(_ place: Described) throws(ModelError) {
        for property in place.properties {
            guard let type = property.destination else { continue }
            guard let destination = entity(of: type) else {
                throw ModelError.class(
                    place.type,
                    property: property.name,
                    reason: "it leads to class \(String(reflecting: type)), which is not among the classes of the model"
                )
            }
            if let relationship = property.property as? NSRelationshipDescription {
                relationship.destinationEntity = destination
            } else if let fetched = property.property as? NSFetchedPropertyDescription {
                fetched.fetchRequest?.entity = destination
            }
        }
        for property in place.properties { try connectInverse(of: property, place, type: property.destination) }
    }

    private func connectInverse(
        of property: ClassProperty,
        _ place: Described,
        type: NSManagedObject.Type?
    ) throws(ModelError) {
        guard let relationship = property.property as? NSRelationshipDescription, let type,
            let name = try property.inverseName(in: type)
        else { return }
        guard let inverse = entity(of: type)?.relationshipsByName[name] else {
            throw ModelError.class(
                place.type,
                property: property.name,
                reason: "its inverse \"\(name)\" is not a relationship of \(String(reflecting: type))"
            )
        }
        for (one, other) in [(relationship, inverse), (inverse, relationship)] {
            if let known = one.inverseRelationship, known !== other {
                throw ModelError.class(
                    place.type,
                    property: property.name,
                    reason:
                        "\"\(one.name)\" cannot be the inverse of \"\(other.name)\": it is that of \"\(known.name)\""
                )
            }
        }
        relationship.inverseRelationship = inverse
        inverse.inverseRelationship = relationship
    }

    private func checkInverses(of place: Described) throws(ModelError) {
        for property in place.properties {
            guard let relationship = property.property as? NSRelationshipDescription else { continue }
            let hasInverse = relationship.inverseRelationship != nil
            guard hasInverse || property.hasNoInverse else {
                throw ModelError.class(
                    place.type,
                    property: property.name,
                    reason: "it has no inverse: name one with .inverse(…) here or at the other end, or write .noInverse"
                )
            }
            guard !hasInverse || !property.hasNoInverse else {
                throw ModelError.class(
                    place.type,
                    property: property.name,
                    reason:
                        "it is said to have .noInverse, but \"\(relationship.inverseRelationship?.name ?? "")\" names it"
                )
            }
        }
    }

    // MARK: - The entity's traits

    private func addFacts(to place: Described) throws(ModelError) {
        let entity = place.entity
        var constraints: [[String]] = place.properties.filter(\.isUnique).map { [$0.name] }
        var compound: [[String]] = []
        var indexes: [NSFetchIndexDescription] = []
        for trait in place.info.traits {
            switch trait.part {
            case .abstract: entity.isAbstract = true
            case .unique(let names): constraints.append(names)
            case .compoundIndex(let names): compound.append(names)
            case .index(let name, let elements, let predicate):
                indexes.append(try index(name, elements: elements, predicate: predicate, of: place))
            case .formerName(let name): entity.renamingIdentifier = name
            case .hashModifier(let text): entity.versionHashModifier = text
            case .userInfo(let facts): entity.userInfo = facts
            case .name, .configurations: break
            }
        }
        entity.uniquenessConstraints = constraints
        entity.compoundIndexes = compound
        entity.indexes = indexes
    }

    private func index(
        _ name: String,
        elements: [ManagedIndexElement],
        predicate: String?,
        of place: Described
    ) throws(ModelError) -> NSFetchIndexDescription {
        let available = place.entity.propertiesByName
        var descriptions: [NSFetchIndexElementDescription] = []
        for element in elements {
            let property: NSPropertyDescription
            switch element.subject {
            case .property(let name):
                guard let named = available[name] else {
                    throw ModelError.class(
                        place.type,
                        property: name,
                        reason: "an index names it, but there is no such property"
                    )
                }
                property = named
            case .expression(let text, let type):
                let computed = NSExpressionDescription()
                computed.expression = try ClassProperty.parse(
                    text,
                    owner: place.type,
                    property: nil,
                    ModelText.expression
                )
                computed.resultType = type
                property = computed
            }
            let description = NSFetchIndexElementDescription(property: property, collationType: element.type)
            description.isAscending = element.isAscending
            descriptions.append(description)
        }
        let index = NSFetchIndexDescription(name: name, elements: descriptions)
        if let predicate {
            index.partialIndexPredicate = try ClassProperty.parse(
                predicate,
                owner: place.type,
                property: nil,
                ModelText.predicate
            )
        }
        return index
    }

    private func addConfigurations(to model: NSManagedObjectModel) throws(ModelError) {
        var members: [String: [NSEntityDescription]] = [:]
        for place in described {
            for trait in place.info.traits {
                guard case .configurations(let names) = trait.part else { continue }
                for name in names { members[name, default: []].append(place.entity) }
            }
        }
        for (name, entities) in members { model.setEntities(entities, forConfigurationName: name) }
    }

    /// An error of the finished model, with the class instead of its entity.
    private func named(_ error: ModelError) -> ModelError {
        guard let place = described.first(where: { $0.entity.name == error.entity }) else { return error }
        return ModelError.class(place.type, property: error.property, reason: error.reason)
    }
}

extension ModelError {
    /// An error of a class; the message contains the name with its module.
    static func `class`(_ type: NSManagedObject.Type, property: String?, reason: String) -> ModelError {
        let place = String(reflecting: type) + (property.map { ".\($0)" } ?? "")
        return ModelError(.invalid, class: place, entity: ManagedClasses.bareName(of: type), property: property, reason)
    }
}
