import CoreDataEssentials
import StrataPredicates

extension NSMappingModel {
    /// Infers a mapping model from two models.
    ///
    /// Entities and properties are paired by their renaming identifiers. The mappings are named as in Apple's
    /// framework: `IEM_Copy_E`, `IEM_Transform_E`, `IEM_Add_E` and `IEM_Remove_E`, with the source's name if the entity
    /// was renamed. They can be changed; a migration uses the changed mappings. As on Apple's platforms, the `userInfo`
    /// of an entity mapping has the names of its properties in three sets: `mappedProperties`, `addedProperties` and
    /// `removedProperties`.
    ///
    /// ```swift
    /// let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: old, destinationModel: new)
    /// print(mapping.entityMappingsByName.keys.sorted())
    /// ```
    ///
    /// - Parameters:
    ///   - sourceModel: The model to migrate from.
    ///   - destinationModel: The model to migrate to.
    /// - Returns: The mapping model.
    /// - Throws: `inferredMappingModel` (134190) if the inference is not possible, with one error for each reason under
    ///   `NSDetailedErrorsKey`.
    public class func inferredMappingModel(
        forSourceModel sourceModel: NSManagedObjectModel,
        destinationModel: NSManagedObjectModel
    ) throws -> NSMappingModel {
        let mapping = InferredMapping(from: sourceModel, to: destinationModel)
        try mapping.requireInferable()
        return NSMappingModel(mapping)
    }

    /// Makes the mapping model that migrates by objects in the same way as an inferred mapping.
    convenience init(_ mapping: InferredMapping) {
        self.init()
        entityMappings = mapping.entities.map(NSEntityMapping.init)
        inferredText = text
    }

    /// The inferred mapping, if this model was made from one between the two models and was not changed since.
    func uneditedInference(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) -> InferredMapping?
    {
        guard let inferredText, inferredText == text else { return nil }
        let mapping = InferredMapping(from: source, to: destination)
        // Another pair of models may lead to another mapping.
        guard mapping.obstacles.isEmpty, NSMappingModel(mapping).text == inferredText else { return nil }
        return mapping
    }

    /// The contents of the model, as one text.
    private var text: String {
        entityMappings.map { mapping in
            let properties = ((mapping.attributeMappings ?? []) + (mapping.relationshipMappings ?? [])).map { "\($0)" }
            let hashes = [mapping.sourceEntityVersionHash, mapping.destinationEntityVersionHash]
                .map { $0?.base64EncodedString() ?? "" }
            return
                ([
                    "\(mapping)", mapping.entityMigrationPolicyClassName ?? "",
                    mapping.sourceExpression.map { "\($0)" } ?? "",
                ] + hashes + properties).joined(separator: "|")
        }.joined(separator: "\n")
    }
}

extension NSEntityMapping {
    fileprivate convenience init(_ inferred: InferredEntity) {
        self.init()
        name = inferred.name
        mappingType =
            switch inferred.kind {
            case .copy: .copyEntityMappingType
            case .transform: .transformEntityMappingType
            case .add: .addEntityMappingType
            case .remove: .removeEntityMappingType
            }
        sourceEntityName = inferred.source?.name
        destinationEntityName = inferred.destination?.name
        sourceEntityVersionHash = inferred.source?.versionHash
        destinationEntityVersionHash = inferred.destination?.versionHash
        if let source = inferred.source?.name {
            sourceExpression = MappingExpressions.objects(of: source, predicate: "TRUEPREDICATE")
        }
        let names = inferred.propertyNames
        userInfo = [
            "mappedProperties": names.mapped, "addedProperties": names.added, "removedProperties": names.removed,
        ]
        guard inferred.source != nil, inferred.destination != nil else { return }
        attributeMappings = inferred.attributes.map { attribute in
            NSPropertyMapping(attribute.destination.name, MappingExpressions.value(of: attribute))
        }
        relationshipMappings = inferred.relationships.map { relationship in
            let members = relationship.source.map { MappingExpressions.sourceValue($0.name) }
            let name = relationship.source?.name ?? ""
            return NSPropertyMapping(
                relationship.destination.name,
                members.map { MappingExpressions.destinations(relationship: name, $0) }
            )
        }
    }
}

extension InferredEntity {
    /// The names of the stored properties, in three sets.
    ///
    /// These are the destination's properties that have a source, those that have none, and the source's properties
    /// that are removed.
    fileprivate var propertyNames: (mapped: Set<String>, added: Set<String>, removed: Set<String>) {
        let pairs =
            attributes.map { ($0.destination.name, $0.source?.name) }
            + relationships.map { ($0.destination.name, $0.source?.name) }
        func stored(_ entity: NSEntityDescription?) -> Set<String> {
            Set(
                (entity?.properties ?? []).filter { !$0.isTransient && !($0 is NSFetchedPropertyDescription) }.map(
                    \.name
                )
            )
        }
        let mapped = Set(pairs.filter { $0.1 != nil }.map(\.0))
        return (mapped, stored(destination).subtracting(mapped), stored(source).subtracting(pairs.compactMap(\.1)))
    }
}

extension NSPropertyMapping {
    fileprivate convenience init(_ name: String, _ expression: NSExpression?) {
        self.init()
        self.name = name
        valueExpression = expression
    }
}

extension MappingExpressions {
    /// The value of a property of the source object, in the form of Apple's inference.
    fileprivate static func sourceValue(_ key: String) -> NSExpression {
        NSExpression(
            forFunction: NSExpression(forVariable: NSMigrationSourceObjectKey),
            selectorName: "valueForKey:",
            arguments: [NSExpression(forConstantValue: key)]
        )
    }

    /// The expression for the value of an attribute; `nil` for one that starts with its default value.
    fileprivate static func value(of attribute: InferredAttribute) -> NSExpression? {
        guard let source = attribute.source else { return nil }
        let value = sourceValue(source.name)
        guard attribute.hasRenamedElements else { return value }
        return NSExpression(
            block: { _, arguments, _ in
                (arguments.first as? [String: Any]).map { attribute.renaming($0) as Any } ?? NSNull()
            },
            arguments: [value]
        )
    }
}

extension InferredAttribute {
    /// Whether any element of a composite attribute has another name, is new, was dropped, or became required.
    fileprivate var hasRenamedElements: Bool {
        guard !elements.isEmpty else { return false }
        let old = (source as? NSCompositeAttributeDescription)?.elements.map(\.name) ?? []
        return elements.contains {
            $0.source?.name != $0.destination.name || $0.becomesRequired || $0.hasRenamedElements
        } || old.count != elements.count
    }

    /// Whether the attribute may be nil in the source, but not in the destination.
    private var becomesRequired: Bool { source?.isOptional == true && !destination.isOptional }

    /// The elements under their new names, with default values for elements that are new or became required.
    fileprivate func renaming(_ values: [String: Any]) -> [String: Any] {
        var renamed: [String: Any] = [:]
        for element in elements {
            guard let name = element.source?.name, let value = values[name] else {
                if element.source == nil || element.becomesRequired {
                    renamed[element.destination.name] = element.destination.defaultValue
                }
                continue
            }
            let nested = value as? [String: Any]
            renamed[element.destination.name] = element.elements.isEmpty ? value : nested.map(element.renaming) ?? value
        }
        return renamed
    }
}
