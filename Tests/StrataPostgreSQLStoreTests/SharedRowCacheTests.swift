import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataKeys
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

@Suite("Cached rows of a store that others write to", .enabled(if: Server.isThere))
struct SharedRowCacheTests {
    /// A coordinator that has cached rows, another one that stands for another process, and a signal for each
    /// notification.
    private final class Watched {
        let stack: Stack
        let other: NSPersistentStoreCoordinator
        private let told = DispatchSemaphore(value: 0)
        private var token: (any NSObjectProtocol)?

        init(_ model: @autoclosure () -> NSManagedObjectModel) throws {
            let options: [AnyHashable: Any] = [
                NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
            ]
            stack = try Stack(.postgreSQL, model: model(), options: options)
            other = NSPersistentStoreCoordinator(managedObjectModel: model())
            try other.addPersistentStore(type: .postgreSQL, configuration: nil, at: stack.storeURL, options: options)
            token = NotificationCenter.default.addObserver(
                forName: .NSPersistentStoreRemoteChange,
                object: stack.coordinator,
                queue: nil
            ) { [told] _ in told.signal() }
        }

        deinit {
            token.map(NotificationCenter.default.removeObserver)
            for store in other.persistentStores { try? other.remove(store) }
        }

        /// Inserts objects of an entity, and has their rows cached.
        func insert(_ entity: String, _ names: [String]) throws -> [NSManagedObjectID] {
            let context = stack.context()
            return try context.performAndWait {
                let objects = names.map { name in
                    let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
                    object.setValue(name, forKey: "name")
                    return object
                }
                try context.save()
                return objects.map(\.objectID)
            }
        }

        /// Saves changes in the other coordinator.
        func saveElsewhere(_ body: (NSManagedObjectContext) throws -> Void) throws {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = other
            try context.performAndWait {
                try body(context)
                try context.save()
            }
        }

        /// A value of an object in a new context.
        func value(_ key: String, _ id: NSManagedObjectID) throws -> NSObject? {
            let context = stack.context()
            return try context.performAndWait { try context.existingObject(with: id).value(forKey: key) as? NSObject }
        }

        /// Waits until a condition holds.
        func wait(_ condition: () throws -> Bool) rethrows -> Bool {
            while try !condition() {
                guard told.wait(timeout: .now() + 300) == .success else { return false }
            }
            return true
        }

        /// Forgets the notifications so far.
        func drain() {
            while told.wait(timeout: .now() + 2) == .success {}
        }

        func isTold(within seconds: Double) -> Bool { told.wait(timeout: .now() + seconds) == .success }

        /// An object in a context of the other coordinator.
        func elsewhere(_ id: NSManagedObjectID, _ context: NSManagedObjectContext) throws -> NSManagedObject {
            let own = try require(other.managedObjectID(forURIRepresentation: id.uriRepresentation()))
            return try context.existingObject(with: own)
        }

        /// Whether each of some objects of one hierarchy has a row in the cache.
        func cached(_ ids: [NSManagedObjectID]) throws -> [Bool] {
            let store = try require(stack.coordinator.openStores.first)
            let root = try require(ids.first).entity.layout.rootNumber
            let uncached = Set(store.cache.uncached(ids.map(\.key), root: root))
            return ids.map { !uncached.contains($0.key) }
        }
    }

    @Test func `only the rows that others have saved are read again`() throws {
        let watched = try Watched(GuideModel.make())
        let ids = try watched.insert("City", ["Rome", "Oslo", "Lima", "Bern"])
        try watched.saveElsewhere { context in
            try watched.elsewhere(ids[0], context).setValue("Roma", forKey: "name")
            try context.delete(watched.elsewhere(ids[3], context))
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue("Bonn", forKey: "name")
        }
        expect(try watched.wait { try watched.value("name", ids[0]) == "Roma" as NSString })
        try expectEqual(watched.cached(ids), [true, true, true, false])
        expectThrows(CocoaError.self) { try watched.value("name", ids[3]) }
    }

    @Test func `all rows of a store that was set back are read again, and followers are notified`() throws {
        let watched = try Watched(GuideModel.make())
        let ids = try watched.insert("City", ["Rome", "Oslo"])
        try watched.saveElsewhere { context in
            try watched.elsewhere(ids[0], context).setValue("Roma", forKey: "name")
        }
        expect(try watched.wait { try watched.value("name", ids[0]) == "Roma" as NSString })
        watched.drain()
        // This sets the store back as from a backup: to an earlier time, with another value.
        try TestDatabase.run(
            """
            BEGIN; DELETE FROM strata_change; DELETE FROM strata_transaction; UPDATE strata_history SET last = 1;
            UPDATE city SET name = 'Rom' WHERE name = 'Roma'; COMMIT
            """,
            in: watched.stack.storeURL
        )
        expect(watched.isTold(within: 20))
        try expectEqual(watched.value("name", ids[0]), "Rom" as NSString)
        // This change is noticed, though its number was used before.
        try watched.saveElsewhere { context in
            try watched.elsewhere(ids[1], context).setValue("Kristiania", forKey: "name")
        }
        expect(try watched.wait { try watched.value("name", ids[1]) == "Kristiania" as NSString })
    }

    @Test func `rows whose derived attributes others have changed are read again`() throws {
        let watched = try Watched(DerivedTests.model())
        let ids = try watched.insert("Customer", ["Ada", "Bo"])
        var order: NSManagedObjectID?
        try watched.saveElsewhere { context in
            let new = NSEntityDescription.insertNewObject(forEntityName: "Order", into: context)
            new.setValue(try watched.elsewhere(ids[0], context), forKey: "customer")
            try context.save()
            order = watched.stack.coordinator.managedObjectID(
                forURIRepresentation: new.objectID.uriRepresentation()
            )
        }
        expect(try watched.wait { try watched.value("orderCount", ids[0]) == 1 as NSNumber })
        let orderID = try require(order)
        try expectEqual(watched.value("customerName", orderID), "Ada" as NSString)
        try watched.saveElsewhere { try watched.elsewhere(ids[0], $0).setValue("Eva", forKey: "name") }
        expect(try watched.wait { try watched.value("customerName", orderID) == "Eva" as NSString })
        try expectEqual(watched.value("orderCount", ids[1]), 0 as NSNumber)
    }

    @Test func `rows that batches of others have changed are read again, and those that their deletions have released`()
        throws
    {
        let watched = try Watched(GuideModel.make())
        let cities = try watched.insert("City", ["Rome", "Oslo"])
        let venues = try watched.insert("Venue", ["Bar", "Inn"])
        try watched.saveElsewhere { context in
            for (venue, city) in zip(venues, cities) {
                try watched.elsewhere(venue, context).setValue(watched.elsewhere(city, context), forKey: "city")
            }
        }
        expect(try watched.wait { try watched.value("city", venues[0]) != nil })
        for id in venues + cities { try expect(watched.value("name", id) != nil) }
        try watched.saveElsewhere { context in
            let update = NSBatchUpdateRequest(entityName: "Venue")
            update.predicate = NSPredicate(format: "name == 'Inn'")
            update.propertiesToUpdate = ["name": "Hotel"]
            try context.execute(update)
        }
        expect(try watched.wait { try watched.value("name", venues[1]) == "Hotel" as NSString })
        try expectEqual(watched.cached(venues), [true, true])
        try watched.saveElsewhere { context in
            let rome = NSFetchRequest<any NSFetchRequestResult>(entityName: "City")
            rome.predicate = NSPredicate(format: "name == 'Rome'")
            try context.execute(NSBatchDeleteRequest(fetchRequest: rome))
        }
        expect(try watched.wait { try watched.value("city", venues[0]) == nil })
        try expectEqual(watched.cached(venues), [true, true])
        try expectEqual(watched.cached(cities), [false, true])
    }

    @Test func `what is too much to be remembered may be all`() {
        let changes = ChangesOfOthers()
        func rows(_ keys: Range<Int64>, root: Int = 1) -> ChangedRows {
            var rows = ChangedRows()
            rows.add(keys, root: root)
            return rows
        }
        changes.add(rows(0..<2))
        changes.add(rows(1..<4))
        changes.add(rows(0..<1, root: 2))
        expectEqual(changes.rows(since: 0)?.keys, [1: [0, 1, 2, 3], 2: [0]])
        expectEqual(changes.rows(since: 1)?.keys, [1: [1, 2, 3], 2: [0]])
        expectEqual(changes.rows(since: 3)?.keys, [:])
        changes.add(nil)
        expect(changes.rows(since: 3) == nil)
        expectEqual(changes.rows(since: 4)?.keys, [:])
        changes.add(rows(0..<60_000))
        changes.add(rows(60_000..<130_000))
        expect(changes.rows(since: 4) == nil)
        expectEqual(changes.rows(since: 5)?.count, 70_000)
        expectEqual(changes.number, 6)
    }
}
