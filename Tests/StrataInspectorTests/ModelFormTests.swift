import CoreData
import Expectations
import StrataSQLiteStore
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataInspector

@Suite("Models in other forms")
struct ModelFormTests {
    // MARK: - XML

    @Test(
        "each model that others made reads the same from the XML that is written of it",
        arguments: ModelFixtures.paths
    )
    func roundTrip(_ path: String) throws {
        let model = try NSManagedObjectModel(reading: Fixtures.url(path))

        let again = try Self.reread(model)

        expectEqual(again.entityVersionHashesByName, model.entityVersionHashesByName)
        try expectEqual(Self.schema(again), Self.schema(model))
        // The XML leaves out properties for which the editor has no field. Only compiled models have such properties.
        if !path.hasSuffix(".mom") { expectEqual(again, model) }
    }

    @Test("all that a file can say is written, and reads the same again")
    func everything() throws {
        let model = try ModelFixtures.everythingModel()

        let again = try Self.reread(model)

        expectEqual(again, model)
        expectEqual(again.entityVersionHashesByName, model.entityVersionHashesByName)
        expectEqual(again.fetchRequestTemplate(forName: "barsIn")?.fetchLimit, 7)
        expectEqual(again.entities(forConfigurationName: "Cloud")?.map(\.name), ["City"])
        try expectEqual(again.entity("Place").userInfo as? [String: String], ["color": "red"])
        try expect(
            again.entity("Place").attributesByName["name"]?.userInfo as? [String: String]
                == ["label": "Name & title"]
        )
        // Composite types are stored once, beside the entities.
        expectEqual(ModelXMLWriter.text(of: model).components(separatedBy: "<composite name=\"Address\"").count, 2)
    }

    @Test("a model in code is written as Xcode would")
    func inCode() throws {
        let text = ModelXMLWriter.text(of: libraryModel())

        expect(
            text.hasPrefix(
                "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<model type=\"com.apple.IDECoreData"
            )
        )
        expect(text.contains("    <entity name=\"Author\" syncable=\"YES\">\n"))
        expect(
            text.contains(
                "<relationship name=\"author\" optional=\"YES\" maxCount=\"1\" deletionRule=\"Nullify\" "
                    + "destinationEntity=\"Author\" inverseName=\"books\" inverseEntity=\"Author\"/>"
            )
        )
        expect(text.contains("<constraint value=\"title\"/>"))
    }

    @Test(
        "the XML of a model that is read from XML is that of its file",
        arguments: ModelFixtures.paths.filter { !$0.hasSuffix(".mom") }
    )
    func sameText(_ path: String) throws {
        let url = Fixtures.url(path)

        let result = Self.run("model", url.path, "--as", "xml")

        expectEqual(result.code, .success, "\(result.complaints)")
        try expectEqual(Self.ended(result.lines.joined(separator: "\n")), Self.ended(Self.text(of: url)))
    }

    /// A model with details that its description objects cannot hold.
    private static let detailed = """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="21513" systemVersion="21G115" \
        minimumToolsVersion="Automatic" sourceLanguage="Swift" usedWithCloudKit="YES" userDefinedModelVersionIdentifier="">
            <entity name="Book" representedClassName="Book" syncable="YES" codeGenerationType="class">
                <attribute name="title" optional="YES" attributeType="String"/>
                <attribute name="cover" optional="YES" attributeType="Binary"/>
                <attribute name="back" optional="YES" attributeType="Binary Data"/>
                <attribute name="stars" optional="YES" attributeType="Integer 16" defaultValueString="0" usesScalarValueType="NO"/>
                <attribute name="isbn" optional="YES" attributeType="Integer 64" defaultValueString="0"/>
                <attribute name="bought" optional="YES" attributeType="Date" usesScalarValueType="YES"/>
                <attribute name="length" optional="YES" attributeType="Integer 64" derived="YES" derivationExpression="pages.@count" \
        usesScalarValueType="YES"/>
                <relationship name="pages" optional="YES" toMany="YES" deletionRule="Cascade" destinationEntity="Page" \
        inverseName="book" inverseEntity="Page"/>
                <fetchIndex name="byProperty">
                    <fetchIndexElement property="title" type="Binary" order="ascending"/>
                </fetchIndex>
                <fetchIndex name="byProperty">
                    <fetchIndexElement property="isbn" type="Binary" order="descending"/>
                </fetchIndex>
            </entity>
            <entity name="Page" representedClassName="Page" syncable="YES" codeGenerationType="category">
                <attribute name="number" attributeType="Integer 32" defaultValueString="1" usesScalarValueType="YES"/>
                <relationship name="book" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Book" \
        inverseName="pages" inverseEntity="Book"/>
            </entity>
            <elements>
                <element name="Book" positionX="-63" positionY="-18" width="128" height="44"/>
            </elements>
        </model>

        """

    @Test func `no detail of a file is lost, in whatever kind of package it is`() throws {
        let scratch = try ScratchFolder()
        let older = Self.detailed.replacingOccurrences(of: "usedWithCloudKit=\"YES\" ", with: "")
        let bundle = scratch.file("Library.xcdatamodeld")
        for (name, text) in [("Library", older), ("Library 2", Self.detailed)] {
            let folder = bundle.appendingPathComponent("\(name).xcdatamodel")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: folder.appendingPathComponent("contents"))
        }
        // The two versions agree in everything that a model has.
        let current = ["_XCCurrentVersionName": "Library 2.xcdatamodel"]
        let list = try PropertyListSerialization.data(fromPropertyList: current, format: .xml, options: 0)
        try list.write(to: bundle.appendingPathComponent(".xccurrentversion"))

        let printed = Self.run("model", bundle.path, "--as", "xml")
        expectEqual(Self.ended(printed.lines.joined(separator: "\n")), Self.detailed, "\(printed.complaints)")

        let copy = scratch.file("Copy.xcdatamodeld")
        let written = Self.run("model", bundle.path, "--as", "xml", "--output", copy.path)
        expectEqual(written.code, .success, "\(written.complaints)")
        for (name, text) in [("Library", older), ("Library 2", Self.detailed)] {
            try expectEqual(Self.text(of: copy.appendingPathComponent("\(name).xcdatamodel/contents")), text)
        }
        let single = scratch.file("One.xcdatamodel")
        expectEqual(Self.run("model", copy.path, "--as", "xml", "--output", single.path).code, .success)
        try expectEqual(Self.text(of: single.appendingPathComponent("contents")), Self.detailed)
    }

    @Test func `types and derivations of a model without a file are named as in files of Xcode`() throws {
        let scratch = try ScratchFolder()
        let file = scratch.file("contents")
        try Data(Self.detailed.utf8).write(to: file)
        let model = try NSManagedObjectModel(reading: file)

        let text = ModelXMLWriter.text(of: model)

        expect(text.contains("<attribute name=\"cover\" optional=\"YES\" attributeType=\"Binary\"/>"), "\(text)")
        expect(text.contains("derivationExpression=\"pages.@count\""), "\(text)")
        try expectEqual(Self.reread(model), model)
        let swift = ModelSwiftWriter.lines(of: model, name: "Library").joined(separator: "\n")
        expect(swift.contains(".derived(from: \"pages.@count\")"), "\(swift)")
        expectEqual(swift.components(separatedBy: ".index(\"byProperty\"").count, 3, "\(swift)")
    }

    @Test("what Xcode has no field for is named in a comment")
    func comment() throws {
        let price = attribute("price", .double) {
            $0.setValidationPredicates([NSPredicate(format: "SELF != 13")], withValidationWarnings: [1])
        }
        let model = NSManagedObjectModel(NSEntityDescription("Book", price))

        expect(ModelXMLWriter.text(of: model).contains("<!-- left out: validation by SELF != 13 -->"))
        try expectEqual(Self.reread(model).entity("Book").attributesByName["price"]?.validationPredicates.isEmpty, true)
    }

    /// A book with rules for its price, author and place.
    private static func book() -> NSManagedObjectModel {
        let price = attribute("price", .integer32) {
            $0.setValidationPredicates(
                ["SELF >= 1", "SELF != 14", "SELF != 13"].map { NSPredicate(format: $0) },
                withValidationWarnings: [NSValidationNumberTooSmallError, "Fourteen is unlucky too.", 1550]
            )
        }
        let isNew = attribute("isNew", .boolean) {
            $0.setValidationPredicates(
                [NSPredicate(format: "SELF >= 1")],
                withValidationWarnings: [NSValidationNumberTooSmallError]
            )
        }
        let title = attribute("title", .string) {
            $0.setValidationPredicates(
                ["length >= 9", "length <= 3", "SELF >= 'a'"].map { NSPredicate(format: $0) },
                withValidationWarnings: [
                    NSValidationStringTooShortError, NSValidationStringTooLongError, NSValidationNumberTooSmallError,
                ]
            )
        }
        let x = attribute("x", .double) {
            $0.setValidationPredicates([NSPredicate(format: "SELF > 7")], withValidationWarnings: ["far\naway"])
        }
        let place = NSCompositeAttributeDescription()
        (place.name, place.isOptional) = ("place", true)
        place.elements = [x]
        let entity = NSEntityDescription("Book", price, isNew, title, place)
        let next = relationship("next", to: entity, maxCount: 1)
        next.setValidationPredicates(
            [NSPredicate(format: "SELF != 'a--b---c'")],
            withValidationWarnings: [NSManagedObjectValidationError]
        )
        entity.properties.append(next)
        return NSManagedObjectModel(entity)
    }

    @Test func `each rule that XML has no place for is named in a comment`() throws {
        let text = ModelXMLWriter.text(of: Self.book())

        for rule in [
            "SELF != 14", "SELF != 13", "SELF >= 1", "SELF >= \"a\"", "SELF > 7", "SELF != \"a- -b- - -c\"",
        ] {
            expect(text.contains("<!-- left out: validation by \(rule) -->"), "\(rule): \(text)")
        }
        expect(text.contains("minValueString=\"9\" maxValueString=\"3\""), "\(text)")
        expectEqual(text.components(separatedBy: "minValueString=\"1\"").count, 2, "\(text)")
        try expectEqual(Self.reread(Self.book()).entityVersionHashesByName, Self.book().entityVersionHashesByName)
    }

    @Test func `each rule of a model is a trait in Swift, or named in a comment`() {
        let text = ModelSwiftWriter.lines(of: Self.book(), name: "Shop").joined(separator: "\n")

        for trait in [
            ".minimum(1)", ".validated(\"SELF != 14\", message: \"Fourteen is unlucky too.\")", ".length(9...)",
            ".length(...3)",
        ] {
            expect(text.contains(trait), "\(trait): \(text)")
        }
        for rule in ["SELF != 13", "SELF >= 1", "SELF >= \"a\"", "SELF > 7", "SELF != \"a--b---c\""] {
            expect(text.contains("// Left out: validation by \(rule)."), "\(rule): \(text)")
        }
    }

    @Test func `a model that is read from a store says what the store does not keep of one`() throws {
        let scratch = try ScratchFolder()
        let store = scratch.file("store.sqlite")
        let model = try NSManagedObjectModel.parsing(
            "<entity name=\"Car\"><attribute name=\"year\" attributeType=\"Integer 16\" minValueString=\"9\"/></entity>"
        )
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let added = try coordinator.addPersistentStore(type: .sqlite, at: store)
        try coordinator.remove(added)

        for (form, start) in [("xml", "    <!-- "), ("swift", "// ")] {
            let result = Self.run("model", store.path, "--as", form)
            expectEqual(result.code, .success, "\(result.complaints)")
            let lines = result.lines.joined(separator: "\n").components(separatedBy: "\n")
            let remark = try require(lines.first { $0.hasPrefix("\(start)Left out") }, "\(form): \(lines)")
            for what in ["validation", "fetched properties", "default values of transformable attributes"] {
                expect(remark.contains(what), "\(remark)")
            }
        }
        let copy = scratch.file("contents")
        expectEqual(Self.run("model", store.path, "--as", "xml", "--output", copy.path).code, .success)
        try expect(Self.text(of: copy).contains("<!-- Left out"))
        #expect(throws: Never.self) { try NSManagedObjectModel(reading: copy) }
    }

    // MARK: - Other forms

    @Test("the statements are those that make a store")
    func statements() throws {
        let model = try ModelFixtures.everythingModel()

        let lines = try ModelForm.sql.lines(of: NamedModel(name: "m", model: model))

        expectEqual(lines, (try Self.schema(model).map { $0 + ";" }))
        expect(lines.contains { $0.hasPrefix("CREATE TABLE ZPLACE") })
    }

    @Test("the object for programs has all entities and properties")
    func json() throws {
        let model = try ModelFixtures.everythingModel()

        let text = try ModelForm.json.lines(of: NamedModel(name: "m", model: model)).joined()

        let read = try require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        let entities = try require(read["entities"] as? [[String: Any]])
        expectEqual(entities.compactMap { $0["name"] as? String }, ["Bar", "City", "Place"])
        let place = try require(entities.last)
        let attributes = try require(place["attributes"] as? [[String: Any]])
        let name = try require(attributes.first { $0["name"] as? String == "name" })
        expect(name["default"] as? String == "a <b> & \"c\"\n" && name["isOptional"] as? Bool == false)
        expectEqual((name["validation"] as? [String])?.count, 3)
        let relationships = try require(place["relationships"] as? [[String: Any]])
        expectEqual(relationships.first?["deleteRule"] as? String, "deny")
        expectEqual(place["uniquenessConstraints"] as? [[String]], [["token"], ["name", "city"]])
        let hash = try require(model.entityVersionHashesByName["Place"])
        expectEqual(place["versionHash"] as? String, hash.base64EncodedString())
    }

    @Test("the Mermaid picture has entities, attributes, inheritance and cardinalities")
    func mermaid() throws {
        let lines = ModelMermaid.lines(of: try ModelFixtures.everythingModel())

        expectEqual(lines.first, "erDiagram")
        expect(lines.contains("    Place {"))
        expect(lines.contains("        String name \"required\""))
        expect(lines.contains("        Integer_32 i32"))
        expect(lines.contains("        UUID token UK"))
        expect(lines.contains("    Place ||..|| Bar : \"is a\""))
        expect(
            lines.contains("    City |o--|{ Place : \"places / city\"")
                || lines.contains("    City |o--o{ Place : \"places / city\"")
        )
        expect(lines.contains { $0.contains(": \"twin\"") })
    }

    // MARK: - The command

    @Test("a package of all versions is written, as Xcode opens it")
    func package() throws {
        let scratch = try ScratchFolder()
        let path = "migration/notes-images/CoreDataMigration.xcdatamodeld"
        let output = scratch.file("Notes.xcdatamodeld")

        let result = Self.run("model", Fixtures.url(path).path, "--as", "xml", "--output", output.path)

        expectEqual(result.code, .success, "\(result.complaints)")
        let names = try FileManager.default.contentsOfDirectory(atPath: output.path).sorted()
        expect(names.first == ".xccurrentversion" && names.count == 5)
        for name in names.dropFirst() {
            let original = Fixtures.url("\(path)/\(name)")
            try expect(
                NSManagedObjectModel(reading: output.appendingPathComponent(name))
                    == NSManagedObjectModel(reading: original)
            )
        }
        try expectEqual(NSManagedObjectModel(reading: output), NSManagedObjectModel(reading: Fixtures.url(path)))
        // An existing package is not replaced.
        expectEqual(Self.run("model", output.path, "--as", "xml", "--output", output.path).code, .usage)
    }

    @Test("a compiled model and the one in a store come out in each form")
    func everySource() throws {
        let folder = try StoreFolder()
        let pair = try require(AppleStores.pairs.first { $0.store.hasPrefix("sync") })
        let sources = [
            Fixtures.url("migration/airship-compiled/UAAutomation.momd"),
            Fixtures.url("migration/airship-compiled/UAInbox.momd/UAInbox.mom"),
            try folder.copy(pair),
            pair.modelURL,
        ]
        for source in sources {
            for form in ModelForm.allCases {
                let result = Self.run("model", source.path, "--as", form.rawValue)
                expect(result.code == .success && !result.lines.isEmpty, "\(source) \(form) \(result.complaints)")
            }
        }
    }

    @Test("an unknown form, and options that do not go together, are refused")
    func usage() throws {
        for words in [
            ["a", "--as", "dance"], ["a", "b"], ["a", "--diff"], ["a", "b", "--diff", "--as", "json"],
        ] {
            let result = Self.run(["model"] + words)
            expect(result.code == .usage && !result.complaints.isEmpty)
        }
    }

    // MARK: - Differences

    @Test("differences are listed property by property, and whether a mapping can be inferred")
    func difference() throws {
        let old = try NSManagedObjectModel.parsing(
            """
            <entity name="Car"><attribute name="maker" optional="YES" attributeType="String"/>\
            <attribute name="year" optional="YES" attributeType="Integer 16"/><attribute name="old" attributeType="Date"/></entity>
            <entity name="Gone"/>
            """
        )
        let new = try NSManagedObjectModel.parsing(
            """
            <entity name="Car"><attribute name="brand" optional="YES" attributeType="String" elementID="maker"/>\
            <attribute name="year" optional="YES" attributeType="Integer 32" defaultValueString="1970"/>\
            <attribute name="doors" optional="YES" attributeType="Integer 16"/></entity>
            <entity name="Owner"/>
            """
        )

        let difference = ModelDifference(from: old, to: new)

        expect(difference.canBeInferred)
        let expected = [
            "~ entity Car", "    ~ brand: was maker", "    + doors: Integer 16", "    - old: Date",
            "    ~ year: type Integer 16 → Integer 32, default none → 1970", "+ entity Owner", "- entity Gone",
            "note: property old of entity Car is removed, with its values",
            "note: entity Gone is removed, with its rows", "A mapping can be inferred.",
        ]
        expectEqual(difference.lines, expected, "\(difference.lines)")
    }

    @Test("what no store keeps differs as well, and what cannot be inferred exits with 1")
    func obstacles() throws {
        let old = try NSManagedObjectModel.parsing(
            "<entity name=\"Car\"><attribute name=\"year\" optional=\"YES\" attributeType=\"Integer 16\"/></entity>"
        )
        let changed = try NSManagedObjectModel.parsing(
            "<entity name=\"Car\"><attribute name=\"year\" optional=\"YES\" attributeType=\"Integer 16\" maxValueString=\"9\"/></entity>"
        )
        let difference = ModelDifference(from: old, to: changed)
        expect(
            difference.lines == [
                "  entity Car", "      year: validation none → SELF <= 9",
                "Stores need no migration: the version hashes are equal.",
            ],
            "\(difference.lines)"
        )
        expectEqual(ModelDifference(from: old, to: old).lines.first, "Nothing differs.")

        let impossible = try NSManagedObjectModel.parsing(
            "<entity name=\"Car\"><attribute name=\"year\" attributeType=\"Binary\"/></entity>"
        )
        let scratch = try ScratchFolder()
        let paths = ["old", "new"].map { scratch.file("\($0).xml") }
        for (path, model) in zip(paths, [old, impossible]) {
            try Data(ModelXMLWriter.text(of: model).utf8).write(to: path)
        }
        let result = Self.run("model", "--diff", paths[0].path, paths[1].path)
        expectEqual(result.code, .problemsFound)
        expect(
            result.lines.contains("No mapping can be inferred:")
                && result.lines.contains { $0.contains("required now") }
        )
    }

    // MARK: - Pieces

    static func run(_ words: String...) -> (code: ExitCode, lines: [String], complaints: [String]) { run(words) }

    static func run(_ words: [String]) -> (code: ExitCode, lines: [String], complaints: [String]) {
        var lines: [String] = []
        var complaints: [String] = []
        let code = StrataCommand.run(words) {
            lines.append($0)
        } complain: {
            complaints.append($0)
        }
        return (code, lines, complaints)
    }

    private static func text(of file: URL) throws -> String {
        String(decoding: try Data(contentsOf: file), as: UTF8.self)
    }

    /// The text with a line break at its end.
    private static func ended(_ text: String) -> String { text.hasSuffix("\n") ? text : text + "\n" }

    /// A model that is written as XML and read again.
    static func reread(_ model: NSManagedObjectModel) throws -> NSManagedObjectModel {
        let scratch = try ScratchFolder()
        let file = scratch.file("contents")
        try Data(ModelXMLWriter.text(of: model).utf8).write(to: file)
        return try NSManagedObjectModel(reading: file)
    }

    static func schema(_ model: NSManagedObjectModel) throws -> [String] {
        let copy = try require(NSManagedObjectModel(byMerging: [model]))
        for entity in copy.entities { entity.managedObjectClassName = "NSManagedObject" }
        return try SQLiteSchema(for: copy).statements
    }
}
