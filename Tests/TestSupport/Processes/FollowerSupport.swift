import CoreData
import Expectations
import Testing

extension Stack {
    /// The options of a store that can be followed.
    package static var following: [AnyHashable: Any] {
        [NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }

    /// A stack that keeps a history, with a city that is registered in a context with a long memory.
    package static func followedWithCity() throws -> (stack: Stack, context: NSManagedObjectContext) {
        let stack = try Stack(.database, model: GuideModel.make(), options: following)
        let context = stack.context("reader")
        try context.performAndWait {
            context.retainsRegisteredObjects = true
            context.stalenessInterval = -1
            context.makeCity("Bonn", population: 1)
            try context.save()
        }
        return (stack, context)
    }

    /// A context on another coordinator of the same file, as another process has it.
    package func elsewhere() throws -> NSManagedObjectContext {
        let other = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try other.addPersistentStore(type: kind.type, at: storeURL, options: Stack.following)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = other
        return context
    }

    /// The place after all that was committed.
    package func place() throws -> NSPersistentHistoryToken {
        try require(coordinator.currentPersistentHistoryToken(fromStores: nil))
    }
}

extension NSManagedObjectContext {
    /// Changes the first city, as it is stored, and saves.
    package func setPopulation(_ population: Int64) throws {
        try performAndWait {
            let city = try city()
            refresh(city, mergeChanges: false)
            city.population = population
            try save()
        }
    }

    /// The population of the first city, as the context shows it.
    package func population() throws -> Int64 { try performAndWait { try city().population } }
}
