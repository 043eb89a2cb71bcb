import CoreDataContainer
import CoreDataEssentials
import StrataPredicates

/// Migrates stores of any version to a program's model, in stages.
///
/// See <doc:Migration>.
///
/// ```swift
/// let stages = NSStagedMigrationManager([NSLightweightMigrationStage([old.versionChecksum, new.versionChecksum])])
/// description.setOption(stages, forKey: NSPersistentStoreStagedMigrationManagerOptionKey)
/// ```
///
/// The stages form one list of versions. When a store is added that does not have the coordinator's model, the
/// migration starts at the store's version and does each step of the list up to the coordinator's model. The handlers
/// of custom stages run before and after their steps. If the coordinator's model is not in the list, then one more step
/// leads to it from the last version. If a step is not possible, then no step is done: the error names the two versions
/// between which the step is missing. A finished stage stays, even if a later one fails.
///
/// Two consecutive stages may have the same version at their border. Any other version may occur only once.
///
/// Use one manager for one store at a time. Do not change its stages once it is in use.
public final class NSStagedMigrationManager: NSObject {
    /// The stages, in order.
    public let stages: [NSMigrationStage]

    /// The store, in the handlers of custom stages; `nil` at all other times.
    ///
    /// The container has the stage's current model before the step, and the next model after it.
    public internal(set) var container: NSPersistentContainer?

    /// Makes a manager with stages.
    ///
    /// - Parameter stages: The stages, in order. They are checked when a store needs them.
    public init(_ stages: [NSMigrationStage]) {
        self.stages = stages
        super.init()
    }
}
