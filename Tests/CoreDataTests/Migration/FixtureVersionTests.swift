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
@testable import StrataSQLite

/// Models, mapping models and stores of other people's apps, with the behaviour that their list describes.
@Suite("Versions of other people's models")
struct FixtureVersionTests {
    private func file(_ path: String) -> URL { Fixtures.url("migration/\(path)") }

    private func plain(_ path: String) throws -> NSManagedObjectModel {
        let model = try NSManagedObjectModel(reading: file(path))
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        return model
    }

    // MARK: - A chain of renamings

    /// A version whose attribute's identifier is the first of all its names, as it should be.
    private func corrected(_ version: String, _ scratch: ScratchFolder) throws -> NSManagedObjectModel {
        let text = try String(contentsOf: file("renaming-chain/v\(version).contents.xml"), encoding: .utf8)
        let place = scratch.file("\(version)-\(UUID().uuidString).xml")
        let identifier = "elementID=\"v1_0_0_name\""
        try Data(text.replacing(#/elementID="[^"]*"/#, with: identifier).utf8).write(to: place)
        return try NSManagedObjectModel(reading: place)
    }

    @Test func `m025 with the first name as identifier each version keeps the value of each one before`() throws {
        let versions = AppleMigrationTests.chain
        for (index, old) in versions.enumerated() {
            for new in versions[(index + 1)...] {
                let store = try AgingStore()
                try FileManager.default.copyItem(at: file("renaming-chain/Example_v\(old).sqlite"), to: store.url)
                let (source, model) = try (corrected(old, store.scratch), corrected(new, store.scratch))

                try StoreMigration.run(at: store.url, from: source, to: model, by: nil, mayDropValues: true)

                let column = "ZV\(new.replacing(".", with: "_"))_NAME"
                try expect(
                    store.strings("SELECT \(column) FROM ZBASICENTITY") == ["A Known Value"],
                    "\(old) to \(new)"
                )
            }
        }
    }

    @Test func `m026 two renamings at once cannot be seen where each names only the one before`() throws {
        let store = try AgingStore()
        try FileManager.default.copyItem(at: file("renaming-chain/Example_v1.0.0.sqlite"), to: store.url)
        let (old, new) = try (plain("renaming-chain/v1.0.0.contents.xml"), plain("renaming-chain/v1.1.2.contents.xml"))
        let plan = NSMigrationPlan(from: old, to: new)
        expect(plan.remarks.contains { $0.contains("v1_0_0_name") && $0.contains("removed") }, "\(plan.remarks)")

        try store.use(plain("renaming-chain/v1.1.2.contents.xml")) { context in
            let objects = try context.all("BasicEntity")
            expectEqual(objects.map { $0.value(forKey: "v1_1_2_name") as? String }, [nil])
        }
    }

    // MARK: - Compiled models

    @Test(arguments: ["UAAutomation", "UAEvents", "UAInbox"])
    func `m168 m169 m187 m188 m189 m190 m191 compiled versions have the hashes that their list says`(_ name: String)
        throws
    {
        let scratch = try ScratchFolder()
        let folder = scratch.file("\(name).momd")
        try FileManager.default.copyItem(at: file("airship-compiled/\(name).momd"), to: folder)
        let place = folder.appendingPathComponent("VersionInfo.plist")
        var list = try require(
            try PropertyListSerialization.propertyList(from: Data(contentsOf: place), format: nil) as? [String: Any]
        )
        let hashes = try require(list["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]])
        for (version, wanted) in hashes {
            let model = try NSManagedObjectModel(reading: folder.appendingPathComponent("\(version).mom"))
            expectEqual(model.entityVersionHashesByName, wanted, "\(version)")
            for entity in model.entities {
                expectEqual(entity.renamingIdentifier ?? entity.name, entity.name)
                expect(entity.attributesByName.values.allSatisfy { $0.type != .undefined })
                expect(entity.relationshipsByName.values.allSatisfy { $0.destinationEntity != nil })
            }
        }
        // A model with only one version has no mark for the current one.
        let current = list["NSManagedObjectModel_CurrentVersionName"] as? String
        expectEqual((current == nil), (hashes.count == 1))
        let wanted = try require(hashes[current ?? name])
        try expectEqual(NSManagedObjectModel(reading: folder).entityVersionHashesByName, wanted)
        // If the list's hashes differ from the model, then the model counts.
        list["NSManagedObjectModel_VersionHashes"] = hashes.mapValues {
            $0.mapValues { _ in Data(repeating: 1, count: 32) }
        }
        try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0).write(to: place)
        try expectEqual(NSManagedObjectModel(reading: folder).entityVersionHashesByName, wanted)
    }

    @Test func `m192 beside an optimized version the plain one is read`() throws {
        let version = file("airship-compiled/UAAutomation.momd/UAAutomation 2")
        let plain = try NSManagedObjectModel(reading: version.appendingPathExtension("mom"))
        try expect(Data(contentsOf: version.appendingPathExtension("omo")).starts(with: Data("momv2$[]".utf8)))
        let read = try NSManagedObjectModel(reading: version.appendingPathExtension("omo"))
        expectEqual(read.entityVersionHashesByName, plain.entityVersionHashesByName)
    }

    // MARK: - Mapping models

    @Test(.enabled(if: Fixtures.has("migration/mage-15-16"), "the models are not here"))
    func `m042 a mapping model makes a number of a truth value, among fourteen entities`() throws {
        let (old, new) = ("mage-15-16/mage-ios-sdk_15.contents.xml", "mage-15-16/mage-ios-sdk_16.contents.xml")
        let models = try MappingModelFile.Models(source: plain(old), destination: plain(new))
        expectThrows(CocoaError.self) {
            try NSMappingModel.inferredMappingModel(forSourceModel: models.source, destinationModel: models.destination)
        }
        let mapping = NSMappingModel()
        mapping.entityMappings = try MappingModelFile.mappings(
            at: file("mage-15-16/Model15To16.xcmappingmodel"),
            models: models
        )
        let store = try AgingStore()
        let place = store.scratch.file("new.sqlite")
        let names = try store.use(models.source) { context in
            let entities = models.source.entities.filter { $0.attributesByName["loaded"]?.type == .boolean }
            for entity in entities where !entity.isAbstract {
                for value in [true, false] { context.insert(entity.name ?? "", ["loaded": value]) }
                context.insert(entity.name ?? "")
            }
            try context.save()
            return entities.filter { !$0.isAbstract }.compactMap(\.name)
        }
        expect(!names.isEmpty)

        try NSMigrationManager(sourceModel: models.source, destinationModel: models.destination)
            .migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: place, type: .sqlite)

        try LibraryMove.change(place, models.destination) { context in
            for name in names {
                let request = NSFetchRequest<NSManagedObject>(entityName: name)
                request.includesSubentities = false
                let values: [Float?] = try context.fetch(request).sorted { $0.key < $1.key }.map {
                    ($0.value(forKey: "loaded") as? NSNumber)?.floatValue
                }
                expectEqual(values, [1, 0, nil], "\(name)")
            }
        }
        try expectEqual(StoreVerifier(storeURL: place, model: models.destination).problems(), [])
    }

    @Test func `m097 m098 what was deleted becomes an object of another entity, as the app's policies say`() throws {
        let models = try MappingModelFile.Models(
            source: plain("loop-v1-v4/Model.contents.xml"),
            destination: plain("loop-v1-v4/Modelv4.contents.xml")
        )
        let mapping = NSMappingModel()
        mapping.entityMappings = try MappingModelFile.mappings(
            at: file("loop-v1-v4/Modelv1v4.xcmappingmodel"),
            models: models
        )
        for entry in mapping.entityMappings where entry.destinationEntityName == "CachedCarbObject" {
            entry.entityMigrationPolicyClassName =
                entry.sourceEntityName == "DeletedCarbObject" ? "FixtureDeletedPolicy" : "FixtureCarbPolicy"
        }
        NSEntityMigrationPolicy.register(FixtureDeletedPolicy.self, as: "FixtureDeletedPolicy")
        NSEntityMigrationPolicy.register(FixtureCarbPolicy.self, as: "FixtureCarbPolicy")
        let store = try AgingStore()
        try FileManager.default.copyItem(at: file("loop-v1-v4/Model_v1.sqlite"), to: store.url)
        try store.use(models.source) { context in
            for (number, name) in ["d1", "d2"].enumerated() {
                context.insert(
                    "DeletedCarbObject",
                    [
                        "externalID": name, "startDate": Date(timeIntervalSinceReferenceDate: Double(number)),
                        "uploadState": 0,
                    ]
                )
            }
            for carb in try context.all("CachedCarbObject") {
                carb.setValue(true, forKey: "createdByCurrentApp")
                carb.setValue(3, forKey: "syncVersion")
            }
            try context.save()
        }
        let place = store.scratch.file("new.sqlite")

        try NSMigrationManager(sourceModel: models.source, destinationModel: models.destination)
            .migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: place, type: .sqlite)

        try LibraryMove.change(place, models.destination) { context in
            let carbs = try context.all("CachedCarbObject").map { carb in
                "\(carb.value(forKey: "provenanceIdentifier") ?? "-") \(carb.value(forKey: "operation") ?? "-") \(carb.value(forKey: "startDate") != nil)"
            }
            expectEqual(carbs.sorted(), ["app 1 true", "deleted 2 true", "deleted 2 true"])
            try expectEqual(context.all("PumpEvent").count, 4)
        }
        try expectEqual(StoreVerifier(storeURL: place, model: models.destination).problems(), [])
    }

    /// A store of the second version of the notes, with a note that has a picture.
    private func notes() throws -> AgingStore {
        let store = try AgingStore()
        let path = "notes-images/CoreDataMigration.xcdatamodeld/CoreDataMigration-v1.1.xcdatamodel"
        try store.use(plain(path)) { context in
            context.insert("Note", ["title": "t", "body": "b", "imageData": Data([1, 2, 3])])
            try context.save()
        }
        NSEntityMigrationPolicy.register(NotePolicy.self, as: "CoreDataMigration.NoteToNotePolicy")
        NSEntityMigrationPolicy.register(ImagePolicy.self, as: "CoreDataMigration.ImageToImagePolicy")
        return store
    }

    private let newest = "notes-images/CoreDataMigration.xcdatamodeld/CoreDataMigration-v1.3.xcdatamodel"

    private func images(_ store: AgingStore, _ options: [AnyHashable: Any]) throws -> [Data?] {
        try store.use(plain(newest), options) { context in
            let note = try require(try context.all("Note").first)
            let images = note.value(forKey: "images") as? Set<NSManagedObject> ?? []
            return images.map { $0.value(forKey: "imageData") as? Data }
        }
    }

    @Test func `m005 m018 notes go over the version in between, by the mapping models beside the versions`() throws {
        let versions = file("notes-images/CoreDataMigration.xcdatamodeld")
        let store = try notes()
        let options: [AnyHashable: Any] = [
            NSInferMappingModelAutomaticallyOption: false, NSPersistentStoreAllowsProgressiveMigrationOption: versions,
        ]
        try expectEqual(images(store, options), [Data([1, 2, 3])])
        try expectEqual(StoreVerifier(storeURL: store.url, model: plain(newest)).problems(), [])
        // A mapping that is inferred in one step has no place for the picture.
        try expectEqual(images(try notes(), [:]), [])
    }

    @Test func `m005 m133 a step of a stage is taken by a mapping model where one fits`() throws {
        let versions = file("notes-images/CoreDataMigration.xcdatamodeld")
        let references = try (1...3).map { number in
            let model = try plain(
                "notes-images/CoreDataMigration.xcdatamodeld/CoreDataMigration-v1.\(number).xcdatamodel"
            )
            return NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
        }
        let options: [AnyHashable: Any] = [
            NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager([
                NSLightweightMigrationStage(references: references)
            ]), NSPersistentStoreAllowsProgressiveMigrationOption: versions,
        ]
        try expectEqual(images(try notes(), options), [Data([1, 2, 3])])
    }
}

/// Like the app's policy: an object that was changed after it was first stored counts as an update.
final class FixtureCarbPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource source: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
        let made = manager.destinationInstances(forEntityMappingName: mapping.effectiveName, sourceInstances: [source])
        guard let carb = made.first, source.value(forKey: "createdByCurrentApp") as? Bool == true else { return }
        carb.setValue("app", forKey: "provenanceIdentifier")
        if (source.value(forKey: "syncVersion") as? NSNumber)?.intValue ?? 0 > 1 {
            carb.setValue(1, forKey: "operation")
        }
    }
}

/// Like the app's policy: a deletion becomes an object that records it.
final class FixtureDeletedPolicy: NSEntityMigrationPolicy {
    override func createDestinationInstances(
        forSource source: NSManagedObject,
        in mapping: NSEntityMapping,
        manager: NSMigrationManager
    ) throws {
        let made = manager.destinationContext.insert(
            "CachedCarbObject",
            ["provenanceIdentifier": "deleted", "operation": 2, "createdByCurrentApp": true]
        )
        for key in ["startDate", "uuid", "syncIdentifier", "syncVersion"]
        where source.entity.attributesByName[key] != nil {
            made.setValue(source.value(forKey: key), forKey: key)
        }
        manager.associate(sourceInstance: source, withDestinationInstance: made, for: mapping)
    }
}
