import CoreDataEssentials
import CoreDataMigration
import StrataModelFiles
import StrataPredicates

/// One version of a model in Swift: a namespace with the classes of that version.
///
/// ```swift
/// enum GuideV1: ManagedModelVersion {
///     static var entities: [NSManagedObject.Type] { [Venue.self] }
///
///     @ManagedObject
///     final class Venue: NSManagedObject {
///         @Managed var name: String?
///     }
/// }
/// let model = try NSManagedObjectModel(version: GuideV1.self)
/// ```
///
/// A shorter name for the version that the program uses is common: `typealias Venue = GuideV2.Venue`.
public protocol ManagedModelVersion {
    /// The label of the version, which is not part of the hashes.
    ///
    /// Default: the name of the type.
    static var versionIdentifier: String { get }

    /// The classes.
    static var entities: [NSManagedObject.Type] { get }
}

extension ManagedModelVersion {
    /// The name of the type.
    public static var versionIdentifier: String { String(describing: self) }
}

/// The versions of a model, and the migration of stores from each one to the next.
///
/// See <doc:Models>.
///
/// ```swift
/// enum GuideV1: ManagedModelVersion {
///     static var entities: [NSManagedObject.Type] { [Venue.self] }
///
///     @ManagedObject
///     final class Venue: NSManagedObject {
///         @Managed var name: String?
///     }
/// }
///
/// enum GuideV2: ManagedModelVersion {
///     static var entities: [NSManagedObject.Type] { [Venue.self] }
///
///     @ManagedObject
///     final class Venue: NSManagedObject {
///         @Managed(.renamed(from: "name")) var title: String?
///     }
/// }
///
/// enum GuidePlan: ManagedModelPlan {
///     static var versions: [any ManagedModelVersion.Type] { [GuideV1.self, GuideV2.self] }
/// }
/// description.setOption(try NSStagedMigrationManager(for: GuidePlan.self), forKey: NSPersistentStoreStagedMigrationManagerOptionKey)
/// ```
///
/// If the plan declares no stages, then all steps are inferred.
public protocol ManagedModelPlan {
    /// The versions, from the oldest to the one that the program uses.
    static var versions: [any ManagedModelVersion.Type] { get }

    /// The stages, in order.
    ///
    /// Default: one stage, in which all steps are inferred.
    ///
    /// - Returns: The stages, from the oldest version to the newest.
    /// - Throws: The errors of the stages' initialisers, which ``NSStagedMigrationManager/init(for:)`` rethrows.
    static func stages() throws -> [NSMigrationStage]
}

extension ManagedModelPlan {
    /// One stage through all versions, in which all steps are inferred.
    ///
    /// - Returns: One ``NSLightweightMigrationStage``.
    /// - Throws: The errors of ``NSManagedObjectModel/init(version:)``.
    public static func stages() throws -> [NSMigrationStage] { [try NSLightweightMigrationStage(through: versions)] }

    /// The model of the last version.
    ///
    /// - Returns: A new model: keep it, because each coordinator freezes its model.
    /// - Throws: The errors of ``NSManagedObjectModel/init(version:)``; 134060 if there is no version.
    public static func currentModel() throws -> NSManagedObjectModel {
        guard let newest = versions.last else {
            throw ModelError(.invalid, "the plan \(String(describing: self)) has no versions").cocoaError
        }
        return try NSManagedObjectModel(version: newest)
    }
}

extension NSManagedObjectModelReference {
    /// Makes a reference to a version in Swift.
    ///
    /// - Parameter version: The version.
    /// - Throws: The errors of ``NSManagedObjectModel/init(version:)``.
    public convenience init(version: any ManagedModelVersion.Type) throws {
        let model = try NSManagedObjectModel(version: version)
        self.init(model: model, versionChecksum: model.versionChecksum)
    }
}

extension NSLightweightMigrationStage {
    /// Makes a stage through versions in Swift, in which each step is inferred.
    ///
    /// - Parameter versions: The versions, in order.
    /// - Throws: The errors of ``NSManagedObjectModel/init(version:)``.
    public convenience init(through versions: [any ManagedModelVersion.Type]) throws {
        self.init(references: try versions.map { try NSManagedObjectModelReference(version: $0) })
        label = versions.map { $0.versionIdentifier }.joined(separator: ", ")
    }
}

extension NSCustomMigrationStage {
    /// Makes a step between versions in Swift, with code before and after it.
    ///
    /// - Parameters:
    ///   - source: The version before the step, whose classes the objects in `willMigrate` have.
    ///   - destination: The version after the step, whose classes the objects in `didMigrate` have.
    ///   - willMigrate: See ``willMigrateHandler``.
    ///   - didMigrate: See ``didMigrateHandler``.
    /// - Throws: The errors of ``NSManagedObjectModel/init(version:)``.
    public convenience init(
        from source: any ManagedModelVersion.Type,
        to destination: any ManagedModelVersion.Type,
        willMigrate: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)? = nil,
        didMigrate: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)? = nil
    ) throws {
        self.init(
            migratingFrom: try NSManagedObjectModelReference(version: source),
            to: try NSManagedObjectModelReference(version: destination)
        )
        label = "\(source.versionIdentifier) to \(destination.versionIdentifier)"
        willMigrateHandler = willMigrate
        didMigrateHandler = didMigrate
    }
}

extension NSStagedMigrationManager {
    /// Makes a manager for the stages of a plan.
    ///
    /// - Parameter plan: The plan.
    /// - Throws: The errors of ``NSManagedObjectModel/init(version:)``.
    public convenience init(for plan: any ManagedModelPlan.Type) throws {
        self.init(try plan.stages())
    }
}
