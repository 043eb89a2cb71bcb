import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("Derived attributes")
struct DerivedAttributeTests {
    /// A model of orders of customers, with items.
    private func orders(_ kind: StoreKind) throws -> StoreHarness {
        let customer = StoreModels.entity("Customer")
        let order = StoreModels.entity("Order")
        let item = StoreModels.entity("Item")
        let orders = StoreModels.toMany("orders", order)
        let customerOf = StoreModels.toOne("customer", customer)
        let items = StoreModels.toMany("items", item)
        let orderOf = StoreModels.toOne("order", order)
        StoreModels.connect(orders, customerOf)
        StoreModels.connect(items, orderOf)
        customer.properties = [
            StoreModels.attribute("name", .string), orders,
            StoreModels.derived("canonical", .string, NSExpression(format: "canonical:(name)")),
            StoreModels.derived("upper", .string, NSExpression(format: "uppercase:(name)")),
        ]
        order.properties = [
            customerOf, items, StoreModels.derived("customerName", .string, NSExpression(forKeyPath: "customer.name")),
            StoreModels.derived("itemCount", .integer64, NSExpression(format: "items.@count")),
            StoreModels.derived("total", .double, NSExpression(format: "items.@sum.price")),
            StoreModels.derived("savedAt", .date, NSExpression(format: "now()")),
        ]
        item.properties = [StoreModels.attribute("price", .double), orderOf]
        return try StoreHarness(StoreModels.model(customer, order, item), type: kind.type)
    }

    private func value(_ row: Row, _ name: String) throws -> Any? {
        row.anyValue(try require(row.layout.slot(named: name)))
    }

    @Test(arguments: StoreKind.allCases)
    func `are computed on insertion and returned`(_ kind: StoreKind) throws {
        let harness = try orders(kind)
        let customer = try harness.row("Customer", -1, ["name": "Ärger"])
        let order = try harness.row("Order", -2, to: ["customer": harness.reference("Customer", -1)])
        let toOrder = ["order": try harness.reference("Order", -2)]
        let items = try [1.5, 2.5].enumerated().map { index, price in
            try harness.row("Item", Int64(-10 - index), ["price": price], to: toOrder)
        }

        let result = try harness.save(StoreChanges(inserted: items + [order, customer]))

        let rows = Dictionary(uniqueKeysWithValues: result.reread.map { ($0.layout.entity.name ?? "", $0) })
        expectEqual(result.reread.count, 2)
        let saved = try require(rows["Order"])
        try expectEqual(value(saved, "customerName") as? String, "Ärger")
        try expectEqual(value(saved, "itemCount") as? Int64, 2)
        try expectEqual(value(saved, "total") as? Double, 4)
        let date = try require(try value(saved, "savedAt") as? Date)
        expect(abs(date.timeIntervalSinceNow) < 60)
        try expectEqual(value(require(rows["Customer"]), "canonical") as? String, "arger")
        try expectEqual(value(require(rows["Customer"]), "upper") as? String, "ÄRGER")
    }

    @Test(arguments: StoreKind.allCases)
    func `follow changes and deletions`(_ kind: StoreKind) throws {
        let harness = try orders(kind)
        try harness.insert(
            harness.row("Customer", -1, ["name": "a"]),
            harness.row("Order", -2, to: ["customer": harness.reference("Customer", -1)]),
            harness.row("Order", -3),
            harness.row("Item", -4, ["price": 2.0], to: ["order": harness.reference("Order", -2)]),
            harness.row("Item", -5, ["price": 3.0], to: ["order": harness.reference("Order", -2)])
        )

        var changes = StoreChanges()
        changes.updated = [
            try harness.update("Customer", 1, ["name": "b"]),
            try harness.update("Item", 1, ["order": harness.reference("Order", 2)]),
        ]
        changes.deleted = [try harness.deletion("Item", 2)]
        let result = try harness.save(changes)

        expect(
            Set(result.reread.map { "\($0.layout.entity.name ?? "")\($0.key)" }) == ["Customer1", "Order1", "Order2"]
        )
        let (first, second) = (try harness.stored("Order", 1), try harness.stored("Order", 2))
        try expectEqual(value(first, "customerName") as? String, "b")
        try expectEqual([first, second].map { try value($0, "itemCount") as? Int64 }, [0, 1])
        try expectEqual([first, second].map { try value($0, "total") as? Double }, [0, 2])
        // Their versions are the former ones, since the save did not change these objects.
        expectEqual([first.version.versionCount, second.version.versionCount], [1, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `are not written from what was handed over`(_ kind: StoreKind) throws {
        let harness = try orders(kind)
        try harness.insert(harness.row("Order", -1, ["itemCount": 77]))

        try expectEqual(value(harness.stored("Order", 1), "itemCount") as? Int64, 0)
        try harness.save(StoreChanges(updated: [harness.update("Order", 1, ["itemCount": 5])]))
        try expectEqual(value(harness.stored("Order", 1), "itemCount") as? Int64, 0)
        try expectEqual(harness.stored("Order", 1).version.versionCount, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `follow relationships that no column of a member holds, and one another`(_ kind: StoreKind) throws {
        let (club, person) = (StoreModels.entity("Club"), StoreModels.entity("Person"))
        let (members, clubs) = (StoreModels.toMany("members", person), StoreModels.toMany("clubs", club))
        StoreModels.connect(members, clubs)
        let guests = StoreModels.toMany("guests", person)
        let best = StoreModels.toOne("best", club)
        club.properties = [
            StoreModels.attribute("name", .string), members, guests,
            StoreModels.derived("memberCount", .integer64, NSExpression(format: "members.@count")),
            StoreModels.derived("guestAge", .integer64, NSExpression(format: "guests.@sum.age")),
            StoreModels.derived("oldest", .integer64, NSExpression(format: "guests.@max.age")),
            StoreModels.derived("mean", .double, NSExpression(format: "guests.@avg.age")),
        ]
        person.properties = [
            StoreModels.attribute("age", .integer64), clubs, best,
            StoreModels.derived("bestName", .string, NSExpression(forKeyPath: "best.name")),
            StoreModels.derived("loudName", .string, NSExpression(format: "uppercase:(bestName)")),
        ]
        let harness = try StoreHarness(StoreModels.model(club, person), type: kind.type)
        var changes = StoreChanges()
        changes.inserted = [
            try harness.row("Club", -1, ["name": "golf"]), try harness.row("Club", -2),
            try harness.row("Person", -3, ["age": 20], to: ["best": harness.reference("Club", -1)]),
            try harness.row("Person", -4, ["age": 40]),
        ]
        let people = try [-3, -4].map { try harness.reference("Person", $0) }
        for name in ["members", "guests"] {
            changes.toMany.append(
                ToManyChange(
                    relationship: try harness.toMany("Club", name),
                    owner: try harness.reference("Club", -1),
                    added: people,
                    removed: []
                )
            )
        }
        try harness.save(changes)

        func numbers(_ club: Int64) throws -> [Double?] {
            let row = try harness.stored("Club", club)
            return try ["memberCount", "guestAge", "oldest", "mean"].map {
                (try value(row, $0) as? NSNumber)?.doubleValue
            }
        }
        try expectEqual(numbers(1), [2, 60, 40, 30])
        try expectEqual(numbers(2), [0, 0, nil, nil])
        try expectEqual(value(harness.stored("Person", 1), "loudName") as? String, "GOLF")

        changes = StoreChanges()
        changes.updated = [
            try harness.update("Club", 1, ["name": "chess"]), try harness.update("Person", 1, ["age": 50]),
        ]
        changes.deleted = [try harness.deletion("Person", 2)]
        changes.toMany = [
            ToManyChange(
                relationship: try harness.toMany("Club", "guests"),
                owner: try harness.reference("Club", 2),
                added: [try harness.reference("Person", 1)],
                removed: []
            )
        ]
        try harness.save(changes)
        try expectEqual(numbers(1), [1, 0, nil, nil])
        try expectEqual(numbers(2), [0, 50, 50, 50])
        try expectEqual(value(harness.stored("Person", 1), "bestName") as? String, "chess")
        try expectEqual(value(harness.stored("Person", 1), "loudName") as? String, "CHESS")

        // Only the new owner shows that the former owner has lost the member.
        changes = StoreChanges()
        changes.toMany = [
            ToManyChange(
                relationship: try harness.toMany("Club", "guests"),
                owner: try harness.reference("Club", 1),
                added: [try harness.reference("Person", 1)],
                removed: []
            )
        ]
        try harness.save(changes)
        try expectEqual(numbers(1), [1, 50, 50, 50])
        try expectEqual(numbers(2), [0, 0, nil, nil])
    }

    @Test(arguments: [
        ("count:(pages)", Derivation.aggregate(.count, relationship: "pages", attribute: nil)),
        ("sum:(items.price)", .aggregate(.sum, relationship: "items", attribute: "price")),
        ("avg:(items.price)", .aggregate(.average, relationship: "items", attribute: "price")),
        ("owner.name", .copy(relationship: "owner", attribute: "name")),
        ("canonical:(title)", .function(.canonical, attribute: "title")), ("now()", .now),
    ])
    func `are read from their text`(text: String, derivation: Derivation) {
        expectEqual(Derivation(text), derivation)
    }

    @Test(arguments: ["", "name", "a.b.c", "count:(a.b)", "soundex:(name)", "sum:(items)"])
    func `that the store cannot keep are left alone`(text: String) {
        expectEqual(Derivation(text), nil)
    }

    @Test(arguments: StoreKind.allCases)
    func `a sum follows the values of its members alone`(_ kind: StoreKind) throws {
        let harness = try orders(kind)
        try harness.insert(
            harness.row("Order", -1),
            harness.row("Item", -2, ["price": 2.0], to: ["order": harness.reference("Order", -1)])
        )
        try harness.save(StoreChanges(updated: [harness.update("Item", 1, ["price": 7.0])]))
        try expectEqual(value(harness.stored("Order", 1), "total") as? Double, 7)
    }

    @Test(arguments: StoreKind.allCases)
    func `a copy follows the relationship`(_ kind: StoreKind) throws {
        let harness = try orders(kind)
        try harness.insert(
            harness.row("Customer", -1, ["name": "a"]),
            harness.row("Customer", -2, ["name": "b"]),
            harness.row("Order", -3, to: ["customer": harness.reference("Customer", -1)])
        )
        let other = try harness.reference("Customer", 2)
        try harness.save(StoreChanges(updated: [harness.update("Order", 1, ["customer": other])]))
        try expectEqual(value(harness.stored("Order", 1), "customerName") as? String, "b")
    }

    @Test(arguments: StoreKind.allCases)
    func `a copy follows a destination of a sub-entity`(_ kind: StoreKind) throws {
        let customer = StoreModels.entity("Customer", [StoreModels.attribute("name", .string)])
        let firm = StoreModels.entity("Firm")
        customer.subentities = [firm]
        let order = StoreModels.entity("Order")
        let (orders, customerOf) = (StoreModels.toMany("orders", order), StoreModels.toOne("customer", customer))
        StoreModels.connect(orders, customerOf)
        customer.properties.append(orders)
        order.properties = [
            customerOf, StoreModels.derived("customerName", .string, NSExpression(forKeyPath: "customer.name")),
        ]
        let harness = try StoreHarness(StoreModels.model(customer, firm, order), type: kind.type)
        try harness.insert(
            harness.row("Firm", -1, ["name": "a"]),
            harness.row("Order", -2, to: ["customer": harness.reference("Firm", -1)])
        )
        try harness.save(StoreChanges(updated: [harness.update("Firm", 1, ["name": "b"])]))
        try expectEqual(value(harness.stored("Order", 1), "customerName") as? String, "b")
    }

    /// A save or batch that touches an order, or only what the order's derived attributes are made of.
    enum Touch: CaseIterable {
        case addedItem, changedItem, deletedItem, changedCustomer, itemsBatch, nothing, order
    }

    @Test(arguments: StoreKind.allCases, Touch.allCases)
    func `now() moves on when the object itself is saved, and at no other time`(
        _ kind: StoreKind,
        _ touch: Touch
    ) throws {
        let harness = try orders(kind)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = harness.coordinator
        try context.performAndWait {
            let objects = ["Customer", "Order", "Item"].map {
                NSEntityDescription.insertNewObject(forEntityName: $0, into: context)
            }
            let (customer, order, item) = (objects[0], objects[1], objects[2])
            customer.setValue("a", forKey: "name")
            order.setValue(customer, forKey: "customer")
            item.setValue(1.5, forKey: "price")
            item.setValue(order, forKey: "order")
            try context.save()
            let before = try require(order.value(forKey: "savedAt") as? Date)
            usleep(20_000)
            switch touch {
            case .addedItem:
                let other = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                other.setValue(2.5, forKey: "price")
                other.setValue(order, forKey: "order")
            case .changedItem: item.setValue(4.0, forKey: "price")
            case .deletedItem: context.delete(item)
            case .changedCustomer: customer.setValue("b", forKey: "name")
            case .itemsBatch:
                let request = NSBatchUpdateRequest(entityName: "Item")
                request.propertiesToUpdate = ["price": 4.0]
                try context.execute(request)
            case .nothing: _ = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
            case .order: order.setValue(nil, forKey: "customer")
            }
            try context.save()
            context.refresh(order, mergeChanges: false)
            let (total, customerName) = (order.value(forKey: "total") as? Double, order.value(forKey: "customerName"))
            let totals: [Touch: Double] = [.addedItem: 4, .changedItem: 4, .itemsBatch: 4]
            if touch != .deletedItem { expectEqual(total, totals[touch] ?? 1.5) }
            expectEqual(customerName as? String, touch == .order ? nil : touch == .changedCustomer ? "b" : "a")
            let after = try require(order.value(forKey: "savedAt") as? Date)
            expectEqual(after > before, touch == .order)
            expectEqual(after == before, touch != .order)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `follow batches`(_ kind: StoreKind) throws {
        let (city, venue) = (StoreModels.entity("City"), StoreModels.entity("Venue"))
        let (venues, cityOf) = (StoreModels.toMany("venues", venue), StoreModels.toOne("city", city))
        StoreModels.connect(venues, cityOf)
        city.properties = [
            StoreModels.attribute("name", .string), venues,
            StoreModels.derived("folded", .string, NSExpression(format: "canonical:(name)")),
            StoreModels.derived("count", .integer64, NSExpression(format: "venues.@count")),
            StoreModels.derived("rooms", .integer64, NSExpression(format: "venues.@sum.rooms")),
            StoreModels.derived("largest", .integer64, NSExpression(format: "venues.@max.rooms")),
        ]
        venue.properties = [
            StoreModels.attribute("rooms", .integer64), cityOf,
            StoreModels.derived("cityName", .string, NSExpression(forKeyPath: "city.name")),
        ]
        let stack = try Stack(kind, model: StoreModels.model(city, venue))
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            city.setValue("Ürgüp", forKey: "name")
            try context.save()
            func values() -> [Int?] { ["count", "rooms", "largest"].map { city.value(forKey: $0) as? Int } }
            func names() throws -> Set<String> {
                let request = NSFetchRequest<NSManagedObject>(entityName: "Venue")
                let venues = try context.fetch(request)
                for venue in venues { context.refresh(venue, mergeChanges: false) }
                return Set(venues.map { $0.value(forKey: "cityName") as? String ?? "none" })
            }
            let rows = (1...3).map { ["rooms": $0, "city": city.objectID as Any] }
            try context.execute(NSBatchInsertRequest(entityName: "Venue", objects: rows))
            expectEqual(values(), [3, 6, 3])
            try expectEqual(names(), ["Ürgüp"])

            let grow = NSBatchUpdateRequest(entityName: "Venue")
            grow.predicate = NSPredicate(format: "rooms == 3")
            grow.propertiesToUpdate = ["rooms": 10]
            try context.execute(grow)
            expectEqual(values(), [3, 13, 10])

            let rename = NSBatchUpdateRequest(entityName: "City")
            rename.propertiesToUpdate = ["name": "Íznik"]
            try context.execute(rename)
            expectEqual(city.value(forKey: "folded") as? String, "iznik")
            try expectEqual(names(), ["Íznik"])

            let fetch = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
            fetch.predicate = NSPredicate(format: "rooms == 10")
            try context.execute(NSBatchDeleteRequest(fetchRequest: fetch))
            expectEqual(values(), [2, 3, 2])

            let move = NSBatchUpdateRequest(entityName: "Venue")
            move.propertiesToUpdate = ["city": NSNull()]
            try context.execute(move)
            expectEqual(values(), [0, 0, nil])
            try expectEqual(names(), ["none"])
        }
    }

    // SQLite stores any value in any column.
    @Test(arguments: StoreKind.allCases.filter { $0 != .sqlite })
    func `of numbers that are too large for them are nil`(_ kind: StoreKind) throws {
        let (order, item) = (StoreModels.entity("Order"), StoreModels.entity("Item"))
        let (items, orderOf) = (StoreModels.toMany("items", item), StoreModels.toOne("order", order))
        StoreModels.connect(items, orderOf)
        order.properties = [
            items, StoreModels.derived("whole", .integer64, NSExpression(format: "items.@sum.count")),
            StoreModels.derived("fraction", .double, NSExpression(format: "items.@sum.weight")),
        ]
        item.properties = [
            StoreModels.attribute("count", .integer64), StoreModels.attribute("weight", .double), orderOf,
        ]
        let harness = try StoreHarness(StoreModels.model(order, item), type: kind.type)
        try harness.insert(harness.row("Order", -1))
        let toOrder = ["order": try harness.reference("Order", 1)]
        try harness.insert(
            harness.row("Item", -2, ["count": Int64.max, "weight": 1e308], to: toOrder),
            harness.row("Item", -3, ["count": Int64.max, "weight": 1e308], to: toOrder)
        )
        try expect(value(harness.stored("Order", 1), "whole") == nil)
        try expectEqual(value(harness.stored("Order", 1), "fraction") as? Double, .infinity)
    }
}
