import CoreDataEssentials
import StrataModelFiles
import StrataPredicates
import StrataRows

/// Makes descriptions of the properties in a model file.
///
/// References to other entities are set later.
struct PropertyReader {
    /// The composite types that the model declares, by name.
    private let composites: [String: CompositeSource]
    private let budget = ReadingBudget()

    init(composites: [CompositeSource]) {
        self.composites = Dictionary(composites.map { ($0.name, $0) }) { _, last in last }
    }

    func property(from source: PropertySource, entity: String) throws(ModelError) -> NSPropertyDescription {
        let facts = source.facts
        let place = Place(entity: entity, property: facts.name, line: facts.line)
        let property: NSPropertyDescription
        switch source {
        case .relationship(let source): property = relationship(from: source)
        case .fetched: property = NSFetchedPropertyDescription()
        case .attribute(let source): property = try attribute(from: source, place, depth: 0)
        }
        adopt(facts, into: property)
        return property
    }

    private func adopt(_ facts: PropertyFacts, into property: NSPropertyDescription) {
        property.name = facts.name
        property.isOptional = facts.isOptional
        property.isTransient = facts.isTransient
        property.isIndexed = facts.isIndexed
        property.versionHashModifier = facts.versionHashModifier
        property.renamingIdentifier = facts.renamingIdentifier
        property.userInfo = facts.userInfo
    }

    // MARK: - Attributes

    private func attribute(
        from source: AttributeSource,
        _ place: Place,
        depth: Int
    ) throws(ModelError) -> NSAttributeDescription {
        let type = Self.attributeType(source.type)
        let attribute: NSAttributeDescription
        if type == .composite {
            attribute = try composite(from: source, place, depth: depth)
        } else if source.isDerived {
            attribute = try derived(from: source, place)
        } else {
            attribute = NSAttributeDescription()
        }
        attribute.type = type
        attribute.valueTransformerName = source.valueTransformerName
        if type == .transformable, let className = source.customClassName {
            attribute.attributeValueClassName = className
        }
        attribute.allowsExternalBinaryDataStorage = source.allowsExternalBinaryDataStorage
        attribute.preservesValueInHistoryOnDeletion = source.preservesValueInHistoryOnDeletion
        let values = AttributeValueReader(type: type, place: place)
        attribute.defaultValue = try values.defaultValue(from: source)
        let rules = try values.validationRules(from: source)
        attribute.setValidationPredicates(rules.map(\.predicate), withValidationWarnings: rules.map(\.code))
        return attribute
    }

    /// The framework's type for a type name in a file; both use the same names.
    static func attributeType(_ name: AttributeSource.TypeName) -> NSAttributeDescription.AttributeType {
        let type = AttributeType(described: name.rawValue) ?? .undefined
        return NSAttributeDescription.AttributeType(rawValue: NSAttributeType(type))
    }

    private func derived(from source: AttributeSource, _ place: Place) throws(ModelError) -> NSAttributeDescription {
        let attribute = NSDerivedAttributeDescription()
        let text = source.derivationExpression ?? ""
        do {
            try attribute.setDerivation(ModelText.expression(text), readFrom: text)
        } catch {
            throw place.failure("the derivation \"\(ModelText.quotable(text))\" cannot be understood")
        }
        return attribute
    }

    /// A composite attribute; its elements are its own, or those of the composite type that it names.
    private func composite(
        from source: AttributeSource,
        _ place: Place,
        depth: Int
    ) throws(ModelError) -> NSAttributeDescription {
        guard depth < 8 else {
            throw place.failure("composite attributes are nested too deeply, or contain themselves")
        }
        var sources = source.elements
        if sources.isEmpty {
            guard let named = source.compositeNames.lazy.compactMap({ composites[$0] }).first else {
                throw place.failure("its composite type \"\(source.compositeNames.first ?? "")\" is not in the model")
            }
            sources = named.elements
        }
        let attribute = NSCompositeAttributeDescription()
        var elements: [NSAttributeDescription] = []
        for source in sources {
            try budget.spend(1)
            let inner = try self.attribute(from: source, place, depth: depth + 1)
            adopt(source.facts, into: inner)
            elements.append(inner)
        }
        attribute.elements = elements
        return attribute
    }

    // MARK: - Relationships

    private func relationship(from source: RelationshipSource) -> NSRelationshipDescription {
        let relationship = NSRelationshipDescription()
        relationship.isOrdered = source.isOrdered
        relationship.minCount = source.minCount
        relationship.maxCount = source.maxCount
        relationship.deleteRule =
            switch source.deleteRule {
            case .noAction: .noActionDeleteRule
            case .nullify: .nullifyDeleteRule
            case .cascade: .cascadeDeleteRule
            case .deny: .denyDeleteRule
            }
        return relationship
    }
}

/// The property that is being read, for messages.
struct Place {
    let entity: String
    let property: String
    /// The line in the file, if the file has lines.
    var line: Int?

    func failure(_ reason: String) -> ModelError {
        ModelError(.invalid, entity: entity, property: property, line: line, reason)
    }
}
