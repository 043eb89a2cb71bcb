import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Reading models from XML")
struct ModelReadingTests {
    private typealias Kind = NSAttributeDescription.AttributeType

    // MARK: - Entities

    @Test func `an entity has all that the file says`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="Base" isAbstract="YES" representedClassName=".Base" versionHashModifier="m" syncable="YES">
                <attribute name="name" attributeType="String" optional="YES"/>
                <uniquenessConstraints>
                    <uniquenessConstraint><constraint value="name"/></uniquenessConstraint>
                </uniquenessConstraints>
                <userInfo><entry key="color" value="red"/><entry key="empty" value=""/></userInfo>
            </entity>
            <entity name="Leaf" parentEntity="Base" renamingIdentifier="Blade" codeGenerationType="class">
                <attribute name="size" attributeType="Integer 16" usesScalarValueType="YES"/>
                <compoundIndexes><compoundIndex><index value="name"/><index value="size"/></compoundIndex></compoundIndexes>
            </entity>
            <elements><element name="Base" positionX="0" positionY="0" width="1" height="1"/></elements>
            """,
            attributes: "userDefinedModelVersionIdentifier=\"2.1\""
        )

        let (base, leaf) = (try model.entity("Base"), try model.entity("Leaf"))
        expect(base.isAbstract && base.managedObjectClassName == ".Base" && base.versionHashModifier == "m")
        expectEqual(base.uniquenessConstraintNames, [["name"]])
        expectEqual(base.userInfo as? [String: String], ["color": "red", "empty": ""])
        expect(leaf.superentity === base && base.subentities == [leaf])
        expect(!leaf.isAbstract && leaf.managedObjectClassName == "NSManagedObject")
        expect(leaf.renamingIdentifier == "Blade" && leaf.compoundIndexNames == [["name", "size"]])
        expectEqual(model.versionIdentifiers, ["2.1"])
        try model.tryFreeze()
    }

    @Test func `entities may come in any order`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="C" parentEntity="B"/><entity name="B" parentEntity="A"/><entity name="A"/>
            """
        )
        try expectEqual(model.entity("C").ancestors.map(\.name), ["B", "A"])
    }

    // MARK: - Attributes

    private struct Written: Sendable, CustomTestStringConvertible {
        let type: String
        let kind: NSAttributeDescription.AttributeType
        let text: String
        let value: @Sendable () -> NSObject
        var testDescription: String { type }

        init(
            _ type: String,
            _ kind: NSAttributeDescription.AttributeType,
            _ text: String,
            _ value: @escaping @Sendable @autoclosure () -> NSObject
        ) {
            self.type = type
            self.kind = kind
            self.text = text
            self.value = value
        }
    }

    private static let written = [
        Written("Integer 16", .integer16, "-7", NSNumber(value: -7)),
        Written("Integer 32", .integer32, "70000", NSNumber(value: 70000)),
        Written("Integer 64", .integer64, "9007199254740993", NSNumber(value: 9_007_199_254_740_993)),
        Written("Integer 32", .integer32, "0.0", NSNumber(value: 0)),
        Written("Decimal", .decimal, "12.34", NSDecimalNumber(string: "12.34")),
        Written("Double", .double, "0.1", NSNumber(value: 0.1)),
        Written("Float", .float, "0.5", NSNumber(value: 0.5 as Float)),
        Written("String", .string, "", NSString("")),
        Written("String", .string, "a &lt;b&gt; ü", NSString("a <b> ü")),
        Written("Boolean", .boolean, "YES", NSNumber(value: true)),
        Written("Boolean", .boolean, "NO", NSNumber(value: false)),
        Written("Boolean", .boolean, "1", NSNumber(value: true)),
        Written("Binary", .binaryData, "AQI=", NSData(data: Data([1, 2]))),
        Written(
            "UUID",
            .uuid,
            "E621E1F8-C36C-495A-93FC-0C247A3E6E5F",
            NSUUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F") ?? NSUUID()
        ),
        Written("URI", .uri, "file:///", URL(fileURLWithPath: "/") as NSURL),
    ]

    @Test(arguments: written) private func `types and default values are read`(_ written: Written) throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <attribute name="x" attributeType="\(written.type)" defaultValueString="\(written.text)"/>
                <attribute name="y" attributeType="\(written.type)" optional="YES"/>
            </entity>
            """
        )
        let attributes = try model.entity("A").attributesByName

        expectEqual(attributes["x"]?.type, written.kind)
        let value = try require(attributes["x"]?.defaultValue)
        expectEqual(NSArray(array: [value]), NSArray(object: written.value()))
        expect(attributes["x"]?.isOptional == false && attributes["y"]?.isOptional == true)
        expect(attributes["y"]?.defaultValue == nil)
    }

    @Test func `the other facts of attributes are read`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <attribute name="date" attributeType="Date" defaultDateTimeInterval="86400"/>
                <attribute name="image" attributeType="Binary" allowsExternalBinaryDataStorage="YES" indexed="YES"/>
                <attribute name="color" attributeType="Transformable" valueTransformerName="T" customClassName="Color"/>
                <attribute name="cache" transient="YES" elementID="oldCache"/>
                <attribute name="kept" attributeType="String" preserveAfterDeletion="YES" versionHashModifier="2"/>
                <attribute name="upper" attributeType="String" derived="YES" derivationExpression="uppercase:(kept)"/>
                <attribute name="owner" attributeType="String" derived="YES" derivationExpression="kept"/>
            </entity>
            """
        )
        let attributes = try model.entity("A").attributesByName

        expectEqual(attributes["date"]?.defaultValue as? Date, Date(timeIntervalSinceReferenceDate: 86400))
        expect(attributes["image"]?.allowsExternalBinaryDataStorage == true && attributes["image"]?.isIndexed == true)
        expectEqual(attributes["color"]?.valueTransformerName, "T")
        expectEqual(attributes["color"]?.attributeValueClassName, "Color")
        expect(attributes["cache"]?.isTransient == true && attributes["cache"]?.type == .undefined)
        expectEqual(attributes["cache"]?.renamingIdentifier, "oldCache")
        expectEqual(attributes["kept"]?.preservesValueInHistoryOnDeletion, true)
        expectEqual(attributes["kept"]?.versionHashModifier, "2")
        let derived = try require(attributes["upper"] as? NSDerivedAttributeDescription)
        expect(
            derived.derivationText == "uppercase:(kept)" && derived.derivationExpression?.expressionType == .function
        )
        expectEqual((attributes["owner"] as? NSDerivedAttributeDescription)?.derivationExpression?.keyPath, "kept")
    }

    @Test func `a composite attribute is read in Xcode's spelling`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="Person" representedClassName="Person" syncable="YES" codeGenerationType="class">
                <attribute name="name" optional="YES" attributeType="Composite" composite="FullName"/>
            </entity>
            <composite name="FullName">
                <attribute name="first" optional="YES" attributeType="String"/>
                <attribute name="place" optional="YES" attributeType="Composite" composite="Point"/>
            </composite>
            <composite name="Point"><attribute name="x" attributeType="Double" defaultValueString="2.5"/></composite>
            """
        )

        expectEqual(model.entities.map(\.name), ["Person"])
        let name = try require(model.entity("Person").attributesByName["name"] as? NSCompositeAttributeDescription)
        expect(name.type == .composite && name.isOptional)
        expectEqual(name.elements.map(\.name), ["first", "place"])
        let point = try require(name.elements[1] as? NSCompositeAttributeDescription)
        expect(point.elements.map(\.name) == ["x"] && point.elements[0].defaultValue as? Double == 2.5)
        try model.tryFreeze()
    }

    @Test func `a composite attribute takes its elements from the type that it names`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A"><composite name="home" compositeName="Address" optional="YES"/></entity>
            <composite name="Address">
                <attribute name="street" attributeType="String"/>
                <composite name="place" compositeName="Point"/>
            </composite>
            <composite name="Point"><attribute name="x" attributeType="Double"/></composite>
            """
        )
        let home = try require(model.entity("A").attributesByName["home"] as? NSCompositeAttributeDescription)

        expect(home.type == .composite && home.isOptional)
        expectEqual(home.elements.map(\.name), ["street", "place"])
        expectEqual((home.elements[1] as? NSCompositeAttributeDescription)?.elements.map(\.type), [.double])
    }

    @Test(arguments: [
        (
            "Integer 32", "minValueString=\"1\" maxValueString=\"9\"", [5, 1, 9] as [any Sendable],
            [0, 10] as [any Sendable]
        ),
        ("Double", "minValueString=\"0.5\"", [0.5, 7], [0.25]),
        ("String", "minValueString=\"2\" maxValueString=\"3\"", ["ab", "abc"], ["a", "abcd"]),
        ("String", "regularExpressionString=\"[a-c]+\"", ["abc"], ["abd", ""]),
        (
            "Date", "minDateTimeInterval=\"0\" maxDateTimeInterval=\"10\"",
            [Date(timeIntervalSinceReferenceDate: 5)], [Date(timeIntervalSinceReferenceDate: -1)]
        ),
    ])
    func `limits become validation predicates`(
        _ type: String,
        _ limits: String,
        _ good: [any Sendable],
        _ bad: [any Sendable]
    ) throws {
        let model = try NSManagedObjectModel.parsing(
            "<entity name=\"A\"><attribute name=\"x\" attributeType=\"\(type)\" \(limits)/></entity>"
        )
        let attribute = try require(model.entity("A").attributesByName["x"])

        expect(!attribute.validationPredicates.isEmpty)
        expectEqual(attribute.validationPredicates.count, attribute.validationWarnings.count)
        for value in good {
            expect(attribute.validationPredicates.allSatisfy { $0.evaluate(with: value) })
        }
        for value in bad {
            expect(!attribute.validationPredicates.allSatisfy { $0.evaluate(with: value) })
        }
    }

    @Test func `a limit that fails has its own error code`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <attribute name="n" attributeType="Double" minValueString="1" maxValueString="2"/>
                <attribute name="t" attributeType="String" minValueString="1" maxValueString="2"
                    regularExpressionString="a"/>
                <attribute name="d" attributeType="Date" minDateTimeInterval="1" maxDateTimeInterval="2"/>
            </entity>
            """
        )
        let codes = try model.entity("A").attributesByName.mapValues { $0.validationWarnings as? [Int] }

        expectEqual(codes, ["n": [1620, 1610], "t": [1670, 1660, 1680], "d": [1640, 1630]])
    }

    // MARK: - Relationships, indexes, queries

    @Test func `relationships have ends, counts, rules and order`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <relationship name="many" toMany="YES" minCount="2" maxCount="5" deletionRule="Cascade" ordered="YES"
                    destinationEntity="B" inverseName="one" inverseEntity="B" optional="YES" syncable="YES"/>
                <relationship name="loose" toMany="YES" deletionRule="No Action" destinationEntity="B"/>
            </entity>
            <entity name="B">
                <relationship name="one" maxCount="1" deletionRule="Deny" destinationEntity="A" inverseName="many"
                    inverseEntity="A"/>
            </entity>
            """
        )
        let many = try require(model.entity("A").relationshipsByName["many"])
        let one = try require(model.entity("B").relationshipsByName["one"])
        let loose = try require(model.entity("A").relationshipsByName["loose"])

        expect(many.isToMany && many.minCount == 2 && many.maxCount == 5 && many.isOrdered && many.isOptional)
        expect(many.deleteRule == .cascadeDeleteRule && many.inverseRelationship === one)
        expect(
            !one.isToMany && !one.isOptional && one.deleteRule == .denyDeleteRule && one.inverseRelationship === many
        )
        expect(one.destinationEntity === model.entitiesByName["A"])
        expect(loose.maxCount == 0 && loose.inverseRelationship == nil && loose.deleteRule == .noActionDeleteRule)
        try expectEqual(model.entity("A").relationships(forDestination: model.entity("B")).count, 2)
    }

    @Test func `fetch indexes have elements, kinds, order and a predicate`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <attribute name="x" attributeType="Double"/><attribute name="t" attributeType="String"/>
                <fetchIndex name="plain" partialIndexPredicate="x &gt; 3">
                    <fetchIndexElement property="t" type="Binary" order="descending"/>
                    <fetchIndexElement property="x" type="Binary" order="ascending"/>
                </fetchIndex>
                <fetchIndex name="tree"><fetchIndexElement property="x" type="RTree" order="ascending"/></fetchIndex>
                <fetchIndex name="computed">
                    <fetchIndexElement expression="lowercase:(t)" expressionType="String" type="Binary" order="ascending"/>
                </fetchIndex>
            </entity>
            """
        )
        let indexes = try model.entity("A").indexes

        expectEqual(indexes.map(\.name), ["plain", "tree", "computed"])
        expectEqual(indexes[0].elements.map(\.propertyName), ["t", "x"])
        expectEqual(indexes[0].elements.map(\.isAscending), [false, true])
        expectEqual(indexes[0].partialIndexPredicate?.evaluate(with: ["x": 4]), true)
        expectEqual(indexes[1].elements.map(\.collationType), [.rTree])
        let computed = try require(indexes[2].elements[0].property as? NSExpressionDescription)
        expect(computed.resultType == .string && indexes[2].elements[0].propertyName == nil)
        expect(indexes[2].elements[0].indexDescription === indexes[2] && indexes[2].entity?.name == "A")
    }

    @Test func `fetched properties, templates and configurations are read`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <attribute name="x" attributeType="Integer 64"/>
                <fetchedProperty name="peers" optional="YES">
                    <fetchRequest name="fetchedPropertyFetchRequest" entity="B" predicateString="x == $FETCH_SOURCE.x"/>
                    <userInfo><entry key="k" value="v"/></userInfo>
                </fetchedProperty>
            </entity>
            <entity name="B"><attribute name="x" attributeType="Integer 64"/></entity>
            <configuration name="Remote"><memberEntity name="B"/></configuration>
            <fetchRequest name="Big" entity="A" predicateString="x &gt; $LIMIT" fetchLimit="7" fetchBatchSize="20"
                includeSubentities="NO" returnDistinctResults="YES" resultType="1" returnObjectsAsFaults="NO"/>
            """
        )
        let peers = try require(model.entity("A").propertiesByName["peers"] as? NSFetchedPropertyDescription)
        let big = try require(model.fetchRequestTemplate(forName: "Big"))

        expect(peers.fetchRequest?.entity?.name == "B" && peers.userInfo?["k"] as? String == "v")
        expectEqual(peers.fetchRequest?.predicate?.formatText.contains("$FETCH_SOURCE"), true)
        expectEqual(model.configurations.dropFirst(), ["Remote"])
        expectEqual(model.entities(forConfigurationName: "Remote")?.map(\.name), ["B"])
        expect(big.entityName == "A" && big.fetchLimit == 7 && big.fetchBatchSize == 20)
        expect(!big.includesSubentities && big.returnsDistinctResults && !big.returnsObjectsAsFaults)
        expectEqual(big.resultType, .managedObjectIDResultType)
    }

    @Test func `each attribute of a template sets its own property, and no other`() throws {
        func template(_ attribute: String) throws -> [String: String] {
            let model = try NSManagedObjectModel.parsing(
                """
                <entity name="A"><attribute name="x" attributeType="Integer 64"/></entity>
                <fetchRequest name="T" entity="A" \(attribute)/>
                """
            )
            let request = try require(model.fetchRequestTemplate(forName: "T"))
            return [
                "predicate": request.predicate?.formatText ?? "", "limit": "\(request.fetchLimit)",
                "offset": "\(request.fetchOffset)", "batch": "\(request.fetchBatchSize)",
                "type": "\(request.resultType.rawValue)", "subentities": "\(request.includesSubentities)",
                "values": "\(request.includesPropertyValues)", "pending": "\(request.includesPendingChanges)",
                "faults": "\(request.returnsObjectsAsFaults)", "distinct": "\(request.returnsDistinctResults)",
            ]
        }
        let plain = try template("")
        expectEqual(
            plain,
            [
                "predicate": "", "limit": "0", "offset": "0", "batch": "0", "type": "0", "subentities": "true",
                "values": "true", "pending": "true", "faults": "true", "distinct": "false",
            ]
        )
        for (attribute, property, value) in [
            ("predicateString=\"x == 4\"", "predicate", "x == 4"), ("fetchLimit=\"7\"", "limit", "7"),
            ("fetchOffset=\"8\"", "offset", "8"), ("fetchBatchSize=\"9\"", "batch", "9"),
            ("resultType=\"2\"", "type", "2"), ("includeSubentities=\"NO\"", "subentities", "false"),
            ("includesSubentities=\"NO\"", "subentities", "false"), ("includePropertyValues=\"NO\"", "values", "false"),
            ("includesPendingChanges=\"NO\"", "pending", "false"),
            ("returnObjectsAsFaults=\"NO\"", "faults", "false"), ("returnDistinctResults=\"YES\"", "distinct", "true"),
        ] {
            try expectEqual(template(attribute), plain.merging([property: value]) { $1 }, "\(attribute)")
        }
    }

    // MARK: - Versions of the format

    @Test(arguments: [
        // Xcode 4 and 5: only the type and the tools' versions.
        """
        name="" userDefinedModelVersionIdentifier="" type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
        lastSavedToolsVersion="1811" systemVersion="12A269" minimumToolsVersion="Automatic" macOSVersion="Automatic" \
        iOSVersion="Automatic"
        """,
        // Xcode 7 and 8: the source language.
        """
        type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="11232" \
        systemVersion="16B2555" minimumToolsVersion="Xcode 7.0" sourceLanguage="Swift"
        """,
        // Xcode 11 and later: CloudKit.
        """
        type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" lastSavedToolsVersion="22522" \
        systemVersion="23A344" minimumToolsVersion="Automatic" sourceLanguage="Swift" usedWithCloudKit="YES" \
        usedWithSwiftData="YES" userDefinedModelVersionIdentifier=""
        """,
    ])
    func `every version of the format is read`(_ attributes: String) throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A" representedClassName="A" syncable="YES" codeGenerationType="class">
                <attribute name="old" optional="YES" attributeType="Integer 16" minValueString="0" maxValueString="10"
                    defaultValueString="0" syncable="YES"/>
                <attribute name="new" optional="YES" attributeType="Integer 16" defaultValueString="0"
                    usesScalarValueType="NO" storedInTruthFile="YES" spotlightIndexingEnabled="YES"/>
            </entity>
            <elements><element name="A" positionX="-63" positionY="-18" width="128" height="75"/></elements>
            """,
            attributes: attributes
        )
        try expectEqual(model.entity("A").attributesByName.count, 2)
        expectEqual(model.versionIdentifiers, [""])
    }

    @Test(arguments: AppleStores.pairs)
    func `a copy of a real model is equal to it`(_ pair: AppleStores.Pair) throws {
        let model = try AppleStores.model(pair)
        let copy = try require(model.copy() as? NSManagedObjectModel)

        expectEqual(copy.entityVersionHashesByName, model.entityVersionHashesByName)
        try copy.tryFreeze()
    }

    @Test func `facts of one's own are empty where a model says none`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="A">
                <attribute name="plain" attributeType="String"/>
                <attribute name="told" attributeType="String">
                    <userInfo><entry key="k" value="v"/></userInfo>
                </attribute>
            </entity>
            """
        )
        let entity = try require(model.entitiesByName["A"])
        expect(entity.userInfo?.isEmpty == true && entity.attributesByName["plain"]?.userInfo?.isEmpty == true)
        expectEqual(entity.attributesByName["told"]?.userInfo as? [String: String], ["k": "v"])
        expectEqual(NSEntityDescription().userInfo?.isEmpty, true)
        expectEqual(NSRelationshipDescription().userInfo?.isEmpty, true)
        let copy = entity.copy() as? NSEntityDescription
        expectEqual(copy?.userInfo?.isEmpty, true)
    }
}
