import CoreData
import Foundation

/// One version of a schema, with the classes as they were then.
///
/// ```swift
/// enum TravelV1: VersionedSchema {
///     static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
///     static var models: [any PersistentModel.Type] { [Trip.self, Stop.self] }
/// }
/// ```
public protocol VersionedSchema: SendableMetatype {
    /// The classes.
    static var models: [any PersistentModel.Type] { get }

    /// The version, by which messages name the schema.
    static var versionIdentifier: Schema.Version { get }
}

/// The versions of a schema, and the steps between them.
///
/// ```swift
/// enum TravelPlan: SchemaMigrationPlan {
///     static var schemas: [any VersionedSchema.Type] { [TravelV1.self, TravelV2.self] }
///     static var stages: [MigrationStage] { [.lightweight(fromVersion: TravelV1.self, toVersion: TravelV2.self)] }
/// }
/// ```
public protocol SchemaMigrationPlan: SendableMetatype {
    /// The versions, in order.
    static var schemas: [any VersionedSchema.Type] { get }

    /// The steps, in order.
    static var stages: [MigrationStage] { get }
}

/// A step from one version of a schema to a later one.
///
/// ```swift
/// let stage = MigrationStage.custom(fromVersion: TravelV1.self, toVersion: TravelV2.self, willMigrate: nil) { context in
///     for stop in try context.fetch(FetchDescriptor<Stop>()) { stop.nights = max(stop.nights, 1) }
///     try context.save()
/// }
/// ```
public enum MigrationStage: Sendable {
    /// A step without code: the changes are inferred.
    case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)

    /// A step with code before and after it.
    ///
    /// The first closure has a context with the classes of the old version, the second one with those of the new. If a
    /// closure throws an error, then the container cannot be opened, and the store is as it was before the step.
    @preconcurrency case custom(
        fromVersion: any VersionedSchema.Type,
        toVersion: any VersionedSchema.Type,
        willMigrate: (@Sendable (_ context: ModelContext) throws -> Void)?,
        didMigrate: (@Sendable (_ context: ModelContext) throws -> Void)?
    )
}

extension Schema {
    /// Makes the schema of one version.
    ///
    /// - Parameter versionedSchema: The version.
    public convenience init(versionedSchema: any VersionedSchema.Type) {
        self.init(versionedSchema.models, version: versionedSchema.versionIdentifier)
    }
}

/// Makes Core Data's staged migration of a plan.
struct PlannedMigration {
    /// The schemas of the versions, which are made once for each plan.
    private var schemas: [ObjectIdentifier: Schema] = [:]
    /// The classes of the store; `nil` for all.
    private var part: PlannedPart?

    private init(_ part: PlannedPart?) { self.part = part }

    /// The manager of the stages of a plan for a store.
    ///
    /// - Throws: `SwiftDataError.loadIssueModelContainer` if two versions do not differ in what a store keeps.
    static func manager(_ plan: any SchemaMigrationPlan.Type, _ part: PlannedPart?) throws -> NSStagedMigrationManager {
        var migration = PlannedMigration(part)
        var names: [String: any VersionedSchema.Type] = [:]
        for version in plan.schemas {
            let checksum = migration.schema(version).model.versionChecksum
            if let other = names[checksum], other != version {
                throw SwiftDataError(
                    .loadIssueModelContainer,
                    "\(other) and \(version) of \(plan) have the same version hashes, "
                        + "so a store of one cannot be told from a store of the other"
                )
            }
            names[checksum] = version
        }
        return NSStagedMigrationManager(plan.stages.map { migration.stage($0) })
    }

    private mutating func schema(_ version: any VersionedSchema.Type) -> Schema {
        if let schema = schemas[ObjectIdentifier(version)] { return schema }
        let schema = Schema(versionedSchema: version)
        part?.add(to: schema.model)
        schemas[ObjectIdentifier(version)] = schema
        return schema
    }

    private mutating func reference(_ version: any VersionedSchema.Type) -> NSManagedObjectModelReference {
        let model = schema(version).model
        return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
    }

    private mutating func stage(_ stage: MigrationStage) -> NSMigrationStage {
        switch stage {
        case .lightweight(let old, let new):
            let made = NSLightweightMigrationStage(references: [reference(old), reference(new)])
            made.label = "\(old) to \(new)"
            return made
        case .custom(let old, let new, let willMigrate, let didMigrate):
            let made = NSCustomMigrationStage(migratingFrom: reference(old), to: reference(new))
            made.label = "\(old) to \(new)"
            made.willMigrateHandler = Self.handler(willMigrate, schema(old))
            made.didMigrateHandler = Self.handler(didMigrate, schema(new))
            return made
        }
    }

    private static func handler(
        _ body: ((ModelContext) throws -> Void)?,
        _ schema: Schema
    ) -> ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)? {
        guard let body else { return nil }
        return { manager, _ in
            guard let coordinator = manager.container?.persistentStoreCoordinator else { return }
            try body(ModelContext(ModelContainer(schema: schema, coordinator: coordinator)))
        }
    }
}
