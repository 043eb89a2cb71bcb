import CoreData

/// A model as one JSON object, for programs.
enum ModelJSON {
    static func json(of model: NSManagedObjectModel) -> JSON {
        .object([
            JSON.Member("versionIdentifier", .string(model.identifierText)),
            JSON.Member("checksum", .string(model.versionChecksum)),
            JSON.Member(
                "configurations",
                .object(model.ownConfigurations.map { JSON.Member($0.name, strings($0.members)) })
            ),
            JSON.Member("entities", .array(model.sortedEntities.map(json))),
        ])
    }

    private static func strings(_ texts: [String]) -> JSON { .array(texts.map { .string($0) }) }

    private static func text(_ text: String?) -> JSON { text.map { .string($0) } ?? .null }

    private static func json(of entity: NSEntityDescription) -> JSON {
        .object([
            JSON.Member("name", text(entity.name)), JSON.Member("class", text(entity.managedObjectClassName)),
            JSON.Member("parent", text(entity.superentity?.name)), JSON.Member("isAbstract", .bool(entity.isAbstract)),
            JSON.Member("renamingIdentifier", text(entity.formerName)),
            JSON.Member("versionHashModifier", text(entity.versionHashModifier)),
            JSON.Member("versionHash", .string(entity.versionHash.base64EncodedString())),
            JSON.Member("attributes", .array(entity.ownAttributes.map(json))),
            JSON.Member("relationships", .array(entity.ownRelationships.map(json))),
            JSON.Member("fetchedProperties", .array(entity.ownFetchedProperties.map(json))),
            JSON.Member("uniquenessConstraints", .array(entity.uniquenessConstraintNames.map(strings))),
            JSON.Member("fetchIndexes", .array(entity.indexes.map(json))),
            JSON.Member("userInfo", userInfo(entity.userInfo)),
        ])
    }

    private static func userInfo(_ facts: [AnyHashable: Any]?) -> JSON {
        .object(NSPropertyDescription.entries(of: facts).map { JSON.Member($0.key, .string($0.value)) })
    }

    /// The values that every property has.
    private static func common(_ property: NSPropertyDescription) -> [JSON.Member] {
        [
            JSON.Member("name", .string(property.name)), JSON.Member("isOptional", .bool(property.isOptional)),
            JSON.Member("isTransient", .bool(property.isTransient)),
            JSON.Member("renamingIdentifier", text(property.formerName)),
            JSON.Member("versionHashModifier", text(property.versionHashModifier)),
            JSON.Member("userInfo", userInfo(property.userInfo)),
        ]
    }

    private static func json(of attribute: NSAttributeDescription) -> JSON {
        var members = common(attribute)
        members += [
            JSON.Member("type", .string(attribute.attributeType.described)),
            JSON.Member("default", ObjectValues.json(of: attribute.defaultValue, attribute)),
            JSON.Member("valueTransformer", text(attribute.valueTransformerName)),
            JSON.Member("allowsExternalStorage", .bool(attribute.allowsExternalBinaryDataStorage)),
            JSON.Member("isKeptInHistory", .bool(attribute.preservesValueInHistoryOnDeletion)),
            JSON.Member("isIndexed", .bool(attribute.isIndexed)),
            JSON.Member("validation", strings(attribute.validationPredicates.map(\.formatText))),
        ]
        if let derived = attribute as? NSDerivedAttributeDescription {
            members.append(JSON.Member("derivation", text(derived.derivationText)))
        }
        if let composite = attribute as? NSCompositeAttributeDescription {
            members.append(JSON.Member("elements", .array(composite.elements.map(json))))
        }
        return .object(members)
    }

    private static func json(of relationship: NSRelationshipDescription) -> JSON {
        let rule =
            switch relationship.deleteRule {
            case .noActionDeleteRule: "noAction"
            case .nullifyDeleteRule: "nullify"
            case .cascadeDeleteRule: "cascade"
            case .denyDeleteRule: "deny"
            }
        return .object(
            common(relationship) + [
                JSON.Member("destination", text(relationship.destinationEntity?.name)),
                JSON.Member("inverse", text(relationship.inverseRelationship?.name)),
                JSON.Member("isToMany", .bool(relationship.isToMany)),
                JSON.Member("isOrdered", .bool(relationship.isOrdered)),
                JSON.Member("minCount", .integer(Int64(relationship.minCount))),
                JSON.Member("maxCount", .integer(Int64(relationship.maxCount))),
                JSON.Member("deleteRule", .string(rule)),
            ]
        )
    }

    private static func json(of property: NSFetchedPropertyDescription) -> JSON {
        .object(
            common(property) + [
                JSON.Member("destination", text(property.fetchRequest?.entity?.name)),
                JSON.Member("predicate", text(property.fetchRequest?.predicate?.formatText)),
            ]
        )
    }

    private static func json(of index: NSFetchIndexDescription) -> JSON {
        .object([
            JSON.Member("name", .string(index.name)),
            JSON.Member("predicate", text(index.partialIndexPredicate?.formatText)),
            JSON.Member(
                "elements",
                .array(
                    index.elements.map { element in
                        .object([
                            JSON.Member("property", text(element.propertyName)),
                            JSON.Member("isAscending", .bool(element.isAscending)),
                            JSON.Member("type", .string(element.collationType == .rTree ? "rTree" : "binary")),
                        ])
                    }
                )
            ),
        ])
    }
}
