import CoreData

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// Opens the store that holds the queue.
package enum QueueStore {
    /// The model that the classes make.
    ///
    /// One for the process: a model stays in memory once a coordinator has used it.
    package static let model = Result {
        try NSManagedObjectModel(for: Job.self, Receipt.self, versionIdentifier: "1")
    }

    /// A container with the store at `url`, which is created when it is not there.
    package static func open(at url: URL) throws -> NSPersistentContainer {
        let container = NSPersistentContainer(name: "JobQueue", managedObjectModel: try model.get())
        let description = NSPersistentStoreDescription(url: url)
        if !url.isFileURL {
            #if canImport(CoreDataPostgreSQL)
            description.type = NSPostgreSQLStoreType
            // The container's descriptions of files keep one anyway.
            description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
            #else
            throw QueueError("this was built without libpq")
            #endif
        }
        // A process that keeps the others waiting for longer is stuck.
        description.timeout = 30
        // So that a process hears of what the others do.
        description.setOption(NSNumber(value: true), forKey: NSPersistentStoreRemoteChangeNotificationPostOptionKey)
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        if let failure { throw failure }
        return container
    }
}
