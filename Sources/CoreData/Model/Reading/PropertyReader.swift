import StrataPredicates
import StrataRows

/// Turns the XML of properties into descriptions.
///
/// What leads to other entities comes later.
struct PropertyReader {
    /// The composite types that the model declares, by name.
    private let composites: [String: ModelXMLElement]
    private let budget = ReadingBudget()

    init(composites: [ModelXMLElement]) {
        var byName: [String: ModelXMLElement] = [:]
        for composite in composites {
            if let name = composite.text("name") { byName[name] = composite }
        }
        self.composites = byName
    }

    /// The property that an element describes, or `nil` when the element is something else.
    func property(from element: ModelXMLElement, entity: String) throws(ModelError) -> NSPropertyDescription? {
        let isProperty = ["attribute", "relationship", "fetchedProperty", "composite"].contains(element.name)
        guard isProperty else { return nil }
        guard let name = element.text("name") else {
            throw ModelError(.invalid, entity: entity, "a property has no name (line \(element.line))")
        }
        let place = Place(entity: entity, property: name)
        let property: NSPropertyDescription
        switch element.name {
        case "relationship": property = try relationship(from: element, place)
        case "fetchedProperty": property = NSFetchedPropertyDescription()
        default: property = try attribute(from: element, place, depth: 0)
        }
        adoptFacts(of: element, name: name, into: property)
        return property
    }

    private func adoptFacts(of element: ModelXMLElement, name: String, into property: NSPropertyDescription) {
        property.name = name
        property.isOptional = element.flag("optional")
        property.isTransient = element.flag("transient")
        property.isIndexed = element.flag("indexed")
        property.versionHashModifier = element.text("versionHashModifier")
        // `elementID` is what Xcode wrote for the renaming identifier before `renamingIdentifier`.
        property.renamingIdentifier = element.text("renamingIdentifier") ?? element.text("elementID")
        property.userInfo = Self.userInfo(of: element)
    }

    /// The entries of the element's `<userInfo>`; none when there is no such element.
    static func userInfo(of element: ModelXMLElement) -> [AnyHashable: Any] {
        let entries = element.children("userInfo").flatMap { $0.children("entry") }
        var userInfo: [AnyHashable: Any] = [:]
        for entry in entries {
            if let key = entry["key"] { userInfo[key] = entry["value"] ?? "" }
        }
        return userInfo
    }

    // MARK: - Attributes

    private func attribute(
        from element: ModelXMLElement,
        _ place: Place,
        depth: Int
    ) throws(ModelError) -> NSAttributeDescription {
        let typeName = element.name == "composite" ? "Composite" : element.text("attributeType") ?? "Undefined"
        guard let type = Self.attributeType(typeName) else {
            throw place.failure("the attribute type \"\(typeName)\" is unknown (line \(element.line))")
        }
        let attribute: NSAttributeDescription
        if type == .composite {
            attribute = try composite(from: element, place, depth: depth)
        } else if element.flag("derived") {
            attribute = try derived(from: element, place)
        } else {
            attribute = NSAttributeDescription()
        }
        attribute.type = type
        attribute.valueTransformerName = element.text("valueTransformerName")
        if type == .transformable, let className = element.text("customClassName") {
            attribute.attributeValueClassName = className
        }
        attribute.allowsExternalBinaryDataStorage = element.flag("allowsExternalBinaryDataStorage")
        attribute.preservesValueInHistoryOnDeletion =
            element.flag("preserveAfterDeletion") || element.flag("preservesValueInHistoryOnDeletion")
        let values = AttributeValueReader(type: type, place: place)
        attribute.defaultValue = try values.defaultValue(from: element)
        let rules = try values.validationRules(from: element)
        attribute.setValidationPredicates(rules.map(\.predicate), withValidationWarnings: rules.map(\.code))
        return attribute
    }

    /// The type with the name that Xcode writes, or `nil` when there is none.
    static func attributeType(_ name: String) -> NSAttributeDescription.AttributeType? {
        AttributeType(described: name).map { NSAttributeDescription.AttributeType(rawValue: NSAttributeType($0)) }
    }

    private func derived(from element: ModelXMLElement, _ place: Place) throws(ModelError) -> NSAttributeDescription {
        let attribute = NSDerivedAttributeDescription()
        guard let text = element.text("derivationExpression") else {
            throw place.failure("the derived attribute has no derivation expression (line \(element.line))")
        }
        do {
            try attribute.setDerivation(text)
        } catch {
            throw place.failure("the derivation \"\(text)\" cannot be understood")
        }
        return attribute
    }

    /// A composite attribute: its elements are its own children, or those of the composite type that it names.
    private func composite(
        from element: ModelXMLElement,
        _ place: Place,
        depth: Int
    ) throws(ModelError) -> NSAttributeDescription {
        guard depth < 8 else {
            throw place.failure("composite attributes are nested too deeply, or contain themselves")
        }
        var source = element
        if element.children.allSatisfy({ !["attribute", "composite"].contains($0.name) }) {
            // Xcode writes the first; the others are met in files that other tools have made.
            let keys = [
                "composite", "compositeName", "compositeType", "elementName", "customClassName", "destinationComposite",
            ]
            let names = keys.compactMap { element.text($0) }
            guard let named = names.lazy.compactMap({ composites[$0] }).first else {
                throw place.failure(
                    "its composite type \"\(names.first ?? "")\" is not in the model (line \(element.line))"
                )
            }
            source = named
        }
        let attribute = NSCompositeAttributeDescription()
        var elements: [NSAttributeDescription] = []
        for child in source.children where ["attribute", "composite"].contains(child.name) {
            guard let name = child.text("name") else {
                throw place.failure("an element of the composite attribute has no name (line \(child.line))")
            }
            try budget.spend(1)
            let inner = try self.attribute(from: child, place, depth: depth + 1)
            adoptFacts(of: child, name: name, into: inner)
            elements.append(inner)
        }
        attribute.elements = elements
        return attribute
    }

    // MARK: - Relationships

    private func relationship(
        from element: ModelXMLElement,
        _ place: Place
    ) throws(ModelError) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        relationship.isOrdered = element.flag("ordered")
        relationship.minCount = try count("minCount", of: element, place) ?? 0
        let maxCount = try count("maxCount", of: element, place)
        relationship.maxCount = element.flag("toMany") ? maxCount ?? 0 : 1
        switch element.text("deletionRule") ?? "Nullify" {
        case "No Action": relationship.deleteRule = .noActionDeleteRule
        case "Nullify": relationship.deleteRule = .nullifyDeleteRule
        case "Cascade": relationship.deleteRule = .cascadeDeleteRule
        case "Deny": relationship.deleteRule = .denyDeleteRule
        case let rule: throw place.failure("the deletion rule \"\(rule)\" is unknown (line \(element.line))")
        }
        return relationship
    }

    private func count(_ attribute: String, of element: ModelXMLElement, _ place: Place) throws(ModelError) -> Int? {
        guard let text = element.text(attribute) else { return nil }
        guard let value = Int32(text), value >= -1 else {
            throw place.failure("\(attribute) is not a count: \"\(text)\"")
        }
        return Int(value)
    }
}

/// The property that is being read, for messages.
struct Place {
    let entity: String
    let property: String

    func failure(_ reason: String) -> ModelError {
        ModelError(.invalid, entity: entity, property: property, reason)
    }
}
