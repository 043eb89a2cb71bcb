import StrataPredicates

extension NSManagedObjectModel {
    /// Reads a model, and says what is wrong with it when it cannot be read.
    ///
    /// An addition to Apple's API, whose ``init(contentsOf:)`` gives no reason.
    ///
    /// - Parameter url: An `.xcdatamodeld` folder (its current version is read), an `.xcdatamodel` folder, the XML file
    ///   `contents` of one, or a compiled model: a `.momd` folder or a `.mom` file.
    /// - Throws: A `CocoaError` whose description names the entity and the property: 260 (`fileReadNoSuchFile`), 259
    ///   (`fileReadCorruptFile`) for what is no model, 263 (`fileReadTooLarge`), 3328 (`featureUnsupported`) for the formats
    ///   of Xcode 3 and of optimized models, and 134060 (`coreData`) for a model that contradicts itself.
    public convenience init(reading url: URL) throws {
        self.init()
        do {
            let contents = try ModelPackage.contents(at: url)
            do {
                if contents.data.starts(with: Data("bplist".utf8)) {
                    try read(archive: contents.data, isStrict: true)
                } else {
                    try read(xml: contents.data)
                }
            } catch {
                throw error.in(contents.file)
            }
        } catch let error as ModelError {
            throw error.cocoaError
        }
    }

    /// Reads a model from an `.xcdatamodeld`, `.xcdatamodel` or `.momd` folder, or from a file in one.
    ///
    /// `nil` comes back when the model cannot be read; ``init(reading:)`` says why.
    ///
    /// - Parameter url: The folder or file. Of several versions the current one is read.
    public convenience init?(contentsOf url: URL) {
        try? self.init(reading: url)
    }

    /// Fills the empty model from XML.
    func read(xml: Data) throws(ModelError) {
        let root = try ModelXMLParser.parse(xml)
        guard root.name == "model" else {
            throw ModelError(.malformed, "its root element is <\(root.name)> and not <model>")
        }
        var reader = ModelReader(root: root)
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

/// Turns the XML of a model into descriptions.
///
/// First every entity with its attributes, then all that refers to other entities, since the file may be in any order.
struct ModelReader {
    private let root: ModelXMLElement
    private let properties: PropertyReader
    private var entities: [String: NSEntityDescription] = [:]
    private var order: [(element: ModelXMLElement, entity: NSEntityDescription)] = []

    init(root: ModelXMLElement) {
        self.root = root
        properties = PropertyReader(composites: root.children("composite"))
    }

    mutating func fill(_ model: NSManagedObjectModel) throws(ModelError) {
        for element in root.children("entity") {
            try addEntity(element)
        }
        try setParents()
        model.entities = order.map(\.entity)
        for (element, entity) in order {
            try connect(entity, from: element)
        }
        for (element, entity) in order {
            try addIndexes(to: entity, from: element)
        }
        try addConfigurations(to: model)
        try addTemplates(to: model)
        // An unset identifier counts as the empty one.
        let identifier = root["userDefinedModelVersionIdentifier"] ?? root["versionIdentifier"] ?? ""
        model.versionIdentifiers = [identifier]
    }

    // MARK: - Entities

    private mutating func addEntity(_ element: ModelXMLElement) throws(ModelError) {
        guard let name = element.text("name") else {
            throw ModelError(.invalid, "an entity has no name (line \(element.line))")
        }
        guard entities[name] == nil else {
            throw ModelError(.invalid, entity: name, "there are two entities with this name (line \(element.line))")
        }
        let entity = NSEntityDescription()
        entity.name = name
        entity.managedObjectClassName = element.text("representedClassName")
        entity.isAbstract = element.flag("isAbstract")
        entity.renamingIdentifier = element.text("renamingIdentifier") ?? element.text("elementID")
        entity.versionHashModifier = element.text("versionHashModifier")
        entity.userInfo = PropertyReader.userInfo(of: element)
        entity.uniquenessConstraints = element.children("uniquenessConstraints")
            .flatMap { $0.children("uniquenessConstraint") }
            .map { $0.children("constraint").compactMap { $0.text("value") } }
        entity.compoundIndexes = element.children("compoundIndexes")
            .flatMap { $0.children("compoundIndex") }
            .map { $0.children("index").compactMap { $0.text("value") } }

        var names = Set<String>()
        var own: [NSPropertyDescription] = []
        for child in element.children {
            guard let property = try properties.property(from: child, entity: name) else { continue }
            guard names.insert(property.name).inserted else {
                throw ModelError(
                    .invalid,
                    entity: name,
                    property: property.name,
                    "there are two properties with this name (line \(child.line))"
                )
            }
            own.append(property)
        }
        entity.properties = own
        entities[name] = entity
        order.append((element, entity))
    }

    private func setParents() throws(ModelError) {
        var parents: [String: String] = [:]
        for (element, entity) in order {
            if let name = entity.name { parents[name] = element.text("parentEntity") }
        }
        try InheritanceTree.connect(order.map(\.entity), parents: parents)
    }

    // MARK: - What refers to other entities

    private func connect(_ entity: NSEntityDescription, from element: ModelXMLElement) throws(ModelError) {
        let own = EntityFacts.byName(entity.ownProperties) { $0.name }
        for child in element.children {
            guard let name = child.text("name"), let property = own[name] else { continue }
            if child.name == "relationship", let relationship = property as? NSRelationshipDescription {
                try connect(relationship, of: entity, from: child)
            } else if child.name == "fetchedProperty", let fetched = property as? NSFetchedPropertyDescription {
                guard let request = child.children("fetchRequest").first else { continue }
                fetched.fetchRequest = try fetchRequest(from: request, entity: entity.name, property: name)
            }
        }
    }

    private func connect(
        _ relationship: NSRelationshipDescription,
        of entity: NSEntityDescription,
        from element: ModelXMLElement
    ) throws(ModelError) {
        func failure(_ reason: String) -> ModelError {
            ModelError(.invalid, entity: entity.name, property: relationship.name, reason)
        }
        guard let destinationName = element.text("destinationEntity") else {
            throw failure("the relationship has no destination entity (line \(element.line))")
        }
        guard let destination = entities[destinationName] else {
            throw failure("its destination entity \"\(destinationName)\" is not in the model")
        }
        relationship.destinationEntity = destination
        guard let inverseName = element.text("inverseName") else { return }
        let holderName = element.text("inverseEntity") ?? destinationName
        guard let inverse = entities[holderName]?.relationshipsByName[inverseName] else {
            throw failure("its inverse \"\(inverseName)\" is not a relationship of \"\(holderName)\"")
        }
        relationship.inverseRelationship = inverse
    }

    private func addIndexes(to entity: NSEntityDescription, from element: ModelXMLElement) throws(ModelError) {
        let available = entity.propertiesByName
        var indexes: [NSFetchIndexDescription] = []
        for child in element.children("fetchIndex") {
            let name = child["name"] ?? ""
            var elements: [NSFetchIndexElementDescription] = []
            for item in child.children("fetchIndexElement") {
                elements.append(try indexElement(from: item, index: name, entity: entity, available: available))
            }
            let index = NSFetchIndexDescription(name: name, elements: elements)
            if let text = child.text("partialIndexPredicate") ?? child.text("partialIndexPredicateString") {
                index.partialIndexPredicate = try parsed(text, entity: entity.name, property: nil, ModelText.predicate)
            }
            indexes.append(index)
        }
        entity.indexes = indexes
    }

    private func indexElement(
        from element: ModelXMLElement,
        index: String,
        entity: NSEntityDescription,
        available: [String: NSPropertyDescription]
    ) throws(ModelError) -> NSFetchIndexElementDescription {
        let property: NSPropertyDescription
        if let name = element.text("property") {
            guard let named = available[name] else {
                throw ModelError(
                    .invalid,
                    entity: entity.name,
                    property: name,
                    "fetch index \"\(index)\" names it, but there is no such property"
                )
            }
            property = named
        } else if let text = element.text("expression") {
            let computed = NSExpressionDescription()
            computed.expression = try parsed(text, entity: entity.name, property: nil, ModelText.expression)
            computed.resultType = element.text("expressionType").flatMap(PropertyReader.attributeType) ?? .undefined
            property = computed
        } else {
            throw ModelError(
                .invalid,
                entity: entity.name,
                "an element of fetch index \"\(index)\" has neither a property nor an expression (line \(element.line))"
            )
        }
        let isTree = (element["type"] ?? "").lowercased().replacingOccurrences(of: "-", with: "") == "rtree"
        let result = NSFetchIndexElementDescription(property: property, collationType: isTree ? .rTree : .binary)
        result.isAscending = element["order"]?.lowercased() != "descending"
        return result
    }

    // MARK: - Configurations and templates

    private func addConfigurations(to model: NSManagedObjectModel) throws(ModelError) {
        for element in root.children("configuration") {
            guard let name = element.text("name") else { continue }
            guard model.membersByConfiguration[name] == nil else {
                throw ModelError(.invalid, "there are two configurations named \"\(name)\" (line \(element.line))")
            }
            var members: [NSEntityDescription] = []
            for member in element.children("memberEntity") {
                guard let entityName = member.text("name"), let entity = entities[entityName] else {
                    throw ModelError(
                        .invalid,
                        entity: member["name"],
                        "configuration \"\(name)\" names it, but it is not in the model (line \(member.line))"
                    )
                }
                members.append(entity)
            }
            model.setEntities(members, forConfigurationName: name)
        }
    }

    private func addTemplates(to model: NSManagedObjectModel) throws(ModelError) {
        for element in root.children("fetchRequest") {
            guard let name = element.text("name") else {
                throw ModelError(.invalid, "a fetch request has no name (line \(element.line))")
            }
            guard model.fetchRequestTemplate(forName: name) == nil else {
                throw ModelError(.invalid, "there are two fetch requests named \"\(name)\" (line \(element.line))")
            }
            let request = try fetchRequest(from: element, entity: nil, property: nil)
            model.setFetchRequestTemplate(request, forName: name)
        }
    }

    /// Reads a template, or the request of a fetched property, whose entity and name are given to be reported.
    private func fetchRequest(
        from element: ModelXMLElement,
        entity: String?,
        property: String?
    ) throws(ModelError) -> NSFetchRequest<NSFetchRequestResult> {
        guard let targetName = element.text("entity"), let target = entities[targetName] else {
            let name = element["name"] ?? ""
            throw ModelError(
                .invalid,
                entity: entity,
                property: property,
                "fetch request \"\(name)\" is for entity \"\(element["entity"] ?? "")\", which is not in the model"
            )
        }
        let request = NSFetchRequest<NSFetchRequestResult>()
        request.entity = target
        if let text = element.text("predicateString") {
            request.predicate = try parsed(text, entity: entity, property: property, ModelText.predicate)
        }
        func number(_ attribute: String) throws(ModelError) -> Int {
            guard let text = element.text(attribute) else { return 0 }
            guard let value = Int(text), value >= 0 else {
                throw ModelError(
                    .invalid,
                    entity: entity,
                    property: property,
                    "\(attribute) is not a count: \"\(text)\""
                )
            }
            return value
        }
        request.fetchLimit = try number("fetchLimit")
        request.fetchOffset = try number("fetchOffset")
        request.fetchBatchSize = try number("fetchBatchSize")
        request.resultType = NSFetchRequestResultType(rawValue: UInt(try number("resultType")))
        request.includesSubentities = element.flag(
            "includeSubentities",
            default: element.flag("includesSubentities", default: true)
        )
        request.includesPropertyValues = element.flag("includePropertyValues", default: true)
        request.includesPendingChanges = element.flag("includesPendingChanges", default: true)
        request.returnsObjectsAsFaults = element.flag("returnObjectsAsFaults", default: true)
        request.returnsDistinctResults = element.flag("returnDistinctResults")
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
                "\"\(text)\" cannot be understood: \((error as? ModelError)?.reason ?? "\(error)")"
            )
        }
    }
}
