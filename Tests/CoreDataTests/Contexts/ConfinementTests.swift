import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@Suite("Confinement")
struct ConfinementTests {
    /// The message that the process wrote before it stopped.
    private func message(_ result: ExitTest.Result?) -> String {
        String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    }

    @Test func `touching an object off its queue stops the program and names context, object, member and queues`() async
    {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let context = stack.context("importer")
            let city = try context.performAndWait {
                let city = City(context: context)
                city.name = "Faro"
                try context.save()
                return city
            }
            DispatchQueue(label: "wrong queue").sync { _ = city.name }
        }
        let text = message(result)
        expect(text.contains("property \"name\" of"), "\(text)")
        expect(text.contains("private-queue context \"importer\""), "\(text)")
        expect(text.contains("/City/p1"), "\(text)")
        expect(text.contains("\"wrong queue\""), "\(text)")
        expect(text.contains("\"CoreData context\""), "\(text)")
    }

    @Test func `fetching off the queue stops the program, also from inside another context`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let first = stack.context("first")
            let second = stack.context("second")
            try first.performAndWait { _ = try second.fetch(NSFetchRequest<City>(entityName: "City")) }
        }
        let text = message(result)
        expect(text.contains("fetch(_:)"), "\(text)")
        expect(text.contains("inside the scope of private-queue context \"first\""), "\(text)")
        expect(text.contains("confined to private-queue context \"second\""), "\(text)")
    }

    @Test func `saving, inserting and changing off the queue stop the program`() async {
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            try context.save()
        }
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            _ = City(context: context)
        }
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            let venue = context.performAndWait { Venue(context: context) }
            venue.price = 3
        }
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            let venue = context.performAndWait { Venue(context: context) }
            _ = venue.tags
        }
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            let venue = context.performAndWait { Venue(context: context) }
            venue.setValue("x", forKey: "name")
        }
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            _ = context.registeredObjects
        }
    }

    @Test func `merging outside of the receiver's scope stops the program (CS-127)`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let (writer, receiver) = (stack.context("writer"), stack.context("receiver"))
            let token = NotificationCenter.default.addObserver(
                forName: .NSManagedObjectContextDidSave,
                object: writer,
                queue: nil
            ) { receiver.mergeChanges(fromContextDidSave: $0) }
            try writer.performAndWait {
                City(context: writer).name = "new"
                try writer.save()
            }
            NotificationCenter.default.removeObserver(token)
        }
        let text = message(result)
        expect(text.contains("mergeChanges(fromContextDidSave:)"), "\(text)")
        expect(text.contains("confined to private-queue context \"receiver\""), "\(text)")
    }

    @Test func `a setting may be made anywhere before the first object, and only inside the scope after it`()
        async throws
    {
        let stack = try Stack(.memory)
        let context = stack.context()
        context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        context.automaticallyMergesChangesFromParent = true
        context.undoManager = UndoManager()
        context.transactionAuthor = "a test"
        context.performAndWait {
            expect(context.mergePolicy as? NSMergePolicy === NSMergePolicy.mergeByPropertyObjectTrump)
        }
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            context.performAndWait { _ = Venue(context: context) }
            context.mergePolicy = NSMergePolicy.rollback
        }
    }

    @Test func `a setting may be made anywhere before the first use, although the context has merged objects`() async {
        await #expect(processExitsWith: .success) {
            let stack = try Stack(.memory)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = stack.coordinator
            context.automaticallyMergesChangesFromParent = true
            let merged = Locked<UncheckedBox<Any?>>(UncheckedBox(nil))
            let arrived = DispatchSemaphore(value: 0)
            let token = NotificationCenter.default.addObserver(
                forName: .NSManagedObjectContextObjectsDidChange,
                object: context,
                queue: nil
            ) { notification in
                // The objects stay in the context as long as they are held.
                merged.withLock { $0 = UncheckedBox(notification.userInfo?[NSInsertedObjectsKey]) }
                arrived.signal()
            }
            _ = try stack.storeCity()
            try require(arrived.wait(timeout: .now() + 30) == .success)
            context.mergePolicy = NSMergePolicy.rollback
            let city = context.performAndWait { context.registeredObjects.first }
            expect(city is City)
            NotificationCenter.default.removeObserver(token)
            withExtendedLifetime(merged) {}
        }
        // Once the program has used the context, the objects count.
        await #expect(processExitsWith: .failure) {
            let stack = try Stack(.memory)
            let context = stack.context()
            let id = try stack.storeCity()
            let city = try context.performAndWait { UncheckedBox(try context.get(id, City.self)) }
            context.mergePolicy = NSMergePolicy.rollback
            withExtendedLifetime(city) {}
        }
    }

    @Test func `what is constant may be read on any thread (CS-21)`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context("reader")
        let id = try stack.storeCity()
        let (city, fresh) = try context.performAndWait { (try context.get(id, City.self), Venue(context: context)) }
        let objects = UncheckedPair(city, fresh)
        await Task.detached {
            expectEqual(objects.first.objectID, id)
            expect(objects.second.objectID.isTemporaryID)
            expect(objects.first.managedObjectContext === context)
            expectEqual(objects.first.entity.name, "City")
            expectEqual(context.name, "reader")
            expect(context.persistentStoreCoordinator === stack.coordinator)
            expectEqual(context.concurrencyType, .privateQueueConcurrencyType)
            expectEqual(id.uriRepresentation().scheme, "x-coredata")
            context.userInfo["note"] = 1
            expectEqual(context.userInfo["note"] as? Int, 1)
        }.value
    }

    @Test func `a scope is no thread: blocks of one context run on whatever thread is free (CS-8)`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let id = try stack.storeCity("Faro")
        for _ in 0..<50 {
            let name = try await context.perform { try context.get(id, City.self).name }
            expectEqual(name, "Faro")
            await Task.yield()
        }
    }

    // MARK: - The switch

    @Test func `as a warning, each place is reported once with the trap's message, and the program goes on`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            setenv("com.apple.CoreData.ConcurrencyDebug", "warn", 1)
            let context = try Stack(.memory).context("importer")
            let city = context.performAndWait { City(context: context) }
            var length = 0
            for _ in 0..<100 { length += city.name.count }
            _ = city.value(forKey: "name")
            _ = city.value(forKey: "name")
            for _ in 0..<100 { _ = context.registeredObjects }
            // An exit test that ends by itself runs no exit handler.
            exit(EXIT_SUCCESS)
        }
        let lines = message(result).split(separator: "\n").filter { $0.contains("CoreData: ") }
        // The places are one property, which is read in a loop, and two calls.
        expectEqual(lines.filter { $0.contains("/City/") }.count, 3, "\(lines)")
        expectEqual(lines.filter { $0.hasPrefix("CoreData: registeredObjects") }.count, 1, "\(lines)")
        let places = lines.filter { $0.contains("confined to private-queue context \"importer\"") }
        expectEqual(places.count, 4, "\(lines)")
        // At its end the process reports the number of uses: 100 in each loop, and two calls.
        expectEqual(lines.count, 5, "\(lines)")
        expect(lines.last?.hasSuffix("scope: 202, places: 4") ?? false, "\(lines)")
    }

    @Test func `a test process warns unless something else is asked for`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            unsetenv("com.apple.CoreData.ConcurrencyDebug")
            let context = try Stack(.memory).context("importer")
            let city = context.performAndWait { City(context: context) }
            city.name = "Porto"
            exit(EXIT_SUCCESS)
        }
        let lines = message(result).split(separator: "\n").filter { $0.contains("CoreData: ") }
        expectEqual(lines.count, 2, "\(lines)")
        expect(lines.first?.contains("name\" of") ?? false, "\(lines)")
        expect(lines.last?.hasSuffix("scope: 1, places: 1") ?? false, "\(lines)")
    }

    @Test func `0 switches the checks off, in debug builds too`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            setenv("com.apple.CoreData.ConcurrencyDebug", "0", 1)
            let context = try Stack(.memory).context()
            let city = context.performAndWait { City(context: context) }
            city.name = "Porto"
            try context.save()
            expectEqual(context.registeredObjects, [city])
        }
        expect(!message(result).contains("CoreData: "))
    }

    @Test func `an actor on a context is checked whatever the switch says`() async {
        await #expect(processExitsWith: .failure) {
            setenv("com.apple.CoreData.ConcurrencyDebug", "0", 1)
            actor Importer {
                let context: NSManagedObjectContext
                nonisolated var unownedExecutor: UnownedSerialExecutor { context.unownedExecutor }
                init(_ context: NSManagedObjectContext) { self.context = context }
                nonisolated func steal() { assumeIsolated { _ in } }
            }
            Importer(try Stack(.memory).context()).steal()
        }
    }
}

/// Two objects for another thread, which reads only the state that any thread may read.
private struct UncheckedPair: @unchecked Sendable {
    // @unchecked Sendable: see above.
    let first: NSManagedObject
    let second: NSManagedObject

    init(_ first: NSManagedObject, _ second: NSManagedObject) {
        (self.first, self.second) = (first, second)
    }
}
