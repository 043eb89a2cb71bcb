import CoreData

/// A model as boxes and lines, before anything has a place.
struct ModelPicture {
    /// A line of a box: an attribute, or a relationship.
    struct Row {
        let name: String
        /// The type of an attribute, or where a relationship leads.
        let note: String
        let isRelationship: Bool
        /// Drawn stronger: an attribute that is unique by itself.
        let isUnique: Bool
    }

    /// An entity.
    struct Box {
        let name: String
        /// What stands below the name: that the entity is abstract, and its parent.
        let subtitle: String
        let rows: [Row]
    }

    /// An end of a line: a box, and the row in it; no row is the box's title.
    struct End {
        let box: Int
        let row: Int?
        /// How many objects there are at this end, as the relationship that leads here says.
        ///
        /// `nil` where nothing leads here.
        let cardinality: String?
    }

    struct Edge {
        let from: End
        let to: End
        /// Whether the box at `from` inherits from that at `to`.
        let isInheritance: Bool
        /// What the pointer shows: the names of the relationships.
        let title: String
    }

    let boxes: [Box]
    let edges: [Edge]

    init(_ model: NSManagedObjectModel) {
        let entities = model.sortedEntities
        let places = Dictionary(uniqueKeysWithValues: zip(entities.map(ObjectIdentifier.init), entities.indices))
        func place(_ entity: NSEntityDescription?) -> Int? { entity.flatMap { places[ObjectIdentifier($0)] } }

        boxes = entities.map(Self.box)
        var edges: [Edge] = []
        for (index, entity) in entities.enumerated() {
            guard let parent = place(entity.superentity) else { continue }
            edges.append(
                Edge(
                    from: End(box: index, row: nil, cardinality: nil),
                    to: End(box: parent, row: nil, cardinality: nil),
                    isInheritance: true,
                    title: "\(entity.name ?? "") is a \(entity.superentity?.name ?? "")"
                )
            )
        }
        func row(_ relationship: NSRelationshipDescription, in entity: NSEntityDescription?) -> Int? {
            guard let entity else { return nil }
            let index = entity.ownRelationships.firstIndex { $0 === relationship }
            return index.map { entity.ownAttributes.count + $0 }
        }
        for pair in RelationshipPair.all(of: model) {
            guard let owner = pair.first.owner, let near = place(owner) else { continue }
            // The inverse may be declared by a parent of the destination.
            let other = pair.second?.owner ?? pair.first.destinationEntity
            guard let other, let far = place(other) else { continue }
            // One that is its own inverse leads back from where it leads to.
            let back = pair.first.inverseRelationship === pair.first ? pair.first : pair.second
            let titles = [pair.first, pair.second].compactMap { $0 }.map { "\($0.owner?.name ?? "").\($0.name)" }
            edges.append(
                Edge(
                    from: End(box: near, row: row(pair.first, in: owner), cardinality: back?.cardinality),
                    to: End(
                        box: far,
                        row: pair.second.flatMap { row($0, in: other) },
                        cardinality: pair.first.cardinality
                    ),
                    isInheritance: false,
                    title: titles.joined(separator: " – ")
                )
            )
        }
        self.edges = edges
    }

    private static func box(of entity: NSEntityDescription) -> Box {
        let attributes = entity.ownAttributes.map { attribute in
            let isUnique = entity.uniquenessConstraintNames.contains([attribute.name])
            let isComposite = attribute is NSCompositeAttributeDescription
            let type = isComposite ? "Composite" : ModelCommand.typeName(of: attribute)
            return Row(
                name: attribute.name,
                note: type + (attribute.isOptional ? "?" : ""),
                isRelationship: false,
                isUnique: isUnique
            )
        }
        let relationships = entity.ownRelationships.map { relationship in
            Row(
                name: relationship.name,
                note: "\(relationship.destinationEntity?.name ?? "") \(relationship.cardinality)"
                    + (relationship.isOrdered ? " ordered" : ""),
                isRelationship: true,
                isUnique: false
            )
        }
        let facts = [entity.isAbstract ? "abstract" : nil, entity.superentity?.name.map { "is a \($0)" }]
        return Box(
            name: entity.name ?? "",
            subtitle: facts.compactMap { $0 }.joined(separator: ", "),
            rows: attributes + relationships
        )
    }
}
