import TestSupport
import Testing

/// Blocks of the asynchronous forms are sent to their context.
///
/// Values that no other code uses go along, and shared ones must be `Sendable`.
///
/// The forms that return at once take what Apple's take.
@Suite("Blocks that are sent")
struct SendingBlockTests {
    @Test func `what a function has made goes along with a block, from anywhere`() throws {
        try CompilerCheck.check(
            """
            func request() -> NSFetchRequest<NSManagedObject> { NSFetchRequest<NSManagedObject>(entityName: "City") }

            func waits(_ context: NSManagedObjectContext, _ container: NSPersistentContainer) async throws -> [String] {
                let request = request()
                request.predicate = NSPredicate(format: "name BEGINSWITH %@", "B")
                request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
                let rows: [[String: Any]] = [["name": "Bonn", "population": 300_000]]
                try await container.performBackgroundTask { context in
                    for row in rows {
                        let object = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                        object.setValuesForKeys(row)
                    }
                    try context.save()
                }
                return try await context.perform {
                    try context.fetch(request).compactMap { $0.value(forKey: "name") as? String }
                }
            }

            func goesOn(_ context: NSManagedObjectContext, _ container: NSPersistentContainer) {
                let request = request()
                let predicate = NSPredicate(format: "name == %@", "Bonn")
                var names: [String] = []
                names.append("Bonn")
                context.perform {
                    request.predicate = predicate
                    names.append("Faro")
                    print(names, (try? context.count(for: request)) ?? 0)
                }
                let formatter = DateFormatter()
                var total = 0
                container.performBackgroundTask { context in
                    total += context.registeredObjects.count
                    print(total, formatter.string(from: Date()))
                }
            }

            @MainActor final class Screen {
                let container: NSPersistentContainer
                var names: [String] = []

                init(_ container: NSPersistentContainer) { self.container = container }

                func load() async throws {
                    let context = container.newBackgroundContext()
                    let request = request()
                    request.fetchLimit = 20
                    var seen = 0
                    let loaded = try await context.perform(schedule: .enqueued) {
                        let found = try context.fetch(request)
                        seen += found.count
                        return found.compactMap { $0.value(forKey: "name") as? String }
                    }
                    names = loaded
                }

                func add(_ name: String) {
                    let values: [String: Any] = ["name": name]
                    container.performBackgroundTask { context in
                        let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                        city.setValuesForKeys(values)
                        try? context.save()
                    }
                }

                func fetchInBackground() async throws {
                    let context = container.newBackgroundContext()
                    var labels: [ObjectIdentifier: String] = [:]
                    names = try await context.fetch(request(), progress: nil) { cities in
                        for city in cities { labels[ObjectIdentifier(city)] = "city" }
                        return Array(labels.values)
                    }
                }

                func showLater(_ context: NSManagedObjectContext) {
                    context.perform {
                        let count = context.registeredObjects.count
                        Task { @MainActor in self.names.append("\\(count)") }
                    }
                }
            }

            actor Importer {
                let context: NSManagedObjectContext
                init(_ context: NSManagedObjectContext) { self.context = context }

                func run() async throws {
                    let objects: [[String: Any]] = [["name": "Bonn"]]
                    try await context.perform { [context] in
                        for object in objects {
                            NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                                .setValuesForKeys(object)
                        }
                        try context.save()
                    }
                }
            }

            func onTheCoordinator(_ coordinator: NSPersistentStoreCoordinator) async throws -> Int {
                let options: [AnyHashable: Any] = [NSReadOnlyPersistentStoreOption: true]
                try await coordinator.perform {
                    _ = try coordinator.addPersistentStore(
                        type: .inMemory, configuration: nil, at: URL(fileURLWithPath: "/dev/null"), options: options)
                }
                var names = ["a"]
                return await coordinator.perform {
                    names.append("b")
                    return names.count
                }
            }

            func asAValue(_ context: NSManagedObjectContext, _ block: @escaping @Sendable () -> Void) {
                context.perform(block)
                context.performAndWait(block)
            }

            class Container: NSPersistentContainer, @unchecked Sendable {
                override func performBackgroundTask(_ block: @escaping (NSManagedObjectContext) -> Void) {
                    super.performBackgroundTask(block)
                }
            }
            """
        )
    }

    @Test func `a block that goes on by itself may capture what a function was given`() throws {
        try CompilerCheck.check(
            """
            func completes(_ context: NSManagedObjectContext, completion: @escaping (Int) -> Void) {
                context.perform { completion(context.registeredObjects.count) }
            }

            func merges(_ notification: Notification, into context: NSManagedObjectContext) {
                context.perform { context.mergeChanges(fromContextDidSave: notification) }
            }

            func payload(_ changes: [AnyHashable: Any], _ context: NSManagedObjectContext) {
                context.perform { print(changes.count, context.hasChanges) }
            }

            func generic<T>(_ value: T, _ context: NSManagedObjectContext, _ body: @escaping (T) -> Void) {
                context.perform { body(value) }
            }

            func inBackground<T>(
                _ container: NSPersistentContainer,
                _ body: @escaping (NSManagedObjectContext) throws -> T,
                completion: @escaping (Result<T, any Error>) -> Void
            ) {
                container.performBackgroundTask { context in completion(Result { try body(context) }) }
            }

            func asValues(
                _ context: NSManagedObjectContext,
                _ container: NSPersistentContainer,
                _ coordinator: NSPersistentStoreCoordinator,
                _ block: @escaping () -> Void,
                _ task: @escaping (NSManagedObjectContext) -> Void
            ) {
                context.perform(block)
                coordinator.perform(block)
                container.performBackgroundTask(task)
            }

            @MainActor final class Screen {
                let request = NSFetchRequest<NSManagedObject>(entityName: "City")

                func count(_ context: NSManagedObjectContext, completion: @escaping (Int) -> Void) {
                    let request = request
                    context.perform { completion((try? context.count(for: request)) ?? 0) }
                }
            }
            """
        )
    }

    @Test func `a program's own forms are no ambiguity`() throws {
        try CompilerCheck.check(
            """
            extension NSManagedObjectContext {
                func performAndWait<T>(_ block: () throws -> T) rethrows -> T {
                    performAndWait {}
                    return try block()
                }

                func perform<T: Sendable>(_ block: @escaping () throws -> T) async throws -> T {
                    try await withCheckedThrowingContinuation { continuation in
                        perform { continuation.resume(with: Result { try block() }) }
                    }
                }
            }

            extension NSPersistentStoreCoordinator {
                func performAndWait<T>(_ block: () throws -> T) rethrows -> T {
                    performAndWait {}
                    return try block()
                }
            }

            extension NSPersistentContainer {
                func performBackgroundTask<T: Sendable>(
                    _ block: @escaping (NSManagedObjectContext) throws -> T
                ) async throws -> T {
                    try await withCheckedThrowingContinuation { continuation in
                        performBackgroundTask { context in continuation.resume(with: Result { try block(context) }) }
                    }
                }
            }

            func uses(_ context: NSManagedObjectContext, _ container: NSPersistentContainer) async throws -> Int {
                let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                let coordinator = container.persistentStoreCoordinator
                let stores = try coordinator.performAndWait { try number() }
                try context.performAndWait { try context.save() }
                context.performAndWait { context.reset() }
                let count = context.performAndWait { context.registeredObjects.count }
                let found = try context.performAndWait { try context.count(for: request) }
                try await container.performBackgroundTask { try $0.save() }
                let others = try await container.performBackgroundTask { try $0.count(for: other()) }
                let awaited = try await context.perform { try context.count(for: other()) }
                return stores + count + found + others + awaited
            }

            func number() throws -> Int { 1 }
            func other() -> NSFetchRequest<NSManagedObject> { NSFetchRequest<NSManagedObject>(entityName: "City") }
            """
        )
    }

    @Test func `what other code still uses does not go along`() throws {
        try CompilerCheck.check(
            """
            func usedAfterwards(_ context: NSManagedObjectContext) async throws {
                let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                try await context.perform { _ = try context.fetch(request) }  // error: risks causing data races
                request.fetchLimit = 3
            }

            func variable(_ context: NSManagedObjectContext) async {
                var names: [String] = []
                await context.perform { names.append("Bonn") }  // error: risks causing data races
                names.append("Faro")
            }

            func parameter(_ request: NSFetchRequest<NSManagedObject>, _ context: NSManagedObjectContext) async throws {
                try await context.perform { _ = try context.fetch(request) }  // error: risks causing data races
            }

            func waits(_ object: NSManagedObject, _ container: NSPersistentContainer) async throws {
                try await container.performBackgroundTask { _ in object.setValue(1, forKey: "name") }  // error: risks causing data races
            }

            func onTheCoordinator(_ request: NSFetchRequest<NSManagedObject>, _ coordinator: NSPersistentStoreCoordinator) async {
                await coordinator.perform { request.fetchLimit = 2 }  // error: risks causing data races
            }

            func fetched(
                _ names: NSMutableArray,
                _ request: NSFetchRequest<NSManagedObject>,
                _ context: NSManagedObjectContext
            ) async throws -> [String] {
                try await context.fetch(request, progress: nil) { _ in ["\\(names.count)"] }  // error: risks causing data races
            }
            """
        )
    }

    // This is a separate test, since errors of this kind keep the compiler from looking for races in the same program.
    @Test func `what belongs to an actor does not go along`() throws {
        try CompilerCheck.check(
            """
            @MainActor final class Screen {
                var names: [String] = []
                let request = NSFetchRequest<NSManagedObject>(entityName: "City")

                func load(_ context: NSManagedObjectContext) async {
                    await context.perform { self.names = [] }  // error: main actor-isolated property 'names'
                    await context.perform { _ = self.request }  // error: main actor-isolated property 'request'
                }

                // The documentation of the other form advises this.
                func goesOn(_ request: NSFetchRequest<NSManagedObject>, _ context: NSManagedObjectContext) {
                    context.perform { @Sendable in self.names = [] }  // error: main actor-isolated property 'names'
                    context.perform { @Sendable in _ = try? context.count(for: request) }  // error: capture of 'request'
                }
            }
            """
        )
    }
}
