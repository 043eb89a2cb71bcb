import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import StrataPostgreSQL
import TestSupport
import Testing

@Suite("strata migrate on PostgreSQL", .enabled(if: Server.isThere))
struct ToolMigrationTests {
    private let scratch: ScratchFolder
    private let place: ToolPlace
    private let versions: [String]

    init() throws {
        scratch = try ScratchFolder()
        place = try ToolPlace()
        let name = "<attribute name=\"name\" attributeType=\"String\" optional=\"YES\"/>"
        let entities = [
            "<entity name=\"Item\">\(name)</entity>",
            // A name, an attribute with a default value, and an entity are new.
            """
            <entity name="Item"><attribute name="title" elementID="name" attributeType="String" optional="YES"/>\
            <attribute name="size" attributeType="Integer 32" defaultValueString="4"/></entity><entity name="Box"/>
            """,
            "<entity name=\"Item\"><attribute name=\"name\" attributeType=\"String\"/></entity>",
            "<entity name=\"Item\"><attribute name=\"size\" attributeType=\"Integer 32\" optional=\"YES\"/></entity>",
            """
            <entity name="Item">\(name)<uniquenessConstraints><uniquenessConstraint><constraint value="name"/>\
            </uniquenessConstraint></uniquenessConstraints></entity>
            """,
        ]
        var paths: [String] = []
        for (number, text) in entities.enumerated() {
            let file = scratch.file("v\(number + 1).xml")
            try Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?><model>\(text)</model>".utf8).write(to: file)
            paths.append(file.path)
        }
        versions = paths
        let coordinator = try place.open(
            NSManagedObjectModel(reading: URL(fileURLWithPath: versions[0])),
            [NSPersistentHistoryTrackingKey: true]
        )
        try coordinator.perform { context in
            for values in [["name": "a"], ["name": "a"], [:]] { _ = context.insert("Item", values) }
            try context.save()
        }
        try coordinator.close()
    }

    private func migrate(to version: Int, _ words: String...) -> Tool.Answer {
        Tool.run(["migrate", "--store", place.url, "--to", versions[version - 1]] + words)
    }

    private func state(_ version: Int) throws -> StoreState {
        let coordinator = try place.open(
            NSManagedObjectModel(reading: URL(fileURLWithPath: versions[version - 1])),
            [NSPersistentHistoryTrackingKey: true]
        )
        defer { try? coordinator.close() }
        return try coordinator.state()
    }

    private func schemas() throws -> [String] {
        try TestDatabase.texts(
            "SELECT nspname::text FROM pg_catalog.pg_namespace WHERE nspname LIKE 'strata\\_trial\\_' || pg_catalog.current_schema()",
            in: place.file
        )
    }

    @Test func `migrate says what changes and who waits, makes a backup and migrates`() throws {
        let before = try state(1)
        let copy = scratch.file("copy").path

        let result = migrate(to: 2, "--backup", copy)

        expectEqual(result.code, .success, "\(result.complaints)")
        let lines = result.lines
        expect(
            lines.contains("converted entity Item (3 objects, in place)") && lines.contains("added entity Box"),
            "\(lines)"
        )
        expect(lines.contains("  renamed title (was name)") && lines.contains("  added size"), "\(lines)")
        expect(lines.contains { $0.hasPrefix("locks: all tables of the store, in one transaction") }, "\(lines)")
        expect(lines.contains { $0.hasSuffix(" % are done.") }, "\(lines)")
        expectEqual(lines.last?.hasSuffix(" is migrated."), true)
        let verified = Tool.run("verify", "--store", place.url)
        expectEqual(verified.code, .success, "\(verified)")
        let fetched = Tool.run("fetch", "--store", place.url, "--entity", "Item", "--json").lines
        expect(fetched.count == 3 && fetched.allSatisfy { $0.contains("\"size\": 4") }, "\(fetched)")
        expectEqual(migrate(to: 2).lines.last?.hasSuffix(" has that version already."), true)

        // The backup is the store as it was.
        let target = try ToolPlace()
        expectEqual(Tool.run("restore", "--store", target.url, "--from", copy).code, .success)
        let restored = try target.open(
            NSManagedObjectModel(reading: URL(fileURLWithPath: versions[0])),
            [NSPersistentHistoryTrackingKey: true]
        )
        try expectEqual(restored.state().differences(from: before), [])
        try restored.close()
        expectEqual(migrate(to: 1, "--backup", copy).code, .usage)
    }

    @Test func `migrate drops values only if it is allowed to, and names them`() throws {
        let before = try state(1)

        let refused = migrate(to: 4)

        expectEqual(refused.code, .failure)
        expect(refused.lines.contains { $0.hasPrefix("would be lost: Item.name: the attribute goes") }, "\(refused)")
        expect(refused.complaints.joined().contains("--allow-loss"), "\(refused)")
        try expectEqual(state(1).differences(from: before), [])
        let allowed = migrate(to: 4, "--allow-loss")
        expectEqual(allowed.code, .success, "\(allowed)")
        expect(allowed.lines.contains("converted entity Item (3 objects, copied)"), "\(allowed)")
        expectEqual(Tool.run("verify", "--store", place.url).code, .success)
        // A way back to an earlier version is refused as well.
        expectEqual(migrate(to: 1).code, .failure)
        expectEqual(migrate(to: 1, "--allow-loss").code, .success)
    }

    @Test func `a dry run migrates a copy, and leaves nothing`() throws {
        let before = try state(1)

        let possible = migrate(to: 2, "--dry-run")
        expectEqual(possible.code, .success, "\(possible.complaints)")
        expectEqual(possible.lines.last?.hasSuffix(" can be migrated; it was not changed."), true)
        let refused = migrate(to: 3, "--dry-run")
        expectEqual(refused.code, .failure)
        expect(refused.lines.contains { $0.hasPrefix("does not fit: Item.name: ") && $0.contains("1 objects") })
        let shared = migrate(to: 5, "--dry-run")
        expectEqual(shared.code, .failure)
        expect(
            shared.lines.contains("does not fit: Item.name: 2 objects share 1 values of name, which must be unique"),
            "\(shared.lines)"
        )
        expectEqual(migrate(to: 4, "--dry-run").code, .failure)

        try expectEqual(schemas(), [])
        try expectEqual(state(1).differences(from: before), [])
    }

    @Test func `a dry run removes the copy of one that was killed, and no other store`() throws {
        let schema = try require(
            try TestDatabase.texts("SELECT pg_catalog.current_schema()::text", in: place.file).first
        )
        let trial = place.url.replacing("schema=\(schema)", with: "schema=strata_trial_\(schema)")
        let copy = scratch.file("copy").path
        expectEqual(Tool.run("backup", "--store", place.url, "--to", copy).code, .success)
        expectEqual(Tool.run("restore", "--store", trial, "--from", copy).code, .success)
        expectEqual(migrate(to: 2, "--dry-run").code, .success)
        try expectEqual(schemas(), [])

        let other = NSPersistentStoreCoordinator(
            managedObjectModel: try NSManagedObjectModel(reading: URL(fileURLWithPath: versions[0]))
        )
        let url = try require(URL(string: trial))
        try other.addPersistentStore(type: .postgreSQL, at: url)
        try other.close()
        let refused = migrate(to: 2, "--dry-run")
        expectEqual(refused.code, .usage)
        expect(refused.complaints.joined().contains("there is another store"), "\(refused)")
        expectEqual(Tool.run("verify", "--store", trial).code, .success)
        try other.destroyPersistentStore(at: url, type: .postgreSQL)
    }

    @Test func `a migration that something prevents is refused before anything changes, and can be repeated`() throws {
        let before = try state(1)
        try TestDatabase.run("CREATE VIEW names AS SELECT name FROM item", in: place.file)
        let refused = migrate(to: 4, "--allow-loss")
        expectEqual(refused.code, .failure)
        expect(refused.complaints.joined().contains("names"), "\(refused)")
        try expectEqual(state(1).differences(from: before), [])
        try TestDatabase.run("DROP VIEW names", in: place.file)
        expectEqual(migrate(to: 4, "--allow-loss").code, .success)
    }

    @Test func `migrate goes by a mapping file on a server, too`() throws {
        let models = ["V1", "V2"].map { Fixtures.url("migration/creatures/\($0).contents.xml").path }
        let file = scratch.file("mapping.xcmappingmodel")
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        // The policy is a class of the program that the mapping is from.
        let mapping = Fixtures.url("migration/creatures/V2.FromV1.xcmappingmodel/xcmapping.xml")
        let text = try String(contentsOf: mapping, encoding: .utf8)
            .replacing("Advanced_EvolutionDemo_V2_FromV1MigrationPolicy", with: "NSEntityMigrationPolicy")
        try Data(text.utf8).write(to: file.appendingPathComponent("xcmapping.xml"))
        let creatures = try ToolPlace()
        let model = try NSManagedObjectModel(reading: URL(fileURLWithPath: models[0]))
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        let coordinator = try creatures.open(model)
        try coordinator.perform { context in
            _ = context.insert("Creature", ["numberOfFlagella": 7])
            try context.save()
        }
        try coordinator.close()
        let words = [
            "migrate", "--store", creatures.url, "--from", models[0], "--to", models[1], "--mapping", file.path,
        ]

        for further in [["--dry-run"], []] {
            let result = Tool.run(words + further)
            expectEqual(result.code, .success, "\(result.complaints)")
            expectEqual(result.lines.first, "Creature → Creature, by CreatureToCreature")
            expect(result.lines.contains { $0.hasPrefix("locks: saves of others wait") }, "\(result.lines)")
            let now = further.isEmpty ? models[1] : models[0]
            let fetched = Tool.run("fetch", "--store", creatures.url, "--model", now, "--entity", "Creature", "--json")
            // An inferred mapping would drop the number.
            let key = further.isEmpty ? "numberOfFlippers" : "numberOfFlagella"
            expect(fetched.lines.joined().contains("\"\(key)\": 7"), "\(fetched)")
        }
        expectEqual(Tool.run("verify", "--store", creatures.url, "--model", models[1]).code, .success)
    }
}
