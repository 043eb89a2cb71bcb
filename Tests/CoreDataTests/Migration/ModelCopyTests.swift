import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// The copy of its model that a store keeps.
@Suite("Copies of models in stores")
struct ModelCopyTests {
    @Test func `a copy has the hashes, the names and the defaults of the model`() throws {
        let model = try NSManagedObjectModel.parsing(
            """
            <entity name="Place" isAbstract="YES" elementID="Spot" versionHashModifier="7">
            <attribute name="name" attributeType="String" defaultValueString="Straße" elementID="title"/>
            <attribute name="size" optional="YES" attributeType="Integer 32" defaultValueString="-5" usesScalarValueType="NO"/>
            <attribute name="price" optional="YES" attributeType="Decimal" defaultValueString="10.11"/>
            <attribute name="map" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES" preserveAfterDeletion="YES"/>
            <attribute name="note" optional="YES" transient="YES" attributeType="String"/>
            <uniquenessConstraints><uniquenessConstraint><constraint value="name"/><constraint value="size"/></uniquenessConstraint></uniquenessConstraints>
            <fetchIndex name="byName"><fetchIndexElement property="name" type="Binary" order="descending"/></fetchIndex></entity>
            <entity name="Venue" parentEntity="Place">
            <attribute name="total" optional="YES" attributeType="Integer 64" derived="YES" derivationExpression="guests.@count" usesScalarValueType="NO"/>
            <relationship name="guests" optional="YES" toMany="YES" ordered="YES" deletionRule="Cascade" destinationEntity="Guest" inverseName="venue" inverseEntity="Guest"/></entity>
            <entity name="Guest"><attribute name="since" optional="YES" attributeType="Date" usesScalarValueType="NO"/>
            <relationship name="venue" optional="YES" maxCount="1" destinationEntity="Venue" inverseName="guests" inverseEntity="Venue"/></entity>
            <configuration name="Part"><memberEntity name="Guest"/></configuration>
            """
        )
        let data = try require(model.cachedModelData())
        let copy = try NSManagedObjectModel(cachedModelData: data)
        expectEqual(copy.entityVersionHashesByName, model.entityVersionHashesByName)
        let (place, venue) = (try require(copy.entitiesByName["Place"]), try require(copy.entitiesByName["Venue"]))
        expectEqual(place.renamingIdentifier, "Spot")
        expect(place.isAbstract)
        expectEqual(place.uniquenessConstraintNames, [["name", "size"]])
        expectEqual(place.indexes.map(\.name), ["byName"])
        expectEqual(place.indexes.first?.elements.first?.isAscending, false)
        expect(venue.superentity === place)
        expectEqual(venue.ownProperties.map(\.name).sorted(), ["guests", "total"])
        let attributes = place.attributesByName
        expectEqual(attributes["name"]?.renamingIdentifier, "title")
        expectEqual(attributes["name"]?.defaultValue as? String, "Straße")
        expectEqual(attributes["size"]?.defaultValue as? Int, -5)
        expectEqual((attributes["price"]?.defaultValue as? NSDecimalNumber)?.decimalValue, Decimal(string: "10.11"))
        expectEqual(attributes["map"]?.allowsExternalBinaryDataStorage, true)
        expectEqual(attributes["map"]?.preservesValueInHistoryOnDeletion, true)
        expectEqual(attributes["note"]?.isTransient, true)
        expectEqual(venue.relationshipsByName["guests"]?.deleteRule, .cascadeDeleteRule)
        expectEqual(venue.relationshipsByName["guests"]?.isOrdered, true)
        expectEqual(copy.entities(forConfigurationName: "Part")?.map(\.name), ["Guest"])
    }

    @Test(arguments: AppleStores.pairs)
    func `the models of Apple's stores come back with their hashes`(_ pair: AppleStores.Pair) throws {
        let model = try AppleStores.model(pair)
        let copy = try NSManagedObjectModel(cachedModelData: try require(model.cachedModelData()))
        expectEqual(copy.entityVersionHashesByName, model.entityVersionHashesByName)
    }

    @Test func `packed data comes back as it was`() throws {
        var random = SystemRandomNumberGenerator()
        var samples = [Data(), Data([1]), Data([1, 2]), Data(repeating: 9, count: 100_000)]
        samples.append(Data((0..<70_000).map { _ in UInt8.random(in: 0...255, using: &random) }))
        samples.append(Data((0..<70_000).map { UInt8($0 % 251) }))
        samples.append(Data((0..<90_000).map { _ in UInt8.random(in: 0...3, using: &random) }))
        for sample in samples {
            try expectEqual(Inflate.inflate(Deflate.deflate(sample), limit: 1 << 20), sample)
        }
        expect(Deflate.deflate(samples[3]).count < 1000)
    }

    @Test func `a new store has a copy, and one that lacks it gets it with the next save`() throws {
        let lines =
            "<entity name=\"City\"><attribute name=\"name\" optional=\"YES\" attributeType=\"String\"/></entity>"
        let store = try AgingStore()
        try store.use(lines) { _ in }
        try expectEqual(store.number("SELECT COUNT(*) FROM Z_MODELCACHE"), 1)
        let writer = try Connection(path: store.url.path, access: .readWrite)
        try writer.execute("DELETE FROM Z_MODELCACHE")
        writer.close()
        try store.use(lines) { _ in }
        try expectEqual(store.number("SELECT COUNT(*) FROM Z_MODELCACHE"), 0, "opening writes nothing")
        try store.use(lines) { $0.insert("City") }
        try expectEqual(store.number("SELECT COUNT(*) FROM Z_MODELCACHE"), 1)
        let data = try require(try SQLiteEngine.cachedModel(at: store.url))
        try expectEqual(NSManagedObjectModel(cachedModelData: data).entitiesByName.keys.sorted(), ["City"])
    }
}
