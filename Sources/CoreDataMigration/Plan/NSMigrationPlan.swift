import CoreDataEngineStores
import CoreDataEssentials
import StrataPredicates
import StrataRows
import StrataSQLiteStore

/// A preview of a migration from one version of a model to another.
///
/// See <doc:Migration>.
///
/// ```swift
/// let plan = NSMigrationPlan(from: old, to: new)
/// if !plan.isPossible { print(plan.obstacles) }
/// print(plan)
/// ```
///
/// A plan made from two models does not know whether objects lack values that become required, or break a new
/// constraint. A plan for a store knows; see ``init(forStoreAt:from:to:options:)``. An addition to Apple's API. Any
/// thread may make and use a plan.
public struct NSMigrationPlan: Sendable, CustomStringConvertible {
    /// The kind of change of an entity or a property.
    ///
    /// ```swift
    /// let added = NSMigrationPlan(from: old, to: new).entities.filter { $0.change == .added }
    /// ```
    public enum Change: String, Sendable {
        /// Nothing changes.
        case kept
        /// It has another name now, and perhaps another form.
        case renamed
        /// It has the same name and another form.
        case converted
        /// It is new.
        case added
        /// It is removed, with its values.
        case removed
    }

    /// The change of a property.
    ///
    /// ```swift
    /// for property in NSMigrationPlan(from: old, to: new).entities.flatMap(\.properties) { print(property.name, property.change) }
    /// ```
    public struct Property: Sendable, Hashable {
        /// The name in the new version; if it is removed, the name in the old version.
        public let name: String
        /// The name in the old version; `nil` if it is added.
        public let sourceName: String?
        /// The kind of change.
        public let change: Change
    }

    /// The change of an entity.
    ///
    /// ```swift
    /// for entity in NSMigrationPlan(from: old, to: new).entities { print(entity.name, entity.isCopied) }
    /// ```
    public struct Entity: Sendable {
        /// The name in the new version; if it is removed, the name in the old version.
        public let name: String
        /// The name in the old version; `nil` if it is added.
        public let sourceName: String?
        /// The kind of change.
        public let change: Change
        /// The stored properties, by name; empty for an entity that is added or removed.
        public let properties: [Property]
        /// The number of objects in the store, without sub-entities; `nil` without a store, and for an added entity.
        public internal(set) var objectCount: Int?
        /// Whether all objects are written again, because their table has to be copied; false without a store.
        public internal(set) var isCopied = false
    }

    /// Objects of a store that do not fit the new version.
    ///
    /// ```swift
    /// let plan = try NSMigrationPlan(forStoreAt: oldURL, from: old, to: new)
    /// for problem in plan.problems { print(problem.entity, problem.property ?? "", problem.reason) }
    /// ```
    public struct Problem: Sendable, Hashable {
        /// The entity, in the new version.
        public let entity: String
        /// The property; `nil` if the problem is with the entity as a whole, or with several properties together.
        public let property: String?
        /// The problem, with the number of objects.
        public let reason: String

        fileprivate init(_ finding: RowFinding) {
            entity = finding.entity
            property = finding.property
            reason = finding.reason
        }
    }

    /// A step of the migration of a store, and who has to wait for it.
    ///
    /// ```swift
    /// let plan = try NSMigrationPlan(forStoreAt: oldURL, from: old, to: new)
    /// for step in plan.steps where step.isHazard { print(step.work, step.waiting, step.lock) }
    /// ```
    public struct Step: Sendable, Hashable {
        /// The sessions of other programs that have to wait for a step.
        ///
        /// ```swift
        /// let plan = try NSMigrationPlan(forStoreAt: oldURL, from: old, to: new)
        /// print(plan.steps.filter { $0.waiting == .everybody })
        /// ```
        public enum Waiting: String, Sendable {
            /// No session waits.
            case nobody
            /// Saves wait.
            case writers
            /// Reads and saves wait.
            case everybody
        }

        /// The work, as part of a sentence.
        public let work: String
        /// The sessions that have to wait until the step is done.
        public let waiting: Waiting
        /// The lock, by the name that the database has for it, such as `ACCESS EXCLUSIVE`; for a SQLite file with a
        /// write-ahead log, the turn of the writer.
        public let lock: String
        /// Whether the step takes longer the more rows there are.
        public let growsWithRows: Bool
        /// Whether others notice the step: they wait for it, it grows with the rows, and there are many rows.
        public let isHazard: Bool

        fileprivate init(_ step: MigrationStep) {
            work = step.work
            waiting =
                switch step.waiting {
                case .nobody: .nobody
                case .writers: .writers
                case .everybody: .everybody
                }
            lock = step.lock
            growsWithRows = step.growsWithRows
            isHazard = step.isHazard
        }

        /// The step as a line of a plan.
        fileprivate var line: String {
            let others =
                switch waiting {
                case .nobody: "nobody waits"
                case .writers: "saves wait"
                case .everybody: "reads and saves wait"
                }
            let time = growsWithRows ? "longer with more rows" : "for a moment"
            return
                "\(isHazard ? "hazard" : "step"): \(work) (\(lock): \(waiting == .nobody ? others : "\(others), \(time)"))"
        }
    }

    /// The steps of the migration in their order; empty without a store.
    public private(set) var steps: [Step] = []

    /// The entities of the new version by name, followed by the removed ones.
    public private(set) var entities: [Entity]
    /// The reasons why the mapping cannot be inferred, one sentence each; empty if it can.
    public let obstacles: [String]
    /// The effects that the author of the model may not expect, such as those of changed renaming identifiers.
    public let remarks: [String]

    /// The objects and values of the store that would be lost; empty without a store.
    ///
    /// An inferred migration refuses to drop them, unless ``NSPersistentStoreAllowsLossyMigrationOption`` is set.
    public private(set) var losses: [Problem] = []

    /// The objects that do not fit; empty without a store.
    public private(set) var problems: [Problem] = []

    /// Whether the mapping can be inferred, and no object is known that does not fit.
    public var isPossible: Bool { obstacles.isEmpty && problems.isEmpty }

    /// Whether both versions are the same for a store.
    public var isEmpty: Bool { entities.allSatisfy { $0.change == .kept } }

    /// Compares two versions of a model.
    ///
    /// - Parameters:
    ///   - source: The version to migrate from.
    ///   - destination: The version to migrate to.
    public init(from source: NSManagedObjectModel, to destination: NSManagedObjectModel) {
        self.init(InferredMapping(from: source, to: destination))
    }

    private init(_ mapping: InferredMapping) {
        entities = mapping.entities.map(Entity.init)
        obstacles = mapping.obstacles.map(\.text)
        remarks = mapping.remarks
    }

    /// Previews a migration of a SQLite store, without changing the store.
    ///
    /// The store is read once, in one transaction: O(number of objects). The plan describes an inferred mapping; a
    /// mapping model may have other effects.
    ///
    /// - Parameters:
    ///   - url: The store.
    ///   - source: The version of the store; `nil` to search it as the migration would: in the store itself, and in the
    ///     program's bundles.
    ///   - destination: The version to migrate to.
    ///   - options: Options for the store.
    /// - Throws: `migrationMissingSourceModel` (134130) if the version of the store is not known, and errors of the file.
    public init(
        forStoreAt url: URL,
        from source: NSManagedObjectModel? = nil,
        to destination: NSManagedObjectModel,
        options: [AnyHashable: Any]? = nil
    ) throws {
        try self.init(forStoreAt: url, type: .sqlite, from: source, to: destination, options: options)
    }

    /// Previews a migration of a store of any type that is migrated in place, as ``init(forStoreAt:from:to:options:)``
    /// does for SQLite.
    package init(
        forStoreAt url: URL,
        type: NSPersistentStore.StoreType,
        from source: NSManagedObjectModel?,
        to destination: NSManagedObjectModel,
        options: [AnyHashable: Any]? = nil
    ) throws {
        let engine = StoreTypes.storeClass(type.rawValue) as? any MigratingStore.Type
        let metadata =
            try engine.map { try $0.databaseMetadata(at: url, options) } ?? SQLiteEngine.metadata(at: url)
        let found = try SourceModel.find(
            forStoreMetadata: metadata,
            at: url,
            known: source.map { [$0] } ?? [],
            preferring: .store
        ) {
            try engine.map { try $0.cachedModel(at: url) } ?? SQLiteEngine.cachedModel(at: url)
        }
        guard let destination = destination.copy() as? NSManagedObjectModel else { throw CocoaError(.migration) }
        try destination.tryFreeze()
        let mapping = InferredMapping(from: found.entities, to: destination.entities)
        self.init(mapping)
        guard obstacles.isEmpty else { return }
        let migration = SchemaMigration(
            mapping,
            from: found.model.frozen,
            sourceConfiguration: found.configuration,
            to: destination.frozen,
            destinationConfiguration: nil
        )
        let forecast =
            try engine.map { try $0.forecast(at: url, options: options ?? [:], of: migration) }
            ?? SQLiteEngine.forecast(at: url, options: SQLiteOptions(url: url, options), of: migration)
        for index in entities.indices {
            guard let name = entities[index].sourceName else { continue }
            entities[index].objectCount = forecast.rows[name] ?? 0
            entities[index].isCopied = forecast.copied.contains(name)
        }
        problems = forecast.problems.map(Problem.init)
        losses = forecast.losses.map(Problem.init)
        steps = forecast.steps.map(Step.init)
    }

    /// One line for each change; unchanged elements are omitted.
    public var description: String {
        var lines: [String] = []
        for entity in entities where entity.change != .kept {
            lines.append(
                "\(entity.change.rawValue) entity \(Self.name(entity.name, entity.sourceName))\(Self.objects(entity))"
            )
            for property in entity.properties where property.change != .kept {
                lines.append("  \(property.change.rawValue) \(Self.name(property.name, property.sourceName))")
            }
        }
        if lines.isEmpty { lines.append("nothing changes") }
        lines += remarks.map { "note: \($0)" }
        lines += obstacles.map { "cannot be inferred: \($0)" }
        lines += problems.map { problem in
            "does not fit: \(problem.entity)\(problem.property.map { ".\($0)" } ?? ""): \(problem.reason)"
        }
        lines += losses.map { loss in
            "would be lost: \(loss.entity)\(loss.property.map { ".\($0)" } ?? ""): \(loss.reason)"
        }
        lines += steps.map(\.line)
        return lines.joined(separator: "\n")
    }

    private static func objects(_ entity: Entity) -> String {
        guard let count = entity.objectCount else { return "" }
        let way = entity.change == .removed ? "" : entity.isCopied ? ", copied" : ", in place"
        return " (\(count) object\(count == 1 ? "" : "s")\(way))"
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
