import CoreDataEssentials
import StrataPredicates

/// The changes of each entity and property from one version of a model to another, inferred from the two versions.
///
/// Entities and properties are paired by their canonical names: the renaming identifier, or the name if no identifier
/// is set. An element without a counterpart is added or removed. The inference does not look at data. The migration
/// itself checks the rows, for example whether a value is missing, or a constraint is broken.
///
/// It works on models in use and on others, and changes neither.
struct InferredMapping {
    /// One entry for each pair, and for each entity that only one version has.
    ///
    /// They are in the order of the destination's entities; removed entities follow.
    let entities: [InferredEntity]
    /// All reasons why the mapping cannot be used; empty if it can be used.
    let obstacles: [InferenceObstacle]
    /// The effects that the author of the model may not expect, for the log.
    let remarks: [String]

    /// Compares two versions of a model.
    ///
    /// O(n log n) in the number of properties.
    ///
    /// - Parameters:
    ///   - source: The model with which the data was written.
    ///   - destination: The model to which the data is migrated.
    init(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        self.init(from: source.entities, to: destination.entities)
    }

    /// Compares parts of two versions, such as configurations.
    ///
    /// - Parameters:
    ///   - source: The entities whose rows exist.
    ///   - destination: The entities that shall exist. Missing super-entities count as members.
    init(from source: [NSEntityDescription], to destination: [NSEntityDescription]) {
        var inference = Inference(from: Self.closed(source), to: Self.closed(destination))
        inference.run()
        entities = inference.entities
        obstacles = inference.obstacles.elements
        remarks = inference.remarks
    }

    /// The entities and all entities from which they inherit, in the order of numbers.
    private static func closed(_ entities: [NSEntityDescription]) -> [NSEntityDescription] {
        var seen: Set<ObjectIdentifier> = []
        let all = entities.flatMap { [$0] + $0.ancestors }.filter { seen.insert(ObjectIdentifier($0)).inserted }
        return EntityNumbering.order(all)
    }

    /// The destination entity of a source entity; `nil` if the entity is removed.
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

/// The changes of one entity.
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

    /// The name that Apple's framework gives the mapping: that of the source entity if there is one.
    var name: String {
        switch kind {
        case .copy: "IEM_Copy_\(source?.name ?? "")"
        case .transform: "IEM_Transform_\(source?.name ?? "")"
        case .add: "IEM_Add_\(destination?.name ?? "")"
        case .remove: "IEM_Remove_\(source?.name ?? "")"
        }
    }
}

/// The source of the value of one attribute.
struct InferredAttribute {
    let destination: NSAttributeDescription
    /// `nil` for an attribute that starts with its default value.
    let source: NSAttributeDescription?
    /// The sources of the elements of a composite attribute, one nesting level at a time; empty for other attributes.
    let elements: [InferredAttribute]
}

/// The source of the members of one relationship.
struct InferredRelationship {
    let destination: NSRelationshipDescription
    /// `nil` for a relationship that starts empty, unless its inverse determines the members.
    let source: NSRelationshipDescription?
}
