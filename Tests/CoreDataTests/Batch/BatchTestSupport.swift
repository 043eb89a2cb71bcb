import StrataStoreChecks
import TestSupport

@testable import CoreData
@testable import StrataSQLiteStore

extension Stack {
    /// Saves venues named `v0`, `v1` … whose price is their number, and gives their IDs.
    @discardableResult
    func storeNumberedVenues(_ count: Int, _ setUp: (Int, Venue, NSManagedObjectContext) -> Void = { _, _, _ in })
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

    /// What a context finds of an entity, described and sorted.
    func all<Object: NSManagedObject>(_ type: Object.Type, _ describe: (Object) -> String) throws -> [String] {
        let context = context("reading")
        return try context.performAndWait { try context.all(Object.self).map(describe).sorted() }
    }

    /// The version of a stored row.
    func version(of id: NSManagedObjectID) throws -> Int64 {
        let (key, store) = id.current
        return try store?.rows.row(forKey: key, in: id.layout)?.version ?? 0
    }

    /// Executes a request in a context of its own.
    @discardableResult
    func execute(_ request: NSPersistentStoreRequest, _ policy: NSMergePolicy = .error) throws -> UncheckedSendable<
        Any?
    > {
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

    /// What is wrong with the file; nothing for a store in memory.
    func problems() throws -> [String] {
        guard kind == .sqlite else { return [] }
        return try StoreVerifier(storeURL: storeURL, model: coordinator.managedObjectModel).problems()
    }
}

extension NSBatchDeleteRequest {
    /// Deletes the objects of an entity that match a format.
    convenience init(_ entity: String, _ format: String? = nil, _ arguments: Any?...) {
        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: entity)
        if let format { fetch.predicate = NSPredicate(format: format, argumentArray: arguments.compactMap { $0 }) }
        self.init(fetchRequest: fetch)
    }
}

/// A venue's name and price.
func nameAndPrice(_ venue: Venue) -> String { "\(venue.name ?? "nil") \(venue.price)" }
