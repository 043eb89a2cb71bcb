import CoreDataEssentials
import StrataModelFiles
import StrataPredicates

extension NSManagedObjectModel {
    /// Reads a model, or throws an error with the problem.
    ///
    /// An addition to Apple's API, whose ``init(contentsOf:)`` returns no reason.
    ///
    /// ```swift
    /// let model = try NSManagedObjectModel(reading: Bundle.module.url(forResource: "Library", withExtension: "momd")!)
    /// ```
    ///
    /// - Parameter url: An `.xcdatamodeld` folder (its current version is read), an `.xcdatamodel` folder, the XML file
    ///   `contents` of one, or a compiled model: a `.momd` folder or a `.mom` file.
    /// - Throws: A `CocoaError` whose description names the entity and the property.
    ///   It is 260 (`fileReadNoSuchFile`), 259 (`fileReadCorruptFile`) for a file that is no model, or 263
    ///   (`fileReadTooLarge`).
    ///   It is 3328 (`featureUnsupported`) for the formats of Xcode 3 and of optimized models, and 134060
    ///   (`coreData`) for a model that contradicts itself.
    public convenience init(reading url: URL) throws {
        self.init()
        _ = try read(url)
    }

    /// Reads a model, and keeps the text from which it was read.
    ///
    /// - Returns: The model, and the XML in its file; `nil` for a compiled model.
    /// - Throws: The errors of ``init(reading:)``.
    package static func reading(_ url: URL) throws -> (model: NSManagedObjectModel, xml: String?) {
        let model = NSManagedObjectModel()
        let xml = try model.read(url)
        return (model, xml)
    }

    /// Reads a model from an `.xcdatamodeld`, `.xcdatamodel` or `.momd` folder, or from a file in one.
    ///
    /// The result is `nil` if the model cannot be read; ``init(reading:)`` throws the reason.
    ///
    /// - Parameter url: The folder or file. If there are several versions, then the current one is read.
    public convenience init?(contentsOf url: URL) {
        try? self.init(reading: url)
    }

    /// Fills the empty model from a file or folder, and returns the text if it is XML.
    private func read(_ url: URL) throws -> String? {
        let contents: (data: Data, file: URL)
        do {
            contents = try ModelPackage.contents(at: url)
        } catch {
            throw error.cocoaError
        }
        do {
            if contents.data.starts(with: Data("bplist".utf8)) {
                try read(archive: contents.data, isStrict: true)
                return nil
            }
            try read(xml: contents.data)
        } catch {
            throw error.in(contents.file).cocoaError
        }
        return String(decoding: contents.data, as: UTF8.self)
    }

    /// Fills the empty model from XML.
    func read(xml: Data) throws(ModelError) {
        let source = try ModelSource(xml: xml)
        if let fault = source.faults.first { throw fault }
        var reader = ModelReader(source)
        try reader.fill(self)
        try ModelValidation(model: self).check()
    }
}

extension ModelError {
    fileprivate func `in`(_ file: URL) -> ModelError {
        var error = self
        error.file = file
        return error
    }
}

/// Makes descriptions from a model file without errors.
///
/// It first makes every entity with its attributes, and then all parts that refer to other entities, because the file
/// may have any order.
struct ModelReader {
    private let source: ModelSource
    private let properties: PropertyReader
    private var entities: [String: NSEntityDescription] = [:]
    private var order: [(source: EntitySource, entity: NSEntityDescription)] = []

    init(_ source: ModelSource) {
        self.source = source
        properties = PropertyReader(composites: source.composites)
    }

    mutating func fill(_ model: NSManagedObjectModel) throws(ModelError) {
        for entity in source.entities {
            try addEntity(entity)
        }
        try setParents()
        model.entities = order.map(\.entity)
        for (source, entity) in order {
            try connect(entity, from: source)
        }
        for (source, entity) in order {
            try addIndexes(to: entity, from: source)
        }
        for configuration in source.configurations {
            model.setEntities(
                configuration.members.compactMap { entities[$0] },
                forConfigurationName: configuration.name
            )
        }
        for request in source.fetchRequests {
            let template = try fetchRequest(from: request, entity: nil, property: nil)
            model.setFetchRequestTemplate(template, forName: request.name)
        }
        // A missing identifier counts as the empty one.
        model.versionIdentifiers = [source.versionIdentifier]
    }

    // MARK: - Entities

    private mutating func addEntity(_ source: EntitySource) throws(ModelError) {
        let entity = NSEntityDescription()
        entity.name = source.name
        entity.managedObjectClassName = source.className
        entity.isAbstract = source.isAbstract
        entity.renamingIdentifier = source.renamingIdentifier
        entity.versionHashModifier = source.versionHashModifier
        entity.userInfo = source.userInfo
        entity.uniquenessConstraints = source.uniquenessConstraints
        entity.compoundIndexes = source.compoundIndexes
        var own: [NSPropertyDescription] = []
        for property in source.properties {
            own.append(try properties.property(from: property, entity: source.name))
        }
        entity.properties = own
        entities[source.name] = entity
        order.append((source, entity))
    }

    private func setParents() throws(ModelError) {
        var parents: [String: String] = [:]
        for (source, _) in order { parents[source.name] = source.parent }
        try InheritanceTree.connect(order.map(\.entity), parents: parents)
    }

    // MARK: - References to other entities

    private func connect(_ entity: NSEntityDescription, from source: EntitySource) throws(ModelError) {
        let own = EntityFacts.byName(entity.ownProperties) { $0.name }
        for property in source.properties {
            switch (property, own[property.facts.name]) {
            case (.relationship(let source), let relationship as NSRelationshipDescription):
                try connect(relationship, of: entity, from: source)
            case (.fetched(let source), let fetched as NSFetchedPropertyDescription):
                guard let request = source.request else { continue }
                fetched.fetchRequest = try fetchRequest(
                    from: request,
                    entity: entity.name,
                    property: source.facts.name
                )
            default: break
            }
        }
    }

    private func connect(
        _ relationship: NSRelationshipDescription,
        of entity: NSEntityDescription,
        from source: RelationshipSource
    ) throws(ModelError) {
        relationship.destinationEntity = entities[source.destination]
        guard let named = source.inverse else { return }
        guard let inverse = entities[named.entity]?.relationshipsByName[named.name] else {
            throw ModelError(
                .invalid,
                entity: entity.name,
                property: relationship.name,
                line: source.facts.line,
                "its inverse \"\(named.name)\" is not a relationship of \"\(named.entity)\""
            )
        }
        relationship.inverseRelationship = inverse
    }

    private func addIndexes(to entity: NSEntityDescription, from source: EntitySource) throws(ModelError) {
        let available = entity.propertiesByName
        var indexes: [NSFetchIndexDescription] = []
        for source in source.indexes {
            var elements: [NSFetchIndexElementDescription] = []
            for element in source.elements {
                elements.append(
                    try indexElement(from: element, index: source.name, entity: entity, available: available)
                )
            }
            let index = NSFetchIndexDescription(name: source.name, elements: elements)
            if let text = source.partialPredicate {
                index.partialIndexPredicate = try parsed(text, entity: entity.name, property: nil, ModelText.predicate)
            }
            indexes.append(index)
        }
        entity.indexes = indexes
    }

    private func indexElement(
        from source: FetchIndexSource.Element,
        index: String,
        entity: NSEntityDescription,
        available: [String: NSPropertyDescription]
    ) throws(ModelError) -> NSFetchIndexElementDescription {
        let property: NSPropertyDescription
        if let name = source.property {
            guard let named = available[name] else {
                throw ModelError(
                    .invalid,
                    entity: entity.name,
                    property: name,
                    line: source.line,
                    "fetch index \"\(index)\" names it, but there is no such property"
                )
            }
            property = named
        } else if let text = source.expression {
            let computed = NSExpressionDescription()
            computed.expression = try parsed(text, entity: entity.name, property: nil, ModelText.expression)
            computed.resultType = source.expressionType.map(PropertyReader.attributeType) ?? .undefined
            property = computed
        } else {
            throw ModelError(
                .invalid,
                entity: entity.name,
                line: source.line,
                "an element of fetch index \"\(index)\" has neither a property nor an expression"
            )
        }
        let result = NSFetchIndexElementDescription(property: property, collationType: source.isTree ? .rTree : .binary)
        result.isAscending = source.isAscending
        return result
    }

    // MARK: - Requests

    /// Makes a template, or the request of a fetched property; the entity and the name are for error messages.
    private func fetchRequest(
        from source: FetchRequestSource,
        entity: String?,
        property: String?
    ) throws(ModelError) -> NSFetchRequest<NSFetchRequestResult> {
        let request = NSFetchRequest<NSFetchRequestResult>()
        request.entity = entities[source.entity]
        if let text = source.predicate {
            request.predicate = try parsed(text, entity: entity, property: property, ModelText.predicate)
        }
        request.fetchLimit = source.limit
        request.fetchOffset = source.offset
        request.fetchBatchSize = source.batchSize
        request.resultType = NSFetchRequestResultType(rawValue: UInt(source.resultType))
        request.includesSubentities = source.includesSubentities
        request.includesPropertyValues = source.includesPropertyValues
        request.includesPendingChanges = source.includesPendingChanges
        request.returnsObjectsAsFaults = source.returnsObjectsAsFaults
        request.returnsDistinctResults = source.returnsDistinctResults
        return request
    }

    private func parsed<Value>(
        _ text: String,
        entity: String?,
        property: String?,
        _ parse: (String) throws -> Value
    ) throws(ModelError) -> Value {
        do {
            return try parse(text)
        } catch {
            throw ModelError(
                .invalid,
                entity: entity,
                property: property,
                "\"\(ModelText.quotable(text))\" cannot be understood: \((error as? ModelError)?.reason ?? "\(error)")"
            )
        }
    }
}
