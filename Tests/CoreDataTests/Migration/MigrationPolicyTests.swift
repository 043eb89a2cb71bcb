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

/// The statements M-91 to M-97 and M-104 to M-116 on policies.
@Suite("Migration policies")
struct MigrationPolicyTests {
    private static func mapping(_ policy: NSEntityMigrationPolicy.Type) -> NSMappingModel {
        NSEntityMigrationPolicy.register(policy)
        let mapping = LibraryVersions.mapping()
        for entry in mapping.entityMappings { entry.entityMigrationPolicyClassName = String(describing: policy) }
        return mapping
    }

    @Test func `m090 m091 m092 steps come pass by pass, in the order of the mappings, to one policy for each`() throws {
        let move = try LibraryMove(books: 3)

        try move.migrate(Self.mapping(StepNotingPolicy.self))

        expect(
            move.manager.userInfo?["steps"] as? [String] == [
                "begin AuthorToWriter 1", "create AuthorToWriter 2", "end creation AuthorToWriter 3",
                "begin BookToBook 1", "create BookToBook 2", "create BookToBook 3", "end creation BookToBook 4",
                "begin NovelToNovel 1", "create NovelToNovel 2", "end creation NovelToNovel 3",
                "relate AuthorToWriter 4", "end relating AuthorToWriter 5",
                "relate BookToBook 5", "relate BookToBook 6", "end relating BookToBook 7",
                "relate NovelToNovel 4", "end relating NovelToNovel 5",
                "validate AuthorToWriter 6", "end AuthorToWriter 7",
                "validate BookToBook 8", "end BookToBook 9",
                "validate NovelToNovel 6", "end NovelToNovel 7",
            ]
        )
    }

    @Test func `m095 m097 what a policy makes without associating it is stored, but gets no relationships`() throws {
        let move = try LibraryMove(books: 3)
        let mapping = LibraryVersions.mapping()
        NSEntityMigrationPolicy.register(LonelyPolicy.self)
        mapping.entityMappings[1].entityMigrationPolicyClassName = "LonelyPolicy"

        try move.migrate(mapping)

        try expectEqual(move.count("Book"), 3)
        try expectEqual(move.count("Note"), 2)
        try move.inspect { context in
            for book in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Book")) {
                expectEqual((book.value(forKey: "writer") != nil), (book.entity.name == "Novel"))
            }
        }
    }

    @Test func `m096 what a step throws ends the migration, which throws it`() throws {
        for step in FailingPolicy.Step.allCases {
            let move = try LibraryMove(books: 3)
            move.manager.userInfo = ["fails": step]

            #expect(throws: FailingPolicy.Failure(step: step)) { try move.migrate(Self.mapping(FailingPolicy.self)) }

            expect(move.leftovers.isEmpty)
            expectEqual(move.manager.migrationProgress, 0)
        }
    }

    @Test func `m104 associations are found in both directions, in the order of what is asked for`() throws {
        let move = try LibraryMove(books: 2500)

        try move.migrate(Self.mapping(AskingPolicy.self))

        expectEqual(move.manager.userInfo?["mistakes"] as? [String] ?? [], [])
        expectEqual(move.manager.userInfo?["asked"] as? Int, 3)
    }

    @Test func `all objects that were made are registered in the destination, so that policies can share them`() throws
    {
        // There are more objects than one write takes.
        let move = try LibraryMove(books: 2100)
        let mapping = LibraryVersions.mapping()
        NSEntityMigrationPolicy.register(SharingPolicy.self)
        for entry in mapping.entityMappings where entry.sourceEntityName != "Author" {
            entry.entityMigrationPolicyClassName = "SharingPolicy"
        }

        try move.migrate(mapping)

        expectEqual(move.manager.userInfo?["registered"] as? [Int] ?? [], [210 + 1400 + 2, 210 + 2100 + 2])
        try expectEqual(move.count("Note"), 2)
        expectEqual(try move.values("Note", "text"), ["odd", "even"])
    }

    @Test func `the classes of the new version neither awake nor refuse objects that are copied`() throws {
        let move = try LibraryMove(books: 3)
        let destination = LibraryVersions.second()
        destination.entitiesByName["Book"]?.managedObjectClassName = NSStringFromClass(Awaking.self)
        let manager = NSMigrationManager(sourceModel: LibraryVersions.first(), destinationModel: destination)
        try manager.migrateStore(
            from: move.source,
            type: .sqlite,
            mapping: LibraryVersions.mapping(),
            to: move.destination,
            type: .sqlite
        )
        try expectEqual(move.count("Book"), 3)
    }

    @Test func `m105 a relationship leads to all that its members were split into`() throws {
        let move = try LibraryMove(books: 3)
        let mapping = LibraryVersions.mapping()
        let copies = LibraryVersions.entity("Book", "Novel", attributes: ["title": "\"copy\"", "pageCount": "1"])
        mapping.entityMappings.append(copies)

        try move.migrate(mapping)

        try move.inspect { context in
            let writer = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Writer")).first)
            let works = writer.value(forKey: "works") as? Set<NSManagedObject> ?? []
            expectEqual(works.count, 5)
            expectEqual(works.count { $0.value(forKey: "title") as? String == "copy" }, 2)
        }
    }

    @Test func `m106 expressions call the functions of policies and of a custom manager`() throws {
        let move = try LibraryMove(books: 2)
        NSEntityMigrationPolicy.register(FunctionPolicy.self, as: "App.Functions")
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[1].entityMigrationPolicyClassName = "App.Functions"
        mapping.entityMappings[1].attributeMappings =
            LibraryVersions.entity(
                nil,
                nil,
                attributes: [
                    "title": "FUNCTION($entityPolicy, \"join:with:\", $source.title, \"!\")",
                    "pageCount": "1 + FUNCTION($entityPolicy, \"double:\", $source.pages)",
                ]
            ).attributeMappings
        mapping.entityMappings[2].attributeMappings =
            LibraryVersions.entity(
                nil,
                nil,
                attributes: ["genre": "FUNCTION($manager, \"genre\")", "title": "$source.title"]
            ).attributeMappings
        let manager = GenreManager(sourceModel: LibraryVersions.first(), destinationModel: LibraryVersions.second())

        try manager.migrateStore(
            from: move.source,
            type: .sqlite,
            mapping: mapping,
            to: move.destination,
            type: .sqlite
        )

        expectEqual(Set(try move.values("Book", "title")), ["Book 0", "Book 1!"])
        try expectEqual(move.numbers("Book", "pageCount"), [1, 203])
        try expectEqual(move.values("Novel", "genre"), ["poetry"])
    }

    @Test func `m107 an unknown policy is an error with the line to add, before anything is written`() throws {
        let move = try LibraryMove(books: 2)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[2].entityMigrationPolicyClassName = "App.UnknownPolicy"

        let error = try #require(throws: CocoaError.self) { try move.migrate(mapping) }

        expectEqual(error.code, .entityMigrationPolicy)
        expect(
            error.localizedDescription.contains(
                "NSEntityMigrationPolicy.register(UnknownPolicy.self, as: \"App.UnknownPolicy\")"
            )
        )
        expect(move.leftovers.isEmpty)
    }

    @Test func `m107 a class is found by its full name without being registered`() throws {
        let move = try LibraryMove(books: 2)
        let mapping = LibraryVersions.mapping()
        mapping.entityMappings[1].entityMigrationPolicyClassName = String(reflecting: UnregisteredPolicy.self)

        try move.migrate(mapping)

        expectEqual(Set(try move.values("Book", "title")), ["Book 0", "made by policy"])
    }

    @Test func `m108 progress grows evenly to 1, and is 0 afterwards`() throws {
        let move = try LibraryMove(books: 1200)
        let told = Locked<[Float]>([])
        move.manager.progressHandler = { fraction in told.withLock { $0.append(fraction) } }

        try move.migrate()

        let fractions = told.withLock { $0 }
        expectEqual(fractions, fractions.sorted())
        expectEqual(fractions.last, 1)
        expect(fractions.count > 500)
        expect(zip(fractions, fractions.dropFirst()).allSatisfy { $1 - $0 < 0.01 })
        expectEqual(move.manager.migrationProgress, 0)
    }

    @Test func `m112 reset forgets associations, and the objects stay`() throws {
        let move = try LibraryMove(books: 3)
        let mapping = LibraryVersions.mapping()
        NSEntityMigrationPolicy.register(ResettingPolicy.self)
        mapping.entityMappings[2].entityMigrationPolicyClassName = "ResettingPolicy"

        try move.migrate(mapping)

        try expectEqual(move.count("Book"), 3)
        try move.inspect { context in
            for book in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Book")) {
                expect(book.value(forKey: "writer") == nil)
            }
        }
    }

    @Test func `m116 a cancelled migration throws the caller's error and removes what it has written`() throws {
        let move = try LibraryMove(books: 2500)
        move.manager.userInfo = ["after": 1700]

        let error = try #require(throws: CocoaError.self) { try move.migrate(Self.mapping(CancellingPolicy.self)) }

        expectEqual(error.code, .migrationCancelled)
        expect(move.leftovers.isEmpty)
        // The manager works again after the cancellation.
        try move.migrate()
        try expectEqual(move.count("Book"), 2500)
    }

    @Test func `m116 cancelling from another thread works as well`() async throws {
        let move = try LibraryMove(books: 300)
        move.manager.progressHandler = { [manager = move.manager] fraction in
            guard fraction > 0.3 else { return }
            let done = DispatchSemaphore(value: 0)
            // The thread is new, since tests that wait may occupy all threads of the queues.
            Thread.detachNewThread {
                manager.cancelMigrationWithError(CocoaError(.migrationCancelled))
                done.signal()
            }
            expectEqual(done.wait(timeout: .now() + 300), .success)
        }

        let error = try #require(throws: CocoaError.self) { try move.migrate() }

        expectEqual(error.code, .migrationCancelled)
        expect(move.leftovers.isEmpty)
    }

    @Test func `without a migration under way the manager answers with nothing`() throws {
        let manager = NSMigrationManager(
            sourceModel: LibraryVersions.first(),
            destinationModel: LibraryVersions.second()
        )

        manager.cancelMigrationWithError(CocoaError(.migrationCancelled))
        manager.reset()

        expectEqual(manager.migrationProgress, 0)
        expect(manager.mappingModel.entityMappings.isEmpty)
        expect(manager.destinationInstances(forEntityMappingName: "A", sourceInstances: nil).isEmpty)
        expectEqual(manager.sourceEntity(for: LibraryVersions.entity("Author", "Writer"))?.name, "Author")
        expectEqual(manager.destinationEntity(for: LibraryVersions.entity("Author", "Writer"))?.name, "Writer")
        expectEqual(manager.destinationEntity(for: LibraryVersions.entity("Author", nil)), nil)
    }
}

/// Notes each step, with the number of calls that this policy has got.
final class StepNotingPolicy: NSEntityMigrationPolicy {
    private var calls = 0

    private func note(_ step: String, _ mapping: NSEntityMapping, _ manager: NSMigrationManager) {
        calls += 1
        let known = manager.userInfo?["steps"] as? [String] ?? []
        manager.userInfo = ["steps": known + ["\(step) \(mapping.effectiveName) \(calls)"]]
        expect(manager.currentEntityMapping === mapping)
    }

    override func begin(_ mapping: NSEntityMapping, with manager: NSMigrationManager) {
        note("begin", mapping, manager)
    }

    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        note("create", mapping, manager)
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
    }

    override func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) {
        note("end creation", mapping, manager)
    }

    override func createRelationships(
        forDestination dInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        note("relate", mapping, manager)
        try super.createRelationships(forDestination: dInstance, in: mapping, manager: manager)
    }

    override func endRelationshipCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) {
        note("end relating", mapping, manager)
    }

    override func performCustomValidation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) {
        note("validate", mapping, manager)
    }

    override func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) { note("end", mapping, manager) }
}

/// Makes books and notes, and associates none of them.
final class LonelyPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) {
        LibraryMove.make("Book", ["title": sInstance.value(forKey: "title")], manager.destinationContext)
        LibraryMove.make("Note", ["text": sInstance.value(forKey: "title")], manager.destinationContext)
    }
}

/// Fails in one step.
final class FailingPolicy: NSEntityMigrationPolicy {
    enum Step: CaseIterable { case begin, create, endCreation, relate, endRelating, validate, end }

    struct Failure: Error, Equatable {
        let step: Step
    }

    private func fail(in step: Step, _ manager: NSMigrationManager) throws {
        if manager.userInfo?["fails"] as? Step == step { throw Failure(step: step) }
    }

    override func begin(_ mapping: NSEntityMapping, with manager: NSMigrationManager) throws {
        try fail(in: .begin, manager)
    }

    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try fail(in: .create, manager)
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
    }

    override func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        try fail(in: .endCreation, manager)
    }

    override func createRelationships(
        forDestination dInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws { try fail(in: .relate, manager) }

    override func endRelationshipCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        try fail(in: .endRelating, manager)
    }

    override func performCustomValidation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        try fail(in: .validate, manager)
    }

    override func end(_ mapping: NSEntityMapping, manager: NSMigrationManager) throws { try fail(in: .end, manager) }
}

/// Asks for associations of the same mapping, both before all of them are made and afterwards.
final class AskingPolicy: NSEntityMigrationPolicy {
    private var mistakes: [String] = []

    private func check(_ isRight: Bool, _ what: String) { if !isRight { mistakes.append(what) } }

    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        let name = mapping.effectiveName
        check(manager.destinationInstances(forEntityMappingName: name, sourceInstances: [sInstance]).isEmpty, "early")
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        let made = manager.destinationInstances(forEntityMappingName: name, sourceInstances: [sInstance])
        check(made.count == 1, "made \(made.count)")
        let back = manager.sourceInstances(forEntityMappingName: name, destinationInstances: made)
        check(back == [sInstance], "back")
    }

    override func endRelationshipCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        let name = mapping.effectiveName
        let all = manager.sourceInstances(forEntityMappingName: name, destinationInstances: nil)
        let reversed = Array(all.reversed())
        let made = manager.destinationInstances(forEntityMappingName: name, sourceInstances: reversed)
        check(made.count == all.count, "all \(made.count) \(all.count)")
        let everything = manager.destinationInstances(forEntityMappingName: name, sourceInstances: nil)
        check(Array(made.reversed()) == everything, "order")
        let key = mapping.sourceEntityName == "Author" ? ("name", "fullName") : ("title", "title")
        for (source, destination) in zip(reversed, made) {
            check(
                source.value(forKey: key.0) as? String == destination.value(forKey: key.1) as? String,
                "pair of \(source.objectID)"
            )
        }
        check(manager.sourceInstances(forEntityMappingName: name, destinationInstances: made) == reversed, "sources")
        check(manager.destinationInstances(forEntityMappingName: "none", sourceInstances: nil).isEmpty, "unknown")
        var info = manager.userInfo ?? [:]
        info["mistakes"] = (info["mistakes"] as? [String] ?? []) + mistakes
        info["asked"] = (info["asked"] as? Int ?? 0) + 1
        manager.userInfo = info
    }
}

/// Makes one note for odd books and one for even books; it finds the notes among the registered objects.
final class SharingPolicy: NSEntityMigrationPolicy {
    private var seen = 0

    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        seen += 1
        guard seen % 100 == 0 || seen <= 2 else { return }
        let text = seen % 2 == 0 ? "even" : "odd"
        let context = manager.destinationContext
        let known = context.registeredObjects.contains {
            $0.entity.name == "Note" && $0.value(forKey: "text") as? String == text
        }
        if !known { LibraryMove.make("Note", ["text": text], context) }
    }

    override func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) throws {
        var info = manager.userInfo ?? [:]
        let count = manager.destinationContext.registeredObjects.count
        info["registered"] = (info["registered"] as? [Int] ?? []) + [count]
        manager.userInfo = info
    }
}

/// Offers functions to expressions.
final class FunctionPolicy: NSEntityMigrationPolicy {
    override func function(named name: String) -> Function? {
        switch name {
        case "join:with:": { arguments in "\(arguments[0] ?? "")\(arguments[1] ?? "")" }
        case "double:": { arguments in ((arguments[0] as? NSNumber)?.intValue ?? 0) * 2 }
        default: super.function(named: name)
        }
    }
}

final class GenreManager: NSMigrationManager, @unchecked Sendable {
    // @unchecked Sendable: no state.
    override func function(named name: String) -> NSEntityMigrationPolicy.Function? {
        name == "genre" ? { _ in "poetry" } : super.function(named: name)
    }
}

final class UnregisteredPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) {
        let book = LibraryMove.make("Book", ["title": "made by policy"], manager.destinationContext)
        manager.associate(sourceInstance: sInstance, withDestinationInstance: book, for: mapping)
    }
}

final class ResettingPolicy: NSEntityMigrationPolicy {
    override func endInstanceCreation(forMapping mapping: NSEntityMapping, manager: NSMigrationManager) {
        manager.reset()
    }
}

final class CancellingPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        let left = manager.userInfo?["after"] as? Int ?? 0
        manager.userInfo = ["after": left - 1]
        if left == 0 { manager.cancelMigrationWithError(CocoaError(.migrationCancelled)) }
    }
}
