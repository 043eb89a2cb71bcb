import CoreData
import Expectations
import StrataModelFiles
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Model packages")
struct ModelPackageTests {
    /// A folder for one test, removed with the last reference to it.
    private final class Scratch {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString)")

        deinit { try? FileManager.default.removeItem(at: folder) }

        func write(_ text: String, _ path: String) throws {
            let file = folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }

        /// A version of a model whose only entity has the version's name.
        func writeVersion(_ name: String) throws {
            try write("<model><entity name=\"\(name)\"/></model>", "Shop.xcdatamodeld/\(name).xcdatamodel/contents")
        }

        func writeCurrent(_ name: String) throws {
            try write(
                """
                <?xml version="1.0" encoding="UTF-8"?>
                <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
                <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>\(name)</string></dict></plist>
                """,
                "Shop.xcdatamodeld/.xccurrentversion"
            )
        }

        var package: URL { folder.appendingPathComponent("Shop.xcdatamodeld") }

        func entityName() throws -> String? { try NSManagedObjectModel(reading: package).entities.first?.name }
    }

    private let scratch = Scratch()

    @Test func `the current version is read`() throws {
        for name in ["Shop", "Shop2", "Shop3"] {
            try scratch.writeVersion(name)
        }
        try scratch.writeCurrent("Shop2.xcdatamodel")

        try expectEqual(scratch.entityName(), "Shop2")
        expectEqual(NSManagedObjectModel(contentsOf: scratch.package)?.entities.first?.name, "Shop2")
    }

    @Test func `m168 without a mark the only version, or the one named as the package, is read`() throws {
        try scratch.writeVersion("Other")
        try expectEqual(scratch.entityName(), "Other")

        try scratch.writeVersion("Shop")
        try expectEqual(scratch.entityName(), "Shop")
    }

    @Test func `a version and its contents can be read directly`() throws {
        try scratch.writeVersion("Shop2")
        let version = scratch.package.appendingPathComponent("Shop2.xcdatamodel")

        try expectEqual(NSManagedObjectModel(reading: version).entities.count, 1)
        try expectEqual(NSManagedObjectModel(reading: version.appendingPathComponent("contents")).entities.count, 1)
    }

    @Test func `what is missing is said to be missing`() throws {
        let error = try #require(throws: CocoaError.self) { try scratch.entityName() }
        expectEqual(error.code, .fileReadNoSuchFile)

        try scratch.write("", "Shop.xcdatamodeld/notes.txt")
        try expectEqual(#require(throws: CocoaError.self) { try scratch.entityName() }.code, .fileReadNoSuchFile)
        try scratch.write("", "Shop.xcdatamodeld/Shop.xcdatamodel/layout")
        try expectEqual(#require(throws: CocoaError.self) { try scratch.entityName() }.code, .fileReadNoSuchFile)
    }

    @Test func `the binary format of Xcode 3 is said to be unsupported`() throws {
        try scratch.write("binary", "Shop.xcdatamodeld/Shop.xcdatamodel/elements")

        try expectEqual(#require(throws: CocoaError.self) { try scratch.entityName() }.code, .featureUnsupported)
    }

    @Test func `m008 m167 models of a bundle are merged, and picked by what a store has`() throws {
        try scratch.writeVersion("Shop")
        try scratch.writeVersion("Shop2")
        try scratch.writeCurrent("Shop2.xcdatamodel")
        try scratch.write("<model><entity name=\"Extra\"/></model>", "Extra.xcdatamodel/contents")
        let bundle = try require(Bundle(path: scratch.folder.path))
        let old = NSManagedObjectModel(NSEntityDescription("Shop"))
        let metadata = ["NSStoreModelVersionHashes": old.entityVersionHashesByName]

        let merged = try require(NSManagedObjectModel.mergedModel(from: [bundle]))
        let picked = try require(NSManagedObjectModel.mergedModel(from: [bundle], forStoreMetadata: metadata))

        expectEqual(Set(merged.entitiesByName.keys), ["Shop2", "Extra"])
        expectEqual(Set(picked.entitiesByName.keys), ["Shop"])
        expectEqual(NSManagedObjectModel.mergedModel(from: []), nil)
    }

    // MARK: - Which version a store has

    /// A bundle with a model of some versions, which agree in an entity `Common`.
    ///
    /// The list of versions has the hashes that `lists` gives of each; there is no list without it.
    private func bundle(_ names: [String], lists: ((String) throws -> [String: Data]?)?) throws -> Bundle {
        for name in names {
            try scratch.write(
                "<model><entity name=\"Common\"/><entity name=\"\(name)\"/></model>",
                "Shop.momd/\(name).mom"
            )
        }
        if let lists {
            var hashes: [String: [String: Data]] = [:]
            for name in names { hashes[name] = try lists(name) }
            let list = VersionList(currentVersion: names.last, hashes: hashes)
            try scratch.write(String(decoding: list.data(), as: UTF8.self), "Shop.momd/VersionInfo.plist")
        }
        return try require(Bundle(path: scratch.folder.path))
    }

    private func model(_ name: String) throws -> NSManagedObjectModel {
        try NSManagedObjectModel(reading: scratch.folder.appendingPathComponent("Shop.momd/\(name).mom"))
    }

    private func versions() -> BundledVersions {
        BundledVersions(at: [scratch.folder.appendingPathComponent("Shop.momd")])
    }

    @Test func `of the versions that a list has only the one that the store was made with is read`() throws {
        let names = ["A", "B", "C", "D"]
        let bundle = try bundle(names) { try self.model($0).entityVersionHashesByName }

        for name in names {
            let wanted = try model(name)
            let stored = wanted.entityVersionHashesByName
            var versions = versions()
            expectEqual(versions.whole(for: stored), wanted)
            expectEqual(versions.read.count, 1)
            let metadata = ["NSStoreModelVersionHashes": stored]
            expectEqual(NSManagedObjectModel.mergedModel(from: [bundle], forStoreMetadata: metadata), wanted)
        }
        // A store that holds a part of a version.
        let part = try model("C").entityVersionHashesByName.filter { $0.key == "C" }
        var some = versions()
        try expectEqual(some.whole(for: part), model("C"))
        expectEqual(some.read.count, 1)
    }

    @Test func `without a list, and with one that lacks hashes or is wrong, the version is found all the same`()
        throws
    {
        let names = ["A", "B", "C"]
        let lists: [((String) throws -> [String: Data]?)?] = [
            nil, { _ in nil }, { name in try name == "A" ? self.model(name).entityVersionHashesByName : nil },
            // Those of another version, and of none.
            { name in try self.model(name == "A" ? "B" : "A").entityVersionHashesByName },
            { _ in ["Common": Data(count: 32)] },
        ]
        for list in lists {
            try? FileManager.default.removeItem(at: scratch.folder)
            let bundle = try bundle(names, lists: list)
            for name in names {
                let wanted = try model(name)
                let metadata = ["NSStoreModelVersionHashes": wanted.entityVersionHashesByName]
                expectEqual(NSManagedObjectModel.mergedModel(from: [bundle], forStoreMetadata: metadata), wanted)
            }
            let unknown = ["NSStoreModelVersionHashes": ["Common": Data(count: 32)]]
            expectEqual(NSManagedObjectModel.mergedModel(from: [bundle], forStoreMetadata: unknown), nil)
        }
    }

    @Test func `a model as it is edited has the list of the compiled one beside it`() throws {
        for name in ["A", "B", "C"] { try scratch.writeVersion(name) }
        func model(_ name: String) throws -> NSManagedObjectModel {
            try NSManagedObjectModel(reading: scratch.package.appendingPathComponent("\(name).xcdatamodel"))
        }
        let hashes = try ["A", "B", "C"].map { ($0, try model($0).entityVersionHashesByName) }
        let list = VersionList(currentVersion: "C", hashes: Dictionary(hashes) { first, _ in first })
        try scratch.write(String(decoding: list.data(), as: UTF8.self), "Shop.momd/VersionInfo.plist")

        var versions = BundledVersions(at: [scratch.package])
        try expectEqual(versions.whole(for: model("B").entityVersionHashesByName), model("B"))
        expectEqual(versions.read.count, 1)
    }

    @Test func `a version that is damaged is left out, also where a list leads to it`() throws {
        let bundle = try bundle(["A", "B"]) { try self.model($0).entityVersionHashesByName }
        let stored = try model("A").entityVersionHashesByName
        try scratch.write("<model><entity", "Shop.momd/A.mom")

        let metadata = ["NSStoreModelVersionHashes": stored]
        expectEqual(NSManagedObjectModel.mergedModel(from: [bundle], forStoreMetadata: metadata), nil)
        let other = ["NSStoreModelVersionHashes": try model("B").entityVersionHashesByName]
        try expectEqual(NSManagedObjectModel.mergedModel(from: [bundle], forStoreMetadata: other), model("B"))
    }
}
