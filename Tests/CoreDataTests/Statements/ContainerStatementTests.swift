import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import StrataSQLiteStore

@Suite("Statements about containers")
struct ContainerStatementTests {
    private func container(_ kind: StoreKind, in scratch: ScratchFolder) -> NSPersistentContainer {
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        let description = NSPersistentStoreDescription(url: scratch.file("guide.sqlite"))
        description.type = kind.type.rawValue
        container.persistentStoreDescriptions = [description]
        return container
    }

    private func loaded(_ kind: StoreKind, in scratch: ScratchFolder) -> NSPersistentContainer {
        let container = container(kind, in: scratch)
        container.loadPersistentStores { expect($1 == nil) }
        return container
    }

    @Test(arguments: StoreKind.allCases)
    func `a background task has a fresh private context, off the main thread (CS-19)`(_ kind: StoreKind) async throws {
        let scratch = try ScratchFolder()
        let container = loaded(kind, in: scratch)
        let seen = Shared<[NSManagedObjectContext]>([])
        for _ in 0..<2 {
            let isMain = try await container.performBackgroundTask { context in
                seen.update { $0.append(context) }
                expectEqual(context.concurrencyType, .privateQueueConcurrencyType)
                expect(context.registeredObjects.isEmpty)
                return Thread.isMainThread
            }
            expect(!isMain)
        }
        let isMain = await withCheckedContinuation { continuation in
            DispatchQueue.main.async {
                container.performBackgroundTask { context in
                    seen.update { $0.append(context) }
                    continuation.resume(returning: Thread.isMainThread)
                }
            }
        }
        expect(!isMain)
        let contexts = seen.current
        expectEqual(Set(contexts.map(ObjectIdentifier.init)).count, 3)
        expect(contexts.allSatisfy { $0.persistentStoreCoordinator === container.persistentStoreCoordinator })
    }

    @Test(arguments: StoreKind.allCases)
    func `the view context is of the main queue, background contexts are private, none has a parent (CS-220)`(
        _ kind: StoreKind
    ) throws {
        let scratch = try ScratchFolder()
        let container = loaded(kind, in: scratch)
        let background = container.newBackgroundContext()
        expectEqual(container.viewContext.concurrencyType, .mainQueueConcurrencyType)
        expectEqual(background.concurrencyType, .privateQueueConcurrencyType)
        expect(background !== container.newBackgroundContext())
        for context in [container.viewContext, background] {
            expectEqual(context.parent, nil)
            expect(context.persistentStoreCoordinator === container.persistentStoreCoordinator)
        }
    }

    @Test func `a description is of a SQLite store, added at once, migrated, inferred and not read-only (CS-221)`()
        throws
    {
        let description = NSPersistentStoreDescription()
        expectEqual(description.type, NSSQLiteStoreType)
        expect(!description.shouldAddStoreAsynchronously && !description.isReadOnly)
        expect(description.shouldMigrateStoreAutomatically && description.shouldInferMappingModelAutomatically)
        let container = NSPersistentContainer(name: "Statements", managedObjectModel: GuideModel.make())
        expectEqual(container.persistentStoreDescriptions.count, 1)
        let url = try require(container.persistentStoreDescriptions.first?.url)
        expectEqual(url.lastPathComponent, "Statements.sqlite")
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `each description is answered once, with its error, before the call returns or later (CS-222)`(
        _ kind: StoreKind,
        _ isAsynchronous: Bool
    ) async throws {
        let scratch = try ScratchFolder()
        let container = container(kind, in: scratch)
        let bad = NSPersistentStoreDescription(url: scratch.file("no/such/folder/store.sqlite"))
        container.persistentStoreDescriptions.append(bad)
        for description in container.persistentStoreDescriptions {
            description.shouldAddStoreAsynchronously = isAsynchronous
        }
        let (answers, answer) = AsyncStream<(isBad: Bool, failed: Bool)>.makeStream()
        let count = Locked(0)
        container.loadPersistentStores { description, error in
            count.withLock { $0 += 1 }
            answer.yield((description === bad, error != nil))
        }
        if !isAsynchronous { expectEqual(count.withLock { $0 }, 2) }
        var seen: [(isBad: Bool, failed: Bool)] = []
        for await next in answers {
            seen.append(next)
            if seen.count == 2 { break }
        }
        expectEqual(seen.count { $0.isBad }, 1)
        expect(seen.allSatisfy { $0.isBad == $0.failed })
        expectEqual(container.persistentStoreCoordinator.persistentStores.count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a view context that merges automatically shows what a background task has saved (CS-223)`(_ kind: StoreKind)
        async throws
    {
        let scratch = try ScratchFolder()
        let container = loaded(kind, in: scratch)
        let id = try await container.performBackgroundTask { context in
            let city = City(context: context)
            city.name = "before"
            try context.save()
            return city.objectID
        }
        let held = try await MainActor.run {
            container.viewContext.automaticallyMergesChangesFromParent = true
            let city = try container.viewContext.get(id, City.self)
            expectEqual(city.name, "before")
            return UncheckedSendable(city)
        }
        try await container.performBackgroundTask { context in
            try context.get(id, City.self).name = "after"
            try context.save()
        }
        // The merge was enqueued by the save.
        let name = await container.viewContext.perform { held.value.name }
        expectEqual(name, "after")
    }
}
