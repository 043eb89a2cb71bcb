import CoreData
import TestSupport
import Testing

/// An actor that lives on a context.
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

    /// Fetches beside the queue and uses the objects themselves.
    func awaited() async throws -> [String] {
        try await context.fetch(citiesByName(), progress: nil).map(\.name)
    }

    /// What `perform` and `performAndWait` do inside.
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

    init() throws { stack = try Stack(.sqlite) }

    @Test func `an actor that lives on a context uses it without perform (user demand 6)`() async throws {
        let importer = Importer(stack.context("importer"))
        for name in ["Porto", "Faro", "Braga"] { await importer.add(name) }
        try await importer.save()
        #expect(try await importer.stored() == ["Braga", "Faro", "Porto"])
        #expect(await importer.addAwaiting("Lagos") == "Lagos")
        #expect(try await importer.awaited() == ["Braga", "Faro", "Lagos", "Porto"])
        #expect(await importer.nested() == [true, true])
        #expect(try stack.count("City") == 3)
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
        #expect(await importer.count == 50)
        #expect(context.performAndWait { context.insertedObjects.count } == 100)
    }

    @Test func `inside perform and performAndWait the actor's isolation may be assumed`() async throws {
        let context = stack.context()
        let importer = Importer(context)
        await importer.add("Porto")
        let waited = context.performAndWait { importer.assumeIsolated { $0.context.insertedObjects.count } }
        #expect(waited == 1)
        let performed = await context.perform { importer.assumeIsolated { $0.context.insertedObjects.count } }
        #expect(performed == 1)
        context.performAndWait { importer.preconditionIsolated() }
    }

    /// The insertions, counted as code would that is not asynchronous.
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
        #expect(text.contains("private-queue context \"importer\""), "\(text)")
    }

    @Test func `each job is one event`() async throws {
        let context = stack.context()
        let importer = Importer(context)
        let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
        await importer.add("Porto")
        await importer.add("Faro")
        context.performAndWait {}
        #expect(log.entries.count == 2)
    }

    @Test @MainActor func `for a context of the main queue it is the main actor's executor`() async throws {
        let context = NSManagedObjectContext(.mainQueue)
        context.persistentStoreCoordinator = stack.coordinator
        let importer = Importer(context)
        await importer.add("Porto")
        MainActor.assertIsolated()
        #expect(context.insertedObjects.count == 1)
        #expect(countAssumingIsolation(importer) == 1)
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
            #expect(free == 3)
        }
        // And without an error there is nothing to try.
        let count: Int = await context.perform { context.registeredObjects.count }
        #expect(count == 0)
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
        #expect(report.names == ["Porto", "Faro"])
    }
}
