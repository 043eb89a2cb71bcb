import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Batch inserts")
struct BatchInsertTests {
    @Test(arguments: StoreKind.allCases)
    func `rows of dictionaries are stored with defaults, and the context is untouched (CS-161, 162)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let request = NSBatchInsertRequest(
                entityName: "Bar",
                objects: [
                    ["name": "a", "price": 3], ["name": "b", "beers": 9, "code": UUID(), "seats": NSNull()], [:],
                ]
            )
            let result = try context.execute(request) as? NSBatchInsertResult
            expect(result?.result as? Bool == true && result?.resultType == .statusOnly)
            expect(!context.hasChanges && context.insertedObjects.isEmpty && context.registeredObjects.isEmpty)
            expectEqual(request.entity?.name, "Bar")
        }
        let bars = try stack.all(Bar.self) { "\($0.name ?? "nil") \($0.price) \($0.beers) \($0.favorite)" }
        expectEqual(bars, ["a 3 3 false", "b 0 9 false", "nil 0 3 false"])
        // Keys go on where the batch has ended.
        let id = try stack.store(Bar.self) { bar, _ in bar.name = "next" }
        expectEqual(id.key, 4)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `the IDs are permanent and lead to objects (CS-163)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let request = NSBatchInsertRequest(entityName: "City", objects: (0..<3).map { ["name": "c\($0)"] })
        request.resultType = .objectIDs
        let ids = try require(try stack.execute(request).value as? [NSManagedObjectID])
        expect(ids.count == 3 && !ids.contains { $0.isTemporaryID })
        try expectEqual(ids.map { try stack.read($0, City.self) { $0.name } }, ["c0", "c1", "c2"])
        request.resultType = .count
        try expectEqual(stack.execute(request).value as? Int, 3)
        try expectEqual(stack.count("City"), 6)
    }

    @Test(arguments: StoreKind.allCases)
    func `a dictionary handler is called until it says that it is done (CS-164)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        var number = 0
        let request = NSBatchInsertRequest(entityName: "Venue") { (values: NSMutableDictionary) -> Bool in
            expectEqual(values.count, 0)
            values["name"] = "h\(number)"
            values["price"] = number
            number += 1
            return number > 1000
        }
        request.resultType = .count
        try expectEqual(stack.execute(request).value as? Int, 1000)
        expectEqual(number, 1001)
        try expectEqual(stack.count("Venue"), 1000)
        try expect(stack.all(Venue.self, nameAndPrice).contains("h999 999"))
    }

    @Test(arguments: StoreKind.allCases)
    func `an object handler sets typed properties of an object with defaults (CS-164)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let city = try stack.storeCity("Porto")
        let context = stack.context()
        var kept: [Bar] = []
        try context.performAndWait {
            let porto = try context.get(city, City.self)
            var number = 0
            let request = NSBatchInsertRequest(entityName: "Bar") { (object: NSManagedObject) -> Bool in
                guard let bar = object as? Bar, number < 4 else { return true }
                expect(bar.beers == 3 && bar.name == nil && bar.city == nil && bar.colour == nil && bar.note == nil)
                bar.name = "o\(number)"
                bar.colour = ["red", number] as NSArray
                bar.note = "transient"
                if number > 0 { bar.beers = Int16(number) }
                bar.setValue(number * 2, forKey: "price")
                if number % 2 == 0 { bar.city = porto }
                if number == 1 { kept.append(bar) }
                number += 1
                return false
            }
            try expect(context.execute(request) is NSBatchInsertResult)
            expect(porto.venues.isEmpty || !context.hasChanges)
        }
        let bars = try stack.all(Bar.self) {
            "\($0.name ?? "") \($0.price) \($0.beers) \($0.city?.name ?? "-") \($0.colour?.count ?? 0)"
        }
        expectEqual(bars, ["o0 0 3 Porto 2", "o1 2 1 - 2", "o2 4 2 Porto 2", "o3 6 3 - 2"])
        expect(kept.first?.name == "o1" && kept.first?.managedObjectContext == nil)
        try expectEqual(stack.read(city, City.self) { $0.venues.count }, 2)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-one relationship takes an ID, at the end of an ordered inverse (CS-170)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let venue = try stack.storeNumberedVenues(1) { _, venue, context in
            let photo = Photo(context: context)
            photo.title = "first"
            venue.photos = [photo]
        }[0]
        let version = try stack.version(of: venue)
        try stack.execute(
            NSBatchInsertRequest(entityName: "Photo", objects: ["b", "a"].map { ["title": $0, "venue": venue] })
        )
        try expectEqual(stack.read(venue, Venue.self) { $0.photos.compactMap(\.title) }, ["first", "b", "a"])
        try expectEqual(stack.version(of: venue), version + 1)
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a row that cannot be stored is refused by name, and nothing is stored`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let venue = try stack.storeNumberedVenues(1)[0]
        let gone = try stack.storeCity("gone")
        try stack.delete(gone)
        let before = try stack.state()
        let cases: [(String, String, Any, CocoaError.Code)] = [
            ("Venue", "price", "x", .persistentStoreOperation), ("Venue", "nothing", 1, .persistentStoreOperation),
            ("Venue", "tags", [venue], .persistentStoreOperation),
            ("Venue", "city", gone, .managedObjectReferentialIntegrity),
            ("Licence", "venue", venue, .persistentStoreOperation), ("Venue", "city", venue, .persistentStoreOperation),
        ]
        for (entity, name, value, code) in cases {
            let request = NSBatchInsertRequest(entityName: entity, objects: [[:], [name: value]])
            let error = expectThrows(CocoaError.self) { try stack.execute(request) }
            expect(error?.code == code && error?.localizedDescription.contains("\"\(name)\"") == true, "\(name)")
        }
        let unknown = NSBatchInsertRequest(entityName: "Nothing", objects: [[:]])
        expectThrows(CocoaError.self) { try stack.execute(unknown) }
        try expectEqual([stack.count("Venue"), stack.count("Licence")], [1, 0])
        try expectEqual(stack.state(), before)
    }

    @Test(arguments: StoreKind.allCases)
    func `a missing destination is refused although no row is written`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.store(User.self) { user, _ in user.email = "a" }
        let gone = try stack.store(User.self) { user, _ in user.email = "gone" }
        try stack.delete(gone)
        let before = try stack.state()
        let update = NSBatchUpdateRequest(entityName: "User")
        update.predicate = NSPredicate(format: "email == 'nobody'")
        update.propertiesToUpdate = ["boss": gone]
        let skipped = NSBatchInsertRequest(entityName: "User", objects: [["email": "a", "boss": gone]])
        for policy: NSMergePolicy in [.error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump] {
            for request: NSPersistentStoreRequest in [update, skipped] {
                let error = expectThrows(CocoaError.self) { try stack.execute(request, policy) }
                expectEqual(error?.code, .managedObjectReferentialIntegrity, "\(request)")
            }
        }
        try expectEqual(stack.state(), before)
    }
}
