import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

/// The steps that a service takes with a store, on whatever server `STRATA_TEST_POSTGRESQL` names: see `make test-citus`.
@Suite("A trial of a server, step by step", .enabled(if: Server.isThere))
struct TrialTests {
    /// The servers: the one of the tests, and if it has a socket, the same behind a proxy that makes it behave like one that is sharded by schema.
    enum Place: CaseIterable {
        case direct, sharded

        static var all: [Place] {
            // The proxy for sharding asks for numbers of transactions, which the one for portable stores refuses.
            let isPortable = ProcessInfo.processInfo.environment["STRATA_PORTABLE"] != nil
            return TestDatabase.url?.query?.contains("host=/") == true && !isPortable ? allCases : [.direct]
        }
    }

    /// A schema, with the proxy before it.
    private final class Trial: Sendable {
        let url: URL
        private let proxy: ShardingProxy?
        private let schema = "trial_" + String(UInt64.random(in: 0 ... .max), radix: 36)

        init(_ place: Place) throws {
            let direct = try require(TestDatabase.url)
            proxy = place == .sharded ? try ShardingProxy(to: direct) : nil
            let base = (proxy?.url ?? direct).absoluteString
            url = try require(URL(string: "\(base)\(base.contains("?") ? "&" : "?")schema=\(schema)"))
        }

        /// The statements that the server has refused.
        var refused: [String] { proxy?.refused.withLock { $0 } ?? [] }

        deinit {
            _ = try? Server.connection().command("DROP SCHEMA IF EXISTS \"\(schema)\" CASCADE")
            proxy?.close()
        }
    }

    /// Cities with a unique name and their venues; the second version has one attribute more.
    static func model(_ version: Int) -> NSManagedObjectModel {
        let (city, venue) = (NSEntityDescription(), NSEntityDescription())
        (city.name, venue.name) = ("City", "Venue")
        func attribute(_ name: String, _ type: NSAttributeType) -> NSAttributeDescription {
            let attribute = NSAttributeDescription()
            (attribute.name, attribute.attributeType, attribute.isOptional) = (name, type, true)
            return attribute
        }
        let (venues, home) = (NSRelationshipDescription(), NSRelationshipDescription())
        (venues.name, venues.destinationEntity, venues.inverseRelationship) = ("venues", venue, home)
        (venues.deleteRule, venues.maxCount) = (.cascadeDeleteRule, 0)
        (home.name, home.destinationEntity, home.inverseRelationship) = ("city", city, venues)
        (home.deleteRule, home.maxCount, home.isOptional) = (.nullifyDeleteRule, 1, true)
        city.properties = [attribute("name", .stringAttributeType), venues]
        city.uniquenessConstraints = [["name"]]
        venue.properties = [attribute("name", .stringAttributeType), attribute("price", .integer64AttributeType), home]
        if version == 2 { venue.properties.append(attribute("seats", .integer64AttributeType)) }
        let model = NSManagedObjectModel()
        model.entities = [city, venue]
        return model
    }

    static func open(_ url: URL, _ version: Int = 1) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model(version))
        let options: [AnyHashable: Any] = [
            NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
        ]
        try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url, options: options)
        return coordinator
    }

    static func close(_ coordinator: NSPersistentStoreCoordinator) {
        for store in coordinator.persistentStores { try? coordinator.remove(store) }
    }

    @discardableResult
    static func perform<R>(_ coordinator: NSPersistentStoreCoordinator, _ body: (NSManagedObjectContext) throws -> R)
        throws -> R
    {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait { try body(context) }
    }

    static func insertCity(_ name: String, venues: Int, _ context: NSManagedObjectContext) {
        let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
        city.setValue(name, forKey: "name")
        for number in 0..<venues {
            let venue = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context)
            venue.setValue("\(name) \(number)", forKey: "name")
            venue.setValue(number, forKey: "price")
            venue.setValue(city, forKey: "city")
        }
    }

    static func venues(_ context: NSManagedObjectContext, _ format: String? = nil) throws -> [NSManagedObject] {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
        request.predicate = format.map { NSPredicate(format: $0) }
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        return try context.fetch(request)
    }

    private static func transactions(_ context: NSManagedObjectContext, after token: NSPersistentHistoryToken?) throws
        -> [NSPersistentHistoryTransaction]
    {
        let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
        return (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
    }

    @Test(arguments: Place.all)
    func `a store is made, written, read, followed, migrated and verified`(_ place: Place) async throws {
        let trial = try Trial(place)
        let url = trial.url
        let coordinator = try Self.open(url)
        defer { Self.close(coordinator) }
        let placement = coordinator.statistics().stores.first?.tablePlacement
        print("the tables of the trial: \(placement?.rawValue ?? "unknown")")
        if place == .sharded { expectEqual(placement, .shardedBySchema) }

        // Insert, update, delete, and a to-many relationship.
        try Self.perform(coordinator) { context in
            for name in ["Oslo", "Rome"] { Self.insertCity(name, venues: 3, context) }
            try context.save()
            let found = try Self.venues(context)
            expectEqual(found.compactMap { $0.value(forKey: "name") as? String }.first, "Oslo 0")
            found[0].setValue(100, forKey: "price")
            context.delete(found[5])
            let rome = try require(found[4].value(forKey: "city") as? NSManagedObject)
            found[1].setValue(rome, forKey: "city")
            try context.save()
        }
        try Self.perform(coordinator) { context in
            try expectEqual(Self.venues(context, "price == 100").count, 1)
            let sizes = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City"))
                .map { ($0.value(forKey: "venues") as? Set<NSManagedObject>)?.count ?? 0 }
            expectEqual(sizes.sorted(), [2, 3])
            try expectEqual(Self.venues(context, "city.name == 'Rome'").count, 3)
        }
        // A unique name.
        try Self.perform(coordinator) { context in
            Self.insertCity("Rome", venues: 0, context)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectConstraintMerge)
        }
        // Batches: few rows by INSERT, many by COPY; then an update and a deletion.
        try Self.perform(coordinator) { context in
            for count in [5, 3_000] {
                let rows = (0..<count).map { ["name": "many \($0)", "price": 1_000 + count] as [String: Any] }
                try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: rows))
                try expectEqual(Self.venues(context, "price == \(1_000 + count)").count, count)
            }
            let update = NSBatchUpdateRequest(entityName: "Venue")
            update.predicate = NSPredicate(format: "price == 1005")
            update.propertiesToUpdate = ["price": 7]
            try context.execute(update)
            try expectEqual(Self.venues(context, "price == 7").count, 5)
            let many = NSFetchRequest<any NSFetchRequestResult>(entityName: "Venue")
            many.predicate = NSPredicate(format: "price == 4000")
            try context.execute(NSBatchDeleteRequest(fetchRequest: many))
            try expectEqual(Self.venues(context).count, 10)
        }
        // A save of many rows goes by COPY too.
        try Self.perform(coordinator) { context in
            Self.insertCity("Bern", venues: 3_000, context)
            try context.save()
        }
        // The history is read and purged, and another process is followed.
        let token = try Self.perform(coordinator) { context in
            let all = try Self.transactions(context, after: nil)
            expectEqual(all.map(\.transactionNumber), Array(1...Int64(all.count)))
            let token = try require(all.last?.token)
            try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: token))
            expect(try Self.transactions(context, after: nil).count < all.count)
            return token
        }
        let told = DispatchSemaphore(value: 0)
        let observer = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: coordinator,
            queue: nil
        ) { _ in told.signal() }
        defer { NotificationCenter.default.removeObserver(observer) }
        await #expect(processExitsWith: .success) { [address = url.absoluteString as String] in
            endInTime()
            let other = try TrialTests.open(require(URL(string: address)))
            try TrialTests.perform(other) { context in
                TrialTests.insertCity("Kyiv", venues: 2, context)
                try context.save()
            }
            TrialTests.close(other)
        }
        try waitUntil {
            try Self.perform(coordinator) { try Self.transactions($0, after: token).count } == 1
        }
        try require(told.wait(timeout: .now() + 60) == .success)
        try Self.perform(coordinator) { try expectEqual(Self.venues($0, "city.name == 'Kyiv'").count, 2) }
        // Migration. Whoever has the old model learns it.
        let migrated = try Self.open(url, 2)
        defer { Self.close(migrated) }
        try Self.perform(migrated) { context in
            let venue = try require(Self.venues(context, "city.name == 'Kyiv'").first)
            venue.setValue(12, forKey: "seats")
            try context.save()
            try expectEqual(Self.venues(context, "seats == 12").count, 1)
        }
        let error = expectThrows(CocoaError.self) { try Self.perform(coordinator) { try Self.venues($0).count } }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
        try expectEqual(PostgreSQLStore.problems(at: url, Self.model(2)), [])
        expectEqual(trial.refused, [])
    }
}
