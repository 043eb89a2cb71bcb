import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import StrataInspector
@testable import StrataSQLite

@Suite("strata migrate and check-migration")
struct InspectorMigrationTests {
    private let scratch: ScratchFolder
    private let versions: [String]
    private let store: String

    init() throws {
        scratch = try ScratchFolder()
        let lines = [
            "<attribute name=\"name\" attributeType=\"String\" optional=\"YES\"/>",
            "<attribute name=\"title\" elementID=\"name\" attributeType=\"String\" optional=\"YES\"/><attribute name=\"size\" attributeType=\"Integer 32\" defaultValueString=\"4\"/>",
            "<attribute name=\"name\" attributeType=\"Integer 32\" optional=\"YES\"/>",
            "<attribute name=\"name\" attributeType=\"String\"/>",
        ]
        var paths: [String] = []
        for (number, properties) in lines.enumerated() {
            let file = scratch.file("v\(number + 1).xml")
            let text =
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><model><entity name=\"Item\">\(properties)</entity></model>"
            try Data(text.utf8).write(to: file)
            paths.append(file.path)
        }
        versions = paths
        let url = scratch.file("items.sqlite")
        store = url.path
        let coordinator = NSPersistentStoreCoordinator(
            managedObjectModel: try NSManagedObjectModel(reading: URL(fileURLWithPath: paths[0]))
        )
        let added = try coordinator.addPersistentStore(type: .sqlite, at: url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "Item", into: context).setValue("a", forKey: "name")
            _ = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
            try context.save()
        }
        try coordinator.remove(added)
    }

    private func run(_ arguments: String...) -> (code: ExitCode, lines: [String], complaints: [String]) {
        run(arguments)
    }

    private func run(_ arguments: [String]) -> (code: ExitCode, lines: [String], complaints: [String]) {
        var lines: [String] = []
        var complaints: [String] = []
        let code = StrataCommand.run(arguments, print: { lines.append($0) }, complain: { complaints.append($0) })
        return (code, lines, complaints)
    }

    @Test func `check-migration says which versions can be reached`() {
        expectEqual(run("check-migration", versions[0], versions[1]).code, .success)

        let result = run("check-migration", versions[0], versions[1], versions[2])

        expectEqual(result.code, .problemsFound)
        expect(result.lines.contains { $0.contains("v1.xml") && $0.contains("cannot be inferred") })
        expect(result.lines.contains { $0.contains("Item.name") })
        expectEqual(run("check-migration", versions[0]).code, .usage)
        // The steps of a file are not known, so nothing can be said of them.
        let file = run("check-migration", "--server", store, versions[1])
        expectEqual(file.code, .usage)
        expect(file.complaints.contains { $0.contains("the URL of a PostgreSQL store") })
    }

    @Test func `migrate says what changes, makes a backup and migrates`() throws {
        let backup = scratch.file("backup.sqlite").path

        let result = run("migrate", "--store", store, "--to", versions[1], "--backup", backup)

        expectEqual(result.code, .success, "\(result.complaints)")
        expect(result.lines.joined().contains("renamed title (was name)"))
        expect(result.lines.joined().contains("added size"))
        let fetched = run("fetch", "--store", store, "--model", versions[1], "--entity", "Item")
        expect(fetched.lines.joined().contains("a"))
        expectEqual(run("verify", "--store", store, "--model", versions[1]).code, .success)
        expectEqual(run("verify", "--store", backup, "--model", versions[0]).code, .success)
        expectEqual(run("migrate", "--store", store, "--to", versions[1]).lines, ["\(store) has that version already."])
        expectEqual(run("migrate", "--store", store, "--to", versions[0], "--backup", backup).code, .usage)
    }

    @Test func `migrate drops values only if it is allowed to, and names them`() throws {
        let less = scratch.file("less.xml")
        let size = "<attribute name=\"size\" attributeType=\"Integer 32\" optional=\"YES\"/>"
        try Data(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><model><entity name=\"Item\">\(size)</entity></model>".utf8
        ).write(to: less)

        let refused = run("migrate", "--store", store, "--to", less.path)

        expectEqual(refused.code, .failure)
        expect(refused.lines.joined().contains("would be lost: Item.name: the attribute goes"))
        expect(refused.complaints.joined().contains("--allow-loss"))
        let fetched = run("fetch", "--store", store, "--model", versions[0], "--entity", "Item")
        expect(fetched.lines.joined().contains("a"))
        expectEqual(run("migrate", "--store", store, "--to", less.path, "--allow-loss").code, .success)
        expectEqual(run("verify", "--store", store, "--model", less.path).code, .success)
    }

    @Test func `a dry run shows which rows stand in the way, and changes nothing`() throws {
        let before = try Data(contentsOf: URL(fileURLWithPath: store))

        expectEqual(run("migrate", "--store", store, "--to", versions[1], "--dry-run").code, .success)
        let result = run("migrate", "--store", store, "--to", versions[3], "--dry-run")

        expectEqual(result.code, .failure)
        expect(result.complaints.joined().contains("name"))
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: store)), before)
        expectEqual(run("verify", "--store", store, "--model", versions[0]).code, .success)
    }

    @Test func `a dry run counts objects, and says which do not fit`() throws {
        let result = run("migrate", "--store", store, "--to", versions[3], "--dry-run")

        let lines = result.lines.flatMap { $0.split(separator: "\n") }
        expect(lines.contains("converted entity Item (2 objects, in place)"))
        expect(lines.contains { $0.hasPrefix("does not fit: Item.name") && $0.contains("1 objects have none") })
    }

    @Test(arguments: [[], ["--dry-run"]])
    func `migrate goes by a mapping file between the models that it was given`(_ further: [String]) throws {
        // The paths in the mapping file lead to models that are not here.
        let models = ["V1", "V2"].map { Fixtures.url("migration/creatures/\($0).contents.xml").path }
        let mapping = Fixtures.url("migration/creatures/V2.FromV1.xcmappingmodel")
        let file = scratch.file("mapping.xcmappingmodel")
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        // The policy is a class of the program that the mapping is from.
        let text = try String(contentsOf: mapping.appendingPathComponent("xcmapping.xml"), encoding: .utf8)
            .replacingOccurrences(
                of: "Advanced_EvolutionDemo_V2_FromV1MigrationPolicy",
                with: "NSEntityMigrationPolicy"
            )
        try Data(text.utf8).write(to: file.appendingPathComponent("xcmapping.xml"))
        let creatures = scratch.file("creatures.sqlite")
        let model = try NSManagedObjectModel(reading: URL(fileURLWithPath: models[0]))
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let added = try coordinator.addPersistentStore(type: .sqlite, at: creatures)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let creature = NSEntityDescription.insertNewObject(forEntityName: "Creature", into: context)
            creature.setValue(7, forKey: "numberOfFlagella")
            try context.save()
        }
        try coordinator.remove(added)

        let words = ["--store", creatures.path, "--from", models[0], "--to", models[1], "--mapping", file.path]
        let result = run(["migrate"] + words + further)

        expectEqual(result.code, .success, "\(result.complaints)")
        expectEqual(result.lines.first, "Creature → Creature, by CreatureToCreature")
        expect(!result.lines.joined().contains("lost"), "\(result.lines)")
        let now = further.isEmpty ? models[1] : models[0]
        let fetched = run("fetch", "--store", creatures.path, "--model", now, "--entity", "Creature", "--json").lines
        // An inferred mapping would drop the number.
        let key = further.isEmpty ? "numberOfFlippers" : "numberOfFlagella"
        let object = try require(
            try JSONSerialization.jsonObject(with: Data(try require(fetched.first).utf8)) as? [String: Any]
        )
        expectEqual(object[key] as? Int, 7, "\(fetched)")
        expectEqual(run("verify", "--store", creatures.path, "--model", now).code, .success)
    }

    @Test func `a mapping file between other models is refused, and changes nothing`() throws {
        let before = try Data(contentsOf: URL(fileURLWithPath: store))
        let mapping = Fixtures.url("migration/creatures/V2.FromV1.xcmappingmodel").path

        let result = run("migrate", "--store", store, "--to", versions[1], "--mapping", mapping)

        expectEqual(result.code, .failure)
        expect(!result.complaints.isEmpty)
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: store)), before)
    }

    @Test func `migrate asks for --from where the store keeps no copy of its model`() throws {
        let coordinator = NSPersistentStoreCoordinator(
            managedObjectModel: try NSManagedObjectModel(reading: URL(fileURLWithPath: versions[0]))
        )
        let model = try NSManagedObjectModel(reading: URL(fileURLWithPath: versions[0]))
        let bare = scratch.file("bare.sqlite")
        try coordinator.replacePersistentStore(
            at: bare,
            withPersistentStoreFrom: URL(fileURLWithPath: store),
            type: .sqlite
        )
        try forgetModel(bare)
        expectEqual(model.entities.count, 1)

        let refused = run("migrate", "--store", bare.path, "--to", versions[1])

        expectEqual(refused.code, .failure)
        expect(refused.complaints.joined().contains("Name one with --from."))
        expectEqual(run("migrate", "--store", bare.path, "--to", versions[1], "--from", versions[0]).code, .success)
    }

    private func forgetModel(_ url: URL) throws {
        let connection = try Connection(path: url.path, access: .readWrite)
        try connection.execute("DELETE FROM Z_MODELCACHE")
        connection.close()
    }

    @Test func `backup copies a store, and replaces nothing`() throws {
        let copy = scratch.file("copy.sqlite").path

        expectEqual(run("backup", "--store", store, "--to", copy).lines, ["\(copy) is a copy of \(store)."])

        expectEqual(run("verify", "--store", copy, "--model", versions[0]).code, .success)
        expectEqual(run("fetch", "--store", copy, "--entity", "Item").lines.count, 3)
        expectEqual(run("backup", "--store", store, "--to", copy).code, .failure)
        expectEqual(run("backup", "--store", store).code, .usage)
    }
}
