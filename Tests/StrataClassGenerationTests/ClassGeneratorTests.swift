import Expectations
import Foundation
import StrataModelFiles
import Testing

@testable import StrataClassGeneration

@Suite("Generated classes")
struct ClassGeneratorTests {
    private static func text(_ lines: String, sources: String = "") throws -> String {
        let model = try ModelSource(xml: Data("<model>\(lines)</model>".utf8))
        expectEqual(model.faults, [])
        let file = SourceFile(path: "/App/A.swift", text: sources, module: "App")
        let generator = ClassGenerator(
            model,
            module: "App",
            declarations: SourceDeclarations(module: "App", files: [file])
        )
        expectEqual(generator.faults, [])
        return generator.text(modelName: "M.xcdatamodeld")
    }

    private static func faults(_ lines: String, sources: String = "") throws -> [ModelError] {
        let model = try ModelSource(xml: Data("<model>\n\(lines)</model>".utf8))
        let file = SourceFile(path: "/App/A.swift", text: sources, module: "App")
        let declarations = SourceDeclarations(module: "App", files: [file])
        return model.faults + ClassGenerator(model, module: "App", declarations: declarations).faults
    }

    private static func entity(_ name: String, _ attributes: String, _ content: String = "") -> String {
        "<entity name=\"\(name)\" \(attributes)>\(content)</entity>\n"
    }

    @Test(arguments: [
        ("Integer 16", true, "Int16"), ("Integer 32", true, "Int32"), ("Integer 64", true, "Int64"),
        ("Integer 64", false, "NSNumber?"), ("Double", true, "Double"), ("Float", true, "Float"),
        ("Boolean", true, "Bool"), ("Boolean", false, "NSNumber?"), ("Decimal", false, "NSDecimalNumber?"),
        ("Date", false, "Date?"), ("Date", true, "TimeInterval"), ("String", false, "String?"),
        ("Binary", false, "Data?"),
        ("UUID", false, "UUID?"), ("URI", false, "URL?"), ("Transformable", false, "NSObject?"),
        ("Object ID", false, "NSManagedObjectID?"),
    ])
    func `an attribute has the type that Xcode gives it`(_ type: String, _ isScalar: Bool, _ swiftType: String) throws {
        let scalar = isScalar ? "YES" : "NO"
        let text = try Self.text(
            Self.entity(
                "A",
                "representedClassName=\"A\" codeGenerationType=\"class\"",
                "<attribute name=\"x\" attributeType=\"\(type)\" usesScalarValueType=\"\(scalar)\"/>"
            )
        )

        expect(text.contains("public var x: \(swiftType) {"))
    }

    @Test func `the code generation decides between class, properties and nothing`() throws {
        let content = "<attribute name=\"x\" attributeType=\"String\"/>"
        let text = try Self.text(
            Self.entity("A", "representedClassName=\"A\" codeGenerationType=\"class\"", content)
                + Self.entity("B", "representedClassName=\"B\" codeGenerationType=\"category\"", content)
                + Self.entity("C", "representedClassName=\"C\"", content)
                + Self.entity("D", "codeGenerationType=\"class\"", content)
        )

        expect(text.contains("public class A: NSManagedObject {") && text.contains("extension A {"))
        expect(!text.contains("class B:") && text.contains("extension B {"))
        expect(!text.contains("extension C") && !text.contains("class D"))
    }

    @Test func `a class has the name that the model gives it, and its request that of the entity`() throws {
        let text = try Self.text(Self.entity("A", "representedClassName=\"App.AObject\" codeGenerationType=\"class\""))

        expect(text.contains("public class AObject: NSManagedObject"))
        expect(text.contains("NSFetchRequest<AObject>(entityName: \"A\")"))
    }

    @Test func `super-entities come first, and only the uppermost is made identifiable`() throws {
        let text = try Self.text(
            Self.entity("A", "representedClassName=\"A\" codeGenerationType=\"class\" parentEntity=\"Z\"")
                + Self.entity("Z", "representedClassName=\"Z\" codeGenerationType=\"class\" isAbstract=\"YES\"")
        )

        let (first, second) = (try require(text.range(of: "class Z:")), try require(text.range(of: "class A: Z")))
        expect(first.lowerBound < second.lowerBound)
        expect(text.contains("extension Z: Identifiable {}") && !text.contains("extension A: Identifiable"))
    }

    @Test func `properties are as visible as hand-written classes allow`() throws {
        let lines =
            Self.entity(
                "A",
                "representedClassName=\"A\" codeGenerationType=\"class\"",
                "<relationship name=\"b\" maxCount=\"1\" destinationEntity=\"B\"/><attribute name=\"x\" attributeType=\"URI\"/>"
            ) + Self.entity("B", "representedClassName=\"B\" codeGenerationType=\"category\"")
        let text = try Self.text(lines, sources: "final class B: NSManagedObject, Identifiable { }")

        expect(text.contains("\n    var b: B? {") && text.contains("public var x: URL? {"))
        expect(text.contains("@nonobjc class func fetchRequest() -> NSFetchRequest<B>"))
        expect(!text.contains("extension B: Identifiable"))
        try expect(Self.text(lines, sources: "public class B: NSManagedObject {}").contains("public var b: B? {"))
    }

    @Test func `derived attributes and fetched properties are only read, and keywords quoted`() throws {
        let text = try Self.text(
            Self.entity(
                "A",
                "representedClassName=\"A\" codeGenerationType=\"class\"",
                """
                <attribute name="count" attributeType="Integer 64" usesScalarValueType="YES" derived="YES" \
                derivationExpression="now()"/>
                <attribute name="default" attributeType="String"/>
                <fetchedProperty name="all"><fetchRequest name="r" entity="A"/></fetchedProperty>
                """
            )
        )

        expect(text.contains("public var all: [A]? { value(forKey: \"all\") as? [A] }"))
        expect(!text.contains("setManagedValue(newValue, Self._managed_count)"))
        expect(text.contains("public var `default`: String? {") && text.contains("keyPath: \\A.`default`"))
    }

    @Test func `a transformable attribute has its class, a composite one a dictionary, and one without a type nothing`()
        throws
    {
        let text = try Self.text(
            Self.entity(
                "A",
                "representedClassName=\"A\" codeGenerationType=\"class\"",
                """
                <attribute name="tags" attributeType="Transformable" customClassName="[String]"/>
                <attribute name="color" optional="YES" attributeType="Transformable" customClassName="Color"/>
                <attribute name="address" optional="YES" attributeType="Composite" composite="Address"/>
                <attribute name="scratch" optional="YES" transient="YES"/>
                """
            ) + "<composite name=\"Address\"><attribute name=\"street\" attributeType=\"String\"/></composite>",
            sources: "final class Color: NSObject {}"
        )

        expect(text.contains("public var tags: [String]? {") && text.contains("public var address: [String: Any]? {"))
        // As visible as its type.
        expect(text.contains("\n    var color: Color? {"))
        expect(!text.contains("scratch"))
    }

    @Test func `a relationship has the destination's class, and one to many the methods that change it`() throws {
        let text = try Self.text(
            Self.entity(
                "A",
                "representedClassName=\".AThing\" codeGenerationType=\"class\"",
                """
                <relationship name="one" optional="YES" maxCount="1" destinationEntity="B"/>
                <relationship name="any" optional="YES" maxCount="1" destinationEntity="C"/>
                <relationship name="many" optional="YES" toMany="YES" destinationEntity="A"/>
                <relationship name="rows" optional="YES" toMany="YES" ordered="YES" destinationEntity="B"/>
                """
            ) + Self.entity("B", "representedClassName=\"BThing\"") + Self.entity("C", ""),
            sources: "public class BThing: NSManagedObject {}"
        )

        expect(text.contains("public class AThing: NSManagedObject {"))
        for line in [
            "var one: BThing? {", "var any: NSManagedObject? {", "var many: NSSet? {", "var rows: NSOrderedSet? {",
            "func addToMany(_ value: AThing) {", "func removeFromMany(_ values: NSSet) {",
            "func insertIntoRows(_ value: BThing, at idx: Int) {", "func removeFromRows(at indexes: NSIndexSet) {",
            "func replaceRows(at indexes: NSIndexSet, with values: [BThing]) {",
            "func addToRows(_ values: NSOrderedSet) {",
        ] {
            expect(text.contains("public " + line), "\(line)")
        }
        expect(!text.contains("insertIntoMany") && !text.contains("addToOne"))
    }

    @Test func `a class inherits from that of the next parent with one, in whatever module`() throws {
        let lines =
            Self.entity("A", "representedClassName=\"A\" codeGenerationType=\"class\" parentEntity=\"B\"")
            + Self.entity("B", "parentEntity=\"C\"")
            + Self.entity("C", "representedClassName=\"Kit.C\" codeGenerationType=\"category\"")
        let text = try Self.text(lines)

        expect(text.contains("\nimport Kit\n") && text.contains("public class A: C {"))
        expect(text.contains("extension C {") && !text.contains("class C:"))
        expect(text.contains("extension C: Identifiable {}") && !text.contains("extension A: Identifiable"))
    }

    @Test func `no optionality in the model changes a type`() throws {
        for optional in ["YES", "NO"] {
            let text = try Self.text(
                Self.entity(
                    "A",
                    "representedClassName=\"A\" codeGenerationType=\"class\"",
                    """
                    <attribute name="name" optional="\(optional)" attributeType="String"/>
                    <attribute name="count" optional="\(optional)" attributeType="Integer 16" usesScalarValueType="YES"/>
                    """
                )
            )
            expect(text.contains("var name: String? {") && text.contains("var count: Int16 {"))
        }
    }

    @Test(arguments: [
        ("<entity name=\"A\">\n<attribute name=\"x\" attributeType=\"Strin\"/></entity>", 3, "\"Strin\" is unknown"),
        ("<entity name=\"A\">\n<relationship name=\"x\"/></entity>", 3, "no destination entity"),
        (
            "<entity name=\"A\">\n<relationship name=\"x\" destinationEntity=\"B\"/></entity>", 3,
            "\"B\" is not in the model"
        ),
        (
            "<entity name=\"A\">\n\n<relationship name=\"x\" destinationEntity=\"A\" inverseName=\"y\"/></entity>", 4,
            "its inverse \"y\" is not a relationship of \"A\""
        ),
        ("<entity name=\"A\"/>\n<entity name=\"A\"/>", 3, "two entities with this name"),
        ("<entity name=\"A\" parentEntity=\"A\"/>", 2, "inherits from itself"),
        ("<entity name=\"A\" codeGenerationType=\"class\" representedClassName=\"Other.A\"/>", 2, "is in module Other"),
        (
            "<entity name=\"A\">\n<attribute name=\"x\" attributeType=\"String\"/>\n<attribute name=\"x\" attributeType=\"String\"/></entity>",
            4, "x"
        ),
        (
            "<entity name=\"A\">\n<relationship name=\"x\" destinationEntity=\"A\" deletionRule=\"Forget\"/></entity>",
            3, "Forget"
        ),
        ("<entity name=\"A\">\n<attribute name=\"x\" attributeType=\"Composite\" composite=\"No\"/></entity>", 3, "No"),
        ("<entity name=\"A\" parentEntity=\"No\"/>", 2, "\"No\""),
        ("<entity name=\"A\">\n<attribute name=\"description\" attributeType=\"String\"/></entity>", 3, "reserved"),
        (
            "<entity name=\"A\" codeGenerationType=\"class\" representedClassName=\"X\"/>\n<entity name=\"B\" codeGenerationType=\"class\" representedClassName=\"X\"/>",
            3, "generated twice"
        ),
        (
            "<entity name=\"A\" codeGenerationType=\"class\" representedClassName=\"Own\"/>", 2,
            "is in the sources of App too"
        ),
    ])
    func `a fault names its line`(_ lines: String, _ line: Int, _ reason: String) throws {
        let fault = try require(try Self.faults(lines, sources: "class Own: NSManagedObject {}").first)

        expect(fault.line == line && fault.sentence.contains(reason), "\(fault)")
    }

    @Test func `the files for the source tree have macros`() throws {
        let content = "<relationship name=\"all\" toMany=\"YES\" destinationEntity=\"A\"/>"
        let lines = Self.entity("A", "representedClassName=\"A\"", content)
        let model = try ModelSource(xml: Data("<model>\(lines)</model>".utf8))
        let declarations = SourceDeclarations(module: "App", files: [])
        let files = ClassGenerator(model, module: "App", declarations: declarations, style: .macros).files()

        expectEqual(files.map(\.name), ["A+CoreDataClass.swift", "A+CoreDataProperties.swift"])
        expect(files[0].text.contains("@ManagedObject\npublic class A: NSManagedObject"))
        expect(files[1].text.contains("@Managed public var all: NSSet?"))
        expect(files[1].text.contains("@ManagedAccessor public func addToAll(_ value: A)"))
    }
}
