import CoreData
import Expectations
import TestSupport
import Testing

/// Uses that the check must allow; a checker that judged by threads flagged each of them.
@Suite("Confinement without false alarms")
struct ConfinementRuleTests {
    @Test func `nested main-queue contexts (CS-25)`() async throws {
        let stack = try Stack(.memory)
        await MainActor.run {
            let contexts = (0..<2).map { _ in NSManagedObjectContext(.mainQueue) }
            for context in contexts { context.persistentStoreCoordinator = stack.coordinator }
            contexts[0].performAndWait {
                City(context: contexts[0]).name = "Porto"
                contexts[1].performAndWait {
                    expect(!contexts[1].hasChanges)
                    expect(contexts[0].hasChanges)
                }
                // The other context needs no perform: both belong to the main queue.
                expect(contexts[1].registeredObjects.isEmpty)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the block of an asynchronous fetch, and the objects in it (CS-25)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try stack.storeCities(["Porto"])
        let names = try await stack.context().executed(citiesByName) { result in
            result.managedObjectContext.hasChanges ? [] : result.finalResult?.map { "\($0.name) \($0.venues.count)" }
        }
        expectEqual(names, ["Porto 0"])
    }

    @Test func `names, IDs, userInfo and references on any thread (CS-20, 21, 25)`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context("reader")
        let id = try stack.storeCity("Porto")
        let city = context.performAndWait { Held(context.object(with: id)) }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    // The code passes the reference on, stores it and compares it, but never looks into it.
                    let references = [city.object, city.object]
                    expect(references[0] === references[1])
                    expectEqual(city.object.objectID, id)
                    expect(city.object.managedObjectContext === context)
                    expectEqual(context.name, "reader")
                    expectEqual(context.concurrencyType, .privateQueueConcurrencyType)
                    expect(context.persistentStoreCoordinator === stack.coordinator)
                    expect(context.userInfo["stack"] != nil)
                }
            }
        }
    }

    @Test func `a task that goes on on another thread between two blocks (CS-8, 25)`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let id = try stack.storeCity("Porto")
        var names: Set<String> = []
        for _ in 0..<100 {
            names.insert(try await context.perform { try context.get(id, City.self).name })
            await Task.detached { await Task.yield() }.value
            names.insert(try context.performAndWait { try context.get(id, City.self).name })
        }
        expectEqual(names, ["Porto"])
    }

    @Test func `a block that waits for another context's block is inside both (CS-25)`() async throws {
        let stack = try Stack(.memory)
        let (first, second) = (stack.context("first"), stack.context("second"))
        first.performAndWait {
            let porto = City(context: first)
            porto.name = "Porto"
            second.performAndWait {
                let copy = City(context: second)
                copy.name = porto.name
                expect(first.hasChanges && second.hasChanges)
            }
        }
    }

    @Test func `notifications, and asynchronous perform called inside the scope (CS-25)`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context) { context.hasChanges ? "changed" : "clean" }
        try await context.perform {
            City(context: context).name = "Porto"
            try context.save()
        }
        expect(log.names.contains(.NSManagedObjectContextDidSave))
    }
}

/// An object for other threads, which read none of its confined state.
private struct Held: @unchecked Sendable {
    // @unchecked Sendable: see above.
    let object: NSManagedObject
    init(_ object: NSManagedObject) { self.object = object }
}
