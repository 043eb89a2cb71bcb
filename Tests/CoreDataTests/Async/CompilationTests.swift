import Foundation
import Testing

/// Programs that the compiler must refuse, line by line, and programs that it must take.
///
/// A line that ends in `// error: TEXT` must have an error that contains the text, and no other line may have one. They
/// are compiled against the module that the tests were built with.
@Suite("What must not compile")
struct CompilationTests {
    @Test func `objects and what holds them are not Sendable (CS-20, 37, user demand 5)`() throws {
        try check(
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

            func objectsDoNotEnterOtherContexts(_ object: NSManagedObject, _ context: NSManagedObjectContext) async {
                await context.perform { object.setValue(1, forKey: "name") }  // error: non-Sendable type 'NSManagedObject'
                context.perform { object.setValue(1, forKey: "name") }  // error: non-Sendable type 'NSManagedObject'
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

    @Test func `objects do not go on to other tasks (user demand 5)`() throws {
        try check(
            """
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

    @Test func `the handler of errors that nobody can be told is called on any thread`() throws {
        try check(
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
        try check(
            """
            func confined() {
                _ = NSManagedObjectContext()  // error: missing argument
                _ = NSManagedObjectContextConcurrencyType.confinementConcurrencyType  // error: no member
            }
            """
        )
    }

    @Test func `contexts, coordinators, IDs, models and rows are Sendable (CS-21, 37, user demand 5)`() throws {
        try check(
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

    // MARK: - Compiling

    private struct Finding: Hashable, CustomStringConvertible {
        let line: Int
        let text: String
        var description: String { "line \(line): \(text)" }
    }

    /// Compiles a program up to where the compiler knows of data races, and compares its errors with those expected.
    private func check(_ program: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("program.swift")
        try "import CoreData\n\(program)\n".write(to: file, atomically: true, encoding: .utf8)

        let found = try errors(in: file)
        var expected: [Finding] = []
        for (index, line) in program.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let marker = line.range(of: "// error: ") else { continue }
            // The import comes before, and lines count from 1.
            expected.append(Finding(line: index + 2, text: String(line[marker.upperBound...])))
        }
        for wanted in expected {
            #expect(
                found.contains { $0.line == wanted.line && $0.text.contains(wanted.text) },
                "no error like \(wanted); found: \(found)",
                sourceLocation: sourceLocation
            )
        }
        let lines = Set(expected.map(\.line))
        #expect(found.filter { !lines.contains($0.line) } == [], sourceLocation: sourceLocation)
    }

    private func errors(in file: URL) throws -> [Finding] {
        let modules = try Self.modules()
        let process = Process()
        process.executableURL = try Self.compiler()
        process.arguments = [
            "-swift-version", "6", "-emit-sil", "-o", "/dev/null", "-diagnostic-style", "llvm", "-no-color-diagnostics",
            "-I", modules.path, "-I", Self.sources.appendingPathComponent("CStrataSQLite").path, file.path,
        ]
        let output = Pipe()
        process.standardError = output
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let findings = text.split(separator: "\n").compactMap { line -> Finding? in
            guard line.hasPrefix(file.path + ":"), let mark = line.range(of: ": error: ") else { return nil }
            let place = line[..<mark.lowerBound].dropFirst(file.path.count + 1).split(separator: ":")
            return Finding(line: place.first.flatMap { Int($0) } ?? 0, text: String(line[mark.upperBound...]))
        }
        // A compiler that failed for another reason, such as a module that it cannot find, must not pass for a refusal.
        try #require(process.terminationStatus == 0 || !findings.isEmpty, "swiftc failed: \(text)")
        return findings
    }

    private static let sources = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources")

    /// Where the build that the tests belong to has put its modules.
    private static func modules() throws -> URL {
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let folders = [program, URL(fileURLWithPath: CommandLine.arguments[0])]
            .map { $0.deletingLastPathComponent() }
            .flatMap { [$0.appendingPathComponent("Modules"), $0] }
        let found = folders.first {
            FileManager.default.fileExists(atPath: $0.appendingPathComponent("CoreData.swiftmodule").path)
        }
        return try #require(found, "There is no CoreData.swiftmodule beside \(program.path).")
    }

    /// The compiler that is found first.
    private static func compiler() throws -> URL {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        let found = path.split(separator: ":")
            .map { URL(fileURLWithPath: String($0)).appendingPathComponent("swiftc") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        return try #require(found, "There is no swiftc in PATH, \(path); these tests need the compiler.")
    }
}
