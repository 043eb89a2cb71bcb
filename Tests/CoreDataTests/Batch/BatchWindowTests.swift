import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQLiteStore

@Suite("Limits and offsets of batch deletes over several stores")
struct BatchWindowTests {
    /// A coordinator with two stores, over which venues are spread.
    ///
    /// The second store is of the other kind.
    private func split(_ kind: StoreKind) throws -> Stack {
        let stack = try Stack(kind)
        try stack.coordinator.addPersistentStore(
            type: kind == .sqlite ? .inMemory : .sqlite,
            configuration: nil,
            at: stack.folder.appendingPathComponent("second.sqlite")
        )
        let context = stack.context("filling")
        try context.performAndWait {
            for (number, price) in [30, 10, 20, 10, 40, 20, 50, 10].enumerated() {
                let (venue, city) = (Venue(context: context), City(context: context))
                venue.name = "v\(number)"
                venue.price = Int16(price)
                city.name = "\(9 - number)"
                venue.city = city
                for object in [venue, city] {
                    context.assign(object, to: stack.coordinator.persistentStores[number % 2])
                }
            }
            try context.save()
        }
        return stack
    }

    private func request(_ limit: Int, _ offset: Int, _ order: [NSSortDescriptor] = []) -> NSFetchRequest<Venue> {
        let fetch = NSFetchRequest<Venue>(entityName: "Venue")
        fetch.predicate = NSPredicate(format: "price < 50")
        (fetch.fetchLimit, fetch.fetchOffset) = (limit, offset)
        fetch.sortDescriptors = order
        return fetch
    }

    /// The objects that a fetch finds.
    private func found(_ stack: Stack, _ fetch: NSFetchRequest<Venue>) throws -> Set<NSManagedObjectID> {
        let context = stack.context("finding")
        return try context.performAndWait { Set(try context.fetch(fetch).map(\.objectID)) }
    }

    private static let windows = [(3, 0), (2, 3), (0, 5), (100, 1), (4, 100)]
    private static let orders: [[(key: String, ascending: Bool)]] = [
        [], [("price", true), ("name", true)], [("price", false)], [("city.name", true)],
    ]

    @Test(arguments: StoreKind.allCases)
    func `the batch deletes what a fetch with the same window finds, and nothing else`(_ kind: StoreKind) throws {
        for (limit, offset) in Self.windows {
            for order in Self.orders {
                let stack = try split(kind)
                let fetch = request(limit, offset, order.map { NSSortDescriptor(key: $0.key, ascending: $0.ascending) })
                let expected = try found(stack, fetch)
                let all = try found(stack, NSFetchRequest<Venue>(entityName: "Venue"))
                let deletion = NSBatchDeleteRequest(fetchRequest: fetch)
                deletion.resultType = .resultTypeObjectIDs
                let ids = try require(try stack.execute(deletion).value as? [NSManagedObjectID])
                expect(Set(ids) == expected && ids.count == expected.count, "\(limit) from \(offset) by \(order)")
                try expectEqual(found(stack, NSFetchRequest<Venue>(entityName: "Venue")), all.subtracting(expected))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `status and count speak of the whole window`(_ kind: StoreKind) throws {
        let stack = try split(kind)
        let deletion = NSBatchDeleteRequest(
            fetchRequest: request(3, 1, [NSSortDescriptor(key: "name", ascending: true)])
        )
        deletion.resultType = .resultTypeCount
        try expectEqual(stack.execute(deletion).value as? Int, 3)
        try expectEqual(stack.all(Venue.self) { $0.name ?? "" }, ["v0", "v4", "v5", "v6", "v7"])
        deletion.resultType = .resultTypeStatusOnly
        try expectEqual(stack.execute(deletion).value as? Bool, true)
        try expectEqual(stack.all(Venue.self) { $0.name ?? "" }, ["v0", "v6"])
        deletion.affectedStores = [stack.coordinator.persistentStores[0]]
        try expectEqual(stack.execute(deletion).value as? Bool, true)
        try expectEqual(stack.all(Venue.self) { $0.name ?? "" }, ["v0", "v6"])
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes do not count, and no context's objects are touched`(_ kind: StoreKind) throws {
        let stack = try split(kind)
        let context = stack.context()
        try context.performAndWait {
            for venue in try context.all(Venue.self) where venue.price == 10 { venue.price = 45 }
            let registered = context.registeredObjects.count
            try context.execute(
                NSBatchDeleteRequest(fetchRequest: request(3, 0, [NSSortDescriptor(key: "price", ascending: true)]))
            )
            expect(context.registeredObjects.count == registered && context.updatedObjects.count == 3)
        }
        try expectEqual(stack.all(Venue.self, nameAndPrice), ["v0 30", "v2 20", "v4 40", "v5 20", "v6 50"])
    }

    @Test(arguments: StoreKind.allCases)
    func `contexts that follow see one change`(_ kind: StoreKind) throws {
        let stack = try split(kind)
        let following = stack.context()
        following.automaticallyMergesChangesFromParent = true
        let venues = try following.performAndWait {
            UncheckedSendable(try following.all(Venue.self))
        }
        try stack.execute(
            NSBatchDeleteRequest(fetchRequest: request(4, 0, [NSSortDescriptor(key: "name", ascending: true)]))
        )
        following.performAndWait {
            expectEqual(Set(venues.value.filter(\.isDeleted).compactMap(\.name)), ["v0", "v1", "v2", "v3"])
        }
    }

    @Test
    func `each store deletes with one statement, however large the window`() throws {
        let tag = GuideModel.entity("Tag", TestSupport.Tag.self)
        tag.properties = [GuideModel.attribute("title", .string)]
        let model = NSManagedObjectModel()
        model.entities = [tag]
        let stack = try Stack(.sqlite, model: model)
        let second = try stack.coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: stack.folder.appendingPathComponent("second.sqlite")
        )
        for store in stack.coordinator.persistentStores {
            let insert = NSBatchInsertRequest(entityName: "Tag", objects: (0..<50).map { ["title": "t\($0)"] })
            insert.affectedStores = [store]
            try stack.execute(insert)
        }
        let log = Shared<[String]>([])
        for store in stack.coordinator.persistentStores {
            let pool = try require(store as? SQLiteStore).openFile().pool
            pool.setTrace { event in log.update { $0.append(event.sql) } }
        }
        let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Tag")
        fetch.sortDescriptors = [NSSortDescriptor(key: "title", ascending: true)]
        for limit in [4, 40] {
            fetch.fetchLimit = limit
            try stack.execute(NSBatchDeleteRequest(fetchRequest: fetch))
        }
        let deletions = log.current.filter { $0.hasPrefix("DELETE") }
        expectEqual(deletions.count, 4, "\(deletions)")
        try expectEqual(stack.count("Tag"), 56)
        let context = stack.context()
        try expect(
            context.performAndWait {
                let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Tag")
                request.affectedStores = [second]
                return try context.count(for: request)
            } == 28
        )
    }
}
