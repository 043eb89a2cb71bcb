import CoreData
import Expectations
import Foundation
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// Stores that are migrated by the mapping models of other people's apps.
@Suite("Migrating by mapping models of apps")
struct MappingFixtureTests {
    private func models(_ source: String, _ destination: String) throws -> MappingModelFile.Models {
        MappingModelFile.Models(
            source: try NSManagedObjectModel(reading: Fixtures.url("migration/\(source)")),
            destination: try NSManagedObjectModel(reading: Fixtures.url("migration/\(destination)"))
        )
    }

    private func mapping(_ path: String, _ models: MappingModelFile.Models) throws -> NSMappingModel {
        let model = NSMappingModel()
        let url = Fixtures.url("migration/\(path).xcmappingmodel")
        model.entityMappings = try MappingModelFile.mappings(at: url, models: models)
        return model
    }

    private func migrate(
        _ url: URL,
        to destination: URL,
        _ models: MappingModelFile.Models,
        _ mapping: NSMappingModel
    ) throws {
        try NSMigrationManager(sourceModel: models.source, destinationModel: models.destination)
            .migrateStore(from: url, type: .sqlite, mapping: mapping, to: destination, type: .sqlite)
        try expectEqual(StoreVerifier(storeURL: destination, model: models.destination).problems(), [])
    }

    @Test func `a store of Apple's framework goes through two mappings into one entity, with policies`() throws {
        let scratch = try ScratchFolder()
        let models = try models("loop-v1-v4/Model.contents.xml", "loop-v1-v4/Modelv4.contents.xml")
        let mapping = try mapping("loop-v1-v4/Modelv1v4", models)
        expectEqual(mapping.entityMappings.count, 6)
        NSEntityMigrationPolicy.register(CarbPolicy.self, as: "LoopKit.CachedCarbObjectv3EntityMigrationPolicy")
        NSEntityMigrationPolicy.register(DeletedCarbPolicy.self, as: "LoopKit.DeletedCarbObjectv3EntityMigrationPolicy")
        let url = scratch.file("old.sqlite")
        try FileManager.default.copyItem(at: Fixtures.url("migration/loop-v1-v4/Model_v1.sqlite"), to: url)
        let new = scratch.file("new.sqlite")

        try migrate(url, to: new, models, mapping)

        try LibraryMove.change(new, models.destination) { context in
            try expectEqual(context.all("CachedCarbObject").count, 1)
            try expectEqual(context.all("PumpEvent").count, 4)
            try expectEqual(context.all("Reservoir").count, 1)
            try expectEqual(context.all("CachedInsulinDeliveryObject").count, 1)
            let carb = try require(try context.all("CachedCarbObject").first)
            expectEqual(carb.value(forKey: "provenanceIdentifier") as? String, "test")
            expect(carb.value(forKey: "startDate") != nil)
        }
    }

    @Test func `notes go through three versions, one step each, by mapping models and policies`() throws {
        let scratch = try ScratchFolder()
        NSEntityMigrationPolicy.register(NotePolicy.self, as: "CoreDataMigration.NoteToNotePolicy")
        NSEntityMigrationPolicy.register(ImagePolicy.self, as: "CoreDataMigration.ImageToImagePolicy")
        let versions = (0...3).map {
            "notes-images/CoreDataMigration.xcdatamodeld/CoreDataMigration-v1.\($0).xcdatamodel"
        }
        let steps = try zip(versions, versions.dropFirst()).map { try models($0, $1) }
        try LibraryMove.change(scratch.file("0.sqlite"), steps[0].source) { context in
            context.insert("Note", ["title": "a", "body": "b"])
        }
        for (number, step) in steps.enumerated() {
            let name = "notes-images/v1.\(number)-to-v1.\(number + 1)"
            let mapping = try mapping(name, step)
            let (from, to) = (scratch.file("\(number).sqlite"), scratch.file("\(number + 1).sqlite"))
            if number == 1 {
                // The second version stores pictures.
                try LibraryMove.change(from, step.source) { context in
                    try context.all("Note").first?.setValue(Data([1, 2]), forKey: "imageData")
                }
            }
            try migrate(from, to: to, step, mapping)
        }
        try LibraryMove.change(scratch.file("3.sqlite"), steps[2].destination) { context in
            let note = try require(try context.all("Note").first)
            expectEqual(note.value(forKey: "title") as? String, "a")
            let images = note.value(forKey: "images") as? Set<NSManagedObject> ?? []
            expectEqual(images.map { $0.value(forKey: "imageData") as? Data }, [Data([1, 2])])
        }
    }

    @Test(arguments: 0...2)
    func `notes go from any version to the last one when their store is added`(_ first: Int) throws {
        let scratch = try ScratchFolder()
        NSEntityMigrationPolicy.register(NotePolicy.self, as: "CoreDataMigration.NoteToNotePolicy")
        NSEntityMigrationPolicy.register(ImagePolicy.self, as: "CoreDataMigration.ImageToImagePolicy")
        let versions = Fixtures.url("migration/notes-images/CoreDataMigration.xcdatamodeld")
        func model(_ number: Int) throws -> NSManagedObjectModel {
            try NSManagedObjectModel(
                reading: versions.appendingPathComponent("CoreDataMigration-v1.\(number).xcdatamodel")
            )
        }
        let url = scratch.file("notes.sqlite")
        try LibraryMove.change(url, try model(first)) { context in
            let note = context.insert("Note", ["title": "a", "body": "b"])
            if first == 1 { note.setValue(Data([1, 2]), forKey: "imageData") }
            if first == 2 { note.setValue(context.insert("Image", ["imageData": Data([1, 2])]), forKey: "image") }
        }
        let last = try model(3)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: last)
        let options = AgingStore.migrating.merging([NSPersistentStoreAllowsProgressiveMigrationOption: versions]) { $1 }
        try coordinator.addPersistentStore(type: .sqlite, at: url, options: options)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let note = try require(try context.all("Note").first)
            expectEqual(note.value(forKey: "title") as? String, "a")
            let images = note.value(forKey: "images") as? Set<NSManagedObject> ?? []
            expectEqual(images.map { $0.value(forKey: "imageData") as? Data }, [first == 0 ? nil : Data([1, 2])])
        }
        for store in coordinator.persistentStores { try coordinator.remove(store) }
        try expectEqual(StoreVerifier(storeURL: url, model: last).problems(), [])
    }

    @Test func `an inferable change gives the same rows by a mapping model, by inference and by objects`() throws {
        let scratch = try ScratchFolder()
        let models = try models("entities-ab/Model_1.contents.xml", "entities-ab/Model_2.contents.xml")
        let url = scratch.file("old.sqlite")
        try LibraryMove.change(url, models.source) { context in
            for number in 0..<20 {
                let a = context.insert("EntityA", ["group": number % 3, "name": "a\(number)"])
                let b = context.insert("EntityB", ["group": number % 2, "name": "b\(number)"])
                if number % 4 != 0 { a.setValue(b, forKey: "relationship") }
            }
        }
        func rows(_ url: URL) throws -> [String] {
            try LibraryMove.change(url, models.destination) { context in
                try ["EntityA", "EntityB"].flatMap { entity in
                    try context.all(entity).map { object in
                        let other = object.value(forKey: "relationship") as? NSManagedObject
                        return
                            "\(entity) \(object.key) \(object.value(forKey: "name") ?? "-") \(object.value(forKey: "group") ?? "-") \(other?.key ?? 0)"
                    }
                }
            }
        }
        // The same change between other files, for which the app infers the mapping.
        let small = try self.models("entities-ab/ModelS_1.contents.xml", "entities-ab/ModelS_2.contents.xml")
        let inferred = try NSMappingModel.inferredMappingModel(
            forSourceModel: small.source,
            destinationModel: small.destination
        )
        let manager = NSMigrationManager(sourceModel: small.source, destinationModel: small.destination)
        manager.usesStoreSpecificMigrationManager = false
        try migrate(url, to: scratch.file("a.sqlite"), models, try mapping("entities-ab/Model1-2", models))
        try migrate(url, to: scratch.file("b.sqlite"), small, inferred)
        try manager.migrateStore(
            from: url,
            type: .sqlite,
            mapping: inferred,
            to: scratch.file("c.sqlite"),
            type: .sqlite
        )

        let expected = try rows(scratch.file("a.sqlite"))
        expectEqual(expected.count, 40)
        try expectEqual(rows(scratch.file("b.sqlite")), expected)
        try expectEqual(rows(scratch.file("c.sqlite")), expected)
    }

    @Test func `stored value expressions carry numbers there and back`() throws {
        let scratch = try ScratchFolder()
        NSEntityMigrationPolicy.register(
            NSEntityMigrationPolicy.self,
            as: "Advanced_EvolutionDemo_V2_FromV1MigrationPolicy"
        )
        let there = try models("creatures/V1.contents.xml", "creatures/V2.contents.xml")
        let back = MappingModelFile.Models(source: there.destination, destination: there.source)
        try LibraryMove.change(scratch.file("1.sqlite"), there.source) { context in
            context.insert("Creature", ["dnaCode": 7, "numberOfFlagella": 9])
        }

        try migrate(
            scratch.file("1.sqlite"),
            to: scratch.file("2.sqlite"),
            there,
            try mapping("creatures/V2.FromV1", there)
        )
        try LibraryMove.change(scratch.file("2.sqlite"), there.destination) { context in
            let creature = try require(try context.all("Creature").first)
            expectEqual((creature.value(forKey: "numberOfFlippers") as? NSNumber)?.intValue, 9)
            expectEqual((creature.value(forKey: "hasHead") as? NSNumber)?.boolValue, true)
        }
        try migrate(
            scratch.file("2.sqlite"),
            to: scratch.file("3.sqlite"),
            back,
            try mapping("creatures/V1.FromV2", back)
        )
        try LibraryMove.change(scratch.file("3.sqlite"), back.destination) { context in
            let creature = try require(try context.all("Creature").first)
            expectEqual((creature.value(forKey: "numberOfFlagella") as? NSNumber)?.intValue, 9)
            expectEqual((creature.value(forKey: "dnaCode") as? NSNumber)?.intValue, 7)
        }
    }
}

/// Like the app's policy: fills a value that has become required.
final class CarbPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: sInstance, in: mapping, manager: manager)
        let made = manager.destinationInstances(
            forEntityMappingName: mapping.effectiveName,
            sourceInstances: [sInstance]
        )
        for object in made { object.setValue("test", forKey: "provenanceIdentifier") }
    }
}

/// Like the app's policy: makes the object in code, and associates it.
final class DeletedCarbPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        let made = manager.destinationContext.insert("CachedCarbObject", ["provenanceIdentifier": "deleted"])
        made.setValue(sInstance.value(forKey: "startDate"), forKey: "startDate")
        manager.associate(sourceInstance: sInstance, withDestinationInstance: made, for: mapping)
    }
}

/// Like the app's policy: makes notes, and an object for each picture in them.
final class NotePolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        let context = manager.destinationContext
        let note = context.insert(
            "Note",
            ["title": sInstance.value(forKey: "title"), "body": sInstance.value(forKey: "body")]
        )
        if mapping.userInfo?["sourceVersion"] as? String == "v1.1" {
            let image = context.insert("Image", ["imageData": sInstance.value(forKey: "imageData")])
            image.setValue(note, forKey: "noteUsedIn")
        }
        manager.associate(sourceInstance: sInstance, withDestinationInstance: note, for: mapping)
    }
}

final class ImagePolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource sInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        let image = manager.destinationContext.insert("Image", ["imageData": sInstance.value(forKey: "imageData")])
        manager.associate(sourceInstance: sInstance, withDestinationInstance: image, for: mapping)
    }

    override func createRelationships(
        forDestination dInstance: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        let sources = manager.sourceInstances(
            forEntityMappingName: mapping.effectiveName,
            destinationInstances: [dInstance]
        )
        guard let note = sources.first?.value(forKey: "noteUsedIn") as? NSManagedObject else { return }
        let notes = manager.destinationInstances(forEntityMappingName: "NoteToNote", sourceInstances: [note])
        dInstance.setValue(notes.first, forKey: "noteUsedIn")
    }
}
