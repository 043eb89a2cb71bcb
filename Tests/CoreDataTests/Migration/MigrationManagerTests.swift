import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// The statements M-90 to M-130 on migrations by objects.
@Suite("Migration manager")
struct MigrationManagerTests {
    // MARK: - What is carried over

    @Test func `m093 attributes get the values of their expressions, or their defaults`() throws {
        let move = try LibraryMove(books: 3)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[0].attributeMappings?.append(
            contentsOf: LibraryVersions.entity(nil, nil, attributes: ["country": nil]).attributeMappings ?? []
        )

        try move.migrate(mapping)

        try expectEqual(move.values("Writer", "fullName"), ["Author 0"])
        try expectEqual(move.values("Writer", "country"), ["unknown"])
        expectEqual(Set(try move.values("Book", "title")), ["Book 0", "Book 1", "Book 2"])
        try expectEqual(move.numbers("Book", "pageCount"), [100, 101, 102])
        try expectEqual(move.count("Novel"), 1)
    }

    @Test func `m094 relationships of every kind lead to the migrated forms of the same objects`() throws {
        let move = try LibraryMove(books: 40)

        try move.migrate()

        try move.inspect { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Writer")
            request.sortDescriptors = [NSSortDescriptor(key: "fullName", ascending: true)]
            let writers = try context.fetch(request)
            expectEqual(writers.count, 4)
            for (index, writer) in writers.enumerated() {
                let works = (writer.value(forKey: "works") as? Set<NSManagedObject>) ?? []
                expect(
                    Set(works.map { $0.value(forKey: "title") as? String })
                        == Set((0..<40).filter { $0 % 4 == index }.map { "Book \($0)" })
                )
                let favourites = (writer.value(forKey: "favourites") as? NSOrderedSet)?.array as? [NSManagedObject]
                let expected = (0..<30).filter { ($0 + 1) % 4 == index }.reversed().map { "Book \($0)" }
                expectEqual(favourites?.map { $0.value(forKey: "title") as? String }, expected)
            }
        }
    }

    @Test func `m036 a value that is missing becomes the default of an attribute that is required now`() throws {
        let move = try LibraryMove { context in LibraryMove.make("Book", ["title": "A", "pages": nil], context) }

        try move.migrate()

        try expectEqual(move.values("Book", "pageCount"), [1])
    }

    @Test func `m098 one entity is split into two, and two become one`() throws {
        let move = try LibraryMove { context in
            LibraryMove.make("Author", ["name": "A"], context)
            LibraryMove.make("Stamp", ["text": "B"], context)
        }
        let mapping = NSMappingModel()
        mapping.entityMappings = [
            LibraryVersions.entity("Author", "Writer", attributes: ["fullName": "$source.name"]),
            LibraryVersions.entity("Author", "Note", attributes: ["text": "$source.name"]),
            LibraryVersions.entity("Stamp", "Note", attributes: ["text": "$source.text"]),
        ]

        try move.migrate(mapping)

        try expectEqual(move.values("Writer", "fullName"), ["A"])
        expectEqual(Set(try move.values("Note", "text")), ["A", "B"])
    }

    @Test func `m099 a predicate in the source expression leaves the others behind`() throws {
        let move = try LibraryMove(books: 9)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[1].sourceExpression = MappingExpressions.objects(of: "Book", predicate: "pages > 104")

        try move.migrate(mapping)

        let titles: Set<String?> = try move.inspect { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Book")
            request.includesSubentities = false
            return Set(try context.fetch(request).map { $0.value(forKey: "title") as? String })
        }
        expectEqual(titles, ["Book 5", "Book 7", "Book 8"])
    }

    @Test func `m100 the mapping of an entity leaves its sub-entities to theirs`() throws {
        let move = try LibraryMove(books: 9)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings.removeLast()

        try move.migrate(mapping)

        try expectEqual(move.count("Book"), 6)
    }

    @Test func `m101 what has no mapping is not carried over, and mappings that add make nothing`() throws {
        let move = try LibraryMove(books: 3)
        let mapping = NSMappingModel()
        mapping.entityMappings = [LibraryVersions.entity(nil, "Note"), LibraryVersions.entity("Stamp", nil)]

        try move.migrate(mapping)

        try expectEqual(move.count("Writer"), 0)
        try expectEqual(move.count("Book"), 0)
        try expectEqual(move.count("Note"), 0)
    }

    // MARK: - Expressions

    @Test func `m102 m103 expressions use variables, key paths, collection operators, constants and functions`() throws
    {
        let move = try LibraryMove(books: 4)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[0].userInfo = ["suffix": "of old"]
        mapping.entityMappings[0].attributeMappings =
            LibraryVersions.entity(
                nil,
                nil,
                attributes: ["age": "$source.books.@sum.pages", "fullName": "uppercase:($source.name)"]
            ).attributeMappings
        mapping.entityMappings[1].attributeMappings =
            LibraryVersions.entity(nil, nil, attributes: ["title": "$source.author.name", "pageCount": "7"])
            .attributeMappings
        mapping.entityMappings[2].attributeMappings =
            LibraryVersions.entity(
                nil,
                nil,
                attributes: ["title": "$entityMapping.sourceEntityName", "genre": "$manager.userInfo.genre"]
            ).attributeMappings
        move.manager.userInfo = ["genre": "crime"]

        try move.migrate(mapping)

        try expectEqual(move.values("Writer", "age"), [406])
        try expectEqual(move.values("Writer", "fullName"), ["AUTHOR 0"])
        expectEqual(Set(try move.values("Book", "title")), ["Author 0", "Novel"])
        expectEqual(Set(try move.values("Novel", "genre")), ["crime"])
    }

    @Test func `m106 an unknown function is an error before anything is written`() throws {
        let move = try LibraryMove(books: 3)
        for text in [
            "FUNCTION($entityPolicy, \"missing:\", 1)", "1 + FUNCTION($manager, \"missing\")", "$nothing.name",
        ] {
            let mapping = LibraryVersions.mapping()
            mapping.entityMappings[1].attributeMappings?[0].valueExpression = NSExpression(format: text)

            let error = try #require(throws: CocoaError.self) { try move.migrate(mapping) }

            expectEqual(error.code, .entityMigrationPolicy)
            expect(error.localizedDescription.contains("BookToBook"))
            expect(move.leftovers.isEmpty)
        }
    }

    @Test func `a value that the property does not take is an error that names both`() throws {
        let wrong = [
            (
                "pageCount", "\"many\"", true,
                "the attribute is of type Integer 64, and does not take a value of type String."
            ),
            ("title", "5", true, "the attribute is of type String, and does not take a value of type NSNumber."),
            (
                "writer", "$source.author", false,
                "its value has an object of the source. Ask the manager for what has become of it: destinationInstances(forEntityMappingName:sourceInstances:)."
            ),
            ("writer", "5", false, "its value is NSNumber, not objects."),
            ("writer", "$destination", false, "its value has an object of entity Book, not Writer."),
        ]
        for (property, text, isAttribute, reason) in wrong {
            let move = try LibraryMove(books: 3)
            let mapping = LibraryVersions.mapping()
            let list = LibraryVersions.entity(nil, nil, attributes: [property: text]).attributeMappings
            if isAttribute {
                mapping.entityMappings[1].attributeMappings = list
            } else {
                mapping.entityMappings[1].relationshipMappings = list
            }

            let error = try #require(throws: CocoaError.self) { try move.migrate(mapping) }

            expectEqual(error.code, .migration)
            expectEqual(error.userInfo["property"] as? String, property)
            expectEqual(error.userInfo["mapping"] as? String, "BookToBook")
            expectEqual(error.userInfo["entity"] as? String, "Book")
            expectEqual(error.localizedDescription, "Mapping BookToBook, property \(property): \(reason)")
            expect(move.leftovers.isEmpty)
        }
    }

    @Test func `an expression that asks for a key that is not there is an error`() throws {
        let move = try LibraryMove(books: 3)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[1].attributeMappings?[0].valueExpression = NSExpression(format: "$source.nothing")

        let error = try #require(throws: CocoaError.self) { try move.migrate(mapping) }

        expectEqual(error.code, .migration)
        expect(error.localizedDescription.contains("nothing"))
    }

    // MARK: - Identity

    @Test func `m111 m125 the store keeps its UUID and the application's metadata, objects keep their keys`() throws {
        let move = try LibraryMove(books: 30)
        var metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: move.source)
        metadata["app.version"] = "3.1"
        try NSPersistentStoreCoordinator.setMetadata(metadata, type: .sqlite, at: move.source)
        func keys(_ url: URL, _ model: NSManagedObjectModel) throws -> [String: Int64] {
            try LibraryMove.change(url, model) { context in
                let books = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Book"))
                return Dictionary(
                    uniqueKeysWithValues: books.map { ($0.value(forKey: "title") as? String ?? "", $0.key) }
                )
            }
        }

        try move.migrate()

        let new = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: move.destination)
        expectEqual(new[NSStoreUUIDKey] as? String, metadata[NSStoreUUIDKey] as? String)
        expectEqual(new["app.version"] as? String, "3.1")
        expect(LibraryVersions.second().isConfiguration(withName: nil, compatibleWithStoreMetadata: new))
        let old = try keys(move.source, LibraryVersions.first())
        expectEqual(old.count, 30)
        try expectEqual(keys(move.destination, LibraryVersions.second()), old)
        // Objects that are inserted afterwards get new keys.
        let next = try move.inspect { context in
            let book = LibraryMove.make("Book", ["title": "new"], context)
            try context.save()
            return book.key
        }
        expect(next > old.values.max() ?? 0)
    }

    @Test func `m128 objects of both sides are plain, whatever class the program has now`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let old = folder.appendingPathComponent("old.sqlite")
        try LibraryMove.change(old, GuideModel.make()) { LibraryMove.make("Tag", ["title": "t"], $0) }
        let manager = NSMigrationManager(sourceModel: GuideModel.make(), destinationModel: GuideModel.make())
        let mapping = NSMappingModel()
        mapping.entityMappings = [LibraryVersions.entity("Tag", "Tag", attributes: ["title": "$source.title"])]
        mapping.entityMappings[0].entityMigrationPolicyClassName = "ClassNotingPolicy"
        NSEntityMigrationPolicy.register(ClassNotingPolicy.self)

        try manager.migrateStore(
            from: old,
            type: .sqlite,
            mapping: mapping,
            to: folder.appendingPathComponent("new.sqlite"),
            type: .sqlite
        )

        expectEqual(manager.userInfo?["source"] as? String, "NSManagedObject")
        expectEqual(manager.userInfo?["destination"] as? String, "NSManagedObject")
    }

    // MARK: - Places

    @Test func `m118 a store is not migrated onto itself`() throws {
        let move = try LibraryMove()

        let error = try #require(throws: CocoaError.self) {
            try move.manager.migrateStore(
                from: move.source,
                type: .sqlite,
                mapping: LibraryVersions.mapping(),
                to: move.source,
                type: .sqlite
            )
        }

        expectEqual(error.code, .migrationManagerDestinationStore)
    }

    @Test func `a source that is missing, damaged or of another model is an error about the source`() throws {
        let move = try LibraryMove()
        let missing = move.folder.appendingPathComponent("missing.sqlite")
        let damaged = move.folder.appendingPathComponent("damaged.sqlite")
        try Data(repeating: 7, count: 5000).write(to: damaged)
        let other = move.folder.appendingPathComponent("other.sqlite")
        try LibraryMove.change(other, GuideModel.make()) { _ in }
        for url in [missing, damaged, other] {
            let error = try #require(throws: CocoaError.self) {
                try move.manager.migrateStore(
                    from: url,
                    type: .sqlite,
                    mapping: LibraryVersions.mapping(),
                    to: move.destination,
                    type: .sqlite
                )
            }
            expectEqual(error.code, .migrationManagerSourceStore)
            expect(error.userInfo[NSUnderlyingErrorKey] is CocoaError)
            expectEqual(error.userInfo[NSURLErrorKey] as? URL, url)
        }
        expect(!FileManager.default.fileExists(atPath: missing.path))
        expect(!FileManager.default.fileExists(atPath: move.destination.path))
    }

    @Test func `m113 a destination of the new model is added to`() throws {
        let move = try LibraryMove(books: 6)
        let authors = NSMappingModel()
        authors.entityMappings = [LibraryVersions.mapping().entityMappings[0]]
        authors.entityMappings[0].relationshipMappings = []
        let books = NSMappingModel()
        books.entityMappings = Array(LibraryVersions.mapping().entityMappings[1...])
        for mapping in books.entityMappings { mapping.relationshipMappings = [] }

        try move.migrate(authors)
        try move.migrate(books)

        try expectEqual(move.count("Writer"), 1)
        try expectEqual(move.count("Book"), 6)
        expectEqual(move.leftovers, ["new.sqlite"])
    }

    @Test func `a destination that is no store, or of another model, is left alone`() throws {
        let move = try LibraryMove()
        try Data("precious".utf8).write(to: move.destination)
        /// The cause of the failure, which the error has beside the place.
        func cause() throws -> CocoaError.Code? {
            let error = try #require(throws: CocoaError.self) { try move.migrate() }
            expectEqual(error.code, .migrationManagerDestinationStore)
            expectEqual(error.userInfo[NSURLErrorKey] as? URL, move.destination)
            let cause = error.userInfo[NSUnderlyingErrorKey] as? CocoaError
            expectEqual(cause.map { error.localizedDescription.contains($0.localizedDescription) }, true)
            return cause?.code
        }
        try expectEqual(cause(), .fileReadCorruptFile)
        try expectEqual(Data(contentsOf: move.destination), Data("precious".utf8))

        try FileManager.default.removeItem(at: move.destination)
        try LibraryMove.change(move.destination, GuideModel.make()) { LibraryMove.make("Tag", ["title": "t"], $0) }
        try expectEqual(cause(), .persistentStoreIncompatibleVersionHash)
        let tags = try LibraryMove.change(move.destination, GuideModel.make()) {
            try $0.count(for: NSFetchRequest<NSManagedObject>(entityName: "Tag"))
        }
        expectEqual(tags, 1)
    }

    @Test func `a destination that was destroyed before is filled`() throws {
        let move = try LibraryMove(books: 3)
        try LibraryMove.change(move.destination, GuideModel.make()) { LibraryMove.make("Tag", ["title": "t"], $0) }
        try NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
            .destroyPersistentStore(at: move.destination, type: .sqlite)

        try move.migrate()

        try expectEqual(move.count("Book"), 3)
        expectEqual(move.leftovers, ["new.sqlite"])
    }

    @Test func `m117 a store is migrated to another type of store, and back`() throws {
        let move = try LibraryMove(books: 2100)
        let binary = move.folder.appendingPathComponent("new.binary")
        let uuid = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: move.source)[
            NSStoreUUIDKey
        ]

        try move.manager.migrateStore(
            from: move.source,
            type: .sqlite,
            mapping: LibraryVersions.mapping(),
            to: binary,
            type: .binary
        )
        let same = try NSMappingModel.inferredMappingModel(
            forSourceModel: LibraryVersions.second(),
            destinationModel: LibraryVersions.second()
        )
        try NSMigrationManager(sourceModel: LibraryVersions.second(), destinationModel: LibraryVersions.second())
            .migrateStore(from: binary, type: .binary, mapping: same, to: move.destination, type: .sqlite)

        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: move.destination)
        expectEqual(metadata[NSStoreUUIDKey] as? String, uuid as? String)
        try expectEqual(move.count("Book"), 2100)
        try move.inspect { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Writer")
            request.predicate = NSPredicate(format: "fullName == %@", "Author 7")
            let writer = try require(try context.fetch(request).first)
            expectEqual((writer.value(forKey: "works") as? NSSet)?.count, 10)
        }
    }

    @Test func `m123 external values come along, with their files`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func model() -> NSManagedObjectModel {
            let model = ModelSketch.model("A: n String, blob Data")
            model.entitiesByName["A"]?.attributesByName["blob"]?.allowsExternalBinaryDataStorage = true
            return model
        }
        let blob = Data(repeating: 5, count: 2_000_000)
        let (old, new) = (folder.appendingPathComponent("old.sqlite"), folder.appendingPathComponent("new.sqlite"))
        try LibraryMove.change(old, model()) { $0.make("A", "a", ["blob": blob]) }
        let mapping = NSMappingModel()
        mapping.entityMappings = [
            LibraryVersions.entity("A", "A", attributes: ["n": "$source.n", "blob": "$source.blob"])
        ]

        try NSMigrationManager(sourceModel: model(), destinationModel: model())
            .migrateStore(from: old, type: .sqlite, mapping: mapping, to: new, type: .sqlite)

        let value = try LibraryMove.change(new, model()) { try $0.all("A").first?.value(forKey: "blob") as? Data }
        expectEqual(value, blob)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        expectEqual(names.filter { $0.hasPrefix(".") }.sorted(), [".new_SUPPORT", ".old_SUPPORT"])
    }

    // MARK: - Failing

    @Test func `m089 m126 objects that do not pass validation fail the migration, all of them named`() throws {
        let move = try LibraryMove(books: 6)
        let strict = LibraryVersions.second()
        strict.entitiesByName["Writer"]?.attributesByName["country"]?.isOptional = false
        strict.entitiesByName["Writer"]?.attributesByName["country"]?.defaultValue = nil
        strict.entitiesByName["Book"]?.attributesByName["title"]?.isOptional = false
        let manager = NSMigrationManager(sourceModel: LibraryVersions.first(), destinationModel: strict)
        let mapping = LibraryVersions.mapping()
        for entry in mapping.entityMappings { entry.attributeMappings?.removeAll { $0.name == "title" } }
        let before = try Data(contentsOf: move.source)

        let error = try #require(throws: CocoaError.self) {
            try manager.migrateStore(
                from: move.source,
                type: .sqlite,
                mapping: mapping,
                to: move.destination,
                type: .sqlite
            )
        }

        expectEqual(error.code, .validationMultipleErrors)
        expectEqual(error.detailedErrors.count, 7)
        expect(move.leftovers.isEmpty)
        try expectEqual(Data(contentsOf: move.source), before)
    }

    @Test func `m069 objects that break a uniqueness constraint are an error with the constraint under it`() throws {
        let move = try LibraryMove { context in
            for _ in 0..<3 { LibraryMove.make("Author", ["name": "same"], context) }
        }
        let unique = LibraryVersions.second()
        unique.entitiesByName["Writer"]?.uniquenessConstraints = [["fullName"]]
        let manager = NSMigrationManager(sourceModel: LibraryVersions.first(), destinationModel: unique)

        let error = try #require(throws: CocoaError.self) {
            try manager.migrateStore(
                from: move.source,
                type: .sqlite,
                mapping: LibraryVersions.mapping(),
                to: move.destination,
                type: .sqlite
            )
        }

        expectEqual(error.code, .migration)
        let cause = error.userInfo[NSUnderlyingErrorKey] as? CocoaError
        expectEqual(cause?.code.rawValue, NSMigrationConstraintViolationError)
        expect(move.leftovers.isEmpty)
    }

    @Test func `m023 a mapping whose recorded hash is stale is refused with both hashes`() throws {
        let move = try LibraryMove()
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[1].sourceEntityVersionHash = Data(repeating: 0xAB, count: 32)

        let error = try #require(throws: CocoaError.self) { try move.migrate(mapping) }

        expectEqual(error.code, .migrationMissingMappingModel)
        let hash = try require(LibraryVersions.first().entityVersionHashesByName["Book"])
        expect(error.localizedDescription.contains("abababab"))
        expect(error.localizedDescription.contains(MappingModelMatch.digits(hash)))
    }

    @Test func `names that the models do not have are errors`() throws {
        let move = try LibraryMove()
        let unknown = [
            (
                LibraryVersions.entity("Nobody", "Writer"), CocoaError.Code.migrationMissingMappingModel, nil,
                "The mapping model does not fit the models. Mapping NobodyToWriter names entity Nobody, which is not in the source model."
            ),
            (
                LibraryVersions.entity("Author", "Nobody"), .migrationMissingMappingModel, nil,
                "The mapping model does not fit the models. Mapping AuthorToNobody names entity Nobody, which is not in the destination model."
            ),
            (
                LibraryVersions.entity("Author", "Writer", attributes: ["nothing": "1"]), .migration, "nothing",
                "Mapping AuthorToWriter, property nothing: entity Writer of the destination model has no such property."
            ),
            (
                LibraryVersions.entity("Author", "Writer", relationships: ["nothing": "1"]), .migration, "nothing",
                "Mapping AuthorToWriter, property nothing: entity Writer of the destination model has no such property."
            ),
        ]
        for (entry, code, property, text) in unknown {
            let mapping = NSMappingModel()
            mapping.entityMappings = [entry]
            let error = try #require(throws: CocoaError.self) { try move.migrate(mapping) }
            expectEqual(error.code, code)
            expectEqual(error.localizedDescription, text)
            expectEqual(error.userInfo["property"] as? String, property)
            if code == .migration { expectEqual(error.userInfo["mapping"] as? String, "AuthorToWriter") }
            expect(move.leftovers.isEmpty)
        }
        let twice = NSMappingModel()
        twice.entityMappings = [LibraryVersions.entity("Author", "Writer"), LibraryVersions.entity("Author", "Writer")]
        let error = try #require(throws: CocoaError.self) { try move.migrate(twice) }
        expectEqual(error.code, .migration)
        expectEqual(error.userInfo["mapping"] as? String, "AuthorToWriter")
        expectEqual(error.userInfo["entity"] as? String, "Writer")
        expectEqual(
            error.localizedDescription,
            "The mapping model has two mappings named AuthorToWriter; name them apart."
        )
    }

    // MARK: - Large stores

    @Test func `m114 memory holds one batch of objects, whatever their number`() throws {
        let move = try LibraryMove(books: 6000)
        let mapping = LibraryVersions.mapping()
        NSEntityMigrationPolicy.register(RegistryNotingPolicy.self)
        for entry in mapping.entityMappings { entry.entityMigrationPolicyClassName = "RegistryNotingPolicy" }

        try move.migrate(mapping)

        try expectEqual(move.count("Book"), 6000)
        try expectEqual(move.count("Writer"), 600)
        let source = try require(move.manager.userInfo?["source"] as? Int)
        let destination = try require(move.manager.userInfo?["destination"] as? Int)
        // Released objects count until the registry is swept.
        let least = min(1000, WorkSize.sweptObjects)
        expect((least..<4200).contains(source), "\(source)")
        expect((least..<4200).contains(destination), "\(destination)")
    }

    @Test func `m114 a policy sees the source as it was, whatever others write meanwhile`() throws {
        let move = try LibraryMove(books: 20)
        let mapping = LibraryVersions.mapping()
        NSEntityMigrationPolicy.register(WritingPolicy.self)
        mapping.entityMappings[0].entityMigrationPolicyClassName = "WritingPolicy"
        move.manager.userInfo = ["url": move.source]

        try move.migrate(mapping)

        try expectEqual(move.count("Book"), 20)
        expect(!(try move.values("Book", "title").contains("changed")))
        let now = try LibraryMove.change(move.source, LibraryVersions.first()) {
            try $0.count(for: NSFetchRequest<NSManagedObject>(entityName: "Book"))
        }
        expectEqual(now, 21)
    }
}

/// Notes the classes of objects.
final class ClassNotingPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        let made = manager.destinationInstances(forEntityMappingName: "TagToTag", sourceInstances: [sInstance])
        manager.userInfo = [
            "source": "\(type(of: sInstance))", "destination": made.first.map { "\(type(of: $0))" } ?? "",
        ]
    }
}

/// Notes the highest number of objects in the contexts.
final class RegistryNotingPolicy: NSEntityMigrationPolicy {
    private func note(_ manager: NSMigrationManager) {
        let counts = [
            "source": manager.sourceContext.registeredCount,
            "destination": manager.destinationContext.registeredCount,
        ]
        var known = manager.userInfo ?? [:]
        for (key, count) in counts { known[key] = max(known[key] as? Int ?? 0, count) }
        manager.userInfo = known
    }

    private var calls = 0

    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        calls += 1
        if calls % 250 == 0 { note(manager) }
    }

    override func createRelationships(
        forDestination dInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createRelationships(forDestination: dInstance, in: mapping, manager: manager)
        calls += 1
        if calls % 250 == 0 { note(manager) }
    }
}

/// Writes to the source's file during its migration.
final class WritingPolicy: NSEntityMigrationPolicy {
    override func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        guard let url = manager.userInfo?["url"] as? URL else { return }
        try LibraryMove.change(url, LibraryVersions.first()) { context in
            LibraryMove.make("Book", ["title": "late"], context)
            for book in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Book")) {
                book.setValue("changed", forKey: "title")
            }
        }
    }
}
