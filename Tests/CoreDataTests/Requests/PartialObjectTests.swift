import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

private typealias Tag = TestSupport.Tag

@Suite("Objects with some of their properties")
struct PartialObjectTests {
    private func request(_ properties: [Any]) -> NSFetchRequest<Venue> {
        let request = venues()
        request.propertiesToFetch = properties
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `named properties are there without another query, and any other one fills the object`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        stack.coolDown()
        let log = try QueryLog(stack)
        let store = try require(stack.coordinator.openStores.first)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let found = try context.fetch(request(["name", "city"]))
            expect(found.allSatisfy { $0.isFault } && store.cache.count == 0 && log.saw(1))
            if kind == .sqlite {
                expectEqual(found[1].extras?.partial?.row.isNull(found[1].layout.slots.count - 1), true)
            }
            expectEqual(found.map(\.name), ["000", "001", "002"])
            expectEqual(found.map { $0.value(forKey: "name") as? String }, ["000", "001", "002"])
            let cities = found.map(\.city)
            expect(cities.allSatisfy { $0 != nil })
            expect(found.allSatisfy { $0.isFault } && log.saw(0))

            expect(found[2].price == 2 && !found[2].isFault && log.saw(1))
            expect(found[2].name == "002" && found[2].city === cities[2] && log.saw(0))
            expect(found[1].isFault)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `they can be changed and saved like others`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(2)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let found = try context.fetch(request(["name"]))
            found[1].name = "changed"
            expect(found[1].price == 1 && found[1].changedValues().keys.sorted() == ["name"])
            try context.save()
        }
        try expect(stack.read(ids[1], Venue.self) { $0.name == "changed" && $0.price == 1 && $0.city != nil })
    }

    @Test(arguments: StoreKind.allCases)
    func `what is realised or changed stays, and a refresh forgets`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(3)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let changed: Venue = try context.get(ids[0])
            changed.price = 50
            let partial = request(["name"])
            partial.includesPendingChanges = false
            let found = try context.fetch(partial)
            expect(found[0] === changed && changed.price == 50)
            expect(found[1].name == "001" && found[1].isFault)
            try stack.change(ids[1], Venue.self) { venue, _ in venue.name = "0015" }
            expectEqual(found[1].name, "001")
            context.refresh(found[1], mergeChanges: true)
            expectEqual(found[1].name, "0015")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `property descriptions may stand for names, also of a subentity's objects`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.store(Bar.self) { bar, _ in
            bar.name = "bar"
            bar.beers = 12
        }
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let entity = try require(NSEntityDescription.entity(forEntityName: "Venue", in: context))
            let name = try require(entity.attributesByName["name"])
            let bar = try require(try context.fetch(request([name])).first as? Bar)
            expect(log.saw(1))
            expect(bar.name == "bar" && log.saw(0))
            expect(bar.beers == 12 && log.saw(1))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a name that is no stored value is refused`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        context.performAndWait {
            func refusal(_ property: Any) -> String { message { _ = try context.fetch(request([property])) } }
            expect(refusal("nam").contains("Entity Venue has no property \"nam\""))
            expect(refusal("tags").contains("to-many relationship \"tags\""))
            expect(refusal("note").contains("transient property \"note\""))
            expect(refusal(7).contains("takes names and property descriptions"))
            let expression = NSExpressionDescription()
            expression.name = "sum"
            expect(refusal(expression).contains("\"sum\""))
        }
    }

    // MARK: - Newer values

    /// The events that bring a new row to a context whose fetch has read the values of the old one.
    enum News: CaseIterable {
        case merge
        case batch
        case refresh
        case laterFetches
    }

    @Test(arguments: StoreKind.allCases, News.allCases)
    func `newer values replace those that were fetched before`(_ kind: StoreKind, _ news: News) throws {
        let stack = try Stack(kind)
        let (oldID, newID) = (try stack.storeCity("old"), try stack.storeCity("new"))
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.name = "old"
            venue.city = context.object(with: oldID) as? City
        }
        func move(_ name: String) throws {
            try stack.change(venueID, Venue.self) { venue, context in
                venue.name = name
                venue.city = context.object(with: newID) as? City
            }
        }
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = news == .merge
        let kept = try context.performAndWait {
            let venue = try require(try context.fetch(request(["name", "city"])).first)
            expect(venue.isFault && venue.name == "old" && venue.city?.objectID == oldID)
            return UncheckedSendable(venue)
        }
        if news == .merge { try move("new") }
        try context.performAndWait {
            let venue = kept.value
            switch news {
            case .merge: break
            case .batch:
                let update = NSBatchUpdateRequest(entityName: "Venue")
                update.propertiesToUpdate = ["name": "new", "city": newID]
                context.automaticallyMergesChangesFromParent = true
                _ = try context.execute(update)
            case .refresh:
                // Only a relationship is changed, so the object stays a fault.
                Tag(context: context).venues = [venue]
                try move("new")
                context.refresh(venue, mergeChanges: true)
            case .laterFetches:
                try move("newer")
                expectEqual(try context.fetch(venues()).count, 1)
                try move("new")
                // This fetch lets go of the row of the one before.
                expectEqual(try context.all(City.self).count, 2)
            }
            expect(venue.name == "new" && venue.city?.objectID == newID)
            venue.city = try context.get(oldID, City.self)
            try context.save()
        }
        try expect(stack.read(venueID, Venue.self) { $0.name == "new" && $0.city?.objectID == oldID })
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a derived attribute that the own save changes replaces the one that was fetched before`(_ kind: StoreKind)
        throws
    {
        let (owners, items) = (StoreModels.entity("Owner"), StoreModels.entity("Item"))
        owners.properties = [StoreModels.attribute("name", .string)]
        let (owner, members) = (StoreModels.toOne("owner", owners), StoreModels.toMany("items", items))
        StoreModels.connect(owner, members)
        owners.properties.append(members)
        items.properties = [
            owner, StoreModels.derived("ownerName", .string, NSExpression(forKeyPath: "owner.name")),
        ]
        let stack = try Stack(kind, model: StoreModels.model(owners, items))
        let ownerID = try stack.inContext { context in
            let owner = NSManagedObject(entity: owners, insertInto: context)
            owner.setValue("old", forKey: "name")
            NSManagedObject(entity: items, insertInto: context).setValue(owner, forKey: "owner")
            try context.save()
            return owner.objectID
        }
        try stack.inContext { context in
            let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
            request.propertiesToFetch = ["ownerName"]
            let item = try require(try context.fetch(request).first)
            expectEqual(item.value(forKey: "ownerName") as? String, "old")
            context.object(with: ownerID).setValue("new", forKey: "name")
            try context.save()
            expectEqual(item.value(forKey: "ownerName") as? String, "new")
        }
    }

    /// An attribute that is set is stored, whatever was fetched before; so is a relationship.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `a relationship that is set to what was fetched before is stored`(_ kind: StoreKind, _ isFromOwner: Bool)
        throws
    {
        let stack = try Stack(kind)
        let (oldID, newID) = (try stack.storeCity("old"), try stack.storeCity("new"))
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: oldID) as? City
        }
        let context = stack.context()
        try context.performAndWait {
            let venue = try require(try context.fetch(request(["city"])).first)
            let old = try require(venue.city)
            try stack.change(venueID, Venue.self) { venue, context in
                venue.city = context.object(with: newID) as? City
            }
            // The members of the new city are known, and those of the old one are not.
            let new = try context.get(newID, City.self)
            expectEqual(new.venues, [venue])
            if isFromOwner {
                old.mutableSetValue(forKey: "venues").add(venue)
            } else {
                venue.city = old
            }
            expect(venue.city === old && old.venues == [venue] && new.venues.isEmpty)
            try context.save()
        }
        try expect(stack.read(venueID, Venue.self) { $0.city?.objectID == oldID })
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `a member that leaves an owner which it was not fetched with leaves it in the store`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        let (oldID, newID) = (try stack.storeCity("old"), try stack.storeCity("new"))
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: oldID) as? City
        }
        let context = stack.context()
        try context.performAndWait {
            let venue = try require(try context.fetch(request(["city"])).first)
            try stack.change(venueID, Venue.self) { venue, context in
                venue.city = context.object(with: newID) as? City
            }
            try context.get(newID, City.self).mutableSetValue(forKey: "venues").remove(venue)
            expectEqual(venue.city, nil)
            try context.save()
        }
        try expect(stack.read(venueID, Venue.self) { $0.city == nil })
        try expectEqual(stack.problems(), [])
    }
}
