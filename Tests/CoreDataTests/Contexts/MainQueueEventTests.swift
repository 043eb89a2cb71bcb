import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

/// Contexts of the main queue, whose events end without a call.
@Suite("Events on the main queue")
struct MainQueueEventTests {
    private let stack: Stack

    init() throws { stack = try Stack(.memory) }

    private func mainContext(_ stack: Stack) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        return context
    }

    /// Returns when the main queue has run all blocks that were submitted before.
    @MainActor private func turn() async {
        await withCheckedContinuation { continuation in DispatchQueue.main.async { continuation.resume() } }
    }

    @Test(arguments: StoreKind.allCases)
    @MainActor func `changes outside perform are reported once, with the next turn of the main queue (CS-14)`(
        _ kind: StoreKind
    ) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = mainContext(stack)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        let porto = try context.get(id, City.self)
        porto.population += 1
        let faro = City(context: context)
        faro.name = "Faro"
        porto.name = "O Porto"
        expect(log.entries.isEmpty)
        await turn()
        try require(log.entries.count == 1)
        expectEqual(log.entries[0].objects(NSInsertedObjectsKey), [faro])
        expectEqual(log.entries[0].objects(NSUpdatedObjectsKey), [porto])
        await turn()
        expectEqual(log.entries.count, 1)
        context.delete(porto)
        await turn()
        expectEqual(log.entries.count, 2)
    }

    @Test @MainActor func `a task of the main actor that suspends has ended its event (CS-14)`() async throws {
        let context = mainContext(stack)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        let city = City(context: context)
        await Task { @MainActor in expectEqual(log.entries.count, 1) }.value
        city.name = "Braga"
        await Task { @MainActor in expectEqual(log.entries.count, 2) }.value
    }

    @Test func `changes in performAndWait are reported with the next turn, too (CS-13, 14)`() async throws {
        let context = mainContext(stack)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        context.performAndWait { City(context: context).name = "Porto" }
        await turn()
        expectEqual(log.entries.count, 1)
    }

    @Test @MainActor func `what a child saves into a context of the main queue is reported by itself`() async throws {
        let context = mainContext(stack)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        let child = NSManagedObjectContext(.mainQueue)
        child.parent = context
        City(context: child).name = "Porto"
        try child.save()
        await turn()
        expectEqual(log.entries.count, 1)
    }

    @Test(arguments: StoreKind.allCases)
    @MainActor func `a controller of fetched results notifies its delegate without any call`(_ kind: StoreKind)
        async throws
    {
        let stack = try Stack(kind)
        let context = mainContext(stack)
        let controller = NSFetchedResultsController(
            fetchRequest: citiesByName(),
            managedObjectContext: context,
            sectionNameKeyPath: nil,
            cacheName: nil
        )
        let recorder = ResultsRecorder()
        try recorder.start(controller)
        let city = City(context: context)
        city.name = "Porto"
        expectEqual(recorder.events, 0)
        await turn()
        expectEqual(recorder.events, 1)
        recorder.expectCopy(of: controller)
        city.name = "Faro"
        await turn()
        expectEqual(recorder.events, 2)
    }

    @Test @MainActor func `all changes of a turn are one undo step`() async throws {
        let context = mainContext(stack)
        context.undoManager = UndoManager()
        let city = City(context: context)
        city.name = "Porto"
        await turn()
        city.name = "Faro"
        city.population = 2
        await turn()
        city.name = "Braga"
        context.undo()
        expectEqual(city.name, "Faro")
        context.undo()
        expect(city.name == "Porto" && city.population != 2)
    }

    @Test @MainActor func `nothing is scheduled while nothing has changed, and once for many changes`() async throws {
        let id = try stack.storeCity("Porto")
        let context = mainContext(stack)
        let city = try context.get(id, City.self)
        _ = try context.fetch(citiesByName())
        expect(!context.changeTracker.isEndScheduled)
        city.name = "Faro"
        expect(context.changeTracker.isEndScheduled)
        await turn()
        expect(!context.changeTracker.isEndScheduled)
        await turn()
        expect(!context.changeTracker.isEndScheduled)
        // A context of a private queue never schedules anything.
        let other = stack.context()
        other.performAndWait {
            _ = City(context: other)
            expect(!other.changeTracker.isEndScheduled)
        }
    }

    @Test @MainActor func `what perform, a fetch or a save has reported is not reported again`() async throws {
        let context = mainContext(stack)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        await context.perform(schedule: .enqueued) { City(context: context).name = "Porto" }
        await turn()
        expectEqual(log.entries.count, 1)
        City(context: context).name = "Faro"
        try context.save()
        await turn()
        expectEqual(log.entries.count, 2)
    }

    @Test @MainActor func `what an observer changes is reported as well, and does not keep the queue from others`()
        async throws
    {
        let context = mainContext(stack)
        // Only the main queue uses it.
        nonisolated(unsafe) let city = City(context: context)
        let count = Shared(0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextObjectsDidChange,
            object: context,
            queue: nil
        ) { _ in
            count.update { $0 += 1 }
            if count.current < 250 { city.population += 1 }
        }
        // This block is behind the one that ends the event, and before the next one that the first one submits.
        let between: Int = await withCheckedContinuation { continuation in
            DispatchQueue.main.async { continuation.resume(returning: count.current) }
        }
        expect((2..<250).contains(between))
        while context.changeTracker.isEndScheduled { await turn() }
        NotificationCenter.default.removeObserver(token)
        expectEqual(count.current, 250)
    }

    @Test @MainActor func `a context that is released with changes notifies no observer`() async throws {
        var context: NSManagedObjectContext? = mainContext(stack)
        weak let weakContext = context
        if let context { _ = City(context: context) }
        context = nil
        expectEqual(weakContext, nil)
        await turn()
    }
}
