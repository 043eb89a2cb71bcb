import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

/// Attributes of stores that are migrated in place; the numbers are those of the statements in Docs/Migration.md.
@Suite("Attributes of migrated stores")
struct InPlaceAttributeTests {
    private let v1 = """
        <entity name="City"><attribute name="name" optional="YES" attributeType="String"/>
        <attribute name="people" optional="YES" attributeType="Integer 32" usesScalarValueType="NO"/></entity>
        """

    private func filled(_ lines: String? = nil, _ kind: StoreKind = .migrating) throws -> AgingStore {
        let store = try AgingStore(kind)
        try store.use(lines ?? v1) { context in
            context.insert("City", ["name": "Ulm", "people": 126_000])
            context.insert("City", ["name": nil, "people": nil])
        }
        return store
    }

    private func city(_ attributes: String) -> String { "<entity name=\"City\">\(attributes)</entity>" }

    private let name = "<attribute name=\"name\" optional=\"YES\" attributeType=\"String\"/>"
    private let people =
        "<attribute name=\"people\" optional=\"YES\" attributeType=\"Integer 32\" usesScalarValueType=\"NO\"/>"

    @Test func `m031 m032 added attributes hold their default values, or nothing`() throws {
        let store = try filled()
        let v2 = city(
            name + people
                + """
                <attribute name="mayor" optional="YES" attributeType="String"/>
                <attribute name="country" attributeType="String" defaultValueString="DE"/>
                <attribute name="height" optional="YES" attributeType="Double" defaultValueString="12.5" usesScalarValueType="NO"/>
                """
        )
        try store.use(v2) { context in
            let cities = try context.all("City")
            expectEqual(cities.map { $0.value(forKey: "name") as? String }, ["Ulm", nil])
            expectEqual(cities.map { $0.value(forKey: "mayor") as? String }, [nil, nil])
            expectEqual(cities.map { $0.value(forKey: "country") as? String }, ["DE", "DE"])
            expectEqual(cities.map { $0.value(forKey: "height") as? Double }, [12.5, 12.5])
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m031 m032 a decimal that is added has its default value, with all digits that the store keeps`() throws
    {
        let store = try filled()
        let v2 = city(
            name + people
                + """
                <attribute name="rate" optional="YES" attributeType="Decimal" defaultValueString="0.5"/>
                <attribute name="fine" optional="YES" attributeType="Decimal" defaultValueString="1234567890.12345678901234567"/>
                <attribute name="whole" optional="YES" attributeType="Decimal" defaultValueString="9007199254740993"/>
                """
        )
        func values(_ context: NSManagedObjectContext, _ key: String) throws -> Set<Decimal?> {
            Set(try context.all("City").map { ($0.value(forKey: key) as? NSDecimalNumber)?.decimalValue })
        }
        try store.use(v2) { context in
            try expectEqual(values(context, "rate"), [Decimal(string: "0.5")])
            try expectEqual(values(context, "whole"), [Decimal(string: "9007199254740993")])
            // A new object has the same value once it was saved and read.
            context.insert("City", [:])
            try context.save()
            context.reset()
            try expectEqual(values(context, "fine").count, 1)
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m033 a required attribute without a default is refused while there are objects`() throws {
        let v2 = city(name + people + "<attribute name=\"code\" attributeType=\"String\"/>")
        let store = try filled()
        let error = try store.failure(v2)
        expectEqual(error.code, .migration)
        let inner = try require(error.userInfo[NSUnderlyingErrorKey] as? CocoaError)
        expectEqual(inner.code, .migration)
        expectEqual(inner.userInfo["entity"] as? String, "City")
        expectEqual(inner.userInfo["attribute"] as? String, "code")
        expectEqual((inner.userInfo["reason"] as? String)?.contains("mandatory destination attribute"), true)
        let empty = try AgingStore(.migrating)
        try empty.use(v1) { _ in }
        try empty.use(v2) { _ in }
        try expectEqual(empty.problems(v2), [])
    }

    @Test func `m034 m035 renamed attributes keep their values, removed ones lose them`() throws {
        let store = try filled()
        let v2 = city("<attribute name=\"title\" optional=\"YES\" attributeType=\"String\" elementID=\"name\"/>")
        try store.use(v2) { context in
            let found = try context.all("City");
            expectEqual(found.map { $0.value(forKey: "title") as? String }, ["Ulm", nil])
        }
        try expectEqual(store.problems(v2), [])
        // With a mere renaming the table stays as it is.
        let v3 = city("<attribute name=\"label\" optional=\"YES\" attributeType=\"String\" elementID=\"name\"/>")
        try store.use(v3) { context in
            let found = try context.all("City");
            expectEqual(found.map { $0.value(forKey: "label") as? String }, ["Ulm", nil])
        }
        try expectEqual(store.problems(v3), [])
    }

    @Test func `m035 two attributes may trade their names`() throws {
        let v1 = city(name + "<attribute name=\"alias\" optional=\"YES\" attributeType=\"String\"/>")
        let store = try AgingStore(.migrating)
        try store.use(v1) { $0.insert("City", ["name": "Ulm", "alias": "Münsterstadt"]) }
        let v2 = city(
            """
            <attribute name="name" optional="YES" attributeType="String" elementID="alias" versionHashModifier="2"/>
            <attribute name="alias" optional="YES" attributeType="String" elementID="name"/>
            """
        )
        try store.use(v2) { context in
            let city = try require(context.all("City").first)
            expectEqual(city.value(forKey: "name") as? String, "Münsterstadt")
            expectEqual(city.value(forKey: "alias") as? String, "Ulm")
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m027 an attribute whose identifier changes is a new one`() throws {
        let store = try filled()
        // Identifiers are not part of a version.
        let v2 = city(
            "<attribute name=\"name\" optional=\"YES\" attributeType=\"String\" elementID=\"x\"/>" + people
                + "<attribute name=\"note\" optional=\"YES\" attributeType=\"String\"/>"
        )
        try store.use(v2) { context in
            let cities = try context.all("City")
            expectEqual(cities.map { $0.value(forKey: "name") as? String }, [nil, nil])
            expectEqual(cities.map { $0.value(forKey: "people") as? Int }, [126_000, nil])
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m025 m026 an identifier may name the first name, or the last one where that is clear`() throws {
        let store = try filled()
        let v2 = city(
            "<attribute name=\"title\" optional=\"YES\" attributeType=\"String\" elementID=\"name\"/>" + people
        )
        let v3 = city(
            "<attribute name=\"label\" optional=\"YES\" attributeType=\"String\" elementID=\"title\"/>" + people
        )
        for version in [v2, v3] { try store.use(version) { _ in } }
        try store.use(v3) { context in
            let found = try context.all("City");
            expectEqual(found.map { $0.value(forKey: "label") as? String }, ["Ulm", nil])
        }
    }

    @Test func `m036 m037 a value that becomes required is the default, or must be there`() throws {
        let store = try filled()
        let v2 = city("<attribute name=\"name\" attributeType=\"String\"/>" + people)
        let error = try store.failure(v2)
        let inner = try require(error.userInfo[NSUnderlyingErrorKey] as? CocoaError)
        expectEqual((inner.userInfo["reason"] as? String)?.contains("1 objects have none"), true)
        let v3 = city("<attribute name=\"name\" attributeType=\"String\" defaultValueString=\"?\"/>" + people)
        try store.use(v3) { context in
            let found = try context.all("City");
            expectEqual(found.map { $0.value(forKey: "name") as? String }, ["Ulm", "?"])
        }
        try expectEqual(store.problems(v3), [])
        // Now all objects have a value.
        try store.use(v2) { context in
            let found = try context.all("City");
            expectEqual(found.map { $0.value(forKey: "name") as? String }, ["Ulm", "?"])
        }
    }

    @Test(arguments: ["Integer 64", "Double", "Decimal", "Float"])
    func `m039 m040 numbers become wider ones`(_ type: String) throws {
        let store = try filled()
        let v2 = city(
            name + "<attribute name=\"people\" optional=\"YES\" attributeType=\"\(type)\" usesScalarValueType=\"NO\"/>"
        )
        try store.use(v2) { context in
            let values = try context.all("City").map { $0.value(forKey: "people") as? NSNumber }
            expectEqual(values, [126_000, nil])
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test(arguments: ["Integer 16", "Integer 32", "Integer 64"])
    func `m036 m038 an optional truth value becomes a required number, with a default for objects that have none`(
        _ type: String
    ) throws {
        let store = try AgingStore(.migrating)
        let flag = "<attribute name=\"n\" optional=\"YES\" attributeType=\"String\"/>"
        try store.use(
            city(
                flag
                    + "<attribute name=\"open\" optional=\"YES\" attributeType=\"Boolean\" usesScalarValueType=\"NO\"/>"
            )
        ) { context in
            for value in [true, nil, false] { context.insert("City", ["open": value]) }
        }
        let v2 = city(
            flag
                + "<attribute name=\"open\" attributeType=\"\(type)\" defaultValueString=\"7\" usesScalarValueType=\"NO\"/>"
        )
        try store.use(v2) { context in
            let values = try context.all("City").map { $0.value(forKey: "open") as? Int }
            expectEqual(values, [1, 7, 0])
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test(arguments: ["Double", "Decimal", "Float"])
    func `m036 m040 an optional number becomes a required one with a fraction`(_ type: String) throws {
        let store = try filled()
        let v2 = city(
            name
                + "<attribute name=\"people\" attributeType=\"\(type)\" defaultValueString=\"0.5\" usesScalarValueType=\"NO\"/>"
        )
        try store.use(v2) { context in
            let values = try context.all("City").map { $0.value(forKey: "people") as? NSNumber }
            expectEqual(values, [126_000, 0.5])
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m038 m039 attributes of several types become one of the entity above`() throws {
        let store = try AgingStore(.migrating)
        try store.use(
            ModelSketch.model(
                """
                Place: n String
                City(Place): size Bool
                Town(Place): size Int16
                Village(Place): size Int32
                """
            )
        ) { context in
            context.make("City", "c", ["size": true])
            context.make("Town", "t", ["size": 300])
            context.make("Village", "v", ["size": 70_000])
            context.make("Village", "w")
            try context.save()
        }
        let v2 = ModelSketch.model(
            """
            Place: n String, size Int64!=9
            City(Place):
            Town(Place):
            Village(Place):
            """
        )
        try store.use(v2) { context in
            try expectEqual(
                context.dump().filter { !$0.hasPrefix("Place") },
                ["City c size=1", "Town t size=300", "Village v size=70000", "Village w size=9"]
            )
        }
    }

    @Test func `m041 m042 m079 m080 all types that do not fit are listed`() throws {
        let store = try filled()
        let v2 = city(
            """
            <attribute name="name" optional="YES" attributeType="Date" usesScalarValueType="NO"/>
            <attribute name="people" optional="YES" attributeType="Integer 16" usesScalarValueType="NO"/>
            """
        )
        let error = try store.failure(v2)
        expectEqual(error.code, .migrationMissingMappingModel)
        let inferred = try require(error.userInfo[NSUnderlyingErrorKey] as? CocoaError)
        expectEqual(inferred.code, .inferredMappingModel)
        let details = try require(inferred.userInfo[NSDetailedErrorsKey] as? [CocoaError])
        expectEqual(details.map { $0.userInfo["property"] as? String }, ["name", "people"])
        expect(details.allSatisfy { $0.userInfo["entity"] as? String == "City" && $0.code == .inferredMappingModel })
    }

    @Test func `m065 m066 attributes leave the file and come back empty`() throws {
        let store = try filled()
        let v2 = city("<attribute name=\"name\" optional=\"YES\" attributeType=\"String\" transient=\"YES\"/>" + people)
        try store.use(v2) { _ in }
        try expectEqual(store.problems(v2), [])
        let v3 = city("<attribute name=\"name\" attributeType=\"String\" defaultValueString=\"new\"/>" + people)
        try store.use(v3) { context in
            let found = try context.all("City");
            expectEqual(found.map { $0.value(forKey: "name") as? String }, ["new", "new"])
        }
        try expectEqual(store.problems(v3), [])
    }

    @Test func `m067 a modifier alone makes a version`() throws {
        let store = try filled(nil, .sqlite)
        let v2 = "<entity name=\"City\" versionHashModifier=\"2\">\(name)\(people)</entity>"
        let before = try store.number("PRAGMA schema_version")
        try store.use(v2) { context in
            let found = try context.all("City"); expectEqual(found.count, 2)
        }
        try expect(store.number("PRAGMA schema_version") != before, "others notice")
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m069 objects that break a new constraint are named, and nothing changes`() throws {
        let store = try AgingStore(.migrating)
        try store.use(v1) { context in
            for name in ["Ulm", "Ulm", "Bonn", nil, nil] { context.insert("City", ["name": name]) }
        }
        let v2 =
            "<entity name=\"City\">\(name)\(people)<uniquenessConstraints><uniquenessConstraint><constraint value=\"name\"/></uniquenessConstraint></uniquenessConstraints></entity>"
        let error = try store.failure(v2)
        expectEqual(error.code, .migration)
        expect(
            (error.userInfo["reason"] as? String)?.contains("constraint violation during attempted migration") == true
        )
        let inner = try require(error.userInfo[NSUnderlyingErrorKey] as? CocoaError)
        expectEqual(inner.code.rawValue, NSMigrationConstraintViolationError)
        expectEqual(inner.userInfo["constraint"] as? [String], ["name"])
        let groups = try require(inner.userInfo["objects"] as? [[URL]])
        expectEqual(groups.count, 1)
        expectEqual(groups.first?.count, 2)
        expect(!error.localizedDescription.contains("Ulm"), "no value is shown")
        try store.use(v1) { context in
            for city in try context.all("City") where city.value(forKey: "name") as? String == "Ulm" {
                context.delete(city)
            }
        }
        try store.use(v2) { context in
            let found = try context.all("City"); expectEqual(found.count, 3)
        }
        try expectEqual(store.problems(v2), [])
        // The constraint can be removed again.
        try store.use(v1) { _ in }
        try expectEqual(store.problems(v1), [])
    }

    @Test func `m071 derived attributes are computed for all objects`() throws {
        let v1 = """
            <entity name="City"><attribute name="name" optional="YES" attributeType="String"/>
            <relationship name="streets" optional="YES" toMany="YES" destinationEntity="Street" inverseName="city" inverseEntity="Street"/></entity>
            <entity name="Street"><relationship name="city" optional="YES" maxCount="1" destinationEntity="City" inverseName="streets" inverseEntity="City"/></entity>
            """
        let store = try AgingStore(.migrating)
        try store.use(v1) { context in
            let cities = ["Ulm", "BONN"].map { context.insert("City", ["name": $0]) }
            for index in 0..<5 { context.insert("Street", ["city": cities[index % 2]]) }
        }
        let v2 = v1.replacing(
            "<attribute name=\"name\" optional=\"YES\" attributeType=\"String\"/>",
            with: """
                <attribute name="name" optional="YES" attributeType="String"/>
                <attribute name="count" optional="YES" attributeType="Integer 64" derived="YES" derivationExpression="streets.@count" usesScalarValueType="NO"/>
                <attribute name="plain" optional="YES" attributeType="String" derived="YES" derivationExpression="lowercase:(name)"/>
                """
        )
        try store.use(v2) { context in
            let cities = try context.all("City")
            expectEqual(cities.map { $0.value(forKey: "count") as? Int }.sorted { ($0 ?? 0) < ($1 ?? 0) }, [2, 3])
            expectEqual(Set(cities.map { $0.value(forKey: "plain") as? String }), ["ulm", "bonn"])
            let street = context.insert("Street", ["city": cities[0]])
            try context.save()
            expectEqual(street.objectID.isTemporaryID, false)
        }
        try expectEqual(store.problems(v2), [])
    }

    /// A change of ``shops``, and the derived values that the shop and its orders have afterwards.
    struct ShopChange: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let edits: [(old: String, new: String)]
        var removed: [String] = []
        let values: [String]

        /// The changed lines of the model.
        func lines(_ lines: String) -> String {
            edits.reduce(lines) { text, edit in
                expect(text.contains(edit.old))
                return text.replacing(edit.old, with: edit.new)
            }.split(separator: "\n").compactMap { line in
                guard removed.contains(where: { line.contains(" name=\"\($0)\"") }) else { return String(line) }
                return line.hasSuffix("</entity>") ? "</entity>" : nil
            }.joined(separator: "\n")
        }
    }

    /// Shops with derived values of each kind.
    private static let shops = """
        <entity name="Shop"><attribute name="name" optional="YES" attributeType="String"/>
        <attribute name="alias" optional="YES" attributeType="String"/>
        <attribute name="plain" optional="YES" attributeType="String" derived="YES" derivationExpression="lowercase:(name)"/>
        <attribute name="number" optional="YES" attributeType="Integer 64" derived="YES" derivationExpression="orders.@count" usesScalarValueType="NO"/>
        <attribute name="total" optional="YES" attributeType="Double" derived="YES" derivationExpression="orders.price.@sum" usesScalarValueType="NO"/>
        <relationship name="orders" optional="YES" toMany="YES" destinationEntity="Order" inverseName="shop" inverseEntity="Order"/>
        <relationship name="returns" optional="YES" toMany="YES" destinationEntity="Order" inverseName="origin" inverseEntity="Order"/></entity>
        <entity name="Order"><attribute name="price" optional="YES" attributeType="Double" usesScalarValueType="NO"/>
        <attribute name="weight" optional="YES" attributeType="Double" usesScalarValueType="NO"/>
        <attribute name="shopName" optional="YES" attributeType="String" derived="YES" derivationExpression="shop.name"/>
        <relationship name="shop" optional="YES" maxCount="1" destinationEntity="Shop" inverseName="orders" inverseEntity="Shop"/>
        <relationship name="origin" optional="YES" maxCount="1" destinationEntity="Shop" inverseName="returns" inverseEntity="Shop"/></entity>
        <entity name="Express" parentEntity="Order"/>
        """

    private static func taking(_ name: String, from other: String) -> (old: String, new: String) {
        (" name=\"\(name)\" ", " name=\"\(name)\" elementID=\"\(other)\" versionHashModifier=\"2\" ")
    }

    static let shopChanges = [
        ShopChange(
            testDescription: "a modifier",
            edits: [(" name=\"weight\" ", " name=\"weight\" versionHashModifier=\"2\" ")],
            values: ["ulm", "2", "3.0", "Ulm"]
        ),
        ShopChange(
            testDescription: "another text",
            edits: [taking("name", from: "alias")],
            removed: ["alias"],
            values: ["donau", "2", "3.0", "Donau"]
        ),
        ShopChange(
            testDescription: "another number",
            edits: [taking("price", from: "weight")],
            removed: ["weight"],
            values: ["ulm", "2", "30.0", "Ulm"]
        ),
        ShopChange(
            testDescription: "other members",
            edits: [taking("orders", from: "returns"), taking("shop", from: "origin")],
            removed: ["returns", "origin"],
            values: ["ulm", "1", "4.0", "Ulm"]
        ),
        ShopChange(
            testDescription: "fewer members",
            edits: [("<entity name=\"Express\" parentEntity=\"Order\"/>", "")],
            values: ["ulm", "1", "1.0", "Ulm"]
        ),
        ShopChange(
            testDescription: "a required number",
            edits: [
                (
                    "name=\"price\" optional=\"YES\" attributeType=\"Double\"",
                    "name=\"price\" attributeType=\"Double\" defaultValueString=\"100\""
                )
            ],
            values: ["ulm", "3", "103.0", "Ulm"]
        ),
        ShopChange(
            testDescription: "another function",
            edits: [("lowercase:(name)", "uppercase:(name)")],
            values: ["ULM", "2", "3.0", "Ulm"]
        ),
    ]

    @Test(arguments: shopChanges)
    func `m071 what derived attributes are computed from may change, and they follow`(_ change: ShopChange) throws {
        let store = try AgingStore(.migrating)
        try store.use(Self.shops) { context in
            let shop = context.insert("Shop", ["name": "Ulm", "alias": "Donau"])
            context.insert("Order", ["price": 1, "weight": 10, "shop": shop])
            context.insert("Express", ["price": 2, "weight": 20, "shop": shop])
            context.insert("Order", ["price": 4, "weight": 40, "origin": shop])
            if change.values[1] == "3" { context.insert("Order", ["shop": shop]) }
        }
        let v2 = change.lines(Self.shops)
        try store.use(v2) { context in
            let shop = try require(context.all("Shop").first)
            let names = try context.all("Order").compactMap { order in
                order.value(forKey: "shop") == nil ? nil : order.value(forKey: "shopName") as? String
            }
            let derived = ["plain", "number", "total"].map { key in shop.value(forKey: key).map { "\($0)" } ?? "nil" }
            expectEqual(derived + [Set(names).sorted().joined(separator: ", ")], change.values)
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m071 what is derived of a derived value follows it`() throws {
        let store = try AgingStore(.migrating)
        // In the order of entities, the derived value comes before the one that it depends on.
        let v1 = """
            <entity name="Order"><attribute name="label" optional="YES" attributeType="String" derived="YES" derivationExpression="shop.plain"/>
            <relationship name="shop" optional="YES" maxCount="1" destinationEntity="Shop" inverseName="orders" inverseEntity="Shop"/></entity>
            <entity name="Shop"><attribute name="name" optional="YES" attributeType="String"/>
            <attribute name="alias" optional="YES" attributeType="String"/>
            <attribute name="plain" optional="YES" attributeType="String" derived="YES" derivationExpression="lowercase:(name)"/>
            <relationship name="orders" optional="YES" toMany="YES" destinationEntity="Order" inverseName="shop" inverseEntity="Order"/></entity>
            """
        try store.use(v1) { context in
            context.insert("Order", ["shop": context.insert("Shop", ["name": "Ulm", "alias": "Donau"])])
        }
        let v2 = ShopChange(
            testDescription: "another text",
            edits: [Self.taking("name", from: "alias")],
            removed: ["alias"],
            values: []
        ).lines(v1)
        try store.use(v2) { context in
            try expectEqual(context.all("Order").map { $0.value(forKey: "label") as? String }, ["donau"])
        }
        try expectEqual(store.problems(v2), [])
    }

    @Test func `m072 m073 data moves out into files, and back in`() throws {
        func model(_ isExternal: Bool) -> String {
            city(
                "<attribute name=\"map\" optional=\"YES\" attributeType=\"Binary\" \(isExternal ? "allowsExternalBinaryDataStorage=\"YES\"" : "")/>"
            )
        }
        let (small, large) = (Data([1, 2, 3]), Data(repeating: 7, count: 300_000))
        let store = try AgingStore()
        try store.use(model(false)) { context in
            for data in [small, large, nil] { context.insert("City", ["map": data]) }
        }
        let folder = store.scratch.file(".aging_SUPPORT/_EXTERNAL_DATA")
        for isExternal in [true, false] {
            try store.use(model(isExternal)) { context in
                let found = try context.all("City");
                expectEqual(found.map { $0.value(forKey: "map") as? Data }, [small, large, nil])
            }
            let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
            expectEqual(files.count, isExternal ? 1 : 0)
            try expectEqual(store.problems(model(isExternal)), [])
        }
        // The migration removes the files of a removed attribute.
        try store.use(model(true)) { _ in }
        try store.use(city(name)) { _ in }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.path), [])
    }

    @Test(arguments: ["Integer 64", "Decimal", "Double", "Float"])
    func `m074 a number that the history keeps of a deleted object is the same in its new type`(_ type: String) throws {
        func lines(_ type: String) -> String {
            """
            <entity name="A" representedClassName="NSManagedObject">
            <attribute name="x" attributeType="\(type)" optional="YES" preserveAfterDeletion="YES"/></entity>
            """
        }
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        let store = try AgingStore(.migrating)
        try store.use(lines("Integer 32"), options) { $0.insert("A", ["x": 7]) }
        try store.use(lines("Integer 32"), options) { context in context.delete(try require(context.all("A").first)) }
        let kept = try store.use(lines(type), options) { context in
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
            let deletion = transactions.flatMap { $0.changes ?? [] }.first { $0.changeType == .delete }
            return (deletion?.tombstone?["x"] as? NSNumber)?.intValue
        }
        expectEqual(kept, 7)
        try expectEqual(store.problems(lines(type)), [])
    }

    @Test func `m081 m084 identity, versions and the program's own metadata stay`() throws {
        let model = try NSManagedObjectModel.parsing(v1)
        let store = try AgingStore()
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let file = try coordinator.addPersistentStore(type: .sqlite, at: store.url)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        let (id, version) = try context.performAndWait {
            let doomed = context.insert("City")
            let city = context.insert("City", ["name": "Ulm"])
            try context.save()
            city.setValue("Ulm an der Donau", forKey: "name")
            context.delete(doomed)
            file.metadata["mine"] = "kept"
            try context.save()
            return (city.objectID.uriRepresentation(), try store.number("SELECT Z_OPT FROM ZCITY"))
        }
        try coordinator.remove(file)
        let v2 = "<entity name=\"Aim\"/>" + city(people)
        try store.use(v2) { context in
            let found = try context.all("City"); expectEqual(found.map { $0.objectID.uriRepresentation() }, [id])
            expectEqual(context.persistentStoreCoordinator?.persistentStores.first?.metadata["mine"] as? String, "kept")
            let next = context.insert("City")
            try context.save()
            expectEqual(next.objectID.uriRepresentation().lastPathComponent, "p3", "no key is given twice")
        }
        try expectEqual(store.number("SELECT Z_OPT FROM ZCITY WHERE Z_PK = 2"), version)
        try expectEqual(store.problems(v2), [])
    }

    @Test(arguments: [true, false])
    func `m031 m036 objects get the default of every type as a new object does`(_ wasThere: Bool) throws {
        let types: [(name: String, type: NSAttributeDescription.AttributeType, value: Any)] = [
            ("small", .integer16, Int16(-7)), ("medium", .integer32, Int32.max), ("large", .integer64, Int64.min + 1),
            ("fraction", .double, 0.1), ("short", .float, Float(1.5)), ("truth", .boolean, true),
            ("text", .string, "ä' \" \\ $1 ? :a"), ("time", .date, Date(timeIntervalSinceReferenceDate: -1.5)),
            ("bytes", .binaryData, Data([1, 0, 255])), ("price", .decimal, NSDecimalNumber(string: "-0.25")),
            ("whole", .decimal, NSDecimalNumber(string: "12")), ("place", .uri, URL(fileURLWithPath: "/a")),
            ("id", .uuid, UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255))),
        ]
        // Either the attributes are new, or they were optional and the objects had no value.
        func model(isNew: Bool) -> NSManagedObjectModel {
            let model = ModelSketch.model("A: n String")
            guard isNew || wasThere else { return model }
            for (name, type, value) in types {
                let attribute = NSAttributeDescription()
                attribute.name = name
                attribute.type = type
                attribute.isOptional = !isNew
                if isNew { attribute.defaultValue = value }
                model.entities[0].properties.append(attribute)
            }
            return model
        }
        func described(_ value: Any?) -> String {
            switch value {
            case let data as Data: "\([UInt8](data))"
            case let value?: "\(value)"
            case nil: "-"
            }
        }
        let store = try AgingStore(.migrating)
        try store.use(model(isNew: false)) { context in
            context.make("A", "a1")
            try context.save()
        }
        try store.use(model(isNew: true)) { context in
            context.make("A", "a2")
            try context.save()
            context.reset()
            let shown = try context.all("A").map { object in
                types.map { "\($0.name) \(described(object.value(forKey: $0.name)))" }
            }
            expectEqual(shown.count, 2)
            expectEqual(shown.first, shown.last)
            expect(shown.joined().allSatisfy { !$0.hasSuffix(" -") }, "\(shown)")
        }
        try expectEqual(store.problems(model(isNew: true)), [])
    }

    @Test func `m036 m069 a default that makes objects alike is an error that names them`() throws {
        let store = try AgingStore(.migrating)
        try store.use(ModelSketch.model("A: n String, code Int32 | unique code")) { context in
            context.make("A", "a1")
            context.make("A", "a2")
            try context.save()
        }
        let before = try store.contents()

        let error = try #require(throws: CocoaError.self) {
            try store.use(ModelSketch.model("A: n String, code Int32!=5 | unique code")) { _ in }
        }

        expectEqual(error.code, .migration)
        let underlying = try require(error.userInfo[NSUnderlyingErrorKey] as? CocoaError)
        expectEqual(underlying.code.rawValue, NSMigrationConstraintViolationError)
        expectEqual((underlying.userInfo["objects"] as? [[URL]])?.first?.count, 2)
        try expectEqual(store.contents(), before)
    }
}
