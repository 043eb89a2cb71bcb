import StrataPredicates

/// What becomes of each entity and of each property from one version of a model to another, worked out from the two versions.
///
/// Entities and properties are paired by their canonical names: the renaming identifier, which is the own name where none is set.
/// What has no counterpart is added or removed. Nothing here looks at data: what only rows can tell (whether a value is missing, or a
/// constraint broken) the migration checks itself.
///
/// Works on models in use and on others, and changes neither.
struct InferredMapping {
    /// One for each pair and for each entity that only one version has: in the order of the destination's entities, then those that
    /// are removed.
    let entities: [InferredEntity]
    /// All reasons for which the mapping cannot be used; empty for one that can.
    let obstacles: [InferenceObstacle]
    /// What the author of the model may not expect, for the log.
    let remarks: [String]

    /// Compares two versions of a model.
    ///
    /// O(n log n) in the number of properties.
    ///
    /// - Parameters:
    ///   - source: The model that the data was written with.
    ///   - destination: The model that it shall fit.
    init(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        self.init(from: source.entities, to: destination.entities)
    }

    /// Compares parts of two versions, such as configurations.
    ///
    /// - Parameters:
    ///   - source: The entities whose rows there are.
    ///   - destination: The entities that there shall be. Super-entities that are missing count as members.
    init(from source: [NSEntityDescription], to destination: [NSEntityDescription]) {
        var inference = Inference(from: Self.closed(source), to: Self.closed(destination))
        inference.run()
        entities = inference.entities
        obstacles = inference.obstacles.elements
        remarks = inference.remarks
    }

    /// The entities with all they inherit from, in the order of numbers.
    private static func closed(_ entities: [NSEntityDescription]) -> [NSEntityDescription] {
        var seen: Set<ObjectIdentifier> = []
        let all = entities.flatMap { [$0] + $0.ancestors }.filter { seen.insert(ObjectIdentifier($0)).inserted }
        return EntityNumbering.order(all)
    }

    /// The entity that a source entity becomes; `nil` for one that is removed.
    func destination(of source: NSEntityDescription) -> NSEntityDescription? {
        entities.first { $0.source === source }?.destination
    }

    /// Refuses a mapping that cannot be used.
    ///
    /// - Throws: `inferredMappingModel` (134190) that lists every reason; see ``InferenceObstacle/error(_:)``.
    func requireInferable() throws {
        if !obstacles.isEmpty { throw InferenceObstacle.error(obstacles) }
    }
}

/// What becomes of one entity.
struct InferredEntity {
    enum Kind {
        /// The two versions have the same hash.
        case copy
        case transform
        case add
        case remove
    }

    let kind: Kind
    /// `nil` for an entity that is added.
    let source: NSEntityDescription?
    /// `nil` for an entity that is removed.
    let destination: NSEntityDescription?
    /// The stored attributes of the destination, inherited ones included, by name.
    let attributes: [InferredAttribute]
    /// The stored relationships of the destination, inherited ones included, by name.
    let relationships: [InferredRelationship]

    /// What Apple's framework calls the mapping: after the source where there is one.
    var name: String {
        switch kind {
        case .copy: "IEM_Copy_\(source?.name ?? "")"
        case .transform: "IEM_Transform_\(source?.name ?? "")"
        case .add: "IEM_Add_\(destination?.name ?? "")"
        case .remove: "IEM_Remove_\(source?.name ?? "")"
        }
    }
}

/// Where the value of one attribute comes from.
struct InferredAttribute {
    let destination: NSAttributeDescription
    /// `nil` for an attribute that starts with its default value.
    let source: NSAttributeDescription?
    /// The same for the elements of a composite attribute, at any depth of nesting one level at a time; empty for others.
    let elements: [InferredAttribute]
}

/// Where the members of one relationship come from.
struct InferredRelationship {
    let destination: NSRelationshipDescription
    /// `nil` for a relationship that starts empty, unless its inverse tells the members.
    let source: NSRelationshipDescription?
}
