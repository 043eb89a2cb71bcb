import CoreData
import Expectations
import Foundation
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataSQLiteStore

@Suite("Following what other processes write")
struct FollowerTests {
    @Test func `a realised object shows what another process has saved, by itself`() async throws {
        let folder = try SharedFolder()
        let store = folder.store
        let context = try store.context("reader", options: Stack.following)
        let coordinator = try require(context.persistentStoreCoordinator)
        try await context.perform {
            context.retainsRegisteredObjects = true
            context.makeCity("Bonn", population: 1)
            try context.save()
        }
        let follower = try coordinator.followRemoteChanges(into: [context])
        let (merges, merge) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = NotificationCenter.default.addObserver(
            forName: NSManagedObjectContext.didMergeChangesObjectIDsNotification,
            object: context,
            queue: nil
        ) { _ in merge.yield() }
        defer { NotificationCenter.default.removeObserver(token) }

        await #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try store.context(options: Stack.following)
            try await context.perform {
                try context.city().population = 5
                try context.save()
            }
        }

        for await _ in merges where try await context.perform({ try context.city().population == 5 }) { break }
        try await context.perform {
            let city = try context.city()
            expect(city.population == 5 && !city.hasChanges)
        }
        follower.stop()
    }

    @Test func `after catching up contexts show what was committed before, whatever their staleness interval`()
        async throws
    {
        let (stack, context) = try Stack.followedWithCity()
        let other = try stack.elsewhere()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        for population in 2...20 as ClosedRange<Int64> {
            try other.setPopulation(population)
            try await follower.catchUp()
            let seen = try await context.perform { try context.city().population }
            expectEqual(seen, population)
        }
        expectEqual(follower.token, stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
    }

    @Test func `unsaved changes stay on top, and the save that follows does not conflict`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let other = try stack.elsewhere()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        try await context.perform { try context.city().name = "Bonn am Rhein" }

        try other.setPopulation(7)
        try await follower.catchUp()

        try await context.perform {
            let city = try context.city()
            expect(city.population == 7 && city.name == "Bonn am Rhein")
            try context.save()
        }
    }

    @Test func `insertions and deletions of others reach live results and registered objects`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let other = try stack.elsewhere()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        let controller = try await context.perform {
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: context,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            try controller.performFetch()
            return UncheckedBox(controller)
        }
        let city = try await context.perform { UncheckedBox(try context.city()) }

        try other.performAndWait {
            other.makeCity("Aachen")
            other.makeCity("Ulm")
            other.delete(try other.fetch(NSFetchRequest<City>(entityName: "City")).filter { $0.name == "Bonn" }[0])
            try other.save()
        }
        try await follower.catchUp()

        try await context.perform {
            expect(city.value.isDeleted)
            let names = try context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
            expectEqual(names, ["Aachen", "Ulm"])
            try controller.value.performFetch()
            expectEqual(controller.value.fetchedObjects?.map(\.name), ["Aachen", "Ulm"])
        }
    }

    @Test func `contexts that follow saves are followed without being named, others are not`() async throws {
        let (stack, silent) = try Stack.followedWithCity()
        let following = stack.context("following")
        try await following.perform {
            following.automaticallyMergesChangesFromParent = true
            following.retainsRegisteredObjects = true
            let population = try following.city().population
            expectEqual(population, 1)
        }
        let other = try stack.elsewhere()
        let follower = try stack.coordinator.followRemoteChanges()

        try other.setPopulation(9)
        try await follower.catchUp()

        let seen = try await following.perform { try following.city().population }
        let unseen = try await silent.perform { try silent.city().population }
        expect(seen == 9 && unseen == 1)
    }

    @Test func `a chosen context also shows what other contexts of its own coordinator save`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let sibling = stack.context("sibling")
        let follower = try stack.coordinator.followRemoteChanges(into: [context])

        try sibling.setPopulation(4)
        try await follower.catchUp()

        let seen = try await context.perform { try context.city().population }
        expectEqual(seen, 4)
    }

    @Test func `what the own coordinator has saved stays in the row cache`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        let entry = try require(stack.coordinator.openStores.first)
        try context.setPopulation(4)
        let commits = entry.cache.commits
        try await follower.catchUp()
        // An invalidation counts like a commit.
        expectEqual(entry.cache.commits, commits)

        try stack.elsewhere().setPopulation(5)
        try await follower.catchUp()
        expect(entry.cache.commits > commits)
    }

    @Test func `a follower whose place was purged brings everything up to date, deletions included`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        try await context.perform {
            context.makeCity("Ulm", population: 3)
            try context.save()
        }
        let start = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        let other = try stack.elsewhere()
        try other.setPopulation(8)
        try other.performAndWait {
            other.delete(try other.fetch(NSFetchRequest<City>(entityName: "City")).filter { $0.name == "Ulm" }[0])
            other.makeCity("Trier")
            try other.save()
            let purge = NSPersistentHistoryChangeRequest.deleteHistory(before: NSPersistentHistoryToken?.none)
            _ = try other.execute(purge)
            other.makeCity("Worms")
            try other.save()
        }

        let follower = try stack.coordinator.followRemoteChanges(into: [context], after: start)
        try await follower.catchUp()

        let names = try await context.perform {
            let population = try context.city().population
            expectEqual(population, 8)
            return try context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
        }
        expectEqual(names, ["Bonn", "Trier", "Worms"])
        expectEqual(follower.token, stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
    }

    @Test(arguments: ["hidden", "shown"])
    func `a follower that is behind a hole goes on, and shows what was picked out too`(_ picked: String) async throws {
        let (stack, context) = try Stack.followedWithCity()
        let start = try stack.place()
        let other = try stack.elsewhere()
        other.performAndWait { other.transactionAuthor = "hidden" }
        try other.setPopulation(8)
        try other.performAndWait {
            other.transactionAuthor = "shown"
            other.makeCity("Trier")
            try other.save()
            let pick = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
            pick.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
            pick.fetchRequest?.predicate = NSPredicate(format: "author == %@", picked)
            pick.resultType = .count
            let result = try other.execute(pick) as? NSPersistentHistoryResult
            expectEqual(result?.result as? Int, 1)
        }
        let follower = try stack.coordinator.followRemoteChanges(into: [context], after: start)
        try await follower.catchUp()
        let names = try await context.perform {
            let population = try context.city().population
            expectEqual(population, 8)
            return try context.fetch(NSFetchRequest<City>(entityName: "City")).map(\.name).sorted()
        }
        expectEqual(names, ["Bonn", "Trier"])
        try expectEqual(follower.token, stack.place())
        // Later changes are reported as usual.
        try other.performAndWait {
            other.makeCity("Worms")
            try other.save()
        }
        try await follower.catchUp()
        let count = try await context.perform { try context.count(for: NSFetchRequest<City>(entityName: "City")) }
        expectEqual(count, 3)
        try expectEqual(follower.token, stack.place())
    }

    @Test func `a stopped follower merges nothing`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let other = try stack.elsewhere()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        follower.stop()
        try other.setPopulation(9)
        try await follower.catchUp()
        let seen = try await context.perform { try context.city().population }
        expectEqual(seen, 1)
    }

    @Test func `a follower that is stopped while it reads merges nothing that is committed afterwards`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        // Only SQLite has statements that a test can hold.
        guard let engine = stack.coordinator.openStores.first?.rows as? SQLiteEngine else { return }
        let other = try stack.elsewhere()
        let follower = try stack.coordinator.followRemoteChanges(into: [context])
        let (isReading, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isHeld = AtomicCell(false)
        try engine.openFile().pool.setTrace { event in
            guard event.sql.contains("ATRANSACTION"), !isHeld.exchange(true, ordering: .relaxed) else { return }
            isReading.signal()
            mayGoOn.wait()
        }
        // The follower reads them in two portions, and is held at the end of the first one.
        let count = WorkSize.followedPortion
        try other.performAndWait {
            for number in 0..<count {
                other.makeCity("Trier", population: Int64(number))
                try other.save()
            }
        }
        let isRead = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: isReading.wait(timeout: .now() + 60) == .success) }
        }
        try require(isRead)
        follower.stop()
        try other.setPopulation(9)
        mayGoOn.signal()
        try await follower.catchUp()
        let seen = try await context.perform { try context.city().population }
        expectEqual(seen, 1)
    }

    @Test func `following needs a history and remote changes`() throws {
        let stack = try Stack(.database)
        let error = expectThrows(CocoaError.self) { _ = try stack.coordinator.followRemoteChanges() }
        expectEqual(error?.code, .persistentStoreOperation)
        let memory = try Stack(.memory)
        expectThrows(CocoaError.self) { _ = try memory.coordinator.followRemoteChanges() }
    }

    @Test func `a container that is set to follow keeps contexts fresh that merge by themselves`() async throws {
        let folder = try SharedFolder()
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        let description = NSPersistentStoreDescription(url: folder.store.url)
        description.type = folder.store.kind.type.rawValue
        container.persistentStoreDescriptions = [description]
        container.followsRemoteChanges = true
        var failure: (any Error)?
        container.loadPersistentStores { _, error in failure = error }
        expect(failure == nil)
        let follower = try require(container.remoteChangeFollower)
        let context = container.newBackgroundContext()
        try await context.perform {
            context.automaticallyMergesChangesFromParent = true
            context.retainsRegisteredObjects = true
            context.makeCity("Bonn", population: 1)
            try context.save()
        }
        let other = try folder.store.context(options: Stack.following)
        try other.setPopulation(2)
        try await follower.catchUp()
        let seen = try await context.perform { try context.city().population }
        expectEqual(seen, 2)
    }

    @Test func `remote changes carry the token of the newest transaction (CS-196)`() async throws {
        let (stack, context) = try Stack.followedWithCity()
        let tokens = Locked<NSPersistentHistoryToken?>(nil)
        let arrival = DispatchSemaphore(value: 0)
        let observer = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: stack.coordinator,
            queue: nil
        ) { posted in
            let token = posted.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken
            tokens.withLock { $0 = token }
            arrival.signal()
        }
        defer { NotificationCenter.default.removeObserver(observer) }
        try context.setPopulation(3)
        let last = stack.coordinator.currentPersistentHistoryToken(fromStores: nil)
        while tokens.withLock({ $0 }) != last {
            try require(arrival.wait(timeout: .now() + 30) == .success)
        }
    }

    @Test func `own transactions are known as ranges, the newest of very many`() {
        var own = OwnTransactions()
        for number in [1, 2, 3, 7, 8, 20] as [Int64] { own.add(number) }
        // There are three ranges, and a build with small sizes keeps two.
        let known: [Int64] = WorkSize.ownRanges < 3 ? [7, 8, 20] : [1, 2, 3, 7, 8, 20]
        expectEqual((0...21).filter { own.contains($0) }, known)
        for number in stride(from: Int64(100), to: 20_000, by: 2) { own.add(number) }
        expect(own.contains(19_998) && !own.contains(19_997) && !own.contains(1))
    }
}
