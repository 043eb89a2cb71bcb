import CoreData
import Expectations
import TestSupport
import Testing

/// An actor that runs on a context.
private actor Importer {
    let context: NSManagedObjectContext
    private var names: [String] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor { context.unownedExecutor }

    init(_ context: NSManagedObjectContext) { self.context = context }

    func add(_ name: String) {
        City(context: context).name = name
        names.append(name)
    }

    func save() throws { try context.save() }

    func stored() throws -> [String] { try context.fetch(citiesByName()).map(\.name) }

    /// Uses objects before and after a suspension.
    func addAwaiting(_ name: String) async -> String {
        let city = City(context: context)
        city.name = name
        await Task.yield()
        city.population += 1
        return city.name
    }

    /// Fetches beside the queue, and uses the objects themselves.
    func awaited() async throws -> [String] {
        try await context.fetch(citiesByName(), progress: nil).map(\.name)
    }

    /// Calls `perform` and `performAndWait` from the actor.
    func nested() async -> [Bool] {
        let now = context.performAndWait { context.hasChanges }
        let later = await context.perform { [context] in context.hasChanges }
        return [now, later]
    }

    var count: Int { names.count }
}

@Suite("Actors on a context", .timeLimit(.minutes(20)))
struct ExecutorTests {
    let stack: Stack

    init() throws { stack = try Stack(.database) }

    @Test func `an actor that lives on a context uses it without perform (user demand 6)`() async throws {
        let importer = Importer(stack.context("importer"))
        for name in ["Porto", "Faro", "Braga"] { await importer.add(name) }
        try await importer.save()
        try await expectEqual(importer.stored(), ["Braga", "Faro", "Porto"])
        await expectEqual(importer.addAwaiting("Lagos"), "Lagos")
        try await expectEqual(importer.awaited(), ["Braga", "Faro", "Lagos", "Porto"])
        await expectEqual(importer.nested(), [true, true])
        try expectEqual(stack.count("City"), 3)
    }

    @Test func `the actor's jobs and the context's blocks take turns`() async throws {
        let context = stack.context()
        let importer = Importer(context)
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<100 {
                group.addTask {
                    if index % 2 == 0 {
                        await importer.add("Actor \(index)")
                    } else {
                        await context.perform { City(context: context).name = "Block \(index)" }
                    }
                }
            }
        }
        await expectEqual(importer.count, 50)
        expectEqual(context.performAndWait { context.insertedObjects.count }, 100)
    }

    @Test func `inside perform and performAndWait the actor's isolation may be assumed`() async throws {
        let context = stack.context()
        let importer = Importer(context)
        await importer.add("Porto")
        let waited = context.performAndWait { importer.assumeIsolated { $0.context.insertedObjects.count } }
        expectEqual(waited, 1)
        let performed = await context.perform { importer.assumeIsolated { $0.context.insertedObjects.count } }
        expectEqual(performed, 1)
        context.performAndWait { importer.preconditionIsolated() }
    }

    /// The number of insertions, counted by code that is not asynchronous.
    private nonisolated func countAssumingIsolation(_ importer: Importer) -> Int {
        importer.assumeIsolated { $0.context.insertedObjects.count }
    }

    @Test func `outside of the scope assuming it stops the program and names the context`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            let importer = Importer(stack.context("importer"))
            let other = stack.context("other")
            other.performAndWait { importer.preconditionIsolated() }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("private-queue context \"importer\""), "\(text)")
    }

    @Test func `each job is one event`() async throws {
        let context = stack.context()
        let importer = Importer(context)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        await importer.add("Porto")
        await importer.add("Faro")
        context.performAndWait {}
        expectEqual(log.entries.count, 2)
    }

    @Test @MainActor func `for a context of the main queue it is the main actor's executor`() async throws {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let importer = Importer(context)
        await importer.add("Porto")
        MainActor.assertIsolated()
        expectEqual(context.insertedObjects.count, 1)
        expectEqual(countAssumingIsolation(importer), 1)
    }

    @Test func `the executor does not keep its context alive`() async throws {
        weak var weakContext: NSManagedObjectContext?
        do {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = stack.coordinator
            weakContext = context
            await Importer(context).add("Porto")
        }
        while weakContext != nil { await Task.yield() }
    }

    @Test func `perform throws the error's own type (user demand 5)`() async {
        struct Full: Error, Equatable { let free: Int }
        let context = stack.context()
        do {
            _ = try await context.perform { () throws(Full) -> Int in throw Full(free: 3) }
            Issue.record("It throws.")
        } catch {
            let free: Int = error.free
            expectEqual(free, 3)
        }
        // A block that throws no error needs no `try`.
        let count: Int = await context.perform { context.registeredObjects.count }
        expectEqual(count, 0)
    }

    @Test func `what a block makes and does not keep may leave it (user demand 5)`() async throws {
        final class Report { var names: [String] = [] }
        let context = stack.context()
        let report = await context.perform {
            let report = Report()
            report.names.append("Porto")
            return report
        }
        report.names.append("Faro")
        expectEqual(report.names, ["Porto", "Faro"])
    }
}
