import CoreDataEssentials
import StrataPredicates

/// A part of the migration from one version of a model to another, for an ``NSStagedMigrationManager``.
///
/// Use ``NSLightweightMigrationStage`` or ``NSCustomMigrationStage``. A stage of this base class has no versions, and
/// is refused. Do not change a stage once it is in use.
///
/// ```swift
/// let stage: NSMigrationStage = NSLightweightMigrationStage([old.versionChecksum, new.versionChecksum])
/// stage.label = "cities"
/// ```
open class NSMigrationStage: NSObject {
    /// The name of the stage in messages.
    ///
    /// Default nil.
    open var label: String!

    /// Makes a stage without a label.
    public override init() { super.init() }

    /// The label, or else the name of the class.
    var describedLabel: String { label ?? "\(type(of: self))" }
}

/// A sequence of versions of a model, between which the mapping can be inferred.
///
/// Each step from one version to the next is carried out, so that the defaults and names of versions in between have an
/// effect. If a mapping model among the program's resources fits a step, then it is used instead of an inferred
/// mapping.
///
/// ```swift
/// let stage = NSLightweightMigrationStage([old.versionChecksum, new.versionChecksum])
/// let manager = NSStagedMigrationManager([stage])
/// ```
public final class NSLightweightMigrationStage: NSMigrationStage {
    /// The checksums of the versions, in order.
    public let versionChecksums: [String]

    /// A stage over some versions.
    ///
    /// - Parameter versionChecksums: The checksums of the versions, in order; see ``NSManagedObjectModel/versionChecksum``.
    public init(_ versionChecksums: [String]) {
        self.versionChecksums = versionChecksums
        references = []
        super.init()
    }

    /// Makes a stage with versions that are not all among the program's resources.
    ///
    /// An addition to Apple's API, where models of lightweight stages are searched in bundles only.
    ///
    /// - Parameter references: The versions, in order.
    public init(references: [NSManagedObjectModelReference]) {
        self.references = references
        versionChecksums = references.map(\.versionChecksum)
        super.init()
    }

    /// The places of the versions, if they were given.
    let references: [NSManagedObjectModelReference]

    override var describedLabel: String {
        label ?? "lightweight \(versionChecksums.map { String($0.prefix(8)) }.joined(separator: ", "))"
    }
}

/// A step from one version of a model to the next, with code before and after it.
///
/// The step itself is inferred. So the code before it prepares the data for the inference, for example by filling
/// values that become required; the code after it fills new properties.
///
/// Handlers run on the thread that adds the store. They get the manager, whose ``NSStagedMigrationManager/container``
/// has the store, under the stage's current model before the step and under its next model after it. The container is
/// closed when the handler returns; its contexts cannot be used after that. Handlers may be called again for the same
/// data, if the process was killed before the stage was complete, or if another process has written to the store
/// meanwhile. In that case the store contains nothing of the unfinished stage.
///
/// ```swift
/// let stage = NSCustomMigrationStage(
///     migratingFrom: NSManagedObjectModelReference(model: old, versionChecksum: old.versionChecksum),
///     to: NSManagedObjectModelReference(model: new, versionChecksum: new.versionChecksum))
/// stage.didMigrateHandler = { manager, _ in
///     guard let context = manager.container?.newBackgroundContext() else { return }
///     try context.performAndWait {
///         for venue in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Venue")) { venue.setValue(10, forKey: "price") }
///         try context.save()
///     }
/// }
/// ```
public final class NSCustomMigrationStage: NSMigrationStage {
    /// The version before the step.
    public let currentModel: NSManagedObjectModelReference
    /// The version after the step.
    public let nextModel: NSManagedObjectModelReference

    /// A handler that is called before the step.
    ///
    /// Default nil. If it throws an error, then the migration ends; the store is as it was before the stage.
    public var willMigrateHandler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?

    /// A handler that is called after the step.
    ///
    /// Default nil. If it throws an error, then the migration ends; the store is as it was before the stage.
    public var didMigrateHandler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?

    /// A step between two versions.
    ///
    /// - Parameters:
    ///   - currentModel: The version before the step.
    ///   - nextModel: The version after the step.
    public init(
        migratingFrom currentModel: NSManagedObjectModelReference,
        to nextModel: NSManagedObjectModelReference
    ) {
        self.currentModel = currentModel
        self.nextModel = nextModel
        super.init()
    }

    override var describedLabel: String {
        label ?? "custom \(currentModel.versionChecksum.prefix(8)) to \(nextModel.versionChecksum.prefix(8))"
    }
}
