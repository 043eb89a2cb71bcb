import CoreDataEssentials
import StrataArchives
import StrataModelFiles
import StrataPredicates

extension NSManagedObjectModel {
    /// The copy of the model in a store, from the content of its `Z_MODELCACHE` table.
    ///
    /// It has all entities, properties, constraints and configurations. Validation predicates, default values, indexes
    /// and queries that cannot be read are omitted, because the copy is used for inspecting a store and for migrating
    /// it.
    ///
    /// - Parameter data: The packed archive.
    /// - Throws: A `CocoaError`: 259 (`fileReadCorruptFile`) if the data is damaged, 134060 (`coreData`) if the model
    ///   contradicts itself, with the names of the entity and the property.
    package convenience init(cachedModelData data: Data) throws {
        self.init()
        do {
            let archive: Data
            do {
                archive = try Inflate.inflate(data, limit: 4 * ModelPackage.maximumSize)
            } catch {
                throw ModelError(.malformed, "the copy in the store cannot be unpacked")
            }
            try read(archive: archive, isStrict: false)
        } catch let error as ModelError {
            throw error.cocoaError
        }
    }

    /// Fills the empty model from an archive of a model.
    ///
    /// - Parameters:
    ///   - data: The archive.
    ///   - isStrict: Whether an unreadable predicate or default value is an error; otherwise it is omitted.
    /// - Throws: The problem of the archive or the model.
    func read(archive data: Data, isStrict: Bool) throws(ModelError) {
        let archive: KeyedArchive
        do {
            archive = try KeyedArchive(data)
        } catch {
            throw ModelError(.malformed, "it is not an archive of a model")
        }
        var reader = CompiledModelReader(archive: archive, isStrict: isStrict)
        try reader.fill(self)
        try ModelValidation(model: self).check()
    }
}

/// Turns an archive of a model, in the form of Apple's framework and Xcode's compiler, into descriptions.
///
/// It first reads every entity with its attributes, and then all parts that refer to other entities. Objects of the
/// archive are looked up by number; circular references are never followed.
struct CompiledModelReader {
    private let archive: KeyedArchive
    private let properties: CompiledPropertyReader
    private let budget: ReadingBudget
    private var entities: [String: NSEntityDescription] = [:]
    private var order: [(object: KeyedArchive.Object, entity: NSEntityDescription)] = []

    init(archive: KeyedArchive, isStrict: Bool) {
        self.archive = archive
        budget = ReadingBudget()
        properties = CompiledPropertyReader(archive: archive, isStrict: isStrict, budget: budget)
    }

    mutating func fill(_ model: NSManagedObjectModel) throws(ModelError) {
        guard let root = archive.object(archive.root), root.classNames.contains("NSManagedObjectModel"),
            let members = root.object("NSEntities").flatMap(archive.entries)
        else {
            throw ModelError(.malformed, "it is not an archive of a model")
        }
        for (_, number) in members.sorted(by: { $0.key < $1.key }) {
            guard let object = archive.object(number) else {
                throw ModelError(.malformed, "one of its entities is missing")
            }
            try addEntity(object)
        }
        try setParents()
        model.entities = order.map(\.entity)
        for (object, entity) in order {
            try connect(entity, from: object)
        }
        try addConfigurations(to: model, from: root)
        try addTemplates(to: model, from: root)
        let identifiers = root.object("NSVersionIdentifiers")?.references("NS.objects") ?? []
        model.versionIdentifiers = Set(identifiers.compactMap { archive.object($0)?.text })
    }

    // MARK: - Entities

    private mutating func addEntity(_ object: KeyedArchive.Object) throws(ModelError) {
        guard let name = object.string("NSEntityName"), !name.isEmpty else {
            throw ModelError(.invalid, "an entity has no name")
        }
        guard entities[name] == nil else {
            throw ModelError(.invalid, entity: name, "there are two entities with this name")
        }
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = object.string("NSClassNameForEntity")
        entity.isAbstract = object.flag("NSIsAbstract")
        entity.renamingIdentifier = object.string("NSRenamingIdentifier").flatMap { $0 == name ? nil : $0 }
        entity.versionHashModifier = object.string("NSVersionHashModifier")
        entity.userInfo = properties.userInfo(of: object)
        entity.uniquenessConstraints = try tuples(of: object, "NSUniqueTuples")
        // The compiler turns indexed attributes and compound indexes into fetch indexes, and lists them with the
        // others.
        let listsIndexes = object.object("NSFetchIndexDescriptions")?.references("NS.objects") != nil
        entity.listsAllIndexes = listsIndexes
        if !listsIndexes { entity.compoundIndexes = try tuples(of: object, "NSCompoundIndexes") }

        // The list includes inherited properties; each refers to the entity that declares it.
        var inherited: [String: Int] = [:]
        if let parent = object.object("NSSuperentity") { inherited = try propertyNumbers(of: parent) }
        var own: [NSPropertyDescription] = []
        for (key, number) in try propertyNumbers(of: object).sorted(by: { $0.key < $1.key }) {
            guard inherited[key] == nil, let described = archive.object(number) else { continue }
            let property = try properties.property(from: described, entity: name)
            if listsIndexes { property.isIndexed = false }
            own.append(property)
        }
        entity.properties = own
        entities[name] = entity
        order.append((object, entity))
    }

    /// The properties of an archived entity by name, as numbers.
    ///
    /// References to properties of other entities are resolved.
    private func propertyNumbers(of entity: KeyedArchive.Object) throws(ModelError) -> [String: Int] {
        let list = entity.object("NSProperties")
        try budget.spend(list?.references("NS.keys")?.count ?? 0)
        return (list.flatMap(archive.entries) ?? [:]).mapValues { number in
            guard let object = archive.object(number), object.classNames.first == "_NSPropertyDescriptionProxy" else {
                return number
            }
            return object.reference("NSUnderlyingProperty") ?? number
        }
    }

    /// The groups of property names in a field, whose members are texts or properties.
    private func tuples(of object: KeyedArchive.Object, _ field: String) throws(ModelError) -> [[String]] {
        var tuples: [[String]] = []
        for number in object.object(field)?.references("NS.objects") ?? [] {
            guard let members = archive.object(number)?.references("NS.objects") else { continue }
            try budget.spend(members.count + 1)
            tuples.append(
                members.compactMap { archive.object($0)?.text ?? archive.object($0)?.string("NSPropertyName") }
            )
        }
        return tuples
    }

    private func setParents() throws(ModelError) {
        var parents: [String: String] = [:]
        for (object, entity) in order {
            guard let name = entity.name, let parent = object.object("NSSuperentity") else { continue }
            parents[name] = parent.string("NSEntityName") ?? ""
        }
        try InheritanceTree.connect(order.map(\.entity), parents: parents)
    }

    // MARK: - References to other entities

    private func connect(_ entity: NSEntityDescription, from object: KeyedArchive.Object) throws(ModelError) {
        let numbers = try propertyNumbers(of: object)
        for property in entity.ownProperties {
            guard let described = numbers[property.name].flatMap(archive.object) else { continue }
            if let relationship = property as? NSRelationshipDescription {
                try connect(relationship, of: entity, from: described)
            } else if let fetched = property as? NSFetchedPropertyDescription,
                let request = described.object("NSFetchRequest")
            {
                let name = described.string("_NSFetchRequestEntityName")
                fetched.fetchRequest = try properties.request(
                    from: request,
                    target: name.flatMap { entities[$0] } ?? target(of: request),
                    at: Place(entity: entity.name ?? "", property: property.name)
                )
            }
        }
        let list = object.object("NSFetchIndexDescriptions")?.references("NS.objects") ?? []
        var indexes: [NSFetchIndexDescription] = []
        for number in list {
            guard let described = archive.object(number) else { continue }
            if let index = try properties.index(from: described, of: entity) { indexes.append(index) }
        }
        entity.indexes = indexes
    }

    private func connect(
        _ relationship: NSRelationshipDescription,
        of entity: NSEntityDescription,
        from object: KeyedArchive.Object
    ) throws(ModelError) {
        let place = Place(entity: entity.name ?? "", property: relationship.name)
        let name =
            object.string("_NSDestinationEntityName")
            ?? object.object("NSDestinationEntity")?.string("NSEntityName") ?? ""
        guard let destination = entities[name] else {
            throw place.failure("its destination entity \"\(name)\" is not in the model")
        }
        relationship.destinationEntity = destination
        let inverseName =
            object.string("_NSInverseRelationshipName")
            ?? object.object("NSInverseRelationship")?.string("NSPropertyName")
        guard let inverseName else { return }
        guard let inverse = destination.relationshipsByName[inverseName] else {
            throw place.failure("its inverse \"\(inverseName)\" is not a relationship of \"\(name)\"")
        }
        relationship.inverseRelationship = inverse
    }

    private func target(of request: KeyedArchive.Object) -> NSEntityDescription? {
        let name = request.object("NSEntity")?.string("NSEntityName") ?? request.string("NSEntityName")
        return name.flatMap { entities[$0] }
    }

    private func addConfigurations(
        to model: NSManagedObjectModel,
        from root: KeyedArchive.Object
    ) throws(ModelError) {
        guard let configurations = root.object("NSConfigurations").flatMap(archive.entries) else { return }
        for (name, number) in configurations where name != NSManagedObjectModel.defaultConfigurationName {
            let members = archive.object(number)?.references("NS.objects") ?? []
            try budget.spend(members.count)
            let names = members.compactMap { number in
                archive.object(number)?.text ?? archive.object(number)?.string("NSEntityName")
            }
            model.setEntities(names.sorted().compactMap { entities[$0] }, forConfigurationName: name)
        }
    }

    private func addTemplates(to model: NSManagedObjectModel, from root: KeyedArchive.Object) throws(ModelError) {
        guard let templates = root.object("NSFetchRequestTemplates").flatMap(archive.entries) else { return }
        for (name, number) in templates.sorted(by: { $0.key < $1.key }) {
            guard let object = archive.object(number) else { continue }
            let request = try properties.request(from: object, target: target(of: object), at: nil)
            if let request { model.setFetchRequestTemplate(request, forName: name) }
        }
    }
}

extension KeyedArchive {
    /// The entries of an archived dictionary with texts as keys: the numbers of the values.
    fileprivate func entries(_ object: Object) -> [String: Int]? {
        let keys: [Int]?
        let values: [Int]?
        if object.classNames.contains("NSKnownKeysDictionary") {
            keys = object.object("searchMapping")?.object("keys")?.references("NS.objects")
            values = object.object("values")?.references("NS.objects")
        } else {
            keys = object.references("NS.keys")
            values = object.references("NS.objects")
        }
        guard let keys, let values else { return nil }
        var entries: [String: Int] = [:]
        for (key, value) in zip(keys, values) {
            if let name = self.object(key)?.text { entries[name] = value }
        }
        return entries
    }
}
