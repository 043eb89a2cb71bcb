import Expectations
import Foundation
import Testing

@testable import SwiftData

@Suite("SwiftData: descriptions of schemas")
struct SchemaDescriptionTests {
    @Test func `a schema of classes lists entities, attributes and relationships`() throws {
        let schema = Schema(Sailor.self)
        expectEqual(schema.entities.map(\.name), ["Crew", "Knot", "Sailor"])
        let sailor = try require(schema.entity(for: Sailor.self))
        expect(sailor === schema.entitiesByName["Sailor"] && schema.entity(for: CartModel.self) == nil)
        expectEqual(sailor.storedProperties.map(\.name), sailor.properties.map(\.name))
        expectEqual(sailor.storedProperties.prefix(3).map(\.name), ["name", "badge", "years"])
        let years = try require(sailor.attributesByName["years"])
        expect(years.valueType == Int.self && years.defaultValue as? Int == 3 && !years.isOptional && years.isAttribute)
        expect(sailor.attributesByName["born"]?.isOptional == true && sailor.attributesByName["visits"] == nil)
        let spot = try require(sailor.attributesByName["spot"] as? Schema.CompositeAttribute)
        expectEqual(spot.properties.map(\.name), ["city", "floor", "tags"])
        expectEqual(spot.properties.map(\.isOptional), [false, true, false])
        let knots = try require(sailor.relationshipsByName["knots"])
        expect(knots.deleteRule == .cascade && !knots.isToOneRelationship && knots.inverseName == nil)
        expect(knots.keypath == \Sailor.knots && knots.destination == "Knot" && knots.isRelationship)
        let crew = try require(sailor.relationshipsByName["crew"])
        expect(crew.isToOneRelationship && crew.isOptional && crew.inverseName == "sailors")
        expectEqual(sailor.uniquenessConstraints, [["badge"]])
        expectEqual(sailor.indices, [["name"], ["rank", "name"]])
        expect(schema.entitiesByName["Crew"]?.attributesByName["name"]?.isUnique == true)
        expectEqual(schema.debugDescription, "Schema(1.0.0: Crew, Knot, Sailor)")
    }

    @Test func `a schema that was saved is equal to the one that was loaded, in hashes as well`() throws {
        let schema = Schema(Sailor.self, CartModel.self, Values.self, version: Schema.Version(2, 1, 0))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("schema-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try schema.save(to: file)
        let loaded = try Schema.load(from: file)
        expect(loaded == schema && loaded.hashValue == schema.hashValue && loaded !== schema)
        expectEqual(loaded.model.entityVersionHashesByName, schema.model.entityVersionHashesByName)
        expectEqual(loaded.version, Schema.Version(2, 1, 0))
        expectEqual(loaded.encodingVersion, Schema.schemaEncodingVersion)
        expectEqual(loaded.entitiesByName["Sailor"]?.attributesByName["years"]?.defaultValue as? Int, 3)
        expect(loaded != Schema(Sailor.self) && Schema() == Schema())
    }

    @Test func `a schema by hand has the hashes of the same classes`() throws {
        let price = [
            Schema.Attribute(name: "priceDeltaAmount", valueType: Decimal.self),
            Schema.Attribute(name: "priceDeltaCurrencyCode", valueType: String.self),
        ]
        let modifier = Schema.Entity(
            "CartItemModifierModel",
            properties: Schema.Attribute(name: "id", options: [.unique], valueType: String.self),
            Schema.Attribute(name: "name", valueType: String.self)
        )
        modifier.storedProperties += price
        let schema = Schema(modifier)
        expectEqual(
            schema.model.entityVersionHashesByName["CartItemModifierModel"]?.base64EncodedString(),
            "LX2czhnKQgRzwVZomaR3+9xokM+gTW6f7GhrIBQCgXo="
        )
        modifier.attributes.remove(price[0])
        expectEqual(modifier.storedPropertiesByName.keys.sorted(), ["id", "name", "priceDeltaCurrencyCode"])
        let error = expectThrows(SwiftDataError.self) {
            _ = try ModelContainer(for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
        }
        expectEqual(error, SwiftDataError.unknownSchema)
    }

    @Test func `entities inherit properties from the entity above them`() {
        let dog = Schema.Entity("Dog", properties: Schema.Attribute(name: "tricks", valueType: Int.self))
        let animal = Schema.Entity(
            "Animal",
            subentities: dog,
            properties: Schema.Attribute(name: "name", originalName: "title", valueType: String?.self)
        )
        expect(dog.superentity === animal && dog.superentityName == "Animal")
        expectEqual(dog.properties.map(\.name), ["name", "tricks"])
        expectEqual(dog.inheritedPropertiesByName.keys.sorted(), ["name"])
        let schema = Schema(animal)
        expectEqual(schema.entities.map(\.name), ["Animal", "Dog"])
        expectEqual(schema.model.entitiesByName["Dog"]?.superentity?.name, "Animal")
        expectEqual(schema.model.entitiesByName["Animal"]?.attributesByName["name"]?.renamingIdentifier, "title")
    }

    @Test func `a decoded schema whose types are unknown is refused`() throws {
        let text = """
            {"version": {"major": 1, "minor": 0, "patch": 0}, "encodingVersion": {"major": 1, "minor": 0, "patch": 0},
             "entities": [{"name": "A", "subentities": [], "uniquenessConstraints": UNIQUE, "indices": [], "properties": [
                {"attribute": {"_0": {"name": "b", "originalName": "b", "options": ["OPTION"], "valueType": "TYPE",
                 "isOptional": false}}}]}]}
            """
        func decode(_ type: String, _ option: String = "unique", _ unique: String = "[]") throws -> Schema {
            let text = text.replacing("TYPE", with: type).replacing("OPTION", with: option).replacing(
                "UNIQUE",
                with: unique
            )
            return try JSONDecoder().decode(Schema.self, from: Data(text.utf8))
        }
        expectEqual(try decode("SS").entitiesByName["A"]?.attributesByName["b"]?.isUnique, true)
        for (type, option, unique) in [("None", "unique", "[]"), ("SS", "no", "[]"), ("SS", "unique", #"[["c"]]"#)] {
            _ = expectThrows(DecodingError.self) { _ = try decode(type, option, unique) }
        }
    }

    @Test func `options and groups are coded by their names`() throws {
        typealias Option = Schema.Attribute.Option
        let options: [Option] = [
            .unique, .externalStorage, .ephemeral, .preserveValueOnDeletion, .spotlight, .allowsCloudEncryption,
            .codable,
            .transformable(by: "ColorTransformer"),
        ]
        let data = try JSONEncoder().encode(options)
        expectEqual(try JSONDecoder().decode([Option].self, from: data), options)
        expect(String(decoding: data, as: UTF8.self).contains("\"transformable:ColorTransformer\""))
        let unique = Schema.Unique<Sailor>([\.badge], [\.name, \.crew])
        let index = Schema.Index<Sailor>(.binary([\.name]), .rtree([\.badge]))
        expectEqual(try coded(unique), unique)
        expectEqual(try coded(index), index)
        expectEqual(index.indices, [.binary([\.name]), .rtree([\.badge])])
        expect(unique.isUnique && !index.isUnique && unique.valueType == Sailor.self)
        expectEqual(unique.debugDescription, #"Schema.Unique<Sailor>([["badge"], ["name", "crew"]])"#)
    }

    private func coded<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
    }

    @Test(arguments: Place.allCases)
    func `a value that is coded as a whole is stored and read`(_ place: Place) throws {
        let schema = Schema(Sealed.self)
        expect(schema.entitiesByName["Sealed"]?.attributesByName["spot"]?.isCodable == true)
        expect(!(schema.entitiesByName["Sealed"]?.attributesByName["spot"] is Schema.CompositeAttribute))
        let container = try place.container(schema)
        let context = ModelContext(container)
        context.insert(Sealed(spot: Spot(city: "Rome", floor: nil, tags: ["a"])))
        try context.save()
        let read = try ModelContext(container).fetch(FetchDescriptor<Sealed>())
        expectEqual(read.map(\.spot), [Spot(city: "Rome", floor: nil, tags: ["a"])])
        expectEqual(
            expectThrows(SwiftDataError.self) {
                _ = try context.fetch(FetchDescriptor<Sealed>(predicate: #Predicate { $0.spot.city == "Rome" }))
            },
            SwiftDataError.unsupportedPredicate
        )
    }
}

@Model final class Sealed {
    @Attribute(.codable) var spot: Spot

    init(spot: Spot) { self.spot = spot }
}
