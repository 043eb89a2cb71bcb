import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles

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
}
