import CoreData
import Dispatch
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Contexts that follow what others save")
struct AutomaticMergeTests {
    @Test(arguments: StoreKind.allCases)
    func `a following context merges saves of its coordinator's other contexts, and none by default (CS-57, 58)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let (following, other) = (stack.context("following"), stack.context("not following"))
        expect(!following.automaticallyMergesChangesFromParent)
        following.automaticallyMergesChangesFromParent = true
        expect(following.automaticallyMergesChangesFromParent)
        let cities = try [following, other].map { context in
            try context.performAndWait {
                let city = try context.get(id, City.self)
                expectEqual(city.name, "old")
                return UncheckedSendable(city)
            }
        }
        try stack.change(id, City.self) { city, _ in city.name = "new" }
        following.performAndWait { expectEqual(cities[0].value.name, "new") }
        other.performAndWait { expectEqual(cities[1].value.name, "old") }
        following.performAndWait { following.automaticallyMergesChangesFromParent = false }
        try stack.change(id, City.self) { city, _ in city.name = "newest" }
        following.performAndWait { expectEqual(cities[0].value.name, "new") }
    }

    @Test func `what another coordinator saves is not merged by itself (CS-58)`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("old")
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        let log = NotificationLog(.ofContexts, of: context)
        let city = try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.name, "old")
            return city
        }
        let second = try stack.secondCoordinator()
        let writer = NSManagedObjectContext(.privateQueue)
        writer.persistentStoreCoordinator = second
        try writer.performAndWait {
            try writer.all(City.self).first?.name = "new"
            try writer.save()
        }
        context.performAndWait { expectEqual(city.name, "old") }
        expect(log.entries.isEmpty)
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes of the following context stay, a deletion elsewhere included (CS-60)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            try context.get(changedID, City.self).population = 5
            try context.get(deletedID, City.self).population = 6
        }
        try stack.change(changedID, City.self) { city, _ in city.name = "theirs" }
        try stack.delete(deletedID)
        try context.performAndWait {
            let (changed, deleted) = (try context.get(changedID, City.self), try context.get(deletedID, City.self))
            expect(changed.name == "theirs" && changed.population == 5)
            // The next save finds the conflict, instead of the change being lost.
            expect(deleted.isUpdated && deleted.population == 6)
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [deleted])
            context.refresh(deleted, mergeChanges: false)
            try context.save()
        }
        try expectEqual(stack.read(changedID, City.self) { "\($0.name) \($0.population)" }, "theirs 5")
    }

    @Test(arguments: StoreKind.allCases)
    func `saves that a busy context has missed are merged as one`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("counter", population: 0)
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        let log = NotificationLog(.ofContexts, of: context)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.population, 0)
            // While this block runs, nothing can be merged.
            for round in 1...100 {
                try stack.change(id, City.self) { city, context in
                    city.population = Int64(round)
                    let extra = City(context: context)
                    extra.name = "extra \(round)"
                    if round == 1 { extra.name = "doomed" }
                }
            }
            let other = stack.context()
            try other.performAndWait {
                for city in try other.all(City.self) where city.name == "doomed" { other.delete(city) }
                try other.save()
            }
            expectEqual(city.population, 0)
        }
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.population, 100)
            expect(
                log.names == [
                    .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextDidMergeChangesObjectIDs,
                ]
            )
            expectEqual(log.entries[0].objects(NSInsertedObjectsKey).count, 99)
            expectEqual(log.entries[1].ids(NSInsertedObjectIDsKey).count, 99)
            expectEqual(log.entries[1].ids(NSUpdatedObjectIDsKey), [id])
            expectEqual(log.entries[1].ids(NSDeletedObjectIDsKey).count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a message is posted on the following context's queue, and its save is not merged back`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let contexts = [stack.context("a"), stack.context("b")]
        for context in contexts { context.automaticallyMergesChangesFromParent = true }
        let logs = contexts.map { context in
            NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: context) {
                contexts.filter(\.isInScope).compactMap(\.name).joined(separator: ", ")
            }
        }
        try contexts[0].performAndWait {
            City(context: contexts[0]).name = "a"
            try contexts[0].save()
        }
        for context in contexts { context.performAndWait {} }
        expectEqual(logs.map { $0.entries.map(\.probed) }, [[], ["b"]])
    }

    @Test(arguments: StoreKind.allCases)
    func `following contexts agree with the store when all is quiet`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let ids = try (0..<20).map { _ in try stack.storeCity("city 0", population: 0) }
        let followers = (0..<3).map { index in
            let context = stack.context("follower \(index)")
            context.automaticallyMergesChangesFromParent = true
            return context
        }
        let held = try followers.map { context in
            try context.performAndWait { UncheckedSendable(try ids.map { try context.get($0, City.self) }) }
        }
        await withTaskGroup(of: Void.self) { group in
            for writer in 0..<3 {
                group.addTask {
                    let context = stack.context(.objectTrump, "writer \(writer)")
                    for round in 0..<50 {
                        await context.perform {
                            for (index, id) in ids.enumerated() where (index + round + writer).isMultiple(of: 3) {
                                guard let city = context.object(with: id) as? City else { continue }
                                city.population += 1
                                city.name = "city \(city.population)"
                            }
                            #expect(throws: Never.self) { try context.save() }
                        }
                    }
                }
            }
            for (context, cities) in zip(followers, held) {
                group.addTask {
                    for _ in 0..<50 {
                        // No torn object: what one save has changed shows together.
                        await context.perform {
                            expect(cities.value.allSatisfy { $0.name == "city \($0.population)" })
                        }
                    }
                }
            }
        }
        let stored = try ids.map { try stack.read($0, City.self) { $0.population } }
        expect(stored.contains { $0 > 0 })
        for (context, cities) in zip(followers, held) {
            context.performAndWait {
                expectEqual(cities.value.map(\.population), stored)
                expectEqual(cities.value.map(\.name), stored.map { "city \($0)" })
            }
        }
    }
}
