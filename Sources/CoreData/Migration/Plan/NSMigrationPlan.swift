import StrataPredicates

/// What a migration from one version of a model to another would do, without doing it.
///
///     let plan = NSMigrationPlan(from: old, to: new)
///     if !plan.isPossible { print(plan.obstacles) }
///     print(plan)
///
/// It looks at the models only. Whether objects have values that become required, or break a new constraint, a migration of a copy
/// of the store tells: `strata migrate --dry-run`. An addition to Apple's API. Any thread may make and use a plan.
public struct NSMigrationPlan: Sendable, CustomStringConvertible {
    /// What becomes of an entity or a property.
    public enum Change: String, Sendable {
        /// Nothing changes.
        case kept
        /// It has another name now, and perhaps another shape.
        case renamed
        /// It has the same name and another shape.
        case converted
        /// It is new.
        case added
        /// It goes, with its values.
        case removed
    }

    /// What becomes of a property.
    public struct Property: Sendable, Hashable {
        /// The name in the new version; in the old one, if it is removed.
        public let name: String
        /// The name in the old version; `nil` if it is added.
        public let sourceName: String?
        /// What becomes of it.
        public let change: Change
    }

    /// What becomes of an entity.
    public struct Entity: Sendable {
        /// The name in the new version; in the old one, if it is removed.
        public let name: String
        /// The name in the old version; `nil` if it is added.
        public let sourceName: String?
        /// What becomes of it.
        public let change: Change
        /// The stored properties, by name; none of an entity that is added or removed.
        public let properties: [Property]
    }

    /// The entities of the new version by name, and then those that are removed.
    public let entities: [Entity]
    /// Why the mapping cannot be inferred, a sentence each; empty if it can.
    public let obstacles: [String]
    /// What the author of the model may not expect, such as renaming identifiers that were changed.
    public let remarks: [String]

    /// Whether the mapping can be inferred.
    public var isPossible: Bool { obstacles.isEmpty }

    /// Whether both versions are the same to a store.
    public var isEmpty: Bool { entities.allSatisfy { $0.change == .kept } }

    /// Compares two versions of a model.
    ///
    /// - Parameters:
    ///   - source: The version to migrate from.
    ///   - destination: The version to migrate to.
    public init(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        let mapping = InferredMapping(from: source, to: destination)
        entities = mapping.entities.map(Entity.init)
        obstacles = mapping.obstacles.map(\.text)
        remarks = mapping.remarks
    }

    /// A line for each change; what is kept is left out.
    public var description: String {
        var lines: [String] = []
        for entity in entities where entity.change != .kept {
            lines.append("\(entity.change.rawValue) entity \(Self.name(entity.name, entity.sourceName))")
            for property in entity.properties where property.change != .kept {
                lines.append("  \(property.change.rawValue) \(Self.name(property.name, property.sourceName))")
            }
        }
        if lines.isEmpty { lines.append("nothing changes") }
        lines += remarks.map { "note: \($0)" }
        lines += obstacles.map { "cannot be inferred: \($0)" }
        return lines.joined(separator: "\n")
    }

    private static func name(_ name: String, _ source: String?) -> String {
        guard let source, source != name else { return name }
        return "\(name) (was \(source))"
    }
}

extension NSMigrationPlan.Entity {
    fileprivate init(_ inferred: InferredEntity) {
        name = inferred.destination?.name ?? inferred.source?.name ?? ""
        sourceName = inferred.source?.name
        guard let source = inferred.source, let destination = inferred.destination else {
            change = inferred.source == nil ? .added : .removed
            properties = []
            return
        }
        var found: [NSMigrationPlan.Property] = []
        for attribute in inferred.attributes { found.append(.init(attribute.destination, attribute.source)) }
        for relationship in inferred.relationships {
            found.append(.init(relationship.destination, relationship.source))
        }
        let kept = Set(found.compactMap(\.sourceName))
        for property in source.propertiesByName.values
        where property.isPersistent && !kept.contains(property.name) {
            found.append(NSMigrationPlan.Property(name: property.name, sourceName: property.name, change: .removed))
        }
        properties = found.sorted { ($0.name, $0.change.rawValue) < ($1.name, $1.change.rawValue) }
        if inferred.kind == .copy {
            change = .kept
        } else {
            change = source.name == destination.name ? .converted : .renamed
        }
    }
}

extension NSMigrationPlan.Property {
    fileprivate init(_ destination: NSPropertyDescription, _ source: NSPropertyDescription?) {
        name = destination.name
        sourceName = source?.name
        guard let source else {
            change = .added
            return
        }
        if source.name != destination.name {
            change = .renamed
        } else {
            change = source.versionHash == destination.versionHash ? .kept : .converted
        }
    }
}
