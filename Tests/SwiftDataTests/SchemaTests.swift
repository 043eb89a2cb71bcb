import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import SwiftData

@Suite("SwiftData: schemas")
struct SchemaTests {
    @Test func `a schema has the hashes of the store that SwiftData has made of the same classes`() throws {
        let model = Schema(CartModel.self).model
        let expected = [
            "CartItemModel": "+LsPuwkCTWKueVQ7wDlABSGUbAcxKQVkz1wq3hrjSJ8=",
            "CartItemModifierModel": "LX2czhnKQgRzwVZomaR3+9xokM+gTW6f7GhrIBQCgXo=",
            "CartModel": "Opf+CabYyBfnkrB+8c9UmQVX1Qan26SBEVf/2HRp5ic=",
        ]
        expectEqual(model.entityVersionHashesByName.mapValues { $0.base64EncodedString() }, expected)
        expectEqual(model.versionIdentifiers as? Set<String>, ["1.0.0"])
    }

    @Test func `a store that SwiftData has made is read and changed`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("swiftdata-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("cart.store")
        try FileManager.default.copyItem(at: Fixtures.url("swiftdata/CartKitSwiftData_v1.sqlite"), to: file)
        let context = ModelContext(
            try ModelContainer(for: CartModel.self, configurations: ModelConfiguration(url: file))
        )
        let carts = try context.fetch(FetchDescriptor<CartModel>(sortBy: [SortDescriptor(\.id)]))
        expectEqual(carts.map(\.storeId), ["store-legacy"])
        expectEqual(carts.map(\.status), ["active"])
        expectEqual(carts[0].metadataJSON, Data(#"{"source":"legacy-swiftdata"}"#.utf8))
        expect(carts[0].items.isEmpty && carts[0].profileId == nil)
        expectEqual(carts[0].createdAt, Date(timeIntervalSinceReferenceDate: 791_478_105.80792))
        let cart = carts[0]
        let added = CartItemModel(id: "added")
        added.totalPriceAmount = 12.5
        cart.items.append(added)
        try context.save()
        let again = ModelContext(try ModelContainer(for: CartModel.self, configurations: ModelConfiguration(url: file)))
        let same = try require(try again.fetch(FetchDescriptor<CartModel>(sortBy: [SortDescriptor(\.id)])).first)
        expectEqual(same.items.map(\.id).contains("added"), true)
        expectEqual(same.items.count, cart.items.count)
    }

    @Test func `properties become what SwiftData makes of them`() throws {
        let entities = Schema(Sailor.self).model.entitiesByName
        expectEqual(entities.keys.sorted(), ["Crew", "Knot", "Sailor"])
        let sailor = try require(entities["Sailor"])
        let rank = try require(sailor.attributesByName["rank"] as? NSCompositeAttributeDescription)
        expectEqual(rank.elements.map(\.name), ["rank"])
        expect(
            rank.elements[0].isOptional && rank.elements[0].attributeType == .stringAttributeType && !rank.isOptional
        )
        let mood = try require(sailor.attributesByName["mood"] as? NSCompositeAttributeDescription)
        expectEqual(mood.elements.map(\.name), ["calm", "tense", "glad"])
        let spot = try require(sailor.attributesByName["spot"] as? NSCompositeAttributeDescription)
        expectEqual(spot.elements.map(\.name), ["city", "floor", "tags"])
        expectEqual(
            spot.elements.map(\.attributeType),
            [.stringAttributeType, .integer64AttributeType, .binaryDataAttributeType]
        )
        expect(spot.isOptional && spot.elements.allSatisfy(\.isOptional))
        let words = try require(sailor.attributesByName["words"])
        expectEqual(words.valueTransformerName, "NSSecureUnarchiveFromData")
        expectEqual(words.attributeValueClassName, "Array<String>")
        expect(sailor.attributesByName["visits"] == nil && sailor.attributesByName["shout"] == nil)
        expectEqual(sailor.uniquenessConstraints as? [[String]], [["badge"]])
        expectEqual(sailor.indexes.map(\.name), ["SwiftDataIndexOnBinaryname", "SwiftDataIndexOnBinaryrankname"])
        let knots = try require(sailor.relationshipsByName["knots"])
        expect(knots.isToMany && knots.deleteRule == .cascadeDeleteRule && knots.inverseRelationship == nil)
        let crew = try require(sailor.relationshipsByName["crew"])
        expect(crew.maxCount == 1 && crew.isOptional && crew.inverseRelationship?.name == "sailors")
        expectEqual(sailor.attributesByName["years"]?.defaultValue as? Int, 3)
    }

    @Test func `a composite with an initial value has an empty default, and one without has none`() throws {
        let attributes = try require(Schema([Parcel.self]).model.entitiesByName["Parcel"]?.attributesByName)
        expectEqual((attributes["size"]?.defaultValue as? [String: Any])?.count, 0)
        expect(attributes["spareSize"]?.defaultValue == nil)
        let sailor = try require(Schema([Sailor.self]).model.entitiesByName["Sailor"]?.attributesByName)
        for name in ["rank", "mood"] { expectEqual((sailor[name]?.defaultValue as? [String: Any])?.count, 0) }
        expect(sailor["spot"]?.defaultValue == nil)
    }
}
