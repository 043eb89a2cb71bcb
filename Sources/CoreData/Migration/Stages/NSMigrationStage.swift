import StrataPredicates

/// A part of the way from one version of a model to another, for an ``NSStagedMigrationManager``.
///
/// Use ``NSLightweightMigrationStage`` or ``NSCustomMigrationStage``; a stage of this very class is no way anywhere, and refused.
/// Do not change it once it is in use.
///
/// ```swift
/// let stage: NSMigrationStage = NSLightweightMigrationStage([old.versionChecksum, new.versionChecksum])
/// stage.label = "cities"
/// ```
open class NSMigrationStage: NSObject {
    /// What to call the stage in messages.
    ///
    /// Default nil.
    open var label: String!

    /// A stage without a label.
    public override init() { super.init() }

    /// The label, or what else tells the stage.
    var describedLabel: String { label ?? "\(type(of: self))" }
}

/// Versions of a model, one after the other, between which the mapping can be inferred.
///
/// Each step from one to the next is carried out, so that what a version in between says about defaults and names counts.
/// A mapping model among the program's resources that fits a step is taken instead of an inferred mapping.
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

    /// A stage over versions that are not all among the program's resources.
    ///
    /// An addition to Apple's API, where models of lightweight stages are looked for in bundles only.
    ///
    /// - Parameter references: The versions, in order.
    public init(references: [NSManagedObjectModelReference]) {
        self.references = references
        versionChecksums = references.map(\.versionChecksum)
        super.init()
    }

    /// Where the versions are, if that was said.
    let references: [NSManagedObjectModelReference]

    override var describedLabel: String {
        label ?? "lightweight \(versionChecksums.map { String($0.prefix(8)) }.joined(separator: ", "))"
    }
}

/// A step from one version of a model to the next, with code before and after it.
///
/// The step itself is inferred. So the code before it makes what cannot be inferred inferable, by filling values that become
/// required, say; the code after it fills what is new.
///
/// Handlers run on the thread that adds the store. They get the manager, whose ``NSStagedMigrationManager/container`` has
/// the store, under the stage's current model before the step and under its next model after it. The container is closed
/// when the handler returns; its contexts cannot be used any more then. Handlers may be called again for the same data, if
/// the process was killed before the stage was complete, or if another process has written to the store meanwhile: then
/// nothing of the unfinished stage is in the store.
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

    /// Called before the step.
    ///
    /// Default nil. What it throws ends the migration; the store is as it was before the stage.
    public var willMigrateHandler: ((NSStagedMigrationManager, NSCustomMigrationStage) throws -> Void)?

    /// Called after the step.
    ///
    /// Default nil. What it throws ends the migration; the store is as it was before the stage.
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
