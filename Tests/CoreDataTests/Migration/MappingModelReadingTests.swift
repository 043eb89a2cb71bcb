import CoreData
import Expectations
import Foundation
import StrataModelFiles
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

/// The statements M-20 to M-23 and M-182 to M-186 on mapping models and their files.
@Suite("Mapping models")
struct MappingModelTests {
    @Test func `m020 m022 recorded hashes decide, in any order of the mappings`() throws {
        let (source, destination) = (LibraryVersions.first(), LibraryVersions.second())
        let mapping = Self.recorded()
        expectEqual(mapping.mismatches(sourceModel: source, destinationModel: destination), [])
        mapping.entityMappings.reverse()
        expectEqual(mapping.mismatches(sourceModel: source, destinationModel: destination), [])

        let problems = mapping.mismatches(sourceModel: destination, destinationModel: source)
        expect(!problems.isEmpty)
    }

    private static func recorded() -> NSMappingModel {
        let mapping = LibraryVersions.mapping()
        let source = LibraryVersions.first().entityVersionHashesByName
        let destination = LibraryVersions.second().entityVersionHashesByName
        for entry in mapping.entityMappings {
            entry.sourceEntityVersionHash = source[entry.sourceEntityName ?? ""]
            entry.destinationEntityVersionHash = destination[entry.destinationEntityName ?? ""]
        }
        return mapping
    }

    @Test func `m021 an entity that differs and has no mapping keeps a mapping model from fitting`() throws {
        let first = ModelSketch.model("A: n String\nB: n String")
        let second = ModelSketch.model("A: n String, x Int32\nB: n String")
        let third = ModelSketch.model("A: n String, x Int32\nB: n String, y Int32")
        let mapping = NSMappingModel()
        mapping.entityMappings = [LibraryVersions.entity("A", "A")]

        expectEqual(mapping.mismatches(sourceModel: first, destinationModel: second), [])
        let problems = mapping.mismatches(sourceModel: second, destinationModel: third)
        expectEqual(problems.count, 1)
        expectEqual(problems.first?.contains("Entity B differs"), true)
    }

    @Test func `a source expression whose filter is no predicate is an error of the migration`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String")) { context in
            context.make("A", "a1")
            try context.save()
        }
        let (first, second) = (ModelSketch.model("A: n String"), ModelSketch.model("A: n String, x Int16"))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: first, destinationModel: second)
        mapping.entityMappings[0].sourceExpression = MappingExpressions.objects(of: "A", predicate: "n != e\"none\"")
        let place = store.scratch.file("new.sqlite")

        let error = expectThrows(CocoaError.self) {
            try NSMigrationManager(sourceModel: first, destinationModel: second)
                .migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: place, type: .sqlite)
        }

        expectEqual(error?.localizedDescription.contains("is no predicate"), true)
        expect(!FileManager.default.fileExists(atPath: place.path))
    }

    @Test func `m023 a stale hash is reported with both hashes`() throws {
        let mapping = Self.recorded()
        mapping.entityMappings[0].destinationEntityVersionHash = Data(repeating: 0x0F, count: 32)

        let problems = mapping.mismatches(
            sourceModel: LibraryVersions.first(),
            destinationModel: LibraryVersions.second()
        )

        expectEqual(problems.count, 1)
        let hash = try require(LibraryVersions.second().entityVersionHashesByName["Writer"])
        expectEqual(problems.first?.contains("0f0f0f0f"), true)
        expectEqual(problems.first?.contains(MappingModelMatch.digits(hash)), true)
    }

    @Test func `mappings are found by name, or by a default name if none was given`() {
        let model = LibraryVersions.mapping()
        model.entityMappings.append(LibraryVersions.entity(nil, "Note"))

        expect(
            model.entityMappingsByName.keys.sorted()
                == ["AuthorToWriter", "BookToBook", "NovelToNovel", "Note"].sorted()
        )
        model.entityMappings = nil
        expect(model.entityMappings.isEmpty)
        expectEqual(NSEntityMapping().mappingType, .undefinedEntityMappingType)
        expectEqual(NSEntityMappingType(rawValue: 5), .transformEntityMappingType)
        expectEqual(NSEntityMappingType(rawValue: 6), nil)
    }

    // MARK: - Inference

    @Test func `m028 m029 m030 an inferred model is named and written as Apple's`() throws {
        let source = ModelSketch.model(
            "A: n String, old String, bs ->> B/a\nB: n String, a -> A/bs\nGone: n String\nSame: n String"
        )
        let destination = ModelSketch.model(
            "C{A}: n String, new{old} String, more Int32=3, bs ->> B/a\nB: n String, x String, a -> C/bs\nNew: n String\nSame: n String"
        )

        let model = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)

        expect(
            model.entityMappingsByName.keys.sorted()
                == ["IEM_Add_New", "IEM_Copy_Same", "IEM_Remove_Gone", "IEM_Transform_A", "IEM_Transform_B"]
        )
        let entry = try require(model.entityMappingsByName["IEM_Transform_A"])
        expectEqual(entry.mappingType, .transformEntityMappingType)
        expectEqual(entry.destinationEntityName, "C")
        let values = Dictionary(uniqueKeysWithValues: (entry.attributeMappings ?? []).map { ($0.name ?? "", $0) })
        expectEqual(values["new"]?.valueExpression?.description, "FUNCTION($source, \"valueForKey:\", \"old\")")
        expectEqual(values["more"]?.valueExpression, nil)
        expect(
            entry.relationshipMappings?.first?.valueExpression?.function
                == "destinationInstancesForSourceRelationshipNamed:sourceInstances:"
        )
        expectEqual(model.mismatches(sourceModel: source, destinationModel: destination), [])
    }

    @Test func `m079 what cannot be inferred throws 134190`() throws {
        let source = ModelSketch.model("A: n String")
        let destination = ModelSketch.model("A: n Int32")

        let error = try #require(throws: CocoaError.self) {
            try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        }

        expectEqual(error.code, .inferredMappingModel)
    }

    @Test(arguments: [true, false])
    func `m109 m110 an inferred mapping migrates to another place, by SQL or by objects, with the same result`(
        _ usesSQL: Bool
    ) throws {
        let old =
            "A: n String, old String, size Int32, many =>> B/one, all ->> B/each\nB: n String, one -> A/many, each ->> A/all"
        let new =
            "C{A}: n String, new{old} String, size Int64, more Int32=3, many =>> B/one, all ->> B/each\nB: n String, one -> C/many, each ->> C/all"
        let store = try AgingStore()
        try store.use(ModelSketch.model(old)) { context in
            let a = context.make("A", "a", ["old": "x", "size": 3])
            let b = (0..<4).map { context.make("B", "b\($0)") }
            a.setValue(NSOrderedSet(array: [b[2], b[0], b[1]]), forKey: "many")
            a.setValue(Set(b), forKey: "all")
            try context.save()
        }
        let (source, destination) = (ModelSketch.model(old), ModelSketch.model(new))
        let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
        manager.usesStoreSpecificMigrationManager = usesSQL
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        let url = store.scratch.file("new.sqlite")
        let before = try store.contents()

        try manager.migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: url, type: .sqlite)

        let lines = try LibraryMove.change(url, ModelSketch.model(new)) { try $0.dump() }
        expect(
            lines == [
                "B b0 each={a} one=a", "B b1 each={a} one=a", "B b2 each={a} one=a", "B b3 each={a} one=-",
                "C a all={b0 b1 b2 b3} many=[b2 b0 b1] more=3 new=x size=3",
            ]
        )
        try expectEqual(store.contents(), before)
        try expectEqual(StoreVerifier(storeURL: url, model: ModelSketch.model(new)).problems(), [])
        try expectEqual(store.scratch.names.filter { !$0.hasPrefix("aging") }, ["new.sqlite"])
    }

    @Test(arguments: [true, false])
    func `what an inferred mapping cannot migrate from is named with its cause, and nothing is left`(_ usesSQL: Bool)
        throws
    {
        let (source, destination) = (ModelSketch.model("A: n String"), ModelSketch.model("A: n String, x String"))
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        let scratch = try ScratchFolder()
        let damaged = scratch.file("damaged.sqlite")
        try Data(repeating: 7, count: 5000).write(to: damaged)
        let other = scratch.file("other.sqlite")
        try LibraryMove.change(other, GuideModel.make()) { _ in }
        let newer = scratch.file("newer.sqlite")
        try LibraryMove.change(newer, destination) { _ in }
        let before = try Set(scratch.names)
        let url = scratch.file("new.sqlite")
        let causes: [(URL, CocoaError.Code)] = [
            // Either says that there is no such file.
            (scratch.file("missing.sqlite"), usesSQL ? .fileReadNoSuchFile : .fileNoSuchFile),
            (damaged, .fileReadCorruptFile),
            (other, .persistentStoreIncompatibleVersionHash), (newer, .persistentStoreIncompatibleVersionHash),
        ]
        for (place, cause) in causes {
            let manager = NSMigrationManager(sourceModel: source, destinationModel: destination)
            manager.usesStoreSpecificMigrationManager = usesSQL
            let error = expectThrows(CocoaError.self) {
                try manager.migrateStore(from: place, type: .sqlite, mapping: mapping, to: url, type: .sqlite)
            }
            expectEqual(error?.code, .migrationManagerSourceStore, "\(place.lastPathComponent)")
            expectEqual(error?.userInfo[NSURLErrorKey] as? URL, place)
            let found = error?.userInfo[NSUnderlyingErrorKey] as? CocoaError
            expectEqual(found?.code, cause, "\(place.lastPathComponent)")
            try expectEqual(Set(scratch.names), before, "\(place.lastPathComponent)")
        }
    }

    @Test func `m110 a mapping that was changed after it was inferred is carried out as it is`() throws {
        let store = try AgingStore()
        try store.use(ModelSketch.model("A: n String, x String")) { context in
            context.make("A", "a", ["x": "old"])
            try context.save()
        }
        let (source, destination) = (
            ModelSketch.model("A: n String, x String"), ModelSketch.model("A: n String, x String, y String")
        )
        let mapping = try NSMappingModel.inferredMappingModel(forSourceModel: source, destinationModel: destination)
        mapping.entityMappings[0].attributeMappings?.first { $0.name == "y" }?.valueExpression =
            NSExpression(format: "uppercase:($source.x)")
        let url = store.scratch.file("new.sqlite")

        try NSMigrationManager(sourceModel: source, destinationModel: destination)
            .migrateStore(from: store.url, type: .sqlite, mapping: mapping, to: url, type: .sqlite)

        try expectEqual(LibraryMove.change(url, destination) { try $0.dump() }, ["A a x=old y=OLD"])
    }
}

/// The fixtures' mapping models.
@Suite("Mapping model files")
struct MappingModelFileTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        let edited: String
        let compiled: String?
        let source: String
        let destination: String
        var testDescription: String { edited }
    }

    static let samples = [
        Sample(
            edited: "creatures/V2.FromV1",
            compiled: "creatures-V2.FromV1",
            source: "creatures/V1.contents.xml",
            destination: "creatures/V2.contents.xml"
        ),
        Sample(
            edited: "creatures/V1.FromV2",
            compiled: nil,
            source: "creatures/V2.contents.xml",
            destination: "creatures/V1.contents.xml"
        ),
        Sample(
            edited: "entities-ab/Model1-2",
            compiled: "entities-ab-Model1-2",
            source: "entities-ab/Model_1.contents.xml",
            destination: "entities-ab/Model_2.contents.xml"
        ),
        Sample(
            edited: "loop-v1-v4/Modelv1v4",
            compiled: "loop-Modelv1v4",
            source: "loop-v1-v4/Model.contents.xml",
            destination: "loop-v1-v4/Modelv4.contents.xml"
        ),
        Sample(
            edited: "mage-15-16/Model15To16",
            compiled: nil,
            source: "mage-15-16/mage-ios-sdk_15.contents.xml",
            destination: "mage-15-16/mage-ios-sdk_16.contents.xml"
        ),
    ].filter { Fixtures.has("migration/\($0.edited).xcmappingmodel") }

    private static func models(_ sample: Sample) throws -> MappingModelFile.Models {
        MappingModelFile.Models(
            source: try NSManagedObjectModel(reading: Fixtures.url("migration/\(sample.source)")),
            destination: try NSManagedObjectModel(reading: Fixtures.url("migration/\(sample.destination)"))
        )
    }

    private static func text(_ mappings: [NSEntityMapping]) -> [String] {
        mappings.flatMap { mapping -> [String] in
            let properties = [mapping.attributeMappings ?? [], mapping.relationshipMappings ?? []]
            return [
                "\(mapping)", mapping.entityMigrationPolicyClassName ?? "-",
                mapping.sourceExpression.map { "\($0)" } ?? "-",
                (mapping.sourceEntityVersionHash ?? Data()).base64EncodedString(),
                (mapping.destinationEntityVersionHash ?? Data()).base64EncodedString(),
                "\((mapping.userInfo ?? [:]).map { "\($0.key)=\($0.value)" }.sorted())",
            ] + properties.flatMap { $0.map { "  \($0)" } }
        }
    }

    @Test(arguments: samples)
    func `m182 m183 m185 m186 the edited form means what its compiled form says`(_ sample: Sample) throws {
        let models = try Self.models(sample)
        let url = Fixtures.url("migration/\(sample.edited).xcmappingmodel")
        let mappings = try MappingModelFile.mappings(at: url, models: models)
        expect(!mappings.isEmpty)
        let model = NSMappingModel()
        model.entityMappings = mappings
        expectEqual(model.mismatches(sourceModel: models.source, destinationModel: models.destination), [])
        guard let name = sample.compiled else { return }

        let compiled = try NSMappingModel(
            reading: Fixtures.url("migration/constructed-cdm/\(name).cdm")
        )

        expectEqual(Self.text(mappings), Self.text(compiled.entityMappings))
    }

    @Test func `m182 the models of an edited mapping model are found beside it`() throws {
        let folder = Fixtures.url("migration/notes-images")
        for (name, count) in [("v1.0-to-v1.1", 1), ("v1.1-to-v1.2", 2), ("v1.2-to-v1.3", 2)] {
            let model = try NSMappingModel(reading: folder.appendingPathComponent(name + ".xcmappingmodel"))
            expectEqual(model.entityMappings.count, count)
            let entry = try require(model.entityMappingsByName["NoteToNote"])
            // The first mapping has no user info.
            guard name != "v1.0-to-v1.1" else { continue }
            expectEqual(entry.userInfo?["sourceVersion"] as? String, String(name.prefix(4)))
            let compiled = try NSMappingModel(
                reading: Fixtures.url("migration/constructed-cdm/notes-\(name).cdm")
            )
            expectEqual(Self.text(model.entityMappings), Self.text(compiled.entityMappings))
        }
        // If there are no models, then the error says which one is missing.
        let error = try #require(throws: CocoaError.self) {
            try NSMappingModel(reading: Fixtures.url("migration/creatures/V2.FromV1.xcmappingmodel"))
        }
        expectEqual(error.code, .fileReadNoSuchFile)
        expect(error.localizedDescription.contains("Advanced.EvolutionDemo.V1.xcdatamodel"))
        expectEqual(NSMappingModel(contentsOf: Fixtures.url("migration")), nil)
        expectEqual(NSMappingModel(contentsOf: nil), nil)
    }

    @Test func `the models that are given count, wherever the file looks for its own`() throws {
        let folder = Fixtures.url("migration/creatures")
        let models = try ["V1", "V2"].map {
            try NSManagedObjectModel(reading: folder.appendingPathComponent($0 + ".contents.xml"))
        }
        let mapping = try NSMappingModel(
            reading: folder.appendingPathComponent("V2.FromV1.xcmappingmodel"),
            from: models[0],
            to: models[1]
        )
        let compiled = try NSMappingModel(
            reading: Fixtures.url("migration/constructed-cdm/creatures-V2.FromV1.cdm")
        )
        expectEqual(Self.text(mapping.entityMappings), Self.text(compiled.entityMappings))
        expectEqual(mapping.mismatches(sourceModel: models[0], destinationModel: models[1]), [])
    }

    @Test func `a mapping model is found in a bundle by the two models`() throws {
        let bundle = try require(Bundle(path: Fixtures.url("migration/notes-images").path))
        let versions = Fixtures.url("migration/notes-images/CoreDataMigration.xcdatamodeld")
        let models = try ModelPackage.versions(at: versions).map { try NSManagedObjectModel(reading: $0) }
        var found = 0
        for source in models {
            for destination in models where source !== destination {
                let mapping = NSMappingModel(from: [bundle], forSourceModel: source, destinationModel: destination)
                if let mapping {
                    found += 1
                    expectEqual(mapping.mismatches(sourceModel: source, destinationModel: destination), [])
                }
            }
        }
        expectEqual(found, 3)
        expectEqual(NSMappingModel(from: [bundle], forSourceModel: nil, destinationModel: models[0]), nil)
    }

    // MARK: - Hostile files

    @Test(arguments: DifferentialSeeds.all)
    func `damaged mapping models never stop the program`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let names = [
            "constructed-cdm/creatures-V2.FromV1.cdm", "constructed-cdm/notes-v1.2-to-v1.3.cdm",
            "creatures/V2.FromV1.xcmappingmodel/xcmapping.xml",
        ]
        let models = try Self.models(Self.samples[0])
        for name in names {
            let bytes = Array(try Data(contentsOf: Fixtures.url("migration/\(name)")))
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("mapping-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: file) }
            for _ in 0..<60 {
                var damaged = bytes
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    damaged[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
                }
                if Bool.random(using: &random) {
                    let start = Int.random(in: 0..<damaged.count, using: &random)
                    damaged.removeSubrange(start..<min(damaged.count, start + Int.random(in: 1...200, using: &random)))
                }
                try Data(damaged).write(to: file)
                _ = try? MappingModelFile.mappings(at: file, models: models)
            }
        }
    }

    @Test func `what is no mapping model is refused with the reason`() throws {
        let cases: [(String, CocoaError.Code, String)] = [
            ("", .fileReadCorruptFile, "empty"), ("bplist00", .fileReadCorruptFile, "not an archive"),
            ("<model/>", .fileReadCorruptFile, "<model>"), ("<database/>", .fileReadCorruptFile, "0 objects"),
            (
                "<!DOCTYPE database [<!ENTITY a \"b\">]><database/>", .fileReadCorruptFile,
                "declarations"
            ),
            (
                "<database><object type=\"XDDEVMAPPINGMODEL\" id=\"z1\"><attribute name=\"sourcemodelpath\">../../etc/x.xcdatamodel</attribute></object></database>",
                .fileReadCorruptFile, "names no model"
            ),
        ]
        for (text, code, reason) in cases {
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("mapping-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data(text.utf8).write(to: file)
            let error = try #require(throws: CocoaError.self) { try NSMappingModel(reading: file) }
            expectEqual(error.code, code)
            expect(error.localizedDescription.contains(reason), "\(error.localizedDescription)")
        }
        let endless = try #require(throws: CocoaError.self) {
            try NSMappingModel(reading: URL(fileURLWithPath: "/dev/zero"))
        }
        expectEqual(endless.code, .fileReadTooLarge)
    }
}
