import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

// Three versions: the second renames, the third needs code.

enum LibraryV1: ManagedModelVersion {
    static var entities: [NSManagedObject.Type] { [Book.self] }

    @ManagedObject
    final class Book: NSManagedObject {
        @Managed var title: String?
        @Managed var name: String?
    }
}

enum LibraryV2: ManagedModelVersion {
    static let versionIdentifier = "2.0"
    static var entities: [NSManagedObject.Type] { [Book.self] }

    @ManagedObject
    final class Book: NSManagedObject {
        @Managed var title: String?
        @Managed(.renamed(from: "name")) var author: String?
        @Managed var length: Int32?
    }
}

enum LibraryV3: ManagedModelVersion {
    static var entities: [NSManagedObject.Type] { [Book.self] }

    @ManagedObject
    final class Book: NSManagedObject {
        @Managed var title: String
        @Managed(.renamed(from: "name")) var author: String?
        @Managed var length: Int32?
        @Managed(.default(0)) var score: Int16
    }
}

enum LibraryPlan: ManagedModelPlan {
    static var versions: [any ManagedModelVersion.Type] { [LibraryV1.self, LibraryV2.self, LibraryV3.self] }

    static func stages() throws -> [NSMigrationStage] {
        let custom = try NSCustomMigrationStage(
            from: LibraryV2.self,
            to: LibraryV3.self,
            willMigrate: { manager, _ in
                let context = manager.container?.newBackgroundContext()
                try context?.performAndWait {
                    let request = NSFetchRequest<LibraryV2.Book>(entityName: "Book")
                    for book in try context?.fetch(request) ?? [] where book.title == nil { book.title = "untitled" }
                    try context?.save()
                }
            },
            didMigrate: { manager, _ in
                let context = manager.container?.newBackgroundContext()
                try context?.performAndWait {
                    let request = NSFetchRequest<LibraryV3.Book>(entityName: "Book")
                    for book in try context?.fetch(request) ?? [] { book.score = Int16(book.title.count) }
                    try context?.save()
                }
            }
        )
        return [try NSLightweightMigrationStage(through: [LibraryV1.self, LibraryV2.self]), custom]
    }
}

/// All steps are inferred.
enum PlainPlan: ManagedModelPlan {
    static var versions: [any ManagedModelVersion.Type] { [LibraryV1.self, LibraryV2.self] }
}

@Suite("Plans of versions in Swift")
struct ModelPlanTests {
    private func makeStore(at url: URL) throws {
        let coordinator = NSPersistentStoreCoordinator(
            managedObjectModel: try NSManagedObjectModel(version: LibraryV1.self)
        )
        try coordinator.addPersistentStore(ofType: NSSQLiteStoreType, configurationName: nil, at: url, options: nil)
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            for (title, name) in [("Sult", "Hamsun"), (nil, "Nobody")] as [(String?, String)] {
                let book = LibraryV1.Book(context: context)
                book.title = title
                book.name = name
            }
            try context.save()
        }
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    private func open<Result>(
        _ plan: any ManagedModelPlan.Type,
        at url: URL,
        _ body: (NSManagedObjectContext) throws -> Result
    ) throws -> Result {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try plan.currentModel())
        try coordinator.addPersistentStore(
            ofType: NSSQLiteStoreType,
            configurationName: nil,
            at: url,
            options: [
                NSPersistentStoreStagedMigrationManagerOptionKey: try NSStagedMigrationManager(for: plan),
                NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            ]
        )
        let context = NSManagedObjectContext(concurrencyType: .privateQueueConcurrencyType)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait { try body(context) }
    }

    @Test("a store of the first version goes through all stages, with the classes of each version")
    func stages() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("library.sqlite")
        try makeStore(at: url)

        let books = try open(LibraryPlan.self, at: url) { context in
            try context.fetch(NSFetchRequest<LibraryV3.Book>(entityName: "Book"))
                .map { "\($0.title) \($0.author ?? "") \($0.score)" }.sorted()
        }

        expectEqual(books, ["Sult Hamsun 4", "untitled Nobody 8"])
    }

    @Test("without stages of its own, a plan infers each step")
    func inferred() throws {
        let scratch = try ScratchFolder()
        let url = scratch.file("library.sqlite")
        try makeStore(at: url)

        let authors = try open(PlainPlan.self, at: url) { context in
            try context.fetch(NSFetchRequest<LibraryV2.Book>(entityName: "Book")).compactMap(\.author).sorted()
        }

        expectEqual(authors, ["Hamsun", "Nobody"])
        try expectEqual(PlainPlan.stages().first?.label, "LibraryV1, 2.0")
    }

    @Test("versions have identifiers, and a plan without versions is refused")
    func identifiers() throws {
        enum Empty: ManagedModelPlan {
            static var versions: [any ManagedModelVersion.Type] { [] }
        }
        try expectEqual(NSManagedObjectModel(version: LibraryV1.self).versionIdentifiers, ["LibraryV1"])
        try expectEqual(NSManagedObjectModel(version: LibraryV2.self).versionIdentifiers, ["2.0"])
        expectThrows(CocoaError.self) { try Empty.currentModel() }
    }
}
