import CoreData

// The parts that all forms of a model print in the same way.

extension NSManagedObjectModel {
    /// The entities by name.
    var sortedEntities: [NSEntityDescription] { entities.sorted { ($0.name ?? "") < ($1.name ?? "") } }

    /// The configurations that the author of the model has made, by name.
    var ownConfigurations: [(name: String, members: [String])] {
        configurations.filter { $0 != NSManagedObjectModel.defaultConfigurationName }.sorted()
            .map { ($0, (entities(forConfigurationName: $0) ?? []).compactMap(\.name).sorted()) }
    }

    /// The version identifier that is not empty; if there are several, all of them.
    var identifierText: String {
        versionIdentifiers.map { "\($0)" }.filter { !$0.isEmpty }.sorted().joined(separator: ", ")
    }
}

extension NSEntityDescription {
    /// The attributes that the entity declares itself, by name.
    var ownAttributes: [NSAttributeDescription] {
        ownProperties.compactMap { $0 as? NSAttributeDescription }.sorted { $0.name < $1.name }
    }

    /// The relationships that the entity declares itself, by name.
    var ownRelationships: [NSRelationshipDescription] {
        ownProperties.compactMap { $0 as? NSRelationshipDescription }.sorted { $0.name < $1.name }
    }

    /// The fetched properties that the entity declares itself, by name.
    var ownFetchedProperties: [NSFetchedPropertyDescription] {
        ownProperties.compactMap { $0 as? NSFetchedPropertyDescription }.sorted { $0.name < $1.name }
    }

    /// The name in an earlier version, if it was another one.
    var formerName: String? { renamingIdentifier == name ? nil : renamingIdentifier }
}

extension NSPropertyDescription {
    /// The name in an earlier version, if it was another one.
    var formerName: String? { renamingIdentifier == name ? nil : renamingIdentifier }

    /// The text entries of an application's user info, by key.
    static func entries(of userInfo: [AnyHashable: Any]?) -> [(key: String, value: String)] {
        (userInfo ?? [:]).map { ("\($0.key)", "\($0.value)") }.sorted { $0.0 < $1.0 }
    }
}

extension NSRelationshipDescription {
    /// The number of objects at the other end: `0..1`, `1`, `*`, `1..*`, `2..5`.
    var cardinality: String {
        let least = isOptional ? (isToMany ? minCount : 0) : max(1, minCount)
        if maxCount == 1 { return least == 0 ? "0..1" : "1" }
        let most = maxCount == 0 ? "*" : "\(maxCount)"
        return least == 0 && maxCount == 0 ? "*" : "\(least)..\(most)"
    }
}

/// The relationships of a model, each pair of inverses once.
struct RelationshipPair {
    let first: NSRelationshipDescription
    /// The inverse; `nil` if there is none, or if it is the relationship itself.
    let second: NSRelationshipDescription?

    /// The pairs, by the names of their entities and relationships.
    static func all(of model: NSManagedObjectModel) -> [RelationshipPair] {
        var seen = Set<ObjectIdentifier>()
        var pairs: [RelationshipPair] = []
        for relationship in model.sortedEntities.flatMap(\.ownRelationships)
        where seen.insert(ObjectIdentifier(relationship)).inserted {
            let inverse = relationship.inverseRelationship
            if let inverse, seen.insert(ObjectIdentifier(inverse)).inserted {
                pairs.append(RelationshipPair(first: relationship, second: inverse))
            } else {
                pairs.append(RelationshipPair(first: relationship, second: nil))
            }
        }
        return pairs
    }
}
