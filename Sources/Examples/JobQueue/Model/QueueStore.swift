import CoreData
import CoreDataJobs

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

/// Opens the store of the queue.
package enum QueueStore {
    /// The model: what the jobs do, and the entities of jobs.
    ///
    /// There is one for the process: a model stays in memory once a coordinator has used it.
    package static let model = Result {
        try NSManagedObjectModel(for: [Receipt.self] + JobEntities.classes)
    }

    /// Makes a container with the store at `url`.
    ///
    /// If there is no store, it is created.
    package static func open(at url: URL) throws -> NSPersistentContainer {
        let container = NSPersistentContainer(name: "JobQueue", managedObjectModel: try model.get())
        let description = NSPersistentStoreDescription(url: url)
        if !url.isFileURL {
            #if canImport(CoreDataPostgreSQL)
            description.type = NSPostgreSQLStoreType
            // The container's descriptions of files keep a history by default.
            description.setOption(NSNumber(value: true), forKey: NSPersistentHistoryTrackingKey)
            #else
            throw QueueError("this was built without libpq")
            #endif
        }
        // If a process keeps the others waiting for longer, it is stuck.
        description.timeout = 30
        // With this option, a process is notified of the changes of others.
        description.setOption(NSNumber(value: true), forKey: NSPersistentStoreRemoteChangeNotificationPostOptionKey)
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        if let failure { throw failure }
        return container
    }
}
