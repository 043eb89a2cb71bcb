import Foundation

/// The parts of the framework above this target that this one needs.
///
/// This target declares what Apple's API ties into a ring: objects, contexts, coordinators, stores and models. Migration, the classes of
/// stores and the files of models stand above it, and a coordinator needs them when it opens a store. The target `CoreData`, which is
/// part of each program, puts them together.
package struct HigherTargets: Sendable {
    /// Migrates a store that was found with this metadata.
    let migrate: @Sendable (StoreToMigrate, _ metadata: [String: Any]) throws -> Void
    /// The class of managers that migrate by objects, unless a class of stores names another one.
    let migrationManagerClass: AnyClass
    /// The classes of the stores that the framework brings, by type.
    let storeClasses: [String: NSPersistentStore.Type]
    /// A model as data that a store keeps; `nil` if the model cannot be written.
    let modelData: @Sendable (NSManagedObjectModel) -> Data?
    /// Makes the watch of the reads of a context's block.
    let watch: @Sendable (NSManagedObjectContext) -> any ReadWatch

    package init(
        migrate: @escaping @Sendable (StoreToMigrate, _ metadata: [String: Any]) throws -> Void,
        migrationManagerClass: AnyClass,
        storeClasses: [String: NSPersistentStore.Type],
        modelData: @escaping @Sendable (NSManagedObjectModel) -> Data?,
        watch: @escaping @Sendable (NSManagedObjectContext) -> any ReadWatch
    ) {
        self.migrate = migrate
        self.migrationManagerClass = migrationManagerClass
        self.storeClasses = storeClasses
        self.modelData = modelData
        self.watch = watch
    }

    /// The parts as the target `CoreData` has put them together.
    static let all = higherTargets()
}

/// Makes the parts; the target `CoreData` defines it.
///
/// A symbol that the linker resolves, and no registration at run time: a program in which it is missing is not linked, and there is no
/// moment before which a store cannot be migrated.
@_silgen_name("strata_higher_targets")
private func higherTargets() -> HigherTargets
