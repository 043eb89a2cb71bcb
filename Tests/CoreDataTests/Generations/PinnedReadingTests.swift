import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

/// A pinned context reads while others write.
@Suite("Pinned contexts: reading")
struct PinnedReadingTests {
    @Test(arguments: StoreKind.allCases)
    func `without a pin each fetch sees the newest (CS-178)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.storeCity("A")
        let reader = stack.context("reader")
        try reader.inside { () throws in
            expectEqual(reader.queryGenerationToken, nil)
            try expectEqual(reader.storedCityNames(), ["A"])
        }
        _ = try stack.storeCity("B")
        try reader.inside { () throws in try expectEqual(reader.storedCityNames(), ["A", "B"]) }
    }

    @Test func `a pin takes effect at the first read, and faults stay at it like fetches (CS-179)`() throws {
        let stack = try Stack(.database)
        let porto = try stack.storeCity("Porto", population: 1)
        let reader = stack.context("reader")
        try reader.inside { () throws in try reader.setQueryGenerationFrom(.current) }
        // The context has read nothing yet, so it sees this city.
        let lisbon = try stack.storeCity("Lisbon", population: 2)
        try reader.inside { () throws in try expectEqual(reader.count(for: citiesByName()), 2) }
        try stack.change(porto, City.self) { city, _ in
            city.name = "Oporto"
            city.population = 10
        }
        _ = try stack.storeCity("Braga", population: 3)
        try reader.inside { () throws in
            let fault: City = try typed(reader.object(with: porto))
            expect(fault.isFault)
            expectEqual(fault.name, "Porto")
            expectEqual(fault.population, 1)
            try expectEqual(reader.storedCityNames(), ["Lisbon", "Porto"])
            reader.refreshAllObjects()
            expectEqual(fault.population, 1)
            reader.refresh(fault, mergeChanges: true)
            expectEqual(fault.name, "Porto")
            try expectEqual(reader.get(lisbon, City.self).population, 2)
        }
        try expectEqual(stack.read(porto, City.self) { $0.name }, "Oporto")
    }

    @Test func `what a pinned context has read counts against the row cache's limit too`() throws {
        let stack = try Stack(.database)
        stack.coordinator.limits.rowCacheBytes = 1 << 20
        let reader = try stack.pinnedContext()
        try reader.inside { () throws in
            let store = try require(stack.coordinator.openStores.first)
            let cache = try reader.seen(store).cache
            expect(cache !== store.cache)
            expectEqual(cache.limit, 1 << 20)
        }
    }

    @Test func `an object that another context deletes stays readable (CS-185)`() throws {
        let stack = try Stack(.database)
        let (city, venue) = try stack.storeCityWithVenues()
        let reader = try stack.pinnedContext()
        let held = try reader.inside { () throws in UncheckedBox(try reader.get(venue, Venue.self)) }
        try stack.delete(venue)
        try stack.delete(city)
        try reader.inside { () throws in
            expect(held.value.isFault)
            expectEqual(held.value.name, "First")
            expectEqual(held.value.city?.name, "Porto")
            expectEqual(held.value.photos.map(\.title), ["1", "2"])
            expect(!held.value.isDeleted)
            reader.refresh(held.value, mergeChanges: false)
            expectEqual(held.value.name, "First")
            let existing = try reader.existingObject(with: city)
            expect(!existing.isFault)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `stores that keep no versions are read as they are, and the token shows it (CS-182)`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        _ = try stack.storeCity("A")
        let reader = stack.context("reader")
        try reader.inside { () throws in
            try reader.setQueryGenerationFrom(.current)
            expectEqual((reader.queryGenerationToken == nil), (kind == .memory))
            try expectEqual(reader.storedCityNames(), ["A"])
        }
        _ = try stack.storeCity("B")
        try reader.inside { () throws in
            try expectEqual(reader.storedCityNames(), kind == .memory ? ["A", "B"] : ["A"])
            expectEqual((reader.queryGenerationToken == nil), (kind == .memory))
        }
    }

    @Test func `a file without a write-ahead log keeps no versions`() throws {
        let stack = try Stack(
            .sqlite,
            model: GuideModel.make(),
            options: [NSSQLitePragmasOption: ["journal_mode": "DELETE"]]
        )
        _ = try stack.storeCity("A")
        let reader = stack.context("reader")
        try reader.inside { () throws in
            try reader.setQueryGenerationFrom(.current)
            expectEqual(reader.queryGenerationToken, nil)
            try expectEqual(reader.storedCityNames(), ["A"])
        }
        _ = try stack.storeCity("B")
        try reader.inside { () throws in try expectEqual(reader.storedCityNames(), ["A", "B"]) }
    }

    @Test func `every kind of result is of the pinned version`() throws {
        let stack = try Stack(.database)
        let ids = try (1...5).map { try stack.storeCity("City \($0)", population: Int64($0)) }
        let reader = stack.context("reader")
        try reader.inside { () throws in
            try reader.setQueryGenerationFrom(.current)
            try expectEqual(reader.count(for: citiesByName()), 5)
        }
        try stack.delete(ids[0])
        try stack.change(ids[1], City.self) { city, _ in city.population = 200 }
        _ = try stack.storeCity("City 9", population: 900)
        try reader.inside { () throws in
            try expectEqual(reader.count(for: citiesByName()), 5)
            let found = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            found.resultType = .managedObjectIDResultType
            found.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            try expectEqual(reader.fetch(found), ids)
            let numbers = NSFetchRequest<NSNumber>(entityName: "City")
            numbers.resultType = .countResultType
            try expectEqual(reader.fetch(numbers), [5])
            let sum = NSExpressionDescription()
            sum.name = "sum"
            sum.expression = NSExpression(format: "sum:(population)")
            sum.resultType = .integer64
            let totals = NSFetchRequest<NSDictionary>(entityName: "City")
            totals.resultType = .dictionaryResultType
            totals.propertiesToFetch = [sum]
            let total = try reader.fetch(totals).first
            expectEqual(total?["sum"] as? Int, 15)
            let some = citiesByName()
            some.predicate = NSPredicate(format: "population == 2")
            try expectEqual(reader.fetch(some).map(\.name), ["City 2"])
            let batched = citiesByName()
            batched.fetchBatchSize = 2
            try expectEqual(reader.fetch(batched).map(\.population), [1, 2, 3, 4, 5])
            let partial = citiesByName()
            partial.propertiesToFetch = ["population"]
            try expectEqual(reader.fetch(partial).map(\.population), [1, 2, 3, 4, 5])
            let results = try reader.batchedResults(for: batched)
            expectEqual(results.map(\.population), [1, 2, 3, 4, 5])
        }
    }

    @Test func `asynchronous fetches and row sequences are of the pinned version`() async throws {
        let stack = try Stack(.database)
        try stack.storeCities((1...25).map { String(format: "%02d", $0) })
        let reader = stack.context("reader")
        try await reader.perform {
            try reader.setQueryGenerationFrom(.current)
            try expectEqual(reader.count(for: citiesByName()), 25)
        }
        try stack.change(try stack.cityID("03"), City.self) { city, _ in city.name = "99" }
        try stack.delete(try stack.cityID("04"))
        let names = try await reader.executed({ citiesByName() }) { $0.finalResult?.map(\.name) ?? [] }
        expectEqual(names, (1...25).map { String(format: "%02d", $0) })
        var rows: [[String]] = []
        for try await batch in reader.rows(for: citiesByName(), batchSize: 10) {
            rows.append(batch.map { $0["name"] as? String ?? "" })
            // Other contexts read and write between two batches.
            _ = try stack.storeCity("more")
            let count = try await reader.perform { try reader.count(for: citiesByName()) }
            expectEqual(count, 25)
        }
        expectEqual(rows.map(\.count), [10, 10, 5])
        expectEqual(rows.flatMap { $0 }, (1...25).map { String(format: "%02d", $0) })
    }

    @Test func `relationships are of the pinned version, to-one and to-many, prefetched or not`() throws {
        let stack = try Stack(.database)
        let (city, venue) = try stack.storeCityWithVenues()
        let pinned = stack.context("pinned")
        let prefetching = stack.context("prefetching")
        for reader in [pinned, prefetching] {
            try reader.inside { () throws in
                try reader.setQueryGenerationFrom(.current)
                try expectEqual(reader.count(for: citiesByName()), 1)
            }
        }
        try stack.change(city, City.self) { city, context in
            let newcomer = Venue(context: context)
            newcomer.name = "Newcomer"
            city.venues.insert(newcomer)
        }
        try stack.change(venue, Venue.self) { venue, context in
            venue.city = nil
            let tag = Tag(context: context)
            tag.title = "new"
            venue.tags = [tag]
            venue.photos = venue.photos.reversed()
        }
        try pinned.inside { () throws in
            let city = try pinned.get(city, City.self)
            expectEqual(Set(city.venues.compactMap(\.name)), ["First", "Second"])
            let venue = try pinned.get(venue, Venue.self)
            expect(venue.city === city)
            expectEqual(Set(venue.tags.compactMap(\.title)), ["old"])
            expectEqual(venue.photos.map(\.title), ["1", "2"])
        }
        try prefetching.inside { () throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.relationshipKeyPathsForPrefetching = ["tags", "city.venues"]
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let venues = try prefetching.fetch(request)
            expectEqual(venues.map(\.name), ["First", "Second"])
            expectEqual(venues.map { $0.city?.venues.count }, [2, 2])
            expectEqual(Set(venues[0].tags.compactMap(\.title)), ["old"])
        }
    }

    @Test func `older rows do not reach the cache that others share`() throws {
        let stack = try Stack(.database)
        let porto = try stack.storeCity("Porto", population: 1)
        let reader = stack.context("reader")
        try reader.inside { () throws in
            try reader.setQueryGenerationFrom(.current)
            try expectEqual(reader.count(for: citiesByName()), 1)
        }
        // Another coordinator makes the change, so that the row cache here does not know of it.
        let second = try stack.secondCoordinator()
        let elsewhere = NSManagedObjectContext(.privateQueue)
        elsewhere.persistentStoreCoordinator = second
        try elsewhere.inside { () throws in
            try elsewhere.fetch(citiesByName())[0].population = 2
            try elsewhere.save()
        }
        let cache = try require(stack.coordinator.openStores.first?.cache)
        cache.removeAll()
        try reader.inside { () throws in try expectEqual(reader.get(porto, City.self).population, 1) }
        expectEqual(cache.count, 0)
        try expectEqual(stack.read(porto, City.self) { $0.population }, 2)
        reader.performAndWait { reader.refreshAllObjects() }
        try reader.inside { () throws in try expectEqual(reader.get(porto, City.self).population, 1) }
    }

    @Test func `a pin is kept while others delete, rewrite and checkpoint everything`() throws {
        let stack = try Stack(.database)
        try stack.storeCities((1...200).map { "City \($0)" })
        let reader = stack.context("reader")
        try reader.inside { () throws in
            try reader.setQueryGenerationFrom(.current)
            try expectEqual(reader.count(for: citiesByName()), 200)
        }
        for round in 1...3 {
            let writer = stack.context("writer")
            try writer.inside { () throws in
                for city in try writer.fetch(citiesByName()) { writer.delete(city) }
                try writer.save()
                for index in 1...100 {
                    let city = City(context: writer)
                    city.name = "Round \(round) \(index)"
                }
                try writer.save()
            }
            if stack.kind == .sqlite { try stack.pool.checkpoint(.passive) }
            try reader.inside { () throws in
                reader.refreshAllObjects()
                let cities = try reader.fetch(citiesByName())
                expectEqual(cities.count, 200)
                expectEqual(cities.reduce(0) { $0 + $1.population }, 200 * 201 / 2)
            }
        }
    }

    @Test func `unsaved changes count on top of the pinned version`() throws {
        let stack = try Stack(.database)
        let porto = try stack.storeCity("Porto")
        let reader = stack.context("reader")
        try reader.inside { () throws in
            let city = City(context: reader)
            city.name = "Unsaved"
            try reader.setQueryGenerationFrom(.current)
            try expectEqual(reader.storedCityNames(), ["Porto", "Unsaved"])
        }
        try stack.change(porto, City.self) { city, _ in city.name = "Oporto" }
        try reader.inside { () throws in
            expect(reader.hasChanges)
            try expectEqual(reader.storedCityNames(), ["Porto", "Unsaved"])
        }
    }
}
