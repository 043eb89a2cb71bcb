import Expectations
import StrataKeys
import StrataModelFiles
import TestSupport
import Testing

@testable import CoreData

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

    @Test func `a model file has the hashes of the model that is made of it`() throws {
        let lines = ModelFixtures.everything
        let source = try ModelSource(xml: Data("<model>\n\(lines)\n</model>".utf8))
        expectEqual(source.faults, [])
        try expectEqual(source.versionHashes, NSManagedObjectModel.parsing(lines).entityVersionHashesByName)
    }

    @Test(
        .enabled(if: AppleStores.areAvailable, "the Apple-made stores are not here"),
        arguments: ModelFixtures.paths.filter { !$0.hasSuffix(".mom") }
    )
    func `a file of somebody else's model has the hashes of the model that is made of it`(_ path: String) throws {
        let url = ModelFixtures.url(path)
        let source = try ModelSource(xml: Data(contentsOf: url))
        try expectEqual(source.versionHashes, NSManagedObjectModel(reading: url).entityVersionHashesByName)
    }

    @Test(.enabled(if: AppleStores.areAvailable, "the Apple-made stores are not here"), arguments: AppleStores.pairs)
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

    @Test(.enabled(if: AppleStores.areAvailable, "the Apple-made stores are not here"), arguments: AppleStores.pairs)
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
