import CoreData
import Expectations
import StrataSQLite
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataInspector

@Suite("The inspector on stores made here")
struct InspectorOwnStoreTests {
    // MARK: - Every command

    @Test func `inspect counts the objects of each entity`() throws {
        let guide = try OwnStore()

        let result = guide.run("inspect")

        expectEqual(result.code, .success, "\(result.complaints)")
        for (name, count) in [("Venue", 2), ("Bar", 1), ("City", 1)] {
            let line = result.lines.first { $0.split(separator: " ").first == name[...] }
            expectEqual(line?.split(separator: " ").contains("\(count)"), true, "\(result.lines)")
        }
        try expect(guide.isUntouched)
    }

    @Test func `fetch filters, sorts and limits, and prints relationships as URIs`() throws {
        let guide = try OwnStore()

        let result = guide.run(
            "fetch",
            "--entity",
            "Venue",
            "--predicate",
            "name != 'b'",
            "--sort",
            "-name",
            "--limit",
            "1",
            "--json"
        )

        expectEqual(result.code, .success, "\(result.complaints)")
        expectEqual(result.lines.count, 1)
        let line = try require(result.lines.first)
        let object = try require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        expectEqual(object["@entity"] as? String, "Bar")
        expectEqual(object["name"] as? String, "c")
        expectEqual(object["beers"] as? Int, 12)
        expectEqual((object["city"] as? String)?.hasPrefix("x-coredata://"), true)
        try expect(guide.isUntouched)
    }

    @Test func `verify says that a store is sound, and what is wrong when it is not`() throws {
        let guide = try OwnStore()
        let sound = guide.run("verify")
        expectEqual(sound.lines, ["\(guide.store.path) is sound."])
        expectEqual(sound.code, .success)
        try expect(guide.isUntouched)

        try guide.execute("UPDATE ZVENUE SET ZCITY = 77 WHERE Z_PK = 1")
        let damaged = guide.run("verify")
        expectEqual(damaged.lines, ["ZVENUE: row 1 whose city does not exist"])
        expectEqual(damaged.code, .problemsFound)
    }

    @Test func `a value that cannot be decoded is distinguished from nil`() throws {
        let guide = try OwnStore()
        let absent = guide.run("fetch", "--entity", "City")
        expect(!absent.lines.contains { $0.contains("mayor") || $0.contains("colour") })

        // The value's class is unknown, or the value is damaged.
        try guide.execute("UPDATE ZCITY SET ZMAYOR = X'010203'")
        let text = guide.run("fetch", "--entity", "City")
        expect(text.lines.contains { $0.contains("mayor") && $0.contains("cannot be decoded (3 bytes)") }, "\(text)")
        let json = try require(guide.run("fetch", "--entity", "City", "--json").lines.first)
        let object = try require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        expect((object["mayor"] as? [String: Int])?["@undecodable"] == 3 && object["colour"] is NSNull)
        let damaged = guide.run("verify")
        expect(damaged.code == .problemsFound && damaged.lines.count == 1, "\(damaged)")
        expectEqual(
            damaged.lines.first?.hasPrefix("City: 1 values of mayor cannot be decoded (p1)"),
            true,
            "\(damaged)"
        )

        // The value was made by a transformer of another program, which is no damage.
        try guide.execute("UPDATE ZCITY SET ZMAYOR = NULL, ZCOLOUR = X'01'")
        let foreign = guide.run("fetch", "--entity", "City")
        expect(foreign.lines.contains { $0.contains("colour") && $0.contains("cannot be decoded") }, "\(foreign)")
        let sound = guide.run("verify")
        expect(sound.code == .success && sound.lines.count == 2, "\(sound)")
        expectEqual(sound.lines.first?.hasPrefix("note: City: 1 values of colour were not looked at"), true, "\(sound)")
    }

    @Test func `verify writes nothing beside its findings for values of classes that are not there`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let guide = try OwnStore()
            let array = try NSKeyedArchiver.archivedData(withRootObject: ["a"], requiringSecureCoding: true)
            // The names are as long as that of the class in the archive: in one module, inside another type, and
            // mangled.
            for name in ["Ab.Cdef", "A.Bc.De", "_TtC1Ab"] {
                var archive = array
                while let range = archive.range(of: Data("NSArray".utf8)) {
                    archive.replaceSubrange(range, with: Data(name.utf8))
                }
                let digits = archive.map { String(format: "%02X", $0) }.joined()
                try guide.execute("UPDATE ZCITY SET ZMAYOR = X'\(digits)'")
                let verified = guide.run("verify")
                precondition(verified.code == .problemsFound && verified.lines.count == 1, "\(verified)")
                precondition(verified.lines[0].hasPrefix("City: 1 values of mayor cannot be decoded"), "\(verified)")
            }
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(!text.contains("NSClassFromString"), "\(text)")
    }

    @Test func `looking at a store leaves no files behind`() throws {
        let guide = try OwnStore()
        let before = try guide.files
        for words in [["verify"], ["inspect"], ["fetch", "--entity", "Venue"]] {
            expectEqual(guide.run(words).code, .success)
            try expectEqual(guide.files, before, "\(words)")
        }
        _ = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: guide.store)
        try expectEqual(guide.files, before)
    }

    @Test func `model and schema explain the model`() throws {
        let guide = try OwnStore()

        let model = guide.runAlone("model", guide.model.path)
        let schema = guide.runAlone("schema", "--model", guide.model.path)

        expect(model.code == .success && schema.code == .success)
        expect(model.lines.contains { $0.hasPrefix("Entity Bar") })
        expect(schema.lines.contains { $0.hasPrefix("CREATE TABLE ZVENUE ") })
    }

    @Test(arguments: [
        (["--entity", "Lorry"], ExitCode.usage), (["--entity", "Venue", "--sort", "wings"], .usage),
        (["--entity", "Venue", "--predicate", "name =="], .failure),
        (["--entity", "Venue", "--predicate", "wings == 2"], .failure),
    ])
    func `a request that makes no sense for the model is refused`(arguments: [String], code: ExitCode) throws {
        let result = try OwnStore().run(["fetch"] + arguments)

        expectEqual(result.code, code)
        expect(result.lines.isEmpty && !result.complaints.isEmpty)
    }

    @Test func `a store without a copy of its model asks for one`() throws {
        let guide = try OwnStore()
        try guide.execute("DELETE FROM Z_MODELCACHE")
        for command in [["verify"], ["inspect"], ["fetch", "--entity", "Venue"]] {
            let result = guide.runAlone(command + ["--store", guide.store.path])
            expectEqual(result.code, .failure)
            expect(result.complaints.joined().contains("Name one with --model."))
        }
    }

    @Test func `a store that was made here needs no model to be named`() throws {
        let guide = try OwnStore()
        for command in [["verify"], ["inspect"], ["fetch", "--entity", "Venue"]] {
            let result = guide.runAlone(command + ["--store", guide.store.path])
            expectEqual(result.code, .success)
        }
    }

    // MARK: - Configurations

    @Test func `a store with one configuration of the model is looked at like any other`() throws {
        let guide = try OwnStore(configuration: "Places")

        let verified = guide.run("verify")
        expectEqual(verified.lines, ["\(guide.store.path) is sound."])
        expectEqual(verified.code, .success)
        let fetched = guide.run("fetch", "--entity", "Venue", "--json")
        expectEqual(fetched.code, .success, "\(fetched.complaints)")
        expectEqual(fetched.lines.count, 3)
        let inspected = guide.run("inspect")
        expectEqual(inspected.code, .success, "\(inspected.complaints)")
        expect(inspected.lines.contains { $0.hasPrefix("Tag") && $0.hasSuffix("not in the store") })
    }

    // MARK: - Files that are no store

    enum BadFile: CaseIterable {
        case random, truncated, empty, foreign

        func make(_ url: URL) throws {
            switch self {
            case .random: try Data((0..<9000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }).write(to: url)
            case .truncated:
                let data = try Data(contentsOf: url)
                for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
                try data.prefix(data.count / 2 + 100).write(to: url)
            case .empty: try Data().write(to: url)
            case .foreign:
                try FileManager.default.removeItem(at: url)
                try Connection(path: url.path, access: .readWriteCreate).execute("CREATE TABLE t (a)")
            }
        }
    }

    @Test(arguments: BadFile.allCases, [true, false])
    func `verify lists a file that is no sound store as a problem`(_ kind: BadFile, _ namesModel: Bool) throws {
        let guide = try OwnStore()
        try kind.make(guide.store)

        let result =
            namesModel ? guide.run("verify") : guide.runAlone(["verify", "--store", guide.store.path])

        expectEqual(result.code, .problemsFound, "\(result)")
        expectEqual(result.lines.count, 1)
        expect(!(result.lines.first?.contains("--model") ?? true))
        expect(result.complaints.isEmpty)
    }
}

/// A store that a program has made, with its model's file.
private final class OwnStore {
    typealias Result = (code: ExitCode, lines: [String], complaints: [String])

    let store: URL
    let model: URL
    private let folder: URL
    private let contents: Data

    private static let modelText = """
        <?xml version="1.0" encoding="UTF-8"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
        <entity name="Venue">
        <attribute name="name" optional="YES" attributeType="String"/>
        <relationship name="city" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="City" \
        inverseName="venues" inverseEntity="City"/>
        </entity>
        <entity name="Bar" parentEntity="Venue">
        <attribute name="beers" optional="YES" attributeType="Integer 16"/>
        </entity>
        <entity name="City">
        <attribute name="name" optional="YES" attributeType="String"/>
        <attribute name="mayor" optional="YES" attributeType="Transformable"/>
        <attribute name="colour" optional="YES" attributeType="Transformable" valueTransformerName="OfSomebodyElse"/>
        <relationship name="venues" optional="YES" toMany="YES" deletionRule="Nullify" destinationEntity="Venue" \
        inverseName="city" inverseEntity="Venue"/>
        </entity>
        <entity name="Tag"/>
        <configuration name="Places">
        <memberEntity name="Venue"/><memberEntity name="Bar"/><memberEntity name="City"/>
        </configuration>
        </model>
        """

    init(configuration: String? = nil) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("inspector-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        store = folder.appendingPathComponent("store.sqlite")
        model = folder.appendingPathComponent("contents")
        try Data(Self.modelText.utf8).write(to: model)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: try NSManagedObjectModel(reading: model))
        let added = try coordinator.addPersistentStore(type: .sqlite, configuration: configuration, at: store)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            for (name, entity) in [("a", "Venue"), ("b", "Venue"), ("c", "Bar")] {
                let venue = NSEntityDescription.insertNewObject(forEntityName: entity, into: context)
                venue.setValue(name, forKey: "name")
                venue.setValue(city, forKey: "city")
                if entity == "Bar" { venue.setValue(12, forKey: "beers") }
            }
            try context.save()
        }
        try coordinator.remove(added)
        contents = try Data(contentsOf: store)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var isUntouched: Bool { get throws { try Data(contentsOf: store) == contents } }

    /// The names of all files in the store's folder.
    var files: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() } }

    func execute(_ script: String) throws { try Connection(path: store.path, access: .readWrite).execute(script) }

    func run(_ words: String...) -> Result { run(words) }

    /// Runs a command on the store with the model.
    func run(_ words: [String]) -> Result { runAlone(words + ["--store", store.path, "--model", model.path]) }

    func runAlone(_ words: String...) -> Result { runAlone(words) }

    func runAlone(_ words: [String]) -> Result {
        var lines: [String] = []
        var complaints: [String] = []
        let code = StrataCommand.run(words, print: { lines.append($0) }, complain: { complaints.append($0) })
        return (code, lines, complaints)
    }
}
