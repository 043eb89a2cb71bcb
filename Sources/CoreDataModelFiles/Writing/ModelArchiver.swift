import CoreDataEssentials
import StrataArchives
import StrataPredicates
import StrataRows

extension NSManagedObjectModel {
    /// The copy of the model for `Z_MODELCACHE` in a store: in the form of Apple's framework, packed.
    ///
    /// It contains all that migrations need: entities, attributes with types and default values, relationships,
    /// renaming identifiers, constraints, indexes and configurations. Validation predicates, fetched properties,
    /// templates, and default values of transformable and composite attributes are omitted.
    ///
    /// - Returns: The copy; `nil` for a model with a derivation that cannot be written.
    package func cachedModelData() -> Data? {
        var archiver = ModelArchiver()
        return archiver.archive(self).map { Deflate.deflate($0) }
    }
}

/// Turns a model into an archive that ``CompiledModelReader`` and Apple's framework read.
struct ModelArchiver {
    private typealias Node = BinaryPropertyList.Node

    // Only plain values may be written.
    private var writer = PropertyArchiveWriter(rule: .classes([]))
    private var modelNumber = 0
    private var numbers: [ObjectIdentifier: Int] = [:]
    /// The numbers of properties, by the entity that contains them.
    private var properties: [ObjectIdentifier: [String: Int]] = [:]
    private var isComplete = true

    mutating func archive(_ model: NSManagedObjectModel) -> Data? {
        modelNumber = writer.reserve()
        let entities = model.entities.filter { $0.name != nil }.sorted { ($0.name ?? "") < ($1.name ?? "") }
        for entity in entities { numbers[ObjectIdentifier(entity)] = writer.reserve() }
        for entity in entities {
            // Each entity has separate descriptions of its inherited properties.
            let names = stored(entity).map(\.name)
            properties[ObjectIdentifier(entity)] = Dictionary(
                names.map { ($0, writer.reserve()) },
                uniquingKeysWith: { first, _ in first }
            )
        }
        for entity in entities { fill(entity) }
        let list = entities.compactMap { entity in numbers[ObjectIdentifier(entity)].map { (entity.name ?? "", $0) } }
        let identifiers = model.versionIdentifiers.compactMap { $0 as? String }.sorted().map { writer.add($0) }
        let fields: [String: Node] = [
            "NSEntities": .uid(knownKeys(list)),
            "NSFetchRequestTemplates": .uid(0),
            "NSVersionIdentifiers": .uid(writer.add("NSSet", ["NS.objects": writer.references(identifiers)])),
            "NSConfigurations": .uid(configurations(of: model)),
        ]
        writer.fill(modelNumber, asInstanceOf: "NSManagedObjectModel", fields: fields)
        return isComplete ? writer.finish(root: modelNumber) : nil
    }

    // MARK: - Collections

    /// A dictionary in the form of Apple's framework for a model in a store.
    private mutating func knownKeys(_ entries: [(String, Int)]) -> Int {
        let keys = writer.add(
            "NSArray",
            ["NS.objects": writer.references(entries.map { writer.add($0.0) })]
        )
        let values = writer.add("NSArray", ["NS.objects": writer.references(entries.map(\.1))])
        let mapping = writer.add(
            "NSKnownKeysMappingStrategy1",
            ["keys": .uid(keys), "length": .integer(Int64(entries.count)), "version": .integer(1)]
        )
        return writer.add(
            "NSKnownKeysDictionary1",
            [
                "searchMapping": .uid(mapping), "values": .uid(values), "version": .integer(1),
                "emptyToken": .uid(writer.add("__empty_slot_token_4c24_98dc_ac1e_b773__")),
            ]
        )
    }

    private mutating func dictionary(_ entries: [(String, Int)]) -> Int {
        let keys = entries.map { writer.add($0.0) }
        return writer.add(
            "NSMutableDictionary",
            ["NS.keys": writer.references(keys), "NS.objects": writer.references(entries.map(\.1))]
        )
    }

    private mutating func array(_ numbers: [Int], _ className: String = "NSMutableArray") -> Int {
        writer.add(className, ["NS.objects": writer.references(numbers)])
    }

    private mutating func text(_ text: String?) -> Node { .uid(text.map { writer.add($0) } ?? 0) }

    /// A plain value, or nil.
    private mutating func value(_ value: Any?) -> Node { .uid(value.flatMap { writer.write($0, depth: 0) } ?? 0) }

    private mutating func configurations(of model: NSManagedObjectModel) -> Int {
        let members = model.membersByConfiguration.sorted { $0.key < $1.key }
        guard !members.isEmpty else { return 0 }
        let entries = members.map { name, entities in
            let members = entities.compactMap { numbers[ObjectIdentifier($0)] }
            return (name, writer.add("NSSet", ["NS.objects": writer.references(members)]))
        }
        return dictionary(entries)
    }

    // MARK: - Entities

    /// The properties of an entity that are kept, including the inherited ones, by name.
    private func stored(_ entity: NSEntityDescription) -> [NSPropertyDescription] {
        entity.properties.filter { $0 is NSAttributeDescription || $0 is NSRelationshipDescription }
            .sorted { $0.name < $1.name }
    }

    private mutating func fill(_ entity: NSEntityDescription) {
        guard let number = numbers[ObjectIdentifier(entity)], let own = properties[ObjectIdentifier(entity)] else {
            return
        }
        for property in stored(entity) {
            if let place = own[property.name] { fill(place, property, of: number) }
        }
        let children = entity.subentities.compactMap { child in
            numbers[ObjectIdentifier(child)].map { (child.name ?? "", $0) }
        }
        var fields: [String: Node] = [
            "NSEntityName": text(entity.name),
            "NSClassNameForEntity": text(entity.managedObjectClassName),
            "NSManagedObjectModel": .uid(modelNumber),
            "NSSuperentity": .uid(entity.superentity.flatMap { numbers[ObjectIdentifier($0)] } ?? 0),
            "NSSubentities": .uid(dictionary(children.sorted { $0.0 < $1.0 })),
            "NSProperties": .uid(dictionary(own.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })),
            "NSRenamingIdentifier": text(entity.renamingIdentifier),
            "NSVersionHashModifier": text(entity.versionHashModifier),
            "NSUserInfo": value(entity.userInfo),
        ]
        if entity.isAbstract { fields["NSIsAbstract"] = .bool(true) }
        if !entity.uniquenessConstraintNames.isEmpty {
            fields["NSUniqueTuples"] = .uid(tuples(entity.uniquenessConstraintNames))
        }
        if !entity.compoundIndexNames.isEmpty {
            fields["NSCompoundIndexes"] = .uid(tuples(entity.compoundIndexNames))
        }
        if !entity.indexes.isEmpty { fields["NSFetchIndexDescriptions"] = .uid(indexes(of: entity, number)) }
        writer.fill(number, asInstanceOf: "NSEntityDescription", fields: fields)
    }

    private mutating func tuples(_ tuples: [[String]]) -> Int {
        let lists = tuples.map { names in array(names.map { writer.add($0) }) }
        return array(lists)
    }

    private mutating func indexes(of entity: NSEntityDescription, _ number: Int) -> Int {
        // Without its expression or predicate, such an index would have another meaning.
        let indexes = entity.indexes.filter { index in
            index.partialIndexPredicate == nil && index.elements.allSatisfy { $0.propertyName != nil }
        }
        let numbers = indexes.map { index in
            let place = writer.reserve()
            let elements = index.elements.map { element in
                writer.add(
                    "NSFetchIndexElementDescription",
                    [
                        "NSPropertyName": text(element.propertyName),
                        "NSFetchIndexElementType": .integer(Int64(element.collationType.rawValue)),
                        "NSAscending": .bool(element.isAscending),
                        "NSFetchIndexDescription": .uid(place),
                    ]
                )
            }
            writer.fill(
                place,
                asInstanceOf: "NSFetchIndexDescription",
                fields: [
                    "NSIndexName": text(index.name),
                    "NSIndexElements": .uid(array(elements, "NSArray")),
                    "NSPartialIndexPredicate": .uid(0),
                    "NSEntity": .uid(number),
                ]
            )
            return place
        }
        return array(numbers, "NSArray")
    }

    // MARK: - Properties

    private mutating func fill(_ place: Int, _ property: NSPropertyDescription, of entity: Int) {
        var fields: [String: Node] = [
            "NSPropertyName": text(property.name),
            "NSRenamingIdentifier": text(property.renamingIdentifier),
            "NSEntity": .uid(entity),
        ]
        // The mask marks the optional fields that are present.
        var mask: Int64 = 241
        if property.isOptional {
            fields["NSIsOptional"] = .bool(true)
            mask |= 2
        }
        if property.isTransient {
            fields["NSIsTransient"] = .bool(true)
            mask |= 8
        }
        if property.isIndexed { fields["NSIsIndexed"] = .bool(true) }
        if let modifier = property.versionHashModifier {
            fields["NSVersionHashModifier"] = text(modifier)
            mask &= ~128
        }
        if let info = property.userInfo, !info.isEmpty {
            fields["NSUserInfo"] = value(info)
            mask &= ~64
        }
        fields["_P"] = .integer(mask)
        if let relationship = property as? NSRelationshipDescription {
            add(relationship, to: &fields)
            writer.fill(place, asInstanceOf: "NSRelationshipDescription", fields: fields)
        } else if let attribute = property as? NSAttributeDescription {
            let className = add(attribute, of: entity, to: &fields)
            writer.fill(place, asInstanceOf: className, fields: fields)
        }
    }

    private mutating func add(_ relationship: NSRelationshipDescription, to fields: inout [String: Node]) {
        let destination = relationship.destinationEntity
        let inverse = relationship.inverseRelationship
        fields["_NSDestinationEntityName"] = text(destination?.name)
        fields["NSDestinationEntity"] = .uid(destination.flatMap { numbers[ObjectIdentifier($0)] } ?? 0)
        fields["_NSInverseRelationshipName"] = text(inverse?.name)
        let other = destination.flatMap { properties[ObjectIdentifier($0)] }
        fields["NSInverseRelationship"] = .uid(inverse.flatMap { other?[$0.name] } ?? 0)
        fields["NSMaxCount"] = .integer(Int64(relationship.maxCount))
        fields["NSMinCount"] = .integer(Int64(relationship.minCount))
        fields["NSDeleteRule"] = .integer(Int64(relationship.deleteRule.rawValue))
        if relationship.isOrdered { fields["NSIsOrdered"] = .bool(true) }
    }

    /// Adds the fields of an attribute, and returns the name of its class.
    private mutating func add(
        _ attribute: NSAttributeDescription,
        of entity: Int,
        to fields: inout [String: Node]
    ) -> String {
        let isPlain = attribute.type != .transformable && attribute.type != .composite
        fields["NSAttributeType"] = .integer(Int64(attribute.attributeType.rawValue))
        fields["NSAttributeValueClassName"] = text(attribute.attributeValueClassName)
        fields["NSValueTransformerName"] = text(attribute.valueTransformerName)
        fields["NSDefaultValue"] = isPlain ? value(attribute.defaultValue) : .uid(0)
        var flags: Int64 = 0
        if attribute.allowsExternalBinaryDataStorage { flags |= 4 }
        if attribute.preservesValueInHistoryOnDeletion { flags |= 16 }
        fields["NSFlagsKey"] = .integer(flags)
        if let derived = attribute as? NSDerivedAttributeDescription {
            fields["NSDerivationExpression"] = .uid(derivation(derived))
            fields["NSFilteringPredicate"] = .uid(0)
            return "NSDerivedAttributeDescription"
        }
        if let composite = attribute as? NSCompositeAttributeDescription {
            let elements = composite.elements.map { element in
                let place = writer.reserve()
                fill(place, element, of: entity)
                return place
            }
            fields["NSElements"] = .uid(array(elements, "NSArray"))
            return "NSCompositeAttributeDescription"
        }
        return "NSAttributeDescription"
    }

    // MARK: - Derivations

    private mutating func derivation(_ attribute: NSDerivedAttributeDescription) -> Int {
        // The text is part of the version hash, so if it does not read back unchanged, then the copy is unusable.
        guard let text = attribute.derivationText, let expression = expression(text) else {
            isComplete = false
            return 0
        }
        return expression
    }

    private mutating func expression(_ text: String) -> Int? {
        guard let open = text.firstIndex(of: "(") else { return keyPath(text) }
        guard text.hasSuffix(")") else { return nil }
        let name = String(text[..<open])
        let argument = String(text[text.index(after: open)...].dropLast())
        guard !argument.contains("("), !argument.contains(",") else { return nil }
        let target = writer.add(
            "NSConstantValueExpression",
            ["NSConstantValueClassName": self.text("_NSPredicateUtilities"), "NSExpressionType": .integer(0)]
        )
        var arguments: [Int] = []
        if !argument.isEmpty {
            guard let path = keyPath(argument) else { return nil }
            arguments.append(path)
        }
        return writer.add(
            "NSFunctionExpression",
            [
                "NSOperand": .uid(target), "NSSelectorName": self.text(name), "NSExpressionType": .integer(4),
                "NSArguments": .uid(array(arguments)),
            ]
        )
    }

    private mutating func keyPath(_ path: String) -> Int? {
        guard !path.isEmpty, path.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }) else {
            return nil
        }
        let specifier = writer.add(
            "NSKeyPathSpecifierExpression",
            ["NSKeyPath": text(path), "NSExpressionType": .integer(10)]
        )
        let itself = writer.add("NSSelfExpression", ["NSExpressionType": .integer(1)])
        return writer.add(
            "NSKeyPathExpression",
            [
                "NSOperand": .uid(itself),
                "NSSelectorName": text(path.contains(".") ? "valueForKeyPath:" : "valueForKey:"),
                "NSExpressionType": .integer(3), "NSArguments": .uid(array([specifier])),
            ]
        )
    }
}
