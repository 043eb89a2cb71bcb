import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

/// Migrations of stores with a configuration that not all versions of the model have.
@Suite("Migration of a configuration")
struct ConfigurationMigrationTests {
    private static func model(_ sketch: String, _ members: [String]?) -> NSManagedObjectModel {
        let model = ModelSketch.model(sketch)
        if let members {
            model.setEntities(members.compactMap { model.entitiesByName[$0] }, forConfigurationName: "Part")
        }
        return model
    }

    private static let sketches = [
        "A: n String\nB: n String", "A: n String, x Int32\nB: n String", "A: n String, x Int32\nB: n String, y Int32",
    ]

    private static func reference(_ model: NSManagedObjectModel) -> NSManagedObjectModelReference {
        NSManagedObjectModelReference(model: model, versionChecksum: model.versionChecksum)
    }

    private static func options(_ stages: [NSMigrationStage]) -> [AnyHashable: Any] {
        [NSPersistentStoreStagedMigrationManagerOptionKey: NSStagedMigrationManager(stages)]
    }

    /// A store of the first version with two objects of the configuration's entity.
    private func filled(_ members: [String]) throws -> AgingStore {
        let store = try AgingStore(.migrating)
        try store.use(Self.model(Self.sketches[0], members), configuration: "Part") { context in
            for entity in members { context.make(entity, "\(entity)1") }
            try context.save()
        }
        return store
    }

    @Test(arguments: [0, 1], [false, true])
    func `a stage with a version that lacks the configuration is an error, before any step is taken`(
        _ lacking: Int,
        _ hasHandlers: Bool
    ) throws {
        let store = try filled(["A"])
        let before = try store.contents()
        let last = Self.model(Self.sketches[2], ["A"])
        let versions = (0..<2).map { Self.model(Self.sketches[$0], $0 == lacking ? nil : ["A"]) } + [last]
        let stages: [NSMigrationStage] =
            hasHandlers
            ? (0..<2).map { index in
                let stage = NSCustomMigrationStage(
                    migratingFrom: Self.reference(versions[index]),
                    to: Self.reference(versions[index + 1])
                )
                stage.didMigrateHandler = { _, _ in Issue.record("a step was taken") }
                return stage
            } : [NSLightweightMigrationStage(references: versions.map(Self.reference))]

        let error = try #require(throws: CocoaError.self) {
            try store.use(Self.model(Self.sketches[2], ["A"]), Self.options(stages), configuration: "Part") { _ in }
        }

        // The version of a store cannot be found if that version of the model lacks its configuration.
        expectEqual(
            error.code,
            lacking == 0 ? CocoaError.Code(rawValue: NSManagedObjectModelReferenceNotFoundError) : .migration
        )
        expect(error.localizedDescription.contains("configuration \"Part\""), "\(error)")
        expect(error.localizedDescription.contains(versions[lacking].versionChecksum), "\(error)")
        try expectEqual(store.contents(), before)
    }

    @Test(arguments: [false, true])
    func `a store of a whole version keeps its rows if the version lacks the configuration`(_ isStaged: Bool) throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.model(Self.sketches[0], nil)) { context in
            context.make("A", "a1")
            context.make("B", "b1")
            try context.save()
        }
        let before = try store.contents()
        let last = { Self.model(Self.sketches[1], ["A", "B"]) }
        guard isStaged else {
            // The entities of the store are known by their hashes.
            let lines = try store.use(last(), configuration: "Part") { try $0.dump() }
            return expectEqual(lines, ["A a1 x=-", "B b1"])
        }
        let first = Self.model(Self.sketches[0], nil)
        let stage = NSLightweightMigrationStage(references: [Self.reference(first), Self.reference(last())])

        let error = try #require(throws: CocoaError.self) {
            try store.use(last(), Self.options([stage]), configuration: "Part") { _ in }
        }

        expectEqual(error.code, .migration)
        expect(error.localizedDescription.contains(first.versionChecksum), "\(error)")
        try expectEqual(store.contents(), before)
        // The configuration is in no hash, so the version can get it.
        let whole = Self.model(Self.sketches[0], ["A", "B"])
        let stages = [NSLightweightMigrationStage(references: [Self.reference(whole), Self.reference(last())])]
        let lines = try store.use(last(), Self.options(stages), configuration: "Part") { try $0.dump() }
        expectEqual(lines, ["A a1 x=-", "B b1"])
    }

    @Test func `versions that differ in nothing of the configuration are no steps`() throws {
        let store = try filled(["B"])
        let versions = Self.sketches.map { Self.model($0, ["B"]) }
        var seen: [Int] = []
        let stages = (0..<2).map { index in
            let stage = NSCustomMigrationStage(
                migratingFrom: Self.reference(versions[index]),
                to: Self.reference(versions[index + 1])
            )
            stage.didMigrateHandler = { _, _ in seen.append(index) }
            return stage
        }

        let lines = try store.use(Self.model(Self.sketches[2], ["B"]), Self.options(stages), configuration: "Part") {
            try $0.all("B").map { "\($0.value(forKey: "n") ?? "-") \($0.value(forKey: "y") ?? "-")" }
        }

        expectEqual(lines, ["B1 -"])
        expectEqual(seen, [1])
    }

    @Test func `a chain does not go over a version that lacks the configuration`() throws {
        let store = try AgingStore()
        let package = store.scratch.file("Chain.xcdatamodeld")
        let unique = UUID().uuidString.prefix(8)
        let types = ["code String", "size Integer 32", "code Integer 64"]
        let models = try types.enumerated().map { index, type in
            let words = type.split(separator: " ", maxSplits: 1)
            let version = package.appendingPathComponent("Chain \(index + 1).xcdatamodel")
            try FileManager.default.createDirectory(at: version, withIntermediateDirectories: true)
            let configuration =
                index == 1 ? "" : "<configuration name=\"Part\"><memberEntity name=\"A\"/></configuration>"
            try Data(
                """
                <?xml version="1.0" encoding="UTF-8"?><model><entity name="A" representedClassName="NSManagedObject" \
                versionHashModifier="\(unique)"><attribute name="n" attributeType="String" optional="YES"/>\
                <attribute name="\(words[0])" attributeType="\(words[1])" optional="YES"/></entity>\
                \(configuration)</model>
                """.utf8
            ).write(to: version.appendingPathComponent("contents"))
            return try NSManagedObjectModel(reading: version)
        }
        try store.use(models[0], configuration: "Part") { context in
            context.make("A", "a1", ["code": "7"])
            try context.save()
        }
        let before = try store.contents()
        let options: [AnyHashable: Any] = [NSPersistentStoreAllowsProgressiveMigrationOption: package]

        let error = try #require(throws: CocoaError.self) {
            try store.use(models[2], options, configuration: "Part") { _ in }
        }

        expectEqual(error.code, .migrationMissingMappingModel)
        try expectEqual(store.contents(), before)
    }
}
