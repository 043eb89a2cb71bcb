import CoreDataEssentials
import StrataPredicates

/// The context of the destination objects of a migration, whose objects the manager releases batch by batch.
///
/// In Apple's framework all objects that a migration has made stay registered, and policies search them for objects to
/// share. So a policy that reads the registered objects gets all of them; released objects are returned as faults.
/// Memory does not grow as long as no policy reads them.
final class MigrationContext: NSManagedObjectContext, @unchecked Sendable {
    // @unchecked Sendable: like the superclass, whose scope also protects `listingFailure`.

    /// The error if the objects could not be listed; it ends the migration.
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
                request.affectedStores = persistentStoreCoordinator?.persistentStores
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
