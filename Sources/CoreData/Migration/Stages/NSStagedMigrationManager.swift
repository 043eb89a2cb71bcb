import StrataPredicates

/// Brings stores of any version to a program's model, in stages.
///
/// See <doc:Migration>.
///
/// ```swift
/// let stages = NSStagedMigrationManager([NSLightweightMigrationStage([old.versionChecksum, new.versionChecksum])])
/// description.setOption(stages, forKey: NSPersistentStoreStagedMigrationManagerOptionKey)
/// ```
///
/// When a store is added that has not the coordinator's model, the stages are one list of versions. The migration starts at the
/// store's version and takes each step of the list, with the handlers of custom stages around theirs, up to the coordinator's
/// model; from the last version of the list one more step leads to a model that is not in it. Where the way cannot be gone, no
/// step is taken: the error names the two versions that do not meet. A finished stage stays, also when a later one fails.
///
/// Two stages may share the version at their border. Any other version may occur once.
///
/// Use one manager for one store at a time. Do not change its stages once it is in use.
public final class NSStagedMigrationManager: NSObject {
    /// The stages, in order.
    public let stages: [NSMigrationStage]

    /// The store, in the handlers of custom stages; `nil` everywhere else.
    ///
    /// Before the step the container has the stage's current model, after it the next one.
    public internal(set) var container: NSPersistentContainer?

    /// A manager of some stages.
    ///
    /// - Parameter stages: The stages, in order. They are checked when a store needs them.
    public init(_ stages: [NSMigrationStage]) {
        self.stages = stages
        super.init()
    }
}
