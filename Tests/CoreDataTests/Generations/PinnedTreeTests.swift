import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataModelFiles

/// Children of pinned contexts.
@Suite("Pinned contexts: children")
struct PinnedTreeTests {
    @Test func `a child sees the version of its root, however it reads`() throws {
        let stack = try Stack(.database)
        let (city, first) = try stack.storeCityWithVenues()
        let other = try stack.storeCity("Lisbon", population: 5)
        let root = try stack.pinnedContext("root")
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = root
        let grandchild = NSManagedObjectContext(.privateQueue)
        grandchild.parent = child
        try stack.change(first, Venue.self) { venue, _ in
            venue.name = "Changed"
            venue.city = nil
            venue.tags = []
        }
        try stack.change(other, City.self) { city, _ in city.population = 6 }
        try stack.delete(city)
        _ = try stack.storeCity("Braga")
        for context in [child, grandchild] {
            try context.inside { () throws in
                try expectEqual(context.storedCityNames(), ["Lisbon", "Porto"])
                try expectEqual(context.count(for: citiesByName()), 2)
                try expectEqual(context.get(other, City.self).population, 5)
                let venue = try context.get(first, Venue.self)
                expectEqual(venue.name, "First")
                expectEqual(venue.city?.name, "Porto")
                expectEqual(venue.tags.count, 1)
                expectEqual(venue.city?.venues.count, 2)
                let batched = citiesByName()
                batched.fetchBatchSize = 1
                batched.returnsObjectsAsFaults = false
                try expectEqual(context.fetch(batched).map(\.name), ["Lisbon", "Porto"])
                let prefetching = NSFetchRequest<Venue>(entityName: "Venue")
                prefetching.relationshipKeyPathsForPrefetching = ["city", "photos"]
                prefetching.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
                context.reset()
                try expectEqual(context.fetch(prefetching).map { $0.city?.name }, ["Porto", "Porto"])
            }
        }
    }

    @Test func `what a child saves into its parent moves nothing, and what the root saves moves all`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A", population: 1)
        let root = try stack.pinnedContext("root")
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = root
        try stack.change(id, City.self) { city, _ in city.population = 2 }
        let city = try child.inside { () throws in
            City(context: child).name = "B"
            try child.save()
            try expectEqual(child.storedCityNames(), ["A", "B"])
            return UncheckedBox(try child.get(id, City.self))
        }
        let token = root.performAndWait { root.queryGenerationToken }
        try root.inside { () throws in
            try expectEqual(root.get(id, City.self).population, 1)
            expectEqual(root.queryGenerationToken, token)
            root.reset()
            City(context: root).name = "C"
            try root.save()
        }
        try child.inside { () throws in
            child.refresh(city.value, mergeChanges: false)
            expectEqual(city.value.population, 2)
            try expectEqual(child.storedCityNames(), ["A", "C"])
        }
    }

    @Test func `an asynchronous fetch of a child is of the version of its root`() async throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A")
        let root = try stack.pinnedContext("root")
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = root
        try stack.change(id, City.self) { city, _ in city.name = "B" }
        let names = try await child.executed({ citiesByName() }) { $0.finalResult?.map(\.name) ?? [] }
        expectEqual(names, ["A"])
    }
}
