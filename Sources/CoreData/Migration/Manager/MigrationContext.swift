import StrataPredicates

/// The context of the destination objects of a migration, which the manager lets go of batch by batch.
///
/// In Apple's framework all objects that a migration has made stay registered, and policies look among them for objects to
/// share. So a policy that asks for the registered objects gets all of them, as faults where they were let go of.
/// Memory stays flat as long as no policy asks.
final class MigrationContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: as its superclass, in whose scope `listingFailure` is touched too.

    /// Why the objects could not be listed, which ends the migration.
    private(set) var listingFailure: (any Error)?

    /// All objects of the store that is being written.
    ///
    /// - Complexity: O(number of objects).
    override var registeredObjects: Set<NSManagedObject> {
        var objects = super.registeredObjects
        do {
            for entity in persistentStoreCoordinator?.managedObjectModel.entities ?? [] where entity.superentity == nil
            {
                let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
                request.includesPropertyValues = false
                request.includesPendingChanges = false
                for object in try fetch(request) where !object.isDeleted { objects.insert(object) }
            }
        } catch {
            listingFailure = listingFailure ?? error
        }
        return objects
    }
}
