import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: what a child's save costs", .serialized)
struct TreeCostTests {
    /// The processor time of saving a hundred changes into a parent that has so many objects.
    private func time(_ registered: Int) throws -> Duration {
        let stack = try Stack(.memory)
        try stack.storeCities((0..<registered).map { "City \($0)" })
        let (parent, child) = stack.pair()
        let ids = try parent.performAndWait {
            parent.retainsRegisteredObjects = true
            let cities = try parent.all(City.self)
            for city in cities { expect(!city.name.isEmpty) }
            return cities.prefix(100).map(\.objectID)
        }
        return try child.performAndWait {
            var shortest = Duration.seconds(1_000)
            for round in 1...5 {
                for id in ids { try child.get(id, City.self).population = Int64(-round) }
                shortest = min(shortest, try processorTime { try child.save() })
            }
            try parent.performAndWait {
                let population = try parent.get(ids[0], City.self).population
                expectEqual(population, -5)
                expect(parent.updatedObjects.count == 100 && parent.registeredObjects.count == registered)
            }
            return shortest
        }
    }

    @Test func `a child's save costs what has changed, whatever the parent has registered`() throws {
        _ = try time(200)
        // Forty times as many.
        try expectGrowth(below: 8, from: { try time(500) }, to: { try time(20_000) })
    }
}
