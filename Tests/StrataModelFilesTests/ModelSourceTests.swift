import Expectations
import Foundation
import Testing

@testable import StrataModelFiles

@Suite("Models as their files have them")
struct ModelSourceTests {
    private static func source(_ lines: String) throws -> ModelSource {
        try ModelSource(xml: Data("<model userDefinedModelVersionIdentifier=\"2\">\n\(lines)\n</model>".utf8))
    }

    @Test func `an entity and its properties are as they are written`() throws {
        let source = try Self.source(
            """
            <entity name="Item" representedClassName=".Thing" codeGenerationType="class" isAbstract="YES" elementID="Old">
                <attribute name="price" optional="YES" attributeType="Decimal" defaultValueString="0.5" usesScalarValueType="NO"/>
                <attribute name="sum" attributeType="Double" derived="YES" derivationExpression="sum:(parts.price)"/>
                <relationship name="parts" toMany="YES" ordered="YES" deletionRule="Cascade" maxCount="3" minCount="1"
                    destinationEntity="Part" inverseName="item" inverseEntity="Part"/>
                <fetchedProperty name="dear"><fetchRequest name="r" entity="Part" predicateString="price &gt; 1"/></fetchedProperty>
                <composite name="size" composite="Size"/>
                <fetchIndex name="byPrice" partialIndexPredicate="price > 0">
                    <fetchIndexElement property="price" type="Binary" order="descending"/>
                    <fetchIndexElement expression="price + 1" expressionType="Double" type="R-Tree"/>
                </fetchIndex>
                <uniquenessConstraints><uniquenessConstraint><constraint value="price"/><constraint value="sum"/></uniquenessConstraint></uniquenessConstraints>
                <userInfo><entry key="note" value="1"/><entry key="empty"/></userInfo>
            </entity>
            <entity name="Part"><relationship name="item" maxCount="7" destinationEntity="Item" inverseName="parts"/></entity>
            <composite name="Size"><attribute name="width" attributeType="Integer 16"/></composite>
            <configuration name="Only"><memberEntity name="Part"/></configuration>
            <fetchRequest name="All" entity="Item" fetchLimit="5" includesSubentities="NO"/>
            """
        )
        expectEqual(source.faults, [])
        expectEqual(source.versionIdentifier, "2")
        let item = try require(source.entities.first)
        expect(item.className == ".Thing" && item.codeGeneration == .class && item.isAbstract)
        expect(item.line == 2 && item.renamingIdentifier == "Old" && item.userInfo == ["note": "1", "empty": ""])
        expectEqual(item.uniquenessConstraints, [["price", "sum"]])
        expectEqual(item.properties.map(\.facts.name), ["price", "sum", "parts", "dear", "size"])
        guard case .attribute(let price) = item.properties[0], case .attribute(let sum) = item.properties[1],
            case .relationship(let parts) = item.properties[2], case .fetched(let dear) = item.properties[3],
            case .attribute(let size) = item.properties[4],
            case .relationship(let back)? = source.entities[1].properties.first
        else {
            Issue.record("\(item.properties)")
            return
        }
        expect(price.facts.isOptional && price.type == .decimal && price.text("defaultValueString") == "0.5")
        expect(sum.isDerived && sum.derivationExpression == "sum:(parts.price)" && !sum.facts.isOptional)
        expect(parts.isToMany && parts.isOrdered && parts.deleteRule == .cascade && parts.facts.line == 5)
        expect((parts.minCount, parts.maxCount) == (1, 3) && parts.inverse == .init(name: "item", entity: "Part"))
        expect(
            back.maxCount == 1 && back.inverse == .init(name: "parts", entity: "Item") && back.deleteRule == .nullify
        )
        expect(dear.request?.predicate == "price > 1" && dear.request?.entity == "Part")
        expect(size.type == .composite && size.compositeNames == ["Size"])
        let index = try require(item.indexes.first)
        expect(index.name == "byPrice" && index.partialPredicate == "price > 0")
        expectEqual(index.elements.map(\.isAscending), [false, true])
        expectEqual(index.elements.map(\.isTree), [false, true])
        expectEqual(index.elements.map(\.expressionType), [nil, .double])
        expectEqual(source.composites.first?.elements.map(\.facts.name), ["width"])
        expectEqual(source.configurations.map(\.members), [["Part"]])
        let request = try require(source.fetchRequests.first)
        expect(request.limit == 5 && !request.includesSubentities && request.returnsObjectsAsFaults)
    }

    @Test(
        arguments: [
            ("<entity/>", nil, nil, "an entity has no name"),
            ("<entity name=\"A\"><attribute attributeType=\"URI\"/></entity>", "A", nil, "a property has no name"),
            ("<entity name=\"A b\"/>", "A b", nil, "must start with a letter"),
            ("<entity name=\"A\"><attribute name=\"hash\"/></entity>", "A", "hash", "the name is reserved"),
            (
                "<entity name=\"A\"><attribute name=\"x\" attributeType=\"Strin\"/></entity>", "A", "x",
                "\"Strin\" is unknown"
            ),
            (
                "<entity name=\"A\"><attribute name=\"x\" derived=\"YES\"/></entity>", "A", "x",
                "no derivation expression"
            ),
            (
                "<entity name=\"A\"><composite name=\"x\" composite=\"No\"/></entity>", "A", "x",
                "\"No\" is not in the model"
            ),
            ("<entity name=\"A\"><relationship name=\"x\"/></entity>", "A", "x", "no destination entity"),
            ("<entity name=\"A\"><attribute name=\"x\"/><attribute name=\"x\"/></entity>", "A", "x", "two properties"),
            ("<fetchRequest entity=\"A\"/>", nil, nil, "a fetch request has no name"),
            ("<fetchRequest name=\"F\" entity=\"Z\"/>", nil, nil, "entity \"Z\", which is not in the model"),
            (
                "<fetchRequest name=\"F\" entity=\"A\" fetchOffset=\"-1\"/>", nil, nil,
                "fetchOffset is not a count: \"-1\""
            ),
            ("<configuration name=\"C\"><memberEntity name=\"Z\"/></configuration>", "Z", nil, "configuration \"C\""),
            ("<configuration name=\"C\"/><configuration name=\"C\"/>", nil, nil, "two configurations"),
            ("<entity name=\"A\"/><entity name=\"A\"/>", "A", nil, "two entities"),
            ("<entity name=\"A\" parentEntity=\"Z\"/>", "A", nil, "\"Z\" is not in the model"),
            (
                "<entity name=\"A\" parentEntity=\"B\"/><entity name=\"B\" parentEntity=\"A\"/>", "A", nil,
                "inheritance cycle"
            ),
        ] as [(String, String?, String?, String)]
    )
    func `a contradiction names its entity, its property and its line`(
        _ lines: String,
        _ entity: String?,
        _ property: String?,
        _ reason: String
    ) throws {
        let fault = try require(Self.source("\n" + lines).faults.first)
        expect(fault.kind == .invalid && fault.reason.contains(reason), "\(fault)")
        expectEqual(fault.entity, entity)
        expectEqual(fault.property, property)
        expectEqual(fault.line, 3)
    }

    @Test(arguments: [
        ("destinationEntity=\"Z\"", "\"Z\" is not in the model"),
        ("destinationEntity=\"A\" inverseName=\"y\"", "its inverse \"y\" is not a relationship of \"A\""),
        ("destinationEntity=\"A\" inverseName=\"x\" inverseEntity=\"Z\"", "relationship of \"Z\""),
        ("destinationEntity=\"A\" deletionRule=\"Forget\"", "the deletion rule \"Forget\" is unknown"),
        ("destinationEntity=\"A\" toMany=\"YES\" maxCount=\"many\"", "maxCount is not a count: \"many\""),
        ("destinationEntity=\"A\" minCount=\"99999999999\"", "minCount is not a count"),
        ("destinationEntity=\"A\" minCount=\"-2\"", "minCount is not a count"),
    ])
    func `so does one of a relationship`(_ attributes: String, _ reason: String) throws {
        let source = try Self.source("<entity name=\"A\">\n<relationship name=\"x\" \(attributes)/></entity>")
        let fault = try require(source.faults.first)
        expect(fault.entity == "A" && fault.property == "x" && fault.line == 3 && fault.reason.contains(reason))
    }

    @Test func `all faults of a model are found at once, and what can be read is there`() throws {
        let source = try Self.source(
            """
            <entity name="A"><attribute name="x" attributeType="Wrong"/><relationship name="y" destinationEntity="C"/></entity>
            <entity name="B" parentEntity="D"/>
            """
        )
        expectEqual(source.faults.count, 3)
        expectEqual(source.entities.map(\.name), ["A", "B"])
        expectEqual(source.entities.first?.properties.map(\.facts.name), ["y"])
        expectThrows(ModelError.self) { try ModelSource(xml: Data("<plist/>".utf8)) }
    }

    @Test func `an inverse may be declared by a super-entity, and trees may be wide but not as deep as one likes`()
        throws
    {
        let inherited = try Self.source(
            """
            <entity name="A"><relationship name="x" destinationEntity="C" inverseName="y"/></entity>
            <entity name="B"><relationship name="y" destinationEntity="A" inverseName="x"/></entity>
            <entity name="C" parentEntity="B"/>
            """
        )
        expectEqual(inherited.faults, [])
        func entities(_ count: Int, below parent: (Int) -> Int) -> String {
            (0..<count).map { "<entity name=\"E\($0)\"\($0 == 0 ? "" : " parentEntity=\"E\(parent($0))\"")/>" }.joined()
        }
        try expectEqual(Self.source(entities(10_000) { _ in 0 }).faults, [])
        try expectEqual(Self.source(entities(257) { $0 - 1 }).faults, [])
        let deep = try Self.source(entities(10_000) { $0 - 1 }).faults
        expectEqual(deep.map(\.reason), ["it has more than 256 super-entities"])
    }

    @Test func `an error is one sentence with the place`() {
        var error = ModelError(.invalid, entity: "A", property: "x", line: 7, "it is wrong")
        expectEqual(error.message, "The model cannot be used: property \"x\" of entity \"A\": it is wrong (line 7)")
        error.file = URL(fileURLWithPath: "/m/contents")
        error.source = "City.name"
        expectEqual(error.message, "The model at /m/contents cannot be used: City.name: it is wrong (line 7)")
        expectEqual(ModelError(.invalid, entity: "A", "it is wrong").sentence, "entity \"A\": it is wrong")
    }

    @Test func `names are words that begin with a letter, of letters of any alphabet`() {
        for name in ["a", "_a", "größe", "漢字", "a1", String(repeating: "a", count: 255)] {
            expectEqual(ModelNames.fault(name, of: "a property"), nil)
        }
        for name in ["", "1a", "a b", "a.b", "a-b", "a\u{0}", "😀", "\"", String(repeating: "a", count: 256)] {
            expect(ModelNames.fault(name, of: "a property") != nil, "\(name)")
        }
        expect(ModelNames.memberFault("objectID") != nil && ModelNames.memberFault("name") == nil)
    }
}
