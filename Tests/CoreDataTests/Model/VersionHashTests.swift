import CoreData
import Expectations
import StrataKeys
import StrataModelFiles
import StrataSQL
import StrataSQLiteStore
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// Models like those of stores that SwiftData has made, and the contents of these stores.
private enum SwiftDataStores {
    /// The rows of a table, without its header.
    static func rows(_ name: String) throws -> [[String]] {
        let text = try String(contentsOf: Fixtures.url("swiftdata/\(name)"), encoding: .utf8)
        return text.split(separator: "\n").dropFirst().map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// The model of a store; `nil` if the store is not here.
    static func model(_ name: String) throws -> NSManagedObjectModel? {
        let url = Fixtures.url("swiftdata/models/\(name).xcdatamodel")
        guard FileManager.default.fileExists(atPath: url.path) else { return nil }
        return try NSManagedObjectModel(reading: url)
    }
}

@Suite("Version hashes")
struct VersionHashTests {
    @Test func `SHA-256 and SHA-512 agree with the published test vectors`() {
        let abc = Data("abc".utf8)
        let long = Data("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
        let hex = { (data: Data) in data.map { String(format: "%02x", $0) }.joined() }

        expectEqual(hex(SHA2.sha256(abc)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        expectEqual(hex(SHA2.sha256(Data())), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        expectEqual(hex(SHA2.sha256(long)), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
        expect(
            hex(SHA2.sha512(abc))
                == "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        )
        expect(hex(SHA2.sha512(Data(repeating: 0x61, count: 200))).hasPrefix("4b11459c33f52a22ee8236782714c150"))
    }

    /// A model with an attribute that is derived from a text by a function.
    private static func derivedModel() -> NSManagedObjectModel {
        let derived = NSDerivedAttributeDescription()
        (derived.name, derived.type, derived.isOptional) = ("low", .string, true)
        derived.derivationExpression = NSExpression(format: "lowercase:(name)")
        let entity = GuideModel.entity("Note", NSManagedObject.self)
        entity.properties = [GuideModel.attribute("name", .string), derived]
        let model = NSManagedObjectModel()
        model.entities = [entity]
        return model
    }

    @Test
    func `a derivation by a function has the same hash in code, in a file, and in the model's copy in a store`() throws
    {
        let model = Self.derivedModel()
        let hash = try require(model.entitiesByName["Note"]?.propertiesByName["low"]?.versionHash)
        expectEqual(hash, SHA2.sha256(Data("lowercase:(name)".utf8)), "as in a file")
        let copy = try NSManagedObjectModel(cachedModelData: require(model.cachedModelData()))
        expectEqual(copy.entityVersionHashesByName, model.entityVersionHashesByName)
    }

    @Test
    func `a store with the former hash of a derivation by a function is still one of its model`() throws {
        let model = Self.derivedModel()
        let entity = try require(model.entitiesByName["Note"])
        let former = try require(VersionHash.formerHash(of: entity))
        expect(former != entity.versionHash)
        expectEqual(model.hashesByPresentRule(of: ["Note": former]), ["Note": entity.versionHash])
        let stack = try Stack(.memory, model: model)
        let store = try require(stack.coordinator.persistentStores.first)
        var metadata = stack.coordinator.metadata(for: store)
        metadata[NSStoreModelVersionHashesKey] = ["Note": former]
        expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
    }

    @Test
    func `several uniqueness constraints count in the order of their texts, as in a store that Apple's framework made`()
        throws
    {
        // LoopKit's entity CachedCarbObject, and its hash in the metadata of a store.
        let lines = """
            <entity name="CachedCarbObject">
                <attribute name="absorptionTime" optional="YES" attributeType="Double"/>
                <attribute name="createdByCurrentApp" attributeType="Boolean"/>
                <attribute name="externalID" optional="YES" attributeType="String"/>
                <attribute name="foodType" optional="YES" attributeType="String"/>
                <attribute name="grams" attributeType="Double"/>
                <attribute name="startDate" attributeType="Date"/>
                <attribute name="syncIdentifier" optional="YES" attributeType="String"/>
                <attribute name="syncVersion" attributeType="Integer 32"/>
                <attribute name="uploadState" attributeType="Integer 32"/>
                <attribute name="uuid" optional="YES" attributeType="UUID"/>
                <uniquenessConstraints>
                    <uniquenessConstraint><constraint value="uuid"/></uniquenessConstraint>
                    <uniquenessConstraint><constraint value="syncIdentifier"/></uniquenessConstraint>
                </uniquenessConstraints>
            </entity>
            """
        let model = try NSManagedObjectModel.parsing(lines)
        let entity = try require(model.entitiesByName["CachedCarbObject"])
        let expected = "ae31955ac7c9c33da2967cf5d2ba1408f666f2587f2dd5c2e6c403b8f31c2410"
        func hash() -> String { entity.versionHash.map { String(format: "%02x", $0) }.joined() }
        expectEqual(hash(), expected)
        entity.uniquenessConstraints.reverse()
        expectEqual(hash(), expected)
        entity.uniquenessConstraints.removeLast()
        expect(hash() != expected)
    }

    // MARK: - Composite attributes

    @Test func `composite attributes have the hashes that they have in stores of SwiftData`() throws {
        let rows = try SwiftDataStores.rows("composite-vectors.tsv")
        expectEqual(rows.count, 14)
        for row in rows {
            let model = try require(try SwiftDataStores.model(row[0]))
            let attribute = try require(model.entity(row[1]).attributesByName[row[2]])
            expect(attribute is NSCompositeAttributeDescription)
            expectEqual(attribute.versionHash.base64EncodedString(), row[6], "\(row[0]) \(row[1]).\(row[2])")
        }
    }

    @Test func `entities have the hashes that they have in stores of SwiftData`() throws {
        var models: [String: NSManagedObjectModel] = [:]
        var count = 0
        for row in try SwiftDataStores.rows("hashes.tsv") {
            guard let model = try models[row[0]] ?? SwiftDataStores.model(row[0]) else { continue }
            models[row[0]] = model
            try expectEqual(model.entity(row[2]).versionHash.base64EncodedString(), row[5], "\(row[0]) \(row[2])")
            count += 1
        }
        expect(count > 30, "\(count)")
    }

    @Test func `columns of elements are named as in stores of SwiftData`() throws {
        let model = try require(try SwiftDataStores.model("MetaCocktails-18228b5c"))
        try model.tryFreeze()
        let mapping = try SQLMapping(model.frozen.schema)
        func column(_ entity: String, _ path: String) -> String? {
            mapping.entities.first { $0.layout.name == entity }?.column(named: path)?.name?.raw
        }
        expectEqual(column("Cocktail", "author.id"), "ZID")
        expectEqual(column("Cocktail", "id"), "ZID1")
        expectEqual(column("CocktailImage", "backgroundColor.linearRed"), "ZLINEARRED")
        expectEqual(column("CocktailImage", "drinkColor.linearRed"), "ZLINEARRED1")
    }

    @Test func `a composite attribute is hashed over its elements alone, and formerly over itself as well`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="Person">
                <attribute name="name" attributeType="String"/>
                <composite name="home" optional="YES">
                    <attribute name="street" attributeType="String"/>
                    <attribute name="number" optional="YES" attributeType="Integer 16"/>
                </composite>
            </entity>
            """
        )
        let person = try model.entity("Person")
        let home = try require(person.attributesByName["home"] as? NSCompositeAttributeDescription)
        func hex(_ data: Data?) -> String { (data ?? Data()).map { String(format: "%02x", $0) }.joined() }

        let hash = "a87a32a717b39a89ed09b6fc454be2fff91dcb20ab6fd8e992c803e0989aea92"
        let former = "dce56711c06ddbf060568419f420dfed9e6aa60d115aa4f66c7beda8e367cb88"
        expect(hex(person.versionHash) == hash && hex(VersionHash.formerHash(of: person)) == former)
        (home.name, home.isOptional, home.versionHashModifier) = ("flat", false, "2")
        home.elements.reverse()
        expect(hex(person.versionHash) == hash && hex(VersionHash.formerHash(of: person)) != former)
        home.elements[0].isOptional.toggle()
        expect(hex(person.versionHash) != hash)
        home.isTransient = true
        expectEqual(VersionHash.formerHash(of: person), nil)
    }

    // MARK: - Model files

    @Test func `a model file has the hashes of the model that is made of it`() throws {
        let lines = ModelFixtures.everything
        let source = try ModelSource(xml: Data("<model>\n\(lines)\n</model>".utf8))
        expectEqual(source.faults, [])
        try expectEqual(source.versionHashes, NSManagedObjectModel.parsing(lines).entityVersionHashesByName)
    }

    @Test(arguments: ModelFixtures.paths.filter { !$0.hasSuffix(".mom") })
    func `a file of another program's model has the hashes of the model that is made of it`(_ path: String) throws {
        let url = Fixtures.url(path)
        let source = try ModelSource(xml: Data(contentsOf: url))
        try expectEqual(source.versionHashes, NSManagedObjectModel(reading: url).entityVersionHashesByName)
    }

    @Test(arguments: AppleStores.pairs)
    func `every hash equals the one in a store that Apple's framework made`(_ pair: AppleStores.Pair) throws {
        let model = try AppleStores.model(pair)
        let metadata = try AppleStores.metadata(of: pair)

        let stored = try require(metadata["NSStoreModelVersionHashes"] as? [String: Data])
        expectEqual(model.entityVersionHashesByName, stored)
        expect(model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata))
        if let digest = metadata["NSStoreModelVersionHashesDigest"] as? String {
            expectEqual(SchemaHashes.digest(of: model.entityVersionHashesByName), digest)
        }
        if let checksum = metadata["NSStoreModelVersionChecksumKey"] as? String {
            expectEqual(model.versionChecksum, checksum)
        }
    }

    @Test(arguments: AppleStores.pairs)
    func `entities are numbered as in a store that Apple's framework made`(_ pair: AppleStores.Pair) throws {
        let model = try AppleStores.model(pair)
        let rows = try AppleStores.rows(
            "SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY WHERE Z_ENT < 16000 ORDER BY Z_ENT",
            in: pair
        )
        model.freeze()

        let numbered = model.frozen.entities.map { [$0.entityNumber, $0.superentity?.entityNumber ?? 0] }
        expectEqual(numbered, rows.map { [Int($0[0] as? Int64 ?? -1), Int($0[2] as? Int64 ?? -1)] })
        expectEqual(model.frozen.entities.map(\.name), rows.map { $0[1] as? String })
    }
}
