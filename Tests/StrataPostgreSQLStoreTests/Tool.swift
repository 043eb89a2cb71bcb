import CoreData
import CoreDataPostgreSQL
import Foundation
import StrataInspector
import TestSupport

/// The program `strata`, run in this process.
enum Tool {
    typealias Answer = (code: ExitCode, lines: [String], complaints: [String])

    static func run(_ words: String...) -> Answer { run(words) }

    static func run(_ words: [String]) -> Answer {
        var (lines, complaints): ([String], [String]) = ([], [])
        let code = StrataCommand.run(words, print: { lines.append($0) }, complain: { complaints.append($0) })
        return (
            code, lines.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) },
            complaints
        )
    }
}

/// A schema for a store that a test makes by a tool, under the URL of a file that stands for it.
final class ToolPlace: Sendable {
    let file: URL
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        file = folder.appendingPathComponent("store")
    }

    deinit {
        TestDatabase.drop(file)
        try? FileManager.default.removeItem(at: folder)
    }

    /// The URL of the schema.
    var url: String { TestDatabase.url(for: file).absoluteString }

    func open(
        _ model: NSManagedObjectModel,
        _ options: [AnyHashable: Any] = [:]
    ) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(
            type: TestDatabase.storeType,
            configuration: nil,
            at: file,
            options: options
        )
        return coordinator
    }
}

extension NSPersistentStoreCoordinator {
    /// Runs a block on a new context.
    func perform<R>(_ body: (NSManagedObjectContext) throws -> R) throws -> R {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = self
        return try context.performAndWait { try body(context) }
    }
}
