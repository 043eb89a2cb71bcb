import CoreData
import Expectations
import Foundation
import StrataRows
import Synchronization
import TestSupport
import Testing

@testable import CoreDataOperations

@Suite("Statistics")
struct StatisticsTests {
    @Test(arguments: StoreKind.allCases)
    func `contexts, cached rows, hits and misses are counted`(kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.addCities(["Faro", "Porto"])
        let context = stack.context()
        try context.performAndWait { () throws in
            for id in ids { _ = try context.existingObject(with: id) }
        }
        let statistics = stack.coordinator.statistics()
        let store = try require(statistics.stores.first)
        expectEqual(statistics.contexts, 1)
        expect(store.cachedRows == 2 && store.cachedBytes > 2 * 50 && store.cacheHits >= 2)
        expectEqual(store.pool != nil, kind != .memory)
        if let pool = store.pool {
            expectEqual(pool.fileSize > 0, kind == .sqlite)
            expect(pool.readers > 0 && pool.readers <= pool.readerLimit)
        }
    }

    @Test func `statistics keep no context alive, not even for a moment`() async throws {
        let stack = try Stack(.memory)
        let ids = try stack.addCities(["Faro"])
        // Each answer counts all contexts, so these make counting take most of its time.
        let others = (0..<2_000).map { _ in NSManagedObjectContext(.privateQueue) }
        defer { withExtendedLifetime(others) {} }
        let isOver = Atomic(false), hasBegun = Atomic(false)
        async let asking: Void = Task.detached {
            while !isOver.load(ordering: .relaxed) {
                _ = stack.coordinator.statistics()
                hasBegun.store(true, ordering: .relaxed)
                // The lock is not fair. The pause lets the other threads have it.
                usleep(100)
            }
        }.value
        while !hasBegun.load(ordering: .relaxed) { await Task.yield() }
        for _ in 0..<1_000 {
            let city = try released(stack, ids[0])
            expectEqual(city.managedObjectContext, nil)
        }
        isOver.store(true, ordering: .relaxed)
        await asking
    }

    /// An object whose context has gone.
    private func released(_ stack: Stack, _ id: NSManagedObjectID) throws -> NSManagedObject {
        let context = stack.context()
        return try context.performAndWait { UncheckedSendable(try context.existingObject(with: id)) }.value
    }

    @Test func `a pinned version and a consumer that lags behind are reported`() throws {
        let stack = try Stack(.database, model: GuideModel.make(), options: [NSPersistentHistoryTrackingKey: true])
        try stack.addCities(["Faro"])
        let token = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        try stack.coordinator.setPersistentHistoryToken(token, forConsumer: "search")
        let context = stack.context()
        try context.performAndWait { () throws in
            try context.setQueryGenerationFrom(.current)
            _ = try context.fetch(citiesRequest())
        }
        try stack.addCities(["Porto"])
        try stack.addCities(["Lisboa"])
        let store = try require(stack.coordinator.statistics().stores.first)
        expectEqual(store.pool?.pinnedVersions, 1)
        try expect(require(store.pool?.oldestPin) > .zero)
        expect(store.historyLag.map(\.consumer) == ["search"] && store.historyLag.map(\.transactions) == [2])
        withExtendedLifetime(context) {}
    }

    @Test func `a consumer lags by the transactions that are there, whatever their numbers`() throws {
        let stack = try Stack(.database, model: GuideModel.make(), options: [NSPersistentHistoryTrackingKey: true])
        func note(_ consumer: String) throws {
            let token = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
            try stack.coordinator.setPersistentHistoryToken(token, forConsumer: consumer)
        }
        func lags() -> [String: Int] {
            let lags = stack.coordinator.statistics().stores[0].historyLag
            return Dictionary(uniqueKeysWithValues: lags.map { ($0.consumer, $0.transactions) })
        }
        try stack.addCities(["Faro"])
        try note("slow")
        for name in ["Porto", "Lisboa"] { try stack.addCities([name]) }
        try note("quick")
        try note("alike")
        try stack.addCities(["Braga"])
        expectEqual(lags(), ["slow": 3, "quick": 1, "alike": 1])
        expectEqual(stack.coordinator.statistics().stores[0].historyLag.map(\.consumer), ["alike", "quick", "slow"])

        // This deletes the second and the last transaction.
        let picking = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        picking.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        picking.fetchRequest?.predicate = NSPredicate(format: "transactionNumber IN {2, 4}")
        _ = try stack.coordinator.result(picking)
        expectEqual(lags(), ["slow": 1, "quick": 0, "alike": 0])
        try stack.addCities(["Évora"])
        expectEqual(lags(), ["slow": 2, "quick": 1, "alike": 1])
        // After a purge nothing is left to read.
        _ = try stack.coordinator.result(.deleteHistory(before: Date.distantFuture))
        expectEqual(lags(), ["slow": 0, "quick": 0, "alike": 0])
    }
}

@Suite("Health checks")
struct CheckTests {
    @Test(arguments: StoreKind.allCases)
    func `a store that answers is named, with the time that it took`(kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let checks = try await stack.coordinator.check()
        expect(checks.count == 1 && (checks[0].freeBytes != nil) == (kind == .sqlite))
        expectEqual(checks[0].identifier, stack.coordinator.persistentStores.first?.identifier)
    }

    @Test func `a store that does not answer fails the check at the limit`() async throws {
        let options: [AnyHashable: Any] = [NSPersistentStoreConnectionPoolMaxSizeKey: 1]
        let stack = try Stack(.database, model: GuideModel.make(), options: options)
        try stack.addCities((1...10).map { "City \($0)" })
        let context = stack.context()
        let gate = Gate()
        // The only connection is in use while the progress is reported.
        async let found = context.fetch(citiesRequest(), progress: { if $0.completedRows > 0 { gate.stopOnce() } }) {
            $0.count
        }
        await gate.arrival()
        do {
            _ = try await stack.coordinator.check(within: .milliseconds(50))
            Issue.record("the only connection is in use")
        } catch let error as CocoaError {
            expectEqual(error.code, .persistentStoreTimeout)
        }
        gate.open()
        try await expectEqual(found, 10)
        try await expectEqual(stack.coordinator.check(within: .seconds(20)).count, 1)
    }

    @Test func `a binary store that is written to fails the check on a full volume`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("guide.binary")
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .binary, at: url)
        let error = try require(expectThrows(CocoaError.self) { try store.requireRoom(free: 1000, of: 1 << 30) })
        expectEqual(error.code, .fileWriteOutOfSpace)
        expectEqual(CoreDataFailure(error), .environment)
        expectEqual(error.userInfo[NSFilePathErrorKey] as? String, url.path)
        // There is room, or the system does not report how much there is.
        try store.requireRoom(free: 1 << 20, of: 1 << 30)
        try store.requireRoom(free: 0, of: 0)
        try store.requireRoom(free: nil, of: nil)
        let checks = try await coordinator.check()
        expect(checks.count == 1 && checks[0].freeBytes != nil)
        try coordinator.remove(store)

        let readOnly = try coordinator.addPersistentStore(
            type: .binary,
            at: url,
            options: [NSReadOnlyPersistentStoreOption: true]
        )
        try readOnly.requireRoom(free: 0, of: 1 << 30)
    }

    @Test func `a coordinator without stores, and one that is closed, are not well`() async throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        await expectThrows(CocoaError.self) { _ = try await coordinator.check() }
        let stack = try Stack(.memory)
        try stack.coordinator.close()
        await expectThrows(CocoaError.self) { _ = try await stack.coordinator.check() }
    }
}

@Suite("Closing")
struct ClosingTests {
    @Test(arguments: StoreKind.allCases)
    func `a save after closing is refused, and keeps its changes`(kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try stack.coordinator.close()
        expect(stack.coordinator.isClosed && stack.coordinator.persistentStores.isEmpty)
        context.performAndWait {
            City(context: context).name = "Faro"
            do {
                try context.save()
                Issue.record("a save has succeeded after closing")
            } catch {
                expectEqual((error as? CocoaError)?.code, .persistentStoreOperation)
                expect(CoreDataFailure(error) == .environment && error.localizedDescription.contains("close"))
            }
            expectEqual(context.insertedObjects.count, 1)
        }
        expectThrows(CocoaError.self) {
            try stack.coordinator.addPersistentStore(type: .inMemory, at: URL(fileURLWithPath: "/dev/null"))
        }
        try stack.coordinator.close()
    }

    @Test func `closing waits for a save that is running, and leaves no log behind`() async throws {
        let stack = try Stack(.database)
        let context = stack.context()
        let gate = Gate()
        await context.perform {
            let city = City(context: context)
            city.name = "Faro"
        }
        let observer = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextWillSave,
            object: context,
            queue: nil
        ) { _ in gate.stopOnce() }
        defer { NotificationCenter.default.removeObserver(observer) }
        async let saved: Void = context.perform { try context.save() }
        await gate.arrival()
        expectThrows(CocoaError.self) { try stack.coordinator.close(within: .milliseconds(20)) }
        expectEqual(stack.coordinator.persistentStores.count, 1, "the save still needs it")
        gate.open()
        try stack.coordinator.close()
        try await saved
        if stack.kind == .sqlite {
            expect(!FileManager.default.fileExists(atPath: stack.storeURL.path + "-wal"))
        } else {
            try expect(stack.isQuiet())
        }
        let reopened = try stack.secondCoordinator()
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = reopened
        try expectEqual(reader.performAndWait { try reader.count(for: citiesRequest()) }, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch after closing is refused`(kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try stack.coordinator.close()
        context.performAndWait {
            let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Faro"]])
            expectThrows(CocoaError.self) { try context.execute(insert) }
        }
    }

    @Test func `a container closes without blocking the task's thread`() async throws {
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        let description = NSPersistentStoreDescription(url: URL(fileURLWithPath: "/dev/null"))
        description.type = NSInMemoryStoreType
        container.persistentStoreDescriptions = [description]
        container.loadPersistentStores { _, error in expect(error == nil) }
        try await container.close(within: .seconds(20))
        expect(container.persistentStoreCoordinator.isClosed)
    }
}

@Suite("Limits")
struct LimitTests {
    @Test(arguments: StoreKind.allCases)
    func `one context too many gets an error that names the limit, and others go on`(kind: StoreKind) throws {
        let stack = try Stack(kind)
        expectEqual(stack.coordinator.limits, CoreDataLimits())
        stack.coordinator.limits.contexts = 2
        let contexts = (1...3).map { stack.context("\($0)") }
        for context in contexts.prefix(2) {
            try expectEqual(context.performAndWait { try context.count(for: citiesRequest()) }, 0)
        }
        contexts[2].performAndWait {
            do {
                _ = try contexts[2].fetch(citiesRequest())
                Issue.record("one too many")
            } catch {
                expect(error.localizedDescription.contains("limits.contexts"))
                expectEqual(CoreDataFailure(error), .environment)
            }
            City(context: contexts[2]).name = "Faro"
            expectThrows(CocoaError.self) { try contexts[2].save() }
        }
    }

    @Test func `a context that has gone makes room for another`() throws {
        let stack = try Stack(.memory)
        stack.coordinator.limits.contexts = 1
        for _ in 1...3 { try stack.addCities(["Faro"]) }
    }

    @Test func `beyond the limit rows leave the cache, unless a context holds them`() throws {
        let stack = try Stack(.database)
        stack.coordinator.limits.rowCacheBytes = 1 << 20
        let cache = try require(stack.coordinator.openStores.first).cache
        let context = stack.context()
        // About 4 MiB of rows, in portions that the context soon lets go of.
        for portion in 1...40 {
            try context.performAndWait { () throws in
                let cities = (1...200).map { _ in
                    let city = City(context: context)
                    city.name = "City \(portion) " + String(repeating: "x", count: 400)
                    return city
                }
                try context.save()
                withExtendedLifetime(cities) {}
                context.reset()
            }
            let bytes = stack.coordinator.statistics().stores.first?.cachedBytes ?? 0
            expect(bytes < 3 << 20)
        }
        expect(cache.use.rows < 8000 && cache.use.rows > 0)
        let kept = try context.performAndWait { try context.fetch(citiesRequest()) }
        stack.coordinator.limits.rowCacheBytes = 0
        expect(cache.use.rows >= 8000, "what a context holds is shared")
        expectEqual(kept.count, 8000)
    }
}
