import Foundation

extension ModelSource {
    /// Reads the XML of a model.
    ///
    /// - Throws: The error that keeps the file from being read at all. The faults of a readable model are in
    ///   ``faults``.
    package init(xml: Data) throws(ModelError) {
        let root = try ModelXMLParser.parse(xml)
        guard root.name == "model" else {
            throw ModelError(.malformed, line: root.line, "its root element is <\(root.name)> and not <model>")
        }
        var reader = ModelSourceReader()
        reader.read(root)
        self = reader.source
    }
}

/// Converts the elements of a model's XML to values.
///
/// Parts that cannot be read are left out and noted as faults, so that one pass finds all faults of a file.
struct ModelSourceReader {
    private(set) var source = ModelSource()

    mutating func read(_ root: ModelXMLElement) {
        source.attributes = root.attributes
        for element in root.children {
            switch element.name {
            case "entity": addEntity(element)
            case "composite": addComposite(element)
            case "configuration": addConfiguration(element)
            case "fetchRequest": addTemplate(element)
            default: break
            }
        }
        source.faults += ModelReferences(source).faults()
    }

    private mutating func fault(entity: String?, property: String?, at element: ModelXMLElement, _ reason: String) {
        source.faults.append(
            ModelError(.invalid, entity: entity, property: property, line: element.line, reason)
        )
    }

    // MARK: - Entities

    private mutating func addEntity(_ element: ModelXMLElement) {
        guard let name = element.text("name") else {
            return fault(entity: nil, property: nil, at: element, "an entity has no name")
        }
        var entity = EntitySource(name: name, line: element.line)
        entity.className = element.text("representedClassName")
        entity.codeGeneration = Self.codeGeneration(of: element)
        entity.isAbstract = element.flag("isAbstract")
        entity.parent = element.text("parentEntity")
        entity.renamingIdentifier = element.text("renamingIdentifier") ?? element.text("elementID")
        entity.versionHashModifier = element.text("versionHashModifier")
        entity.userInfo = Self.userInfo(of: element)
        entity.uniquenessConstraints = element.children("uniquenessConstraints")
            .flatMap { $0.children("uniquenessConstraint") }
            .map { $0.children("constraint").compactMap { $0.text("value") } }
        entity.compoundIndexes = element.children("compoundIndexes")
            .flatMap { $0.children("compoundIndex") }
            .map { $0.children("index").compactMap { $0.text("value") } }
        entity.indexes = element.children("fetchIndex").map(Self.index)
        var names: Set<String> = []
        for child in element.children where Self.properties.contains(child.name) {
            guard let own = child.text("name") else {
                fault(entity: name, property: nil, at: child, "a property has no name")
                continue
            }
            guard names.insert(own).inserted else {
                fault(entity: name, property: own, at: child, "there are two properties with this name")
                continue
            }
            if let property = property(from: child, own, entity: name) { entity.properties.append(property) }
        }
        source.entities.append(entity)
    }

    private static let properties: Set = ["attribute", "relationship", "fetchedProperty", "composite"]

    /// The setting for generated code.
    ///
    /// Without one, and with `none` or `manual`, the class is hand-written.
    private static func codeGeneration(of element: ModelXMLElement) -> EntitySource.CodeGeneration {
        switch element.text("codeGenerationType") {
        case "class": .class
        case "category": .category
        default: .manual
        }
    }

    static func userInfo(of element: ModelXMLElement) -> [String: String] {
        var userInfo: [String: String] = [:]
        for entry in element.children("userInfo").flatMap({ $0.children("entry") }) {
            if let key = entry["key"] { userInfo[key] = entry["value"] ?? "" }
        }
        return userInfo
    }

    private static func index(_ element: ModelXMLElement) -> FetchIndexSource {
        var index = FetchIndexSource(name: element["name"] ?? "", line: element.line)
        index.partialPredicate = element.text("partialIndexPredicate") ?? element.text("partialIndexPredicateString")
        index.elements = element.children("fetchIndexElement").map { item in
            FetchIndexSource.Element(
                line: item.line,
                property: item.text("property"),
                expression: item.text("expression"),
                expressionType: item.text("expressionType").flatMap(AttributeSource.TypeName.init(written:)),
                isTree: (item["type"] ?? "").lowercased().filter { $0 != "-" } == "rtree",
                isAscending: item["order"]?.lowercased() != "descending"
            )
        }
        return index
    }

    // MARK: - Properties

    private mutating func property(
        from element: ModelXMLElement,
        _ name: String,
        entity: String
    ) -> PropertySource? {
        switch element.name {
        case "relationship":
            return relationship(from: element, named: name, in: entity).map(PropertySource.relationship)
        case "fetchedProperty":
            let request = element.children("fetchRequest").first.flatMap {
                fetchRequest($0, entity: entity, property: name)
            }
            return .fetched(FetchedPropertySource(facts: Self.facts(of: element, name), request: request))
        default:
            return attribute(from: element, named: name, at: (entity, name)).map(PropertySource.attribute)
        }
    }

    private static func facts(of element: ModelXMLElement, _ name: String) -> PropertyFacts {
        PropertyFacts(
            name: name,
            line: element.line,
            isOptional: element.flag("optional"),
            isTransient: element.flag("transient"),
            isIndexed: element.flag("indexed"),
            // Xcode wrote the renaming identifier as `elementID` before `renamingIdentifier` existed.
            renamingIdentifier: element.text("renamingIdentifier") ?? element.text("elementID"),
            versionHashModifier: element.text("versionHashModifier"),
            userInfo: userInfo(of: element)
        )
    }

    private mutating func attribute(
        from element: ModelXMLElement,
        named name: String,
        at place: (entity: String?, property: String?)
    ) -> AttributeSource? {
        let typeName = element.name == "composite" ? "Composite" : element.text("attributeType") ?? "Undefined"
        guard let type = AttributeSource.TypeName(written: typeName) else {
            fault(
                entity: place.entity,
                property: place.property,
                at: element,
                "the attribute type \"\(typeName)\" is unknown"
            )
            return nil
        }
        var attribute = AttributeSource(
            facts: Self.facts(of: element, name),
            type: type,
            texts: element.attributes,
            usesScalarValueType: element.flag("usesScalarValueType"),
            customClassName: element.text("customClassName"),
            valueTransformerName: element.text("valueTransformerName"),
            isDerived: element.flag("derived") && type != .composite,
            derivationExpression: element.text("derivationExpression"),
            allowsExternalBinaryDataStorage: element.flag("allowsExternalBinaryDataStorage"),
            preservesValueInHistoryOnDeletion: element.flag("preserveAfterDeletion")
                || element.flag("preservesValueInHistoryOnDeletion")
        )
        if attribute.isDerived, attribute.derivationExpression == nil {
            fault(
                entity: place.entity,
                property: place.property,
                at: element,
                "the derived attribute has no derivation expression"
            )
        }
        if type == .composite {
            attribute.elements = elements(of: element, place)
            if attribute.elements.isEmpty {
                attribute.compositeNames = Self.compositeNameKeys.compactMap { element.text($0) }
            }
        }
        return attribute
    }

    /// The elements of a composite attribute, or of a composite type.
    private mutating func elements(
        of element: ModelXMLElement,
        _ place: (entity: String?, property: String?)
    ) -> [AttributeSource] {
        var elements: [AttributeSource] = []
        for child in element.children where ["attribute", "composite"].contains(child.name) {
            guard let name = child.text("name") else {
                fault(
                    entity: place.entity,
                    property: place.property,
                    at: child,
                    "an element of the composite attribute has no name"
                )
                continue
            }
            if let inner = attribute(from: child, named: name, at: place) { elements.append(inner) }
        }
        return elements
    }

    /// Possible keys.
    ///
    /// Xcode writes the first; the others occur in files of other tools.
    private static let compositeNameKeys = [
        "composite", "compositeName", "compositeType", "elementName", "customClassName", "destinationComposite",
    ]

    private mutating func relationship(
        from element: ModelXMLElement,
        named name: String,
        in entity: String
    ) -> RelationshipSource? {
        guard let destination = element.text("destinationEntity") else {
            fault(entity: entity, property: name, at: element, "the relationship has no destination entity")
            return nil
        }
        var relationship = RelationshipSource(facts: Self.facts(of: element, name), destination: destination)
        relationship.inverse = element.text("inverseName").map {
            RelationshipSource.Inverse(name: $0, entity: element.text("inverseEntity") ?? destination)
        }
        relationship.isToMany = element.flag("toMany")
        relationship.isOrdered = element.flag("ordered")
        relationship.minCount = count("minCount", of: element, entity: entity, name: name) ?? 0
        let maxCount = count("maxCount", of: element, entity: entity, name: name)
        relationship.maxCount = relationship.isToMany ? maxCount ?? 0 : 1
        if let rule = element.text("deletionRule") {
            if let known = RelationshipSource.DeleteRule(rawValue: rule) {
                relationship.deleteRule = known
            } else {
                fault(entity: entity, property: name, at: element, "the deletion rule \"\(rule)\" is unknown")
            }
        }
        return relationship
    }

    private mutating func count(
        _ attribute: String,
        of element: ModelXMLElement,
        entity: String,
        name: String
    ) -> Int? {
        guard let text = element.text(attribute) else { return nil }
        guard let value = Int32(text), value >= -1 else {
            fault(entity: entity, property: name, at: element, "\(attribute) is not a count: \"\(text)\"")
            return nil
        }
        return Int(value)
    }

    // MARK: - Parts beside entities

    private mutating func addComposite(_ element: ModelXMLElement) {
        guard let name = element.text("name") else { return }
        let elements = elements(of: element, (nil, name))
        source.composites.append(CompositeSource(name: name, line: element.line, elements: elements))
    }

    private mutating func addConfiguration(_ element: ModelXMLElement) {
        guard let name = element.text("name") else { return }
        let members = element.children("memberEntity").map { $0["name"] ?? "" }
        source.configurations.append(ConfigurationSource(name: name, line: element.line, members: members))
    }

    private mutating func addTemplate(_ element: ModelXMLElement) {
        guard element.text("name") != nil else {
            return fault(entity: nil, property: nil, at: element, "a fetch request has no name")
        }
        if let request = fetchRequest(element, entity: nil, property: nil) { source.fetchRequests.append(request) }
    }

    private mutating func fetchRequest(
        _ element: ModelXMLElement,
        entity: String?,
        property: String?
    ) -> FetchRequestSource? {
        var request = FetchRequestSource(
            name: element["name"] ?? "",
            line: element.line,
            entity: element["entity"] ?? "",
            predicate: element.text("predicateString")
        )
        func number(_ attribute: String) -> Int? {
            guard let text = element.text(attribute) else { return 0 }
            return Int(text).flatMap { $0 >= 0 ? $0 : nil }
        }
        var numbers: [Int] = []
        for attribute in ["fetchLimit", "fetchOffset", "fetchBatchSize", "resultType"] {
            guard let value = number(attribute) else {
                fault(
                    entity: entity,
                    property: property,
                    at: element,
                    "\(attribute) is not a count: \"\(element[attribute] ?? "")\""
                )
                return nil
            }
            numbers.append(value)
        }
        (request.limit, request.offset, request.batchSize, request.resultType) = (
            numbers[0], numbers[1], numbers[2], numbers[3]
        )
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
}
