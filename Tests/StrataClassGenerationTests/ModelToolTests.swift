import Expectations
import Foundation
import StrataModelFiles
import Testing

@testable import StrataClassGeneration

/// A folder like a target's, with a model of two versions and a source file.
private final class TargetFolder {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("model-tool-\(UUID().uuidString)")
    var model: URL { url.appendingPathComponent("Shop.xcdatamodeld") }
    var source: URL { url.appendingPathComponent("Shop.swift") }

    init(source: String = "import CoreData\n") throws {
        try write("Shop 1", "<entity name=\"Item\"/>")
        try write(
            "Shop 2",
            "<entity name=\"Item\" representedClassName=\"Item\" codeGenerationType=\"class\">"
                + "<attribute name=\"name\" attributeType=\"String\"/></entity>"
        )
        let list = ["_XCCurrentVersionName": "Shop 2.xcdatamodel"]
        try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
            .write(to: model.appendingPathComponent(".xccurrentversion"))
        try Data(source.utf8).write(to: self.source)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func file(_ name: String) -> URL { url.appendingPathComponent(name) }

    func text(_ name: String) -> String? { try? String(contentsOf: file(name), encoding: .utf8) }

    func write(_ version: String, _ lines: String) throws {
        let folder = model.appendingPathComponent("\(version).xcdatamodel")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("<model>\n\(lines)\n</model>".utf8).write(to: folder.appendingPathComponent("contents"))
    }

    /// Runs the build that the plugin asks for.
    func build() -> Int32 {
        ModelTool.run([
            "build", "--module", "App", "--classes", file("Classes.swift").path, "--accessors",
            file("Accessors.swift").path, "--model", model.path, "--copy", model.path,
            file("out/Shop.xcdatamodeld").path, "--compile", model.path, file("out/Shop.momd").path, "--sources",
            source.path,
        ])
    }

    /// The list of versions that the build has written.
    func versionInfo() throws -> [String: Any] {
        let data = try Data(contentsOf: file("out/Shop.momd/VersionInfo.plist"))
        return try require(PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
    }

    /// The time at which each file of the output was written.
    func dates() throws -> [String: Date] {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: url.path)
        return try Dictionary(
            uniqueKeysWithValues: paths.map { path in
                let facts = try FileManager.default.attributesOfItem(atPath: file(path).path)
                return (path, try require(facts[.modificationDate] as? Date))
            }
        )
    }
}

@Suite("The program that the plugins run")
struct ModelToolTests {
    @Test func `a build writes the classes of the current version, and places all versions`() throws {
        let target = try TargetFolder()

        expectEqual(target.build(), 0)

        expectEqual(target.text("Classes.swift")?.contains("public class Item: NSManagedObject"), true)
        expectEqual(target.text("Accessors.swift"), "// No class has @NSManaged members.\n")
        let names = try FileManager.default.contentsOfDirectory(atPath: target.file("out/Shop.momd").path).sorted()
        expectEqual(names, ["Shop 1.mom", "Shop 2.mom", "VersionInfo.plist"])
        let list = try target.versionInfo()
        // These are the keys of Xcode's list.
        expectEqual(
            list.keys.sorted(),
            [
                "NSManagedObjectModel_CurrentVersionName", "NSManagedObjectModel_VersionChecksums",
                "NSManagedObjectModel_VersionHashes",
            ]
        )
        expectEqual(list["NSManagedObjectModel_CurrentVersionName"] as? String, "Shop 2")
        let copy = try ModelPackage.contents(at: target.file("out/Shop.xcdatamodeld"))
        expectEqual(copy.data, (try ModelPackage.contents(at: target.model)).data)
    }

    @Test func `the list of versions has the hashes of all entities, and a checksum for each version`() throws {
        let target = try TargetFolder()
        expectEqual(target.build(), 0)

        let list = try target.versionInfo()
        let hashes = try require(list["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]])
        let checksums = try require(list["NSManagedObjectModel_VersionChecksums"] as? [String: String])

        expectEqual(hashes.keys.sorted(), ["Shop 1", "Shop 2"])
        for (version, wanted) in hashes {
            let file = target.model.appendingPathComponent("\(version).xcdatamodel/contents")
            try expectEqual(ModelSource(xml: Data(contentsOf: file)).versionHashes, wanted)
            expectEqual(wanted.mapValues(\.count), ["Item": 32])
        }
        expect(hashes["Shop 1"] != hashes["Shop 2"])
        expectEqual(checksums.keys.sorted(), ["Shop 1", "Shop 2"])
        expect(checksums["Shop 1"] != checksums["Shop 2"])
    }

    @Test func `an old version with faults is placed, and the list has no hashes for it`() throws {
        let target = try TargetFolder()
        try target.write("Shop 1", "<entity name=\"Item\"/><entity name=\"Item\"/>")

        expectEqual(target.build(), 0)

        let hashes = try target.versionInfo()["NSManagedObjectModel_VersionHashes"] as? [String: [String: Data]]
        expectEqual(hashes?.keys.sorted(), ["Shop 2"])
        expect(target.text("out/Shop.momd/Shop 1.mom") != nil)
    }

    @Test func `a second build touches nothing, and one after a change only what differs`() throws {
        let target = try TargetFolder()
        expectEqual(target.build(), 0)
        let first = try target.dates()

        expectEqual(target.build(), 0)
        try expectEqual(target.dates(), first)

        try FileManager.default.removeItem(at: target.model.appendingPathComponent("Shop 1.xcdatamodel"))
        expectEqual(target.build(), 0)
        expect(target.text("out/Shop.momd/Shop 1.mom") == nil && target.text("out/Shop.momd/Shop 2.mom") != nil)
        expectEqual(target.text("out/Shop.xcdatamodeld/Shop 1.xcdatamodel/contents"), nil)
        try expectEqual(target.dates()["Classes.swift"], first["Classes.swift"])
    }

    @Test func `a model without versions is compiled to one file`() throws {
        let target = try TargetFolder()
        let model = target.model.appendingPathComponent("Shop 2.xcdatamodel")

        let code = ModelTool.run([
            "build", "--module", "App", "--classes", target.file("Classes.swift").path, "--accessors",
            target.file("Accessors.swift").path, "--model", model.path, "--compile", model.path,
            target.file("Shop.mom").path,
        ])

        expect(code == 0 && target.text("Classes.swift")?.contains("class Item") == true)
        try expectEqual(Data(contentsOf: target.file("Shop.mom")), ModelPackage.contents(at: model).data)
    }

    @Test func `with a fault in the model nothing is written, and the error has the form of the compiler's`() throws {
        let target = try TargetFolder()
        try target.write(
            "Shop 2",
            "<entity name=\"Item\">\n<relationship name=\"next\" destinationEntity=\"No\"/></entity>"
        )

        expectEqual(target.build(), 1)
        expect(target.text("Classes.swift") == nil && target.text("out/Shop.momd/Shop 2.mom") == nil)

        let errors = ModelBuild(module: "App", models: [target.model], sources: []).run().errors
        let file = target.model.appendingPathComponent("Shop 2.xcdatamodel/contents").path
        expect(errors.count == 1 && errors[0].hasPrefix("\(file):3:1: error: "), "\(errors)")
        expect(errors[0].contains("\"No\" is not in the model"), "\(errors)")
    }

    @Test func `a member that cannot be supplied is an error, after the faults of the model are mended`() throws {
        let target = try TargetFolder()
        let source =
            "import CoreData\nclass B: NSManagedObject {\n    @NSManaged var x: Missing?\n    @NSManaged var a: A?\n}"
        let file = SourceFile(path: "/App/B.swift", text: source, module: "App")
        let build = ModelBuild(module: "App", models: [target.model], sources: [file])

        // The class `A` is unknown only because the model has an error.
        try target.write("Shop 2", "<entity name=\"A\"/><entity name=\"A\"/>")
        let modelErrors = build.run().errors
        expect(modelErrors.count == 1 && modelErrors[0].contains("contents:"), "\(modelErrors)")

        try target.write("Shop 2", "<entity name=\"A\" representedClassName=\"A\" codeGenerationType=\"class\"/>")
        let errors = build.run().errors
        expect(errors.count == 1 && errors[0].hasPrefix("/App/B.swift:3:20: error: "), "\(errors)")
        expect(errors[0].contains("Declare it with @Managed"))
    }

    @Test func `a compiled model and a model that is no XML are refused with the file's name`() throws {
        let target = try TargetFolder()
        for text in ["bplist00", "<model><entity"] {
            let file = target.model.appendingPathComponent("Shop 2.xcdatamodel/contents")
            try Data(text.utf8).write(to: file)
            let errors = ModelBuild(module: "App", models: [target.model], sources: []).run().errors
            expect(errors.count == 1 && errors[0].hasPrefix(file.path + ":"), "\(errors)")
        }
    }

    @Test func `classes in the source tree are written once, and their properties anew`() throws {
        let target = try TargetFolder()
        let words = [
            "classes", "--module", "App", "--into", target.file("Classes").path, "--model", target.model.path,
            "--sources", target.source.path,
        ]
        expectEqual(ModelTool.run(words), 0)
        expectEqual(
            target.text("Classes/Item+CoreDataClass.swift")?.contains("@ManagedObject\npublic class Item"),
            true
        )
        try Data("mine".utf8).write(to: target.file("Classes/Item+CoreDataClass.swift"))
        try Data("old".utf8).write(to: target.file("Classes/Item+CoreDataProperties.swift"))

        expectEqual(ModelTool.run(words), 0)

        expectEqual(target.text("Classes/Item+CoreDataClass.swift"), "mine")
        let properties = target.text("Classes/Item+CoreDataProperties.swift")
        expectEqual(properties?.contains("@Managed public var name: String?"), true)
    }

    @Test func `sources are ported in place, and what needs nothing is not touched`() throws {
        let target = try TargetFolder(source: "@objc(A)\nclass A { let k = #keyPath(A.b) }\n")
        try Data("class B {}\n".utf8).write(to: target.file("B.swift"))
        let before = try target.dates()["B.swift"]

        expectEqual(ModelTool.run(["port", "--drop", target.source.path, target.file("B.swift").path]), 0)

        expectEqual(target.text("Shop.swift"), "class A { let k = \"b\" }\n")
        try expectEqual(target.dates()["B.swift"], before)
    }

    @Test(arguments: [[], ["dance"], ["build"], ["classes", "--module", "App"], ["port", "/no/such/file.swift"]])
    func `what is not understood ends with an error`(_ words: [String]) {
        expectEqual(ModelTool.run(words), 1)
    }
}
