import CoreData
import Expectations
import TestSupport
import Testing

@Suite("No update is lost")
struct LostUpdateTests {
    /// Adds one to a stored number, and keeps what others have added.
    private static func increment(_ context: NSManagedObjectContext, _ id: NSManagedObjectID) throws {
        while true {
            do {
                try (context.existingObject(with: id) as? City)?.population += 1
                return try context.save()
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                // The addition is undone, and made again to the value that is now stored.
                context.rollback()
                context.refreshAllObjects()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `contexts on one coordinator that add to one number (CS-97, 211)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("counter", population: 0)
        let (writers, rounds) = (4, 50)
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<writers {
                group.addTask {
                    let context = stack.context("writer \(writer)")
                    for _ in 0..<rounds {
                        await context.perform { #expect(throws: Never.self) { try Self.increment(context, id) } }
                    }
                }
            }
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, Int64(writers * rounds))
    }

    @Test func `contexts on two coordinators of one file that add to one number (CS-97)`() async throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("counter", population: 0)
        let coordinators = [stack.coordinator, try stack.secondCoordinator()]
        let rounds = 40
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                let coordinator = coordinators[writer % 2]
                let own = try require(coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()))
                group.addTask {
                    let context = NSManagedObjectContext(.privateQueue)
                    context.persistentStoreCoordinator = coordinator
                    context.stalenessInterval = 0
                    for _ in 0..<rounds { try await context.perform { try Self.increment(context, own) } }
                }
            }
            try await group.waitForAll()
        }
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = coordinators[1]
        try reader.performAndWait {
            let counter = try reader.all(City.self).first
            expectEqual(counter?.population, Int64(4 * rounds))
        }
        for store in coordinators[1].persistentStores { try coordinators[1].remove(store) }
    }

    @Test(arguments: StoreKind.allCases)
    func `contexts that change different properties of one object, trying again, keep them all`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, _ in venue.name = "shared" }
        let rounds = 40
        await withTaskGroup(of: Void.self) { group in
            for property in ["price", "seats", "visits"] {
                group.addTask {
                    let context = stack.context(property)
                    for round in 1...rounds {
                        await context.perform {
                            context.object(with: id).setValue(round, forKey: property)
                            #expect(throws: Never.self) { try context.save(retrying: 1000) }
                        }
                    }
                }
            }
        }
        let values = try stack.read(id, Venue.self) { [Int($0.price), Int($0.seats), $0.visits] }
        expectEqual(values, [rounds, rounds, rounds])
    }
}
