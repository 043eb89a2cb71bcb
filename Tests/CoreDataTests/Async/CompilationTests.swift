import TestSupport
import Testing

/// Programs that the compiler must refuse, line by line, and programs that it must accept: see `CompilerCheck`.
@Suite("What must not compile")
struct CompilationTests {
    @Test func `objects and what holds them are not Sendable (CS-20, 37, user demand 5)`() throws {
        try CompilerCheck.check(
            """
            func pass<T: Sendable>(_ value: T) {}

            func confinedTypes(
                _ object: NSManagedObject,
                _ controller: NSFetchedResultsController<NSManagedObject>,
                _ request: NSFetchRequest<NSManagedObject>,
                _ result: NSAsynchronousFetchResult<NSManagedObject>
            ) {
                pass(object)  // error: 'NSManagedObject' to 'Sendable' is unavailable
                pass([object])  // error: 'NSManagedObject' to 'Sendable' is unavailable
                pass(controller)  // error: to 'Sendable' is unavailable
                pass(request)  // error: does not conform to the 'Sendable' protocol
                pass(result)  // error: does not conform to the 'Sendable' protocol
            }

            @MainActor final class Screen {
                var names: [String] = []

                func load(_ context: NSManagedObjectContext) throws {
                    let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                    try context.execute(
                        NSAsynchronousFetchRequest(fetchRequest: request) { result in
                            self.names = []  // error: main actor-isolated property 'names'
                        }
                    )
                }
            }
            """
        )
    }

    @Test func `objects do not go on to other tasks and contexts (user demand 5)`() throws {
        try CompilerCheck.check(
            """
            func waitingForAnotherContext(_ object: NSManagedObject, _ context: NSManagedObjectContext) async {
                await context.perform { object.setValue(1, forKey: "name") }  // error: risks causing data races
            }

            func toATask(_ object: NSManagedObject) {
                Task { print(object.objectID) }  // error: risks causing data races
                print(object)
            }

            func toADetachedTask(_ objects: [NSManagedObject]) async {
                let first = objects[0]
                await Task.detached { print(first) }.value  // error: risks causing data races
                print(objects)
            }
            """
        )
    }

    @Test func `the handler of errors that no call can throw is called on any thread`() throws {
        try CompilerCheck.check(
            """
            func toAHandlerOnAnyThread(_ coordinator: NSPersistentStoreCoordinator) {
                var count = 0
                coordinator.unreportableErrorHandler = { _, _ in count += 1 }  // error: mutation of captured var 'count'
                print(count)
            }
            """
        )
    }

    @Test func `there are no contexts without a queue (CS-2, 39, 153)`() throws {
        try CompilerCheck.check(
            """
            func confined() {
                _ = NSManagedObjectContext()  // error: missing argument
                _ = NSManagedObjectContextConcurrencyType.confinementConcurrencyType  // error: no member
            }
            """
        )
    }

    @Test func `contexts, coordinators, IDs, models and rows are Sendable (CS-21, 37, user demand 5)`() throws {
        try CompilerCheck.check(
            """
            func pass<T: Sendable>(_ value: T) {}

            func sharedTypes(
                _ context: NSManagedObjectContext,
                _ coordinator: NSPersistentStoreCoordinator,
                _ container: NSPersistentContainer,
                _ model: NSManagedObjectModel,
                _ id: NSManagedObjectID,
                _ row: FetchedRow,
                _ batches: RowBatches,
                _ executor: ContextExecutor,
                _ operation: SlowOperation,
                _ progress: FetchProgress
            ) {
                pass(context)
                pass(coordinator)
                pass(container)
                pass(model)
                pass(id)
                pass([row])
                pass(batches)
                pass(executor)
                pass(operation)
                pass(progress)
            }

            struct Full: Error {}

            func typedErrors(_ context: NSManagedObjectContext) async throws(Full) -> Int {
                let count: Int = await context.perform { context.registeredObjects.count }
                return try await context.perform { () throws(Full) -> Int in
                    if count > 3 { throw Full() }
                    return count
                }
            }

            final class Report { var names: [String] = [] }

            actor Reporter {
                private var reports: [Report] = []

                func report(_ context: NSManagedObjectContext) async {
                    let report = await context.perform { Report() }
                    reports.append(report)
                }
            }

            func idsLeave(_ context: NSManagedObjectContext) async throws -> [NSManagedObjectID] {
                let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                let ids = try await context.fetch(request, progress: nil) { $0.map(\\.objectID) }
                return await Task.detached { ids }.value
            }

            actor Importer {
                private let context: NSManagedObjectContext
                nonisolated var unownedExecutor: UnownedSerialExecutor { context.unownedExecutor }
                init(_ container: NSPersistentContainer) { context = container.newBackgroundContext() }
                func objects() async throws -> [String?] {
                    let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                    return try await context.fetch(request, progress: nil).map { $0.value(forKey: "name") as? String }
                }
            }
            """
        )
    }
}
