import CoreDataEngineStores
import CoreDataEssentials
import StrataKeys
import StrataPredicates

extension NSPersistentStoreCoordinator {
    /// Reads the copy of the model that a SQLite store keeps; stores made by Apple's framework have one.
    ///
    /// - Parameters:
    ///   - url: The place of the SQLite store.
    ///   - options: Ignored.
    /// - Returns: The model, which may still be changed.
    /// - Throws: `migrationMissingSourceModel` (134130) for a store without a copy; the errors of adding the store.
    public class func cachedModelForPersistentStore(
        at url: URL,
        options: [AnyHashable: Any]? = nil
    ) throws -> NSManagedObjectModel {
        if let data = try SQLiteStore.cachedModel(at: url) { return try NSManagedObjectModel(cachedModelData: data) }
        throw CocoaError.described(
            .migrationMissingSourceModel,
            userInfo: [
                NSLocalizedDescriptionKey: "The store \(url.placeName) keeps no copy of its model.",
                NSFilePathErrorKey: url.placeName,
            ]
        )
    }
}
