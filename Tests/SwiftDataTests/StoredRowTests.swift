import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import SwiftData

/// The rows of a file as SQLite shows them.
@Suite("SwiftData: columns and rows", .enabled(if: !Place.hasDatabase))
struct StoredRowTests {
    private let scratch: ScratchFolder
    private var file: URL { scratch.file("a.store") }

    init() throws { scratch = try ScratchFolder() }

    private func context(_ types: any PersistentModel.Type...) throws -> ModelContext {
        ModelContext(try ModelContainer(for: Schema(types), configurations: ModelConfiguration(url: file)))
    }

    /// The names and types of a table's columns, without those that all tables have.
    private func columns(_ table: String) throws -> [String: String] {
        let rows = try AppleStores.rows("SELECT name, type FROM pragma_table_info('\(table)')", at: file)
        return Dictionary(uniqueKeysWithValues: rows.map { ("\($0[0])", "\($0[1])") }).filter {
            !["Z_PK", "Z_ENT", "Z_OPT"].contains($0.key)
        }
    }

    /// The only row of a table; null values are left out, and data are texts.
    private func row(_ table: String) throws -> [String: String] {
        let names = try columns(table).keys.sorted()
        let values = try AppleStores.rows("SELECT \(names.joined(separator: ", ")) FROM \(table)", at: file)
        try require(values.count == 1)
        let pairs = zip(names, values[0]).filter { !($0.1 is NSNull) }
        return Dictionary(
            uniqueKeysWithValues: pairs.map { name, value in
                (name, (value as? Data).map { String(decoding: $0, as: UTF8.self) } ?? "\(value)")
            }
        )
    }

    @Test func `each type has the column of Core Data`() throws {
        let context = try context(Values.self)
        context.insert(Values())
        try context.save()
        expectEqual(
            try columns("ZVALUES"),
            [
                "ZINT8": "INTEGER", "ZINT16": "INTEGER", "ZINT32": "INTEGER", "ZINT64": "INTEGER", "ZWORD": "INTEGER",
                "ZDOUBLE": "FLOAT", "ZFLOAT": "FLOAT", "ZTRUTH": "INTEGER", "ZTEXT": "VARCHAR", "ZDATE": "TIMESTAMP",
                "ZDATA": "BLOB", "ZUUID": "BLOB", "ZDECIMAL": "DECIMAL", "ZURL": "VARCHAR", "ZNUMBERS": "BLOB",
                "ZNAMES": "BLOB", "ZTABLE": "BLOB",
            ]
        )
        let attributes = try require(context.container.schema.model.entitiesByName["Values"]?.attributesByName)
        let types: [(String, NSAttributeType)] = [
            ("int8", .integer16AttributeType), ("int16", .integer16AttributeType), ("int32", .integer32AttributeType),
            ("int64", .integer64AttributeType), ("word", .integer64AttributeType), ("double", .doubleAttributeType),
            ("float", .floatAttributeType), ("truth", .booleanAttributeType), ("text", .stringAttributeType),
            ("date", .dateAttributeType), ("data", .binaryDataAttributeType), ("uuid", .UUIDAttributeType),
            ("decimal", .decimalAttributeType), ("url", .URIAttributeType), ("numbers", .transformableAttributeType),
        ]
        for (name, type) in types { expectEqual(attributes[name]?.attributeType, type, "\(name)") }
        expect(attributes["int16"]?.isOptional == true && attributes["int8"]?.isOptional == false)
        let rows = try AppleStores.rows("SELECT ZDATE, ZUUID, ZTRUTH, ZDECIMAL, ZURL FROM ZVALUES", at: file)[0]
        expectEqual(rows[0] as? Double, 1.5)
        expectEqual((rows[1] as? Data)?.count, 16)
        expect((rows[2] as? Int64) == 1 && "\(rows[4])" == "https://example.org/a?b=c")
    }

    @Test func `enumerations, structures and arrays have the columns and texts that Apple's framework gives them`()
        throws
    {
        let context = try context(Sailor.self)
        let sailor = Sailor("Ada", badge: 7)
        sailor.rank = .high
        sailor.mood = .tense
        sailor.oldMood = .glad
        sailor.spot = Spot(city: "Rome", floor: 2, tags: ["a/b", "c"])
        sailor.words = ["x", "y"]
        context.insert(sailor)
        try context.save()
        var row = try row("ZSAILOR")
        let archived = try require(
            try AppleStores.rows("SELECT ZWORDS FROM ZSAILOR", at: file)[0][0] as? Data
        )
        row["ZWORDS"] = nil
        // Elements are named without their composite, and take a number in the order of the properties.
        expectEqual(
            row,
            [
                "ZNAME": "Ada", "ZBADGE": "7", "ZYEARS": "3", "ZRANK": "high", "ZTENSE": "tense", "ZGLAD1": "glad",
                "ZCITY": "Rome", "ZFLOOR": "2", "ZTAGS": #"["a\/b","c"]"#,
            ]
        )
        expect(
            Set(try columns("ZSAILOR").keys).isSuperset(of: ["ZCALM", "ZCALM1", "ZGLAD", "ZTENSE1", "ZBORN", "ZCREW"])
        )
        let text = try require(
            try NSKeyedUnarchiver.unarchivedObject(ofClass: NSData.self, from: archived)
        )
        expectEqual(String(decoding: Data(referencing: text), as: UTF8.self), #"["x","y"]"#)
    }

    @Test func `a structure is taken apart by its stored properties, whatever its coding keys are`() throws {
        let composite = Schema([Goods.self]).model.entitiesByName["Goods"]?.attributesByName["renamed"]
        let elements = (composite as? NSCompositeAttributeDescription)?.elements ?? []
        expectEqual(elements.map(\.name), ["hidden", "shown"])
        let context = try context(Goods.self)
        context.insert(Goods("a"))
        try context.save()
        let row = try row("ZGOODS")
        expect(row["ZHIDDEN"] == "3" && row["ZSHOWN"] == "s" && row["ZH"] == nil && row["ZZ"] == nil)
    }

    @Test func `indexes and tables of members have the names of Apple's framework`() throws {
        let context = try context(Sailor.self, MetaCocktailsFirst.Cocktail.self)
        let objects = try AppleStores.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL", at: file)
        let made = Dictionary(uniqueKeysWithValues: objects.map { ("\($0[0])", "\($0[1])") })
        let index = try require(made["Z_Sailor_SwiftDataIndexOnBinaryname"])
        expect(index.contains("ON ZSAILOR (ZNAME COLLATE BINARY ASC)"), "\(index)")
        expect(made["Z_Sailor_UNIQUE_badge"] != nil && made["ZSAILOR_ZCREW_INDEX"] != nil, "\(made.keys)")
        let entities = try AppleStores.rows("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY WHERE Z_ENT < 16000", at: file)
        let numbers = Dictionary(uniqueKeysWithValues: entities.map { ("\($0[0])", "\($0[1])") })
        let (cocktail, garnish, sailor) = (numbers["Cocktail"]!, numbers["Garnish"]!, numbers["Sailor"]!)
        let members = try require(made["Z_\(cocktail)GARNISH"])
        expect(members.contains("Z_\(cocktail)COCKTAILS") && members.contains("Z_\(garnish)GARNISH"), "\(members)")
        expect(!members.contains("Z_FOK_"))
        // Members without an inverse note their owner.
        expectEqual(try columns("ZKNOT"), ["ZNUMBER": "INTEGER", "Z\(sailor)KNOTS": "INTEGER"])
        expect(context.container.schema.entities.count == 8)
    }

    @Test func `an identifier has the file's identifier and the key of its row`() throws {
        let context = try context(Knot.self)
        let knots = (0..<3).map { Knot(number: $0) }
        for knot in knots { context.insert(knot) }
        try context.save()
        let store = try AppleStores.rows("SELECT Z_UUID FROM Z_METADATA", at: file)[0][0] as? String
        expectEqual(Set(knots.map(\.persistentModelID.storeIdentifier)), [store])
        let keys = try AppleStores.rows("SELECT Z_PK, ZNUMBER FROM ZKNOT ORDER BY ZNUMBER", at: file).map {
            "p\($0[0])"
        }
        let texts = try knots.map { knot in
            let data = try JSONEncoder().encode(knot.persistentModelID)
            let object = try JSONSerialization.jsonObject(with: data) as? [String: [String: Any]]
            expectEqual(object?.keys.sorted(), ["implementation"])
            let parts = try require(object?["implementation"])
            expectEqual(
                parts.keys.sorted(),
                ["entityName", "isTemporary", "primaryKey", "storeIdentifier", "uriRepresentation"]
            )
            let key = try require(parts["primaryKey"] as? String)
            expectEqual(parts["uriRepresentation"] as? String, "x-coredata://\(store ?? "")/Knot/\(key)")
            expect(parts["entityName"] as? String == "Knot" && parts["isTemporary"] as? Bool == false)
            return key
        }
        expectEqual(texts, keys)
    }

    @Test func `large values lie beside the file, where Core Data has them`() throws {
        let context = try context(Dish.self)
        let dish = Dish(title: "Soup")
        dish.image = Data(repeating: 7, count: 1_000_000)
        context.insert(dish)
        try context.save()
        let folder = scratch.folder.appendingPathComponent(".a_SUPPORT/_EXTERNAL_DATA")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        expectEqual(names.count, 1)
        expectEqual(try Data(contentsOf: folder.appendingPathComponent(names[0])), dish.image)
        expect(try AppleStores.rows("SELECT length(ZIMAGE) FROM ZDISH", at: file)[0][0] as? Int64 ?? 0 < 100)
        let read = try require(try self.context(Dish.self).fetch(FetchDescriptor<Dish>()).first)
        expectEqual(read.image, dish.image)
        read.image = nil
        try read.modelContext?.save()
        expectEqual(try self.context(Dish.self).fetch(FetchDescriptor<Dish>()).map(\.image), [nil])
    }
}
