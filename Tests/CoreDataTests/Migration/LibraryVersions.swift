import CoreData
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// Two versions of a library's model, and a store of the first one to migrate.
enum LibraryVersions {
    /// Authors with books, and with favourites in an order.
    ///
    /// Novels are books.
    static func first() -> NSManagedObjectModel {
        let author = plain("Author")
        author.properties = [GuideModel.attribute("name", .string), GuideModel.attribute("age", .integer16)]
        let book = plain("Book")
        book.properties = [GuideModel.attribute("title", .string), GuideModel.attribute("pages", .integer32)]
        let novel = plain("Novel")
        novel.properties = [GuideModel.attribute("genre", .string)]
        book.subentities = [novel]
        let stamp = plain("Stamp")
        stamp.properties = [GuideModel.attribute("text", .string)]
        GuideModel.relate(
            author,
            "books",
            .many(.nullifyDeleteRule),
            book,
            "author",
            .one(.nullifyDeleteRule)
        )
        GuideModel.relate(
            author,
            "favourites",
            .ordered(.nullifyDeleteRule),
            book,
            "admirers",
            .many(.nullifyDeleteRule)
        )
        return NSManagedObjectModel(author, book, novel, stamp)
    }

    /// Writers with full names replace authors, and `pageCount` is required.
    static func second() -> NSManagedObjectModel {
        let writer = plain("Writer")
        writer.properties = [
            GuideModel.attribute("fullName", .string), GuideModel.attribute("age", .integer64),
            GuideModel.attribute("country", .string, default: "unknown"),
        ]
        let book = plain("Book")
        book.properties = [
            GuideModel.attribute("title", .string),
            GuideModel.attribute("pageCount", .integer64, optional: false, default: 1),
        ]
        let novel = plain("Novel")
        novel.properties = [GuideModel.attribute("genre", .string)]
        book.subentities = [novel]
        let note = plain("Note")
        note.properties = [GuideModel.attribute("text", .string)]
        GuideModel.relate(writer, "works", .many(.nullifyDeleteRule), book, "writer", .one(.nullifyDeleteRule))
        GuideModel.relate(
            writer,
            "favourites",
            .ordered(.nullifyDeleteRule),
            book,
            "admirers",
            .many(.nullifyDeleteRule)
        )
        return NSManagedObjectModel(writer, book, novel, note)
    }

    private static func plain(_ name: String) -> NSEntityDescription {
        let entity = NSEntityDescription()
        entity.name = name
        return entity
    }

    // MARK: - Mappings

    /// The mapping from the first version to the second.
    static func mapping() -> NSMappingModel {
        let model = NSMappingModel()
        let author = entity(
            "Author",
            "Writer",
            attributes: ["fullName": "$source.name", "age": "$source.age"],
            relationships: [
                "works": related("$source.books"), "favourites": related("$source.favourites"),
            ]
        )
        let links = ["writer": related("$source.author"), "admirers": related("$source.admirers")]
        let book = entity(
            "Book",
            "Book",
            attributes: ["title": "$source.title", "pageCount": "$source.pages"],
            relationships: links
        )
        let novel = entity(
            "Novel",
            "Novel",
            attributes: ["title": "$source.title", "pageCount": "$source.pages", "genre": "$source.genre"],
            relationships: links
        )
        model.entityMappings = [author, book, novel]
        return model
    }

    /// An expression for the destination's objects that belong to the objects at a key path of the source.
    static func related(_ path: String) -> String {
        "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", \"\", \(path))"
    }

    static func entity(
        _ source: String?,
        _ destination: String?,
        attributes: [String: String?] = [:],
        relationships: [String: String] = [:]
    ) -> NSEntityMapping {
        let mapping = NSEntityMapping()
        mapping.sourceEntityName = source
        mapping.destinationEntityName = destination
        mapping.attributeMappings = attributes.map { property($0, $1) }
        mapping.relationshipMappings = relationships.map { property($0, $1) }
        return mapping
    }

    private static func property(_ name: String, _ expression: String?) -> NSPropertyMapping {
        let mapping = NSPropertyMapping()
        mapping.name = name
        mapping.valueExpression = expression.map { NSExpression(format: $0) }
        return mapping
    }
}

/// A store of the library's first version, and a place for one of the second, in a separate folder.
final class LibraryMove {
    let folder: URL
    let source: URL
    let destination: URL
    let manager: NSMigrationManager

    /// - Parameters:
    ///   - books: The number of books. Each third is a novel, and there is one author for each ten.
    ///   - fill: Makes other objects instead.
    /// - Throws: Errors of the store.
    init(books: Int = 6, fill: ((NSManagedObjectContext) throws -> Void)? = nil) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        source = folder.appendingPathComponent("old.sqlite")
        destination = folder.appendingPathComponent("new.sqlite")
        manager = NSMigrationManager(sourceModel: LibraryVersions.first(), destinationModel: LibraryVersions.second())
        try Self.change(source, LibraryVersions.first()) { context in
            if let fill { return try fill(context) }
            var authors: [NSManagedObject] = []
            for number in 0..<max(1, books / 10) {
                authors.append(Self.make("Author", ["name": "Author \(number)", "age": 30 + number % 50], context))
            }
            for number in 0..<books {
                let book = Self.make(
                    number % 3 == 0 ? "Novel" : "Book",
                    ["title": "Book \(number)", "pages": 100 + number],
                    context
                )
                book.setValue(authors[number % authors.count], forKey: "author")
                let admirer = authors[(number + 1) % authors.count]
                let favourites = admirer.value(forKey: "favourites") as? NSOrderedSet ?? NSOrderedSet()
                if number < 30 {
                    admirer.setValue(NSOrderedSet(array: [book] + favourites.array), forKey: "favourites")
                }
            }
        }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    @discardableResult
    static func make(_ entity: String, _ values: [String: Any?], _ context: NSManagedObjectContext) -> NSManagedObject {
        let object = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
        for (key, value) in values { object.setValue(value, forKey: key) }
        return object
    }

    /// Opens a store, runs `body`, saves and closes the store.
    @discardableResult
    static func change<R>(
        _ url: URL,
        _ model: NSManagedObjectModel,
        type: NSPersistentStore.StoreType = .sqlite,
        _ body: (NSManagedObjectContext) throws -> R
    ) throws -> R {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let store = try coordinator.addPersistentStore(type: type, at: url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let result = try context.performAndWait {
            defer { context.reset() }
            let result = try body(context)
            if context.hasChanges { try context.save() }
            return result
        }
        try coordinator.remove(store)
        return result
    }

    func migrate(_ mapping: NSMappingModel = LibraryVersions.mapping()) throws {
        try manager.migrateStore(from: source, type: .sqlite, mapping: mapping, to: destination, type: .sqlite)
    }

    /// Reads the new store.
    func inspect<R>(_ body: (NSManagedObjectContext) throws -> R) throws -> R {
        try Self.change(destination, LibraryVersions.second(), body)
    }

    /// The values of a key for all objects of an entity, sorted by title or name.
    func values(_ entity: String, _ key: String) throws -> [AnyHashable?] {
        try inspect { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: entity)
            return try context.fetch(request).sorted { $0.objectID.key < $1.objectID.key }
                .map { $0.value(forKey: key) as? AnyHashable }
        }
    }

    /// The numbers of a key for all objects of an entity.
    func numbers(_ entity: String, _ key: String) throws -> Set<Int> {
        Set(try values(entity, key).compactMap { ($0 as? NSNumber)?.intValue ?? $0 as? Int })
    }

    func count(_ entity: String) throws -> Int {
        try inspect { try $0.count(for: NSFetchRequest<NSManagedObject>(entityName: entity)) }
    }

    /// The files that the migration has left in the folder, beside the source.
    var leftovers: [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { !$0.hasPrefix("old.sqlite") && !$0.hasPrefix(".old") }.sorted()
    }
}
