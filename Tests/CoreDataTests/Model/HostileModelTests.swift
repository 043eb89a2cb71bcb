import CoreData
import Expectations
import StrataModelFiles
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Bad model files")
struct HostileModelTests {
    /// Reads bytes as a model, and returns the error.
    private static func error(_ bytes: Data) throws -> CocoaError {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("model-\(UUID().uuidString).xml")
        defer { try? FileManager.default.removeItem(at: file) }
        try bytes.write(to: file)
        expectEqual(NSManagedObjectModel(contentsOf: file), nil)
        let error = try #require(throws: CocoaError.self) { try NSManagedObjectModel(reading: file) }
        expectEqual((error.userInfo[NSURLErrorKey] as? URL)?.path, file.path)
        expect(error.localizedDescription.contains(file.path))
        return error
    }

    private static func error(_ text: String) throws -> CocoaError { try error(Data(text.utf8)) }

    // MARK: - Not a model

    @Test(arguments: [
        ("", "empty"), ("no XML at all", "not well-formed"), ("<model>", "not well-formed"),
        ("<model></entity></model>", "not well-formed"), ("<other/>", "root element is <other>"),
        ("<model/><model/>", "not well-formed"), ("bplist00", "not an archive of a model"),
        ("\u{0}\u{0}\u{0}", "not UTF-8"),
        ("<?xml version=\"1.0\" encoding=\"UTF-16\"?><model/>", "encoding is UTF-16"),
        ("<!DOCTYPE model [<!ENTITY a \"b\">]><model/>", "document type or entity declaration"),
        ("<!DOCTYPE model SYSTEM \"file:///etc/passwd\"><model/>", "document type or entity declaration"),
        ("<model><entity name=\"&undeclared;\"/></model>", "not well-formed"),
    ])
    func `what is not a model is corrupt`(_ text: String, _ reason: String) throws {
        let error = try Self.error(text)

        expectEqual(error.code, .fileReadCorruptFile)
        expect(error.localizedDescription.contains(reason))
    }

    @Test func `a file that is too large, or has no end, is refused`() throws {
        let space = String(repeating: " ", count: ModelPackage.maximumSize + 1)
        try expectEqual(Self.error("<model>\(space)</model>").code, .fileReadTooLarge)
        let endless = try #require(throws: CocoaError.self) {
            try NSManagedObjectModel(reading: URL(fileURLWithPath: "/dev/zero"))
        }
        expectEqual(endless.code, .fileReadTooLarge)
    }

    /// A small file may mean millions of parts, if each names the same ones again and again.
    @Test func `all parts of a file are counted together, and more than a million are refused`() throws {
        let budget = ReadingBudget()
        for count in [0, 1, 999_998, 1, 0] { try budget.spend(count) }
        for count in [1, 2, .max] {
            let error = expectThrows(ModelError.self) { try budget.spend(count) }
            expectEqual(error?.kind, .malformed)
            expectEqual(error?.message.contains("repeats its parts too often"), true)
        }
        // If one part is too large for the budget, then a smaller one still fits.
        let other = ReadingBudget()
        expectThrows(ModelError.self) { try other.spend(1_000_001) }
        try other.spend(1_000_000)
        try ReadingBudget().spend(1_000_000)
    }

    @Test(arguments: DifferentialSeeds.all)
    func `damaged files never stop the program`(seed: UInt64) throws {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?><model><entity name="A" parentEntity="B"><attribute name="x" \
            attributeType="Integer 16" defaultValueString="3" minValueString="1"/><relationship name="r" \
            destinationEntity="A" toMany="YES" maxCount="3" inverseName="r" inverseEntity="A"/></entity>\
            <entity name="B"/></model>
            """
        let bytes = Array(text.utf8)
        _ = try NSManagedObjectModel.parsing("<entity name=\"A\"/>")
        var random = SeededRandom(seed: seed)
        for _ in 0..<200 {
            var damaged = bytes
            damaged[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            damaged.removeSubrange(Int.random(in: 0..<bytes.count / 2, using: &random)..<bytes.count / 2)
            let model = NSManagedObjectModel()
            _ = try? model.read(xml: Data(damaged))
        }
    }

    // MARK: - A model that contradicts itself

    /// Lines of a model, and the entity, the property and the reason that the error must name.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let lines: String
        let entity: String?
        let property: String?
        let reason: String
        var testDescription: String { reason }

        init(_ lines: String, _ entity: String?, _ property: String?, _ reason: String) {
            self.lines = lines
            self.entity = entity
            self.property = property
            self.reason = reason
        }

        /// A mistake in an attribute.
        init(attribute: String, _ reason: String) {
            self.init("<entity name=\"A\"><attribute name=\"x\" \(attribute)/></entity>", "A", "x", reason)
        }

        /// A mistake in a relationship.
        init(relationship: String, _ reason: String) {
            self.init("<entity name=\"A\"><relationship name=\"x\" \(relationship)/></entity>", "A", "x", reason)
        }
    }

    private static let attributeMistakes = [
        Mistake(attribute: "attributeType=\"Quaternion\"", "\"Quaternion\" is unknown"),
        Mistake(attribute: "optional=\"YES\"", "has no type"),
        Mistake(
            attribute: "attributeType=\"Integer 16\" defaultValueString=\"70000\"",
            "not a number of the attribute's type"
        ),
        Mistake(
            attribute: "attributeType=\"Integer 64\" defaultValueString=\"1e30\"",
            "not a number of the attribute's type"
        ),
        Mistake(attribute: "attributeType=\"Double\" minValueString=\"low\"", "minValueString is not a number"),
        Mistake(attribute: "attributeType=\"Boolean\" defaultValueString=\"perhaps\"", "not a number"),
        Mistake(attribute: "attributeType=\"String\" maxValueString=\"-1\"", "maxValueString is not a length"),
        Mistake(attribute: "attributeType=\"String\" regularExpressionString=\"(\"", "not a regular expression"),
        Mistake(attribute: "attributeType=\"Date\" defaultDateTimeInterval=\"inf\"", "not a number of seconds"),
        Mistake(attribute: "attributeType=\"UUID\" defaultValueString=\"1\"", "not a UUID"),
        Mistake(attribute: "attributeType=\"Binary\" defaultValueString=\"?\"", "not Base64"),
        Mistake(attribute: "attributeType=\"String\" derived=\"YES\"", "no derivation expression"),
        Mistake(
            attribute: "attributeType=\"String\" derived=\"YES\" derivationExpression=\"((\"",
            "cannot be understood"
        ),
        Mistake(
            attribute: "attributeType=\"Composite\" compositeName=\"None\"",
            "composite type \"None\" is not in the model"
        ),
        Mistake(
            "<entity name=\"A\"><attribute attributeType=\"String\"/></entity>",
            "A",
            nil,
            "a property has no name"
        ),
        Mistake(
            """
            <entity name="A"><composite name="x" compositeName="C"/></entity>
            <composite name="C"><composite name="c" compositeName="C"/></composite>
            """,
            "A",
            "x",
            "contain themselves"
        ),
        Mistake(
            "<entity name=\"A\"><attribute name=\"x\" attributeType=\"URI\"/><relationship name=\"x\"/></entity>",
            "A",
            "x",
            "two properties with this name"
        ),
    ]

    private static let otherMistakes = [
        Mistake("<entity/>", nil, nil, "an entity has no name"),
        Mistake("<entity name=\"A\"/><entity name=\"A\"/>", "A", nil, "two entities with this name"),
        Mistake("<entity name=\"A\" parentEntity=\"A\"/>", "A", nil, "inheritance cycle"),
        Mistake("<entity name=\"A\" parentEntity=\"Z\"/>", "A", nil, "super-entity \"Z\" is not in the model"),
        Mistake(
            """
            <entity name="A" parentEntity="C"/><entity name="B" parentEntity="A"/><entity name="C" parentEntity="B"/>
            """,
            "A",
            nil,
            "inheritance cycle"
        ),
        Mistake(relationship: "maxCount=\"1\"", "no destination entity"),
        Mistake(relationship: "destinationEntity=\"Z\"", "destination entity \"Z\" is not in the model"),
        Mistake(
            relationship: "destinationEntity=\"A\" inverseName=\"y\"",
            "inverse \"y\" is not a relationship of \"A\""
        ),
        Mistake(relationship: "destinationEntity=\"A\" inverseName=\"x\" inverseEntity=\"Z\"", "relationship of \"Z\""),
        Mistake(
            relationship: "destinationEntity=\"A\" deletionRule=\"Explode\"",
            "deletion rule \"Explode\" is unknown"
        ),
        Mistake(relationship: "destinationEntity=\"A\" toMany=\"YES\" maxCount=\"many\"", "maxCount is not a count"),
        Mistake(relationship: "destinationEntity=\"A\" minCount=\"99999999999\"", "minCount is not a count"),
        Mistake(
            """
            <entity name="A"><relationship name="x" destinationEntity="B" inverseName="y"/></entity>
            <entity name="B"><relationship name="y" destinationEntity="A"/></entity>
            """,
            "A",
            "x",
            "does not name it as its own inverse"
        ),
        Mistake(
            "<entity name=\"A\"><fetchIndex name=\"i\"><fetchIndexElement property=\"z\"/></fetchIndex></entity>",
            "A",
            "z",
            "no such property"
        ),
        Mistake(
            "<entity name=\"A\"><fetchIndex name=\"i\"><fetchIndexElement/></fetchIndex></entity>",
            "A",
            nil,
            "neither a property nor an expression"
        ),
        Mistake(
            """
            <entity name="A"><fetchedProperty name="x"><fetchRequest entity="A" predicateString="(("/></fetchedProperty></entity>
            """,
            "A",
            "x",
            "cannot be understood"
        ),
        Mistake("<fetchRequest name=\"F\" entity=\"Z\"/>", nil, nil, "entity \"Z\", which is not in the model"),
        Mistake(
            "<entity name=\"A\"/><fetchRequest name=\"F\" entity=\"A\" fetchLimit=\"-1\"/>",
            nil,
            nil,
            "fetchLimit"
        ),
        Mistake(
            "<configuration name=\"C\"><memberEntity name=\"Z\"/></configuration>",
            "Z",
            nil,
            "configuration \"C\""
        ),
        Mistake("<configuration name=\"C\"/><configuration name=\"C\"/>", nil, nil, "two configurations"),
    ]

    @Test(arguments: attributeMistakes + otherMistakes)
    func `a contradiction names the entity and the property`(_ mistake: Mistake) throws {
        let error = try #require(throws: CocoaError.self) { try NSManagedObjectModel.parsing(mistake.lines) }

        expectEqual(error.code, .coreData)
        expect(error.localizedDescription.contains(mistake.reason))
        expectEqual(error.userInfo[NSModelEntityNameErrorKey] as? String, mistake.entity)
        expectEqual(error.userInfo[NSModelPropertyNameErrorKey] as? String, mistake.property)
    }

    @Test func `ten thousand sub-entities of one entity are fine`() throws {
        let lines = (0..<10_000).map { "<entity name=\"E\($0)\"\($0 == 0 ? "" : " parentEntity=\"E0\"")/>" }

        let model = try NSManagedObjectModel.parsing(lines.joined())

        try expectEqual(model.entity("E0").subentities.count, 9999)
    }
}
