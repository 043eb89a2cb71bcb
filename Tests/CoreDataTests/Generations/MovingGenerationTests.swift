import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import StrataArchives

/// The calls that move a pinned context to a newer version, and calls that do not.
@Suite("Pinned contexts: moving on")
struct MovingGenerationTests {
    @Test func `a save moves the context to a version that contains it (CS-181)`() throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        let context = try stack.pinnedContext()
        _ = try stack.storeCity("B")
        try context.inside { () throws in
            let before = context.queryGenerationToken
            City(context: context).name = "C"
            try expectEqual(context.storedCityNames(), ["A", "C"])
            try context.save()
            expect(context.queryGenerationToken != nil && context.queryGenerationToken != before)
        }
        // The save has pinned the context at once, so this city is not seen.
        _ = try stack.storeCity("D")
        try context.inside { () throws in try expectEqual(context.storedCityNames(), ["A", "B", "C"]) }
    }

    @Test func `the notifications of a save name the version that contains it (CS-126)`() throws {
        let stack = try Stack(.database)
        let context = try stack.pinnedContext()
        let told = Locked<[NSQueryGenerationToken?]>([])
        let names = [
            NSManagedObjectContext.didSaveObjectsNotification, NSManagedObjectContext.didSaveObjectIDsNotification,
        ]
        let observers = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { notification in
                guard (notification.object as? NSManagedObjectContext)?.persistentStoreCoordinator === stack.coordinator
                else { return }
                let key = NSManagedObjectContext.NotificationKey.queryGeneration.rawValue
                let token = notification.userInfo?[key] as? NSQueryGenerationToken
                told.withLock { $0.append(token) }
            }
        }
        defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
        try context.inside { () throws in
            City(context: context).name = "A"
            try context.save()
            let token = context.queryGenerationToken
            expect(token != nil)
            expectEqual(told.withLock { $0 }, [token, token])
        }
        // A context that is not pinned has no version to report.
        told.withLock { $0 = [] }
        _ = try stack.storeCity("B")
        expectEqual(told.withLock { $0 }, [nil, nil])
        let key = NSManagedObjectContext.NotificationKey.queryGeneration.rawValue
        expectEqual(key, NSManagedObjectContextQueryGenerationKey)
    }

    @Test func `a save is checked against the newest data, and one that is refused moves nothing`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A", population: 1)
        let context = try stack.pinnedContext()
        try stack.change(id, City.self) { city, _ in city.population = 2 }
        _ = try stack.storeCity("B")
        try context.inside { () throws in
            let token = context.queryGenerationToken
            let city = try context.get(id, City.self)
            expectEqual(city.population, 1)
            city.name = "mine"
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectMerge)
            expectEqual(context.queryGenerationToken, token)
            try expectEqual(context.storedCityNames(), ["mine"])
            expectEqual(city.population, 1)
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try context.save()
            expectEqual(city.population, 2)
            try expectEqual(context.storedCityNames(), ["B", "mine"])
        }
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "mine 2")
    }

    @Test func `a save that tries again does so on the newest data`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A", population: 1)
        let context = try stack.pinnedContext()
        try stack.change(id, City.self) { city, _ in city.population = 2 }
        try context.inside { () throws in
            let city = try context.get(id, City.self)
            city.name = "mine"
            try context.save(retrying: 1)
            expectEqual(city.population, 2)
        }
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "mine 2")
    }

    @Test func `batch requests do not move the context that runs them (CS-184)`() throws {
        let stack = try Stack(.database)
        try stack.storeCities(["A", "B"])
        let context = try stack.pinnedContext()
        try context.inside { () throws in
            let token = context.queryGenerationToken
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["population": 7]
            update.resultType = .updatedObjectIDsResultType
            let result = try context.execute(update) as? NSBatchUpdateResult
            let ids = try require(result?.result as? [NSManagedObjectID])
            expectEqual(ids.count, 2)
            let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "C"]])
            try context.execute(insert)
            let delete = NSBatchDeleteRequest(objectIDs: [ids[0]])
            try context.execute(delete)
            expectEqual(context.queryGenerationToken, token)
            try expectEqual(context.fetch(citiesByName()).map(\.population), [1, 2])
            // The context sees the changes once it merges them.
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: ids], into: [context])
            expect(context.queryGenerationToken != token)
            try expectEqual(context.storedCityNames(), ["B", "C"])
        }
    }

    @Test func `moving on does not change what is realised, until it is refreshed (CS-186)`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A", population: 1)
        let context = try stack.pinnedContext()
        try context.inside { () throws in
            let city = try context.get(id, City.self)
            expectEqual(city.population, 1)
            try stack.change(id, City.self) { city, _ in city.population = 2 }
            try context.setQueryGenerationFrom(.current)
            try expectEqual(context.count(for: citiesByName()), 1)
            expectEqual(city.population, 1)
            context.refresh(city, mergeChanges: true)
            expectEqual(city.population, 2)
        }
    }

    @Test func `merging what others have saved moves the context to it`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A", population: 1)
        let context = try stack.pinnedContext()
        let city = try context.inside { () throws in
            let city = try context.get(id, City.self)
            expectEqual(city.population, 1)
            return UncheckedBox(city)
        }
        let writer = stack.context("writer")
        let saved = Locked<Notification?>(nil)
        let observer = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didSaveObjectsNotification,
            object: writer,
            queue: nil
        ) { notification in
            let box = UncheckedBox(notification)
            saved.withLock { $0 = box.value }
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try writer.inside { () throws in
            try writer.get(id, City.self).population = 2
            City(context: writer).name = "B"
            try writer.save()
        }
        let notification = try require(saved.withLock { UncheckedBox($0) }.value)
        try context.inside { () throws in
            let before = context.queryGenerationToken
            try expectEqual(context.storedCityNames(), ["A"])
            context.mergeChanges(fromContextDidSave: notification)
            expectEqual(city.value.population, 2)
            try expectEqual(context.storedCityNames(), ["A", "B"])
            expect(context.queryGenerationToken != nil && context.queryGenerationToken != before)
        }
        // The merge has pinned the context there.
        _ = try stack.storeCity("C")
        try context.inside { () throws in try expectEqual(context.storedCityNames(), ["A", "B"]) }
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSUpdatedObjectIDsKey: [id]],
            into: [context]
        )
        try context.inside { () throws in try expectEqual(context.storedCityNames(), ["A", "B", "C"]) }
    }

    @Test func `a pinned context that follows saves moves with each of them (CS-59)`() async throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("A", population: 1)
        let context = try stack.pinnedContext()
        let city = try context.inside { () throws in
            context.automaticallyMergesChangesFromParent = true
            let city = try context.get(id, City.self)
            expectEqual(city.population, 1)
            return UncheckedBox(city)
        }
        try stack.change(id, City.self) { city, _ in city.population = 2 }
        // The merges are in the queue before this block, in the order of the saves.
        try await context.perform { () throws in
            expectEqual(city.value.population, 2)
            expect(context.queryGenerationToken != nil)
            try expectEqual(context.storedCityNames(), ["A"])
        }
    }

    @Test func `fetched results stay at the pinned version until a merge moves it`() async throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        let context = try stack.pinnedContext()
        // Without a delegate the controller would not follow changes.
        let box = try context.inside { () throws in
            let controller = NSFetchedResultsController(
                fetchRequest: citiesByName(),
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            return UncheckedBox((controller: controller, recorder: recorder))
        }
        _ = try stack.storeCity("B")
        try await context.perform { () throws in
            try box.value.controller.performFetch()
            expectEqual(box.value.controller.fetchedObjects?.map(\.name), ["A"])
            context.automaticallyMergesChangesFromParent = true
        }
        _ = try stack.storeCity("C")
        try await context.perform { () throws in
            expectEqual(box.value.controller.fetchedObjects?.map(\.name).contains("C"), true)
            try box.value.controller.performFetch()
            expectEqual(box.value.controller.fetchedObjects?.map(\.name), ["A", "B", "C"])
        }
    }

    @Test func `a reset context pins anew at its next read`() throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        let context = try stack.pinnedContext()
        _ = try stack.storeCity("B")
        try context.inside { () throws in
            context.reset()
            expect(context.queryGenerationToken != nil)
        }
        _ = try stack.storeCity("C")
        try context.inside { () throws in try expectEqual(context.storedCityNames(), ["A", "B", "C"]) }
        _ = try stack.storeCity("D")
        try context.inside { () throws in try expectEqual(context.storedCityNames(), ["A", "B", "C"]) }
    }

    @Test func `a context that saves does not take others of its version along`() throws {
        let stack = try Stack(.database)
        _ = try stack.storeCity("A")
        let (first, second) = (try stack.pinnedContext("first"), stack.context("second"))
        try second.inside { () throws in
            try second.setQueryGenerationFrom(first.performAndWait { first.queryGenerationToken })
            City(context: second).name = "B"
            try second.save()
            try expectEqual(second.storedCityNames(), ["A", "B"])
        }
        try first.inside { () throws in try expectEqual(first.storedCityNames(), ["A"]) }
    }
}
