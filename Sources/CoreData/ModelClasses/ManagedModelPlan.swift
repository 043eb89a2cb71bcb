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
/// What the program works with is mostly given a shorter name: `typealias Venue = GuideV2.Venue`.
public protocol ManagedModelVersion {
    /// The label of the version, which takes no part in the hashes.
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

/// The versions of a model, and how stores get from each to the next.
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
/// Without stages of its own, all steps are inferred.
public protocol ManagedModelPlan {
    /// The versions, from the oldest to the one that the program works with.
    static var versions: [any ManagedModelVersion.Type] { get }

    /// The stages, in order.
    ///
    /// Default: one in which all steps are inferred.
    ///
    /// - Returns: The stages, from the oldest version to the newest.
    /// - Throws: What the stages' initialisers throw; ``NSStagedMigrationManager/init(for:)`` throws it on.
    static func stages() throws -> [NSMigrationStage]
}

extension ManagedModelPlan {
    /// One stage through all versions, inferred.
    ///
    /// - Returns: One ``NSLightweightMigrationStage``.
    /// - Throws: As ``NSManagedObjectModel/init(version:)``.
    public static func stages() throws -> [NSMigrationStage] { [try NSLightweightMigrationStage(through: versions)] }

    /// The model of the last version.
    ///
    /// - Returns: A model made anew: keep it, since each coordinator freezes the one it is given.
    /// - Throws: As ``NSManagedObjectModel/init(version:)``; 134060 if there is no version.
    public static func currentModel() throws -> NSManagedObjectModel {
        guard let newest = versions.last else {
            throw ModelError(.invalid, "the plan \(String(describing: self)) has no versions").cocoaError
        }
        return try NSManagedObjectModel(version: newest)
    }
}

extension NSManagedObjectModelReference {
    /// A reference to a version in Swift.
    ///
    /// - Parameter version: The version.
    /// - Throws: As ``NSManagedObjectModel/init(version:)``.
    public convenience init(version: any ManagedModelVersion.Type) throws {
        let model = try NSManagedObjectModel(version: version)
        self.init(model: model, versionChecksum: model.versionChecksum)
    }
}

extension NSLightweightMigrationStage {
    /// A stage through versions in Swift, each step inferred.
    ///
    /// - Parameter versions: The versions, in order.
    /// - Throws: As ``NSManagedObjectModel/init(version:)``.
    public convenience init(through versions: [any ManagedModelVersion.Type]) throws {
        self.init(references: try versions.map { try NSManagedObjectModelReference(version: $0) })
        label = versions.map { $0.versionIdentifier }.joined(separator: ", ")
    }
}

extension NSCustomMigrationStage {
    /// A step between versions in Swift, with code before and after it.
    ///
    /// - Parameters:
    ///   - source: The version before the step, whose classes the objects in `willMigrate` have.
    ///   - destination: The version after the step, whose classes the objects in `didMigrate` have.
    ///   - willMigrate: See ``willMigrateHandler``.
    ///   - didMigrate: See ``didMigrateHandler``.
    /// - Throws: As ``NSManagedObjectModel/init(version:)``.
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
    /// A manager of the stages of a plan.
    ///
    /// - Parameter plan: The plan.
    /// - Throws: As ``NSManagedObjectModel/init(version:)``.
    public convenience init(for plan: any ManagedModelPlan.Type) throws {
        self.init(try plan.stages())
    }
}
