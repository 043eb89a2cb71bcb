import CoreData
import StrataSQLiteStore
import StrataStoreChecks

#if canImport(CoreDataPostgreSQL)
import CoreDataPostgreSQL
#endif

extension Stack {
    /// Saves venues named `v0`, `v1` … whose price is their number, and gives their IDs.
    @discardableResult
    package func storeNumberedVenues(
        _ count: Int,
        _ setUp: (Int, Venue, NSManagedObjectContext) -> Void = { _, _, _ in }
    )
        throws
        -> [NSManagedObjectID]
    {
        let context = context("setting up")
        return try context.performAndWait {
            let venues = (0..<count).map { number in
                let venue = Venue(context: context)
                venue.name = "v\(number)"
                venue.price = Int16(number)
                setUp(number, venue, context)
                return venue
            }
            try context.save()
            return venues.map(\.objectID)
        }
    }

    /// The objects of an entity that a new context finds, described and sorted.
    package func all<Object: NSManagedObject>(_ type: Object.Type, _ describe: (Object) -> String) throws -> [String] {
        let context = context("reading")
        return try context.performAndWait { try context.all(Object.self).map(describe).sorted() }
    }

    /// The number of times that a stored row was saved.
    package func version(of id: NSManagedObjectID) throws -> Int64 {
        let store = coordinator.openStores.first { $0.store === id.persistentStore }
        return try store?.rows.row(forKey: id.key, in: id.entity.layout)?.version.versionCount ?? 0
    }

    /// Executes a request in a new context.
    @discardableResult
    package func execute(_ request: NSPersistentStoreRequest, _ policy: NSMergePolicy = .error) throws
        -> UncheckedSendable<
            Any?
        >
    {
        let context = context("batch")
        context.mergePolicy = policy
        return try context.performAndWait {
            switch try context.execute(request) {
            case let result as NSBatchInsertResult: UncheckedSendable(result.result)
            case let result as NSBatchUpdateResult: UncheckedSendable(result.result)
            case let result as NSBatchDeleteResult: UncheckedSendable(result.result)
            default: UncheckedSendable(nil)
            }
        }
    }

    /// The problems of the store; none for a store in memory.
    package func problems() throws -> [String] { try problems(of: coordinator.managedObjectModel) }

    /// The problems of the store with a model; none for a store in memory.
    package func problems(of model: NSManagedObjectModel) throws -> [String] {
        #if canImport(CoreDataPostgreSQL)
        if kind == .postgreSQL { return try PostgreSQLStore.problems(at: TestDatabase.url(for: storeURL), model) }
        #endif
        guard kind == .sqlite else { return [] }
        return try StoreVerifier(storeURL: storeURL, model: model).problems()
    }
}

extension NSBatchDeleteRequest {
    /// Deletes the objects of an entity that match a format.
    package convenience init(_ entity: String, _ format: String? = nil, _ arguments: Any?...) {
        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: entity)
        if let format { fetch.predicate = NSPredicate(format: format, argumentArray: arguments.compactMap { $0 }) }
        self.init(fetchRequest: fetch)
    }
}

/// A venue's name and price.
package func nameAndPrice(_ venue: Venue) -> String { "\(venue.name ?? "nil") \(venue.price)" }
