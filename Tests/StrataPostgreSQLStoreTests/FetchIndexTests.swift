import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Indexes of PostgreSQL stores", .enabled(if: Server.isThere))
struct FetchIndexTests {
    /// Places with a name, a price, a number of rooms and a position.
    private static func model(
        _ elements: [String: ([NSFetchIndexElementDescription], String?)],
        version: String? = nil
    ) -> NSManagedObjectModel {
        let place = StoreModels.entity("Place")
        place.properties = [
            StoreModels.attribute("name", .string), StoreModels.attribute("price", .integer32),
            StoreModels.attribute("rooms", .integer16), StoreModels.attribute("x", .double),
            StoreModels.attribute("y", .float), StoreModels.attribute("large", .integer64),
        ]
        place.versionHashModifier = version
        place.indexes = elements.sorted { $0.key < $1.key }.map { name, value in
            let index = NSFetchIndexDescription(name: name, elements: value.0)
            index.partialIndexPredicate = value.1.map { NSPredicate(format: $0) }
            return index
        }
        return StoreModels.model(place)
    }

    private static func element(_ name: String, _ type: NSFetchIndexElementType = .binary)
        -> NSFetchIndexElementDescription
    {
        // The index uses the entity's property with this name.
        let property = StoreModels.attribute(name, type == .rTree ? .double : .string)
        return NSFetchIndexElementDescription(property: property, collationType: type)
    }

    private static func expression(_ text: String) -> NSFetchIndexElementDescription {
        let computed = NSExpressionDescription()
        computed.expression = NSExpression(format: text)
        computed.resultType = .integer64
        return NSFetchIndexElementDescription(property: computed, collationType: .binary)
    }

    private func definitions(_ store: ReopenedStore) throws -> [String] {
        try store.texts(
            """
            SELECT pg_catalog.pg_get_indexdef(indexrelid) FROM pg_catalog.pg_index
            WHERE indrelid = 'place'::regclass AND NOT indisprimary ORDER BY 1
            """
        ).map { $0.components(separatedBy: " USING ").last ?? "" }
    }

    private static func insert(_ count: Int, _ context: NSManagedObjectContext) throws {
        for number in 0..<count {
            let place = NSEntityDescription.insertNewObject(forEntityName: "Place", into: context)
            place.setValue("name \(number)", forKey: "name")
            place.setValue(number, forKey: "price")
            place.setValue(number % 7, forKey: "rooms")
            place.setValue(Double(number % 100), forKey: "x")
            place.setValue(Float(number / 100), forKey: "y")
        }
        try context.save()
    }

    /// The indexes with which the server carries out a fetch, once it has analysed the table.
    private func indexes(_ format: String, _ context: NSManagedObjectContext, _ store: ReopenedStore) throws -> [String]
    {
        try store.command("ANALYZE place")
        let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
        request.predicate = NSPredicate(format: format)
        return try context.explain(request).answers.flatMap(\.indexes)
    }

    private func count(_ format: String, _ context: NSManagedObjectContext) throws -> Int {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
        request.predicate = NSPredicate(format: format)
        return try context.count(for: request)
    }

    @Test func `an index may hold only some rows`() throws {
        let store = ReopenedStore()
        let model = Self.model([
            "cheap": ([Self.element("name")], "price < 20 AND (rooms IN {1, 2} OR name == \"it's\")")
        ])
        try store.with(model) { context in
            try Self.insert(50, context)
            try expectEqual(count("price < 20 AND rooms == 1", context), 3)
        }
        try expectEqual(
            definitions(store),
            [
                "btree (name NULLS FIRST) WHERE ((price < (20)::bigint) AND ((rooms = (1)::bigint) OR (rooms = (2)::bigint) OR (name = 'it''s'::text)))"
            ]
        )
        try expectEqual(store.problems(model), [])
    }

    @Test(arguments: ["name LIKE 'a*'", "name == 'a\\\\b'", "rooms IN {1} AND name MATCHES 'a'"])
    func `a condition that SQL does not say leaves the index whole`(condition: String) throws {
        let store = ReopenedStore()
        let model = Self.model(["some": ([Self.element("name")], condition)])
        try store.with(model) { try Self.insert(3, $0) }
        try expectEqual(definitions(store), ["btree (name NULLS FIRST)"])
    }

    @Test func `an index of an expression serves comparisons with it`() throws {
        let store = ReopenedStore()
        let model = Self.model(["total": ([Self.expression("price * rooms + 1")], nil)])
        try store.with(model) { context in
            try Self.insert(3000, context)
            try expectEqual(count("price * rooms + 1 > 17000", context), 24)
            try expectEqual(indexes("price * rooms + 1 > 17000", context, store), ["place_total_index"])
        }
        try expectEqual(
            definitions(store),
            ["btree (((((price)::bigint * (rooms)::bigint) + (1)::bigint)) NULLS FIRST)"]
        )
    }

    @Test(arguments: [
        ("name LIKE 'name 299*'", 11), ("name LIKE 'name 29?9'", 10), ("name LIKE 'name 17'", 1),
        ("name LIKE 'name 29??' AND name ENDSWITH '7'", 10),
    ])
    func `what a pattern begins with is found by the index`(format: String, count: Int) throws {
        let store = ReopenedStore()
        try store.with(Self.model(["name": ([Self.element("name")], nil)])) { context in
            try Self.insert(3000, context)
            try expectEqual(indexes(format, context, store), ["place_name_index"])
            try expectEqual(self.count(format, context), count)
        }
    }

    @Test(arguments: [
        "name LIKE '*e 299?'", "name LIKE '?????299*'", "name ENDSWITH ' 299'", "name LIKE '*\\\\**e 299'",
    ])
    func `the server looks for the longest text of a pattern`(format: String) throws {
        let store = ReopenedStore()
        try store.with(Self.model([:])) { context in
            try Self.insert(300, context)
            let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
            request.predicate = NSPredicate(format: format)
            let statement = try require(context.explain(request).answers.first?.statement)
            expect(statement.contains("strpos"), "\(statement)")
            let all = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Place"))
            try expectEqual(
                Set(context.fetch(request)),
                Set(all.filter { request.predicate?.evaluate(with: $0) == true })
            )
        }
    }

    @Test(arguments: [
        ("NOT price < 2990", 11, ["price"]), ("NOT price >= 10", 11, ["price"]),
        ("NOT (price > 5 OR name == nil)", 7, ["price"]),
        ("NOT (price <= 2995 AND name != nil)", 5, ["name", "price"]),
        ("NOT price BETWEEN {3, 2995}", 8, ["price"]), ("large != nil", 1, ["large"]),
        ("NOT large == nil", 1, ["large"]),
        ("price == nil", 1, ["price"]),
    ])
    func `what is negated is found by its index`(format: String, count: Int, names: [String]) throws {
        let store = ReopenedStore()
        let all = ["name", "price", "large"].map { ($0, ([Self.element($0)], String?.none)) }
        try store.with(Self.model(Dictionary(uniqueKeysWithValues: all))) { context in
            try Self.insert(3000, context)
            let place = NSEntityDescription.insertNewObject(forEntityName: "Place", into: context)
            place.setValue("none", forKey: "name")
            place.setValue(nil, forKey: "price")
            place.setValue(1, forKey: "large")
            try context.save()
            try expectEqual(self.count(format, context), count)
            try expectEqual(Set(indexes(format, context, store)), Set(names.map { "place_\($0)_index" }))
        }
    }

    @Test func `truth values, decimals and unique values are found, and sorted, by their indexes`() throws {
        let store = ReopenedStore()
        let place = StoreModels.entity("Place")
        place.properties = [
            StoreModels.attribute("open", .boolean), StoreModels.attribute("fee", .decimal),
            StoreModels.attribute("code", .string),
        ]
        place.indexes = ["open", "fee"].map { name in
            let property = StoreModels.attribute(name, .string)
            let element = NSFetchIndexElementDescription(property: property, collationType: .binary)
            return NSFetchIndexDescription(name: name, elements: [element])
        }
        place.uniquenessConstraints = [["code"]]
        try store.with(StoreModels.model(place)) { context in
            for number in 0..<3000 {
                let place = NSEntityDescription.insertNewObject(forEntityName: "Place", into: context)
                place.setValue(number % 500 == 0, forKey: "open")
                place.setValue(NSDecimalNumber(value: number), forKey: "fee")
                place.setValue("code \(number)", forKey: "code")
            }
            try context.save()
            try expectEqual(count("open == YES", context), 6)
            try expectEqual(indexes("open == YES", context, store), ["place_open_index"])
            try expectEqual(count("fee < 10", context), 10)
            try expectEqual(indexes("fee < 10", context, store), ["place_fee_index"])
            let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
            request.fetchLimit = 3
            for isAscending in [true, false] {
                request.sortDescriptors = [NSSortDescriptor(key: "code", ascending: isAscending)]
                let explained = try context.explain(request)
                expectEqual(explained.answers.flatMap(\.indexes), ["strata_unique_place_code"], "\(explained)")
            }
        }
    }

    @Test func `points are found by rectangles`() throws {
        let store = ReopenedStore()
        let model = Self.model(["position": ([Self.element("x", .rTree), Self.element("y", .rTree)], nil)])
        try store.with(model) { context in
            try Self.insert(10_000, context)
            let format = "x >= 10 AND x < 20 AND 3 <= y AND y <= 5 AND rooms == 1"
            let found = try count(format, context)
            let objects = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Place"))
            let predicate = NSPredicate(format: format)
            expectEqual(found, objects.filter { predicate.evaluate(with: $0) }.count)
            expect(found > 0)
            try expectEqual(indexes("x BETWEEN {10, 11} AND y == 5", context, store), ["place_position_index"])
            // One side is open, and a rectangle without an end does not help.
            try expectEqual(indexes("x > 10 AND y == 5", context, store), [])
        }
        try expectEqual(definitions(store), ["gist (box(point(x, y), point(x, y)))"])
    }

    @Test func `a migration makes such indexes anew, and drops them with the model that asked for them`() throws {
        let store = ReopenedStore()
        let elements: [String: ([NSFetchIndexElementDescription], String?)] = [
            "cheap": ([Self.element("name")], "price < 20"), "total": ([Self.expression("price + rooms")], nil),
            "position": ([Self.element("x", .rTree), Self.element("y", .rTree)], nil),
        ]
        try store.with(Self.model(elements)) { try Self.insert(10, $0) }
        let before = try definitions(store)
        expectEqual(before.count, 3)
        try store.command("CREATE INDEX mine_index ON place (name) WHERE price > 5")
        try store.with(Self.model(elements, version: "2")) { try expectEqual(count("price + rooms == 6", $0), 1) }
        expectEqual(Set(try definitions(store)), Set(before + ["btree (name) WHERE (price > 5)"]))
        try store.with(Self.model(["cheap": ([Self.element("price")], nil)], version: "3")) { _ in }
        // The operator's index stays.
        try expectEqual(definitions(store), ["btree (name) WHERE (price > 5)", "btree (price NULLS FIRST)"])
    }

    @Test func `indexes of one name are distinguished by a number, and dropped with their model`() throws {
        let store = ReopenedStore()
        func model(_ version: String, _ conditions: [String]) -> NSManagedObjectModel {
            let model = Self.model([:], version: version)
            model.entities[0].indexes = conditions.map { condition in
                let index = NSFetchIndexDescription(name: "some", elements: [Self.element("name")])
                index.partialIndexPredicate = NSPredicate(format: condition)
                return index
            }
            return model
        }
        func names() throws -> [String] {
            try store.texts(
                """
                SELECT c.relname::text FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
                WHERE i.indrelid = 'place'::regclass AND NOT i.indisprimary ORDER BY 1
                """
            )
        }
        let first = model("1", ["price < 20", "rooms == 2"])
        try store.with(first) { try Self.insert(10, $0) }
        try expectEqual(names(), ["place_some_index", "place_some_index1"])
        try expectEqual(store.problems(first), [])
        try store.with(model("2", ["rooms == 2"])) { try expectEqual(count("rooms == 2", $0), 2) }
        try expectEqual(names(), ["place_some_index"])
        try store.with(model("3", [])) { _ in }
        try expectEqual(names(), [])
    }

    @Test(arguments: [
        ("price + rooms > 2147483650", true), ("price * price >= 4611686014132420609", true),
        ("price - rooms == -2147516416", true), ("NOT (price + 1 == 1)", true),
        ("price * 2 + rooms IN {4, -65536}", true),
        ("price + rooms == nil", true), ("price + rooms != nil", true), ("3 - price BETWEEN {1, 2147483651}", true),
        ("price * price * price > 0", false), ("large + 1 > 0", false), ("x + 1 > 0", false), ("price / 2 == 1", false),
        ("price * 4611686018427387904 > 0", false),
    ])
    func `sums and products that cannot be too large are asked of the server`(format: String, isSaid: Bool) throws {
        let store = ReopenedStore()
        try store.with(Self.model([:])) { context in
            let numbers: [Int?] = [0, 1, 2, -1, 2_147_483_647, -2_147_483_648, nil]
            for price in numbers {
                for rooms in [0, 3, 32_767, -32_768, nil] {
                    let place = NSEntityDescription.insertNewObject(forEntityName: "Place", into: context)
                    place.setValue(price, forKey: "price")
                    place.setValue(rooms, forKey: "rooms")
                    place.setValue(price.map { Double($0) }, forKey: "x")
                    place.setValue(price, forKey: "large")
                }
            }
            try context.save()
            let predicate = NSPredicate(format: format)
            let objects = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Place"))
            try expectEqual(count(format, context), objects.filter { predicate.evaluate(with: $0) }.count)
            let request = NSFetchRequest<NSManagedObject>(entityName: "Place")
            request.predicate = predicate
            let statement = try context.explain(request).answers.first?.statement
            expectEqual(statement?.contains("WHERE (TRUE)"), !isSaid)
        }
    }
}
