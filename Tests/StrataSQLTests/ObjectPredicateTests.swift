import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Objects in predicates")
struct ObjectPredicateTests {
    /// Ten venues; those with an even number are in a city.
    private func venues(_ kind: StoreKind) throws -> (NSManagedObjectContext, [Venue], City) {
        let context = try Stack(kind).context()
        return try context.performAndWait {
            let city = City(context: context)
            city.name = "Lisbon"
            let venues = (0..<10).map { number in
                let venue = Venue(context: context)
                venue.price = Int16(number)
                venue.city = number.isMultiple(of: 2) ? city : nil
                return venue
            }
            try context.save()
            return (context, venues, city)
        }
    }

    /// The results of a fetch, where `evaluate(with:)` means something else: it compares values by their types.
    private func fetched(_ context: NSManagedObjectContext, _ text: String, _ arguments: Any...) throws -> [Int16] {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = NSPredicate(format: text, argumentArray: arguments)
        request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: true)]
        return try context.fetch(request).map(\.price)
    }

    private func prices(_ context: NSManagedObjectContext, _ text: String, _ arguments: Any...) throws -> [Int16] {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = NSPredicate(format: text, argumentArray: arguments)
        request.sortDescriptors = [NSSortDescriptor(key: "price", ascending: true)]
        let found = try context.fetch(request)
        let all = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
        expectEqual(Set(all.filter { request.predicate?.evaluate(with: $0) == true }), Set(found), "\(text)")
        return found.map(\.price)
    }

    @Test(arguments: StoreKind.allCases)
    func `objects and their IDs come in any collection`(_ kind: StoreKind) throws {
        let (context, venues, city) = try venues(kind)
        try context.performAndWait { () throws in
            let chosen = [venues[3], venues[1], venues[4]]
            let ids = chosen.map(\.objectID)
            let collections: [Any] = [
                chosen, Set(chosen), ids, Set(ids), NSArray(array: chosen), NSSet(array: ids),
                NSOrderedSet(array: chosen),
                [chosen[0], ids[1], chosen[2].objectID, NSNull()] as [Any],
                ["a": chosen[0], "b": chosen[1], "c": chosen[2]],
            ]

            for collection in collections {
                try expectEqual(prices(context, "SELF IN %@", collection), [1, 3, 4])
                try expectEqual(prices(context, "objectID IN %@", collection), [1, 3, 4])
                try expectEqual(prices(context, "%@ CONTAINS SELF", collection), [1, 3, 4])
                try expectEqual(prices(context, "NOT SELF IN %@", collection).count, 7)
                try expectEqual(prices(context, "ANY city.venues IN %@", collection), [0, 2, 4, 6, 8])
            }
            try expectEqual(prices(context, "SELF == %@", venues[3]), [3])
            try expectEqual(prices(context, "SELF != %@", venues[3].objectID).count, 9)
            try expectEqual(prices(context, "%@ == objectID", venues[3].objectID), [3])
            try expectEqual(prices(context, "city == %@", city), [0, 2, 4, 6, 8])
            try expectEqual(prices(context, "city IN %@", [city.objectID]), [0, 2, 4, 6, 8])
            try expectEqual(prices(context, "city.objectID != %@", city.objectID), [1, 3, 5, 7, 9])
            try expectEqual(prices(context, "city IN %@", [NSNull()]), [1, 3, 5, 7, 9])
            try expectEqual(prices(context, "SELF IN %@", NSArray()), [])
            // An object that was never saved, and one of another entity, are nowhere.
            try expectEqual(prices(context, "SELF IN %@", [city, User(context: context)] as [NSManagedObject]), [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `ANY and ALL before one value compare that value`(_ kind: StoreKind) throws {
        let (context, venues, city) = try venues(kind)
        try context.performAndWait {
            city.name = "Porto"
            venues[2].name = "Bica"
            try context.save()

            try expectEqual(prices(context, "ANY price == 3"), [3])
            try expectEqual(prices(context, "ALL price > 7"), [8, 9])
            try expectEqual(prices(context, "NONE price < 8"), [8, 9])
            try expectEqual(prices(context, "ANY city.name BEGINSWITH[c] 'p'"), [0, 2, 4, 6, 8])
            // Nil is no value.
            try expectEqual(prices(context, "ANY city == nil"), [])
            try expectEqual(prices(context, "ALL city.name == 'Faro'"), [1, 3, 5, 7, 9])
            let inner = "SUBQUERY(city.venues, $v, ANY $v.name BEGINSWITH[c] 'B').@count > 0"
            try expectEqual(prices(context, inner), [0, 2, 4, 6, 8])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `texts are found among numbers by the text of each number`(_ kind: StoreKind) throws {
        let (context, venues, _) = try venues(kind)
        try context.performAndWait {
            for (venue, name) in zip(venues, ["9", "9.5", "09", "-1", "x", "9.0"]) { venue.name = name }
            try context.save()

            try expectEqual(fetched(context, "name IN %@", [9, 10]), [0])
            try expectEqual(fetched(context, "name IN %@", [9.5, -1, "x"] as NSArray), [1, 3, 4])
            try expectEqual(fetched(context, "name IN {9.0}"), [5])
            try expectEqual(fetched(context, "NOT name IN %@ AND price < 3", [9]), [1, 2])
            // Unsaved changes are judged in the same way.
            venues[4].name = "9"
            try expectEqual(fetched(context, "name IN %@", [9, 10]), [0, 4])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a count behind an attribute of the members counts the members that have a value`(_ kind: StoreKind) throws {
        let (context, venues, _) = try venues(kind)
        try context.performAndWait {
            for index in [0, 2, 4] { venues[index].name = index == 4 ? "b" : "a" }
            try context.save()

            try expectEqual(fetched(context, "city.venues.name.@count == 3"), [0, 2, 4, 6, 8])
            try expectEqual(fetched(context, "city.venues.name.@count == 0"), [1, 3, 5, 7, 9])
            venues[6].name = "c"
            try expectEqual(fetched(context, "city.venues.name.@count == 4"), [0, 2, 4, 6, 8])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `tens of thousands of values are looked up`(_ kind: StoreKind) throws {
        let (context, venues, _) = try venues(kind)
        try context.performAndWait {
            let numbers = Array(0..<50_000).filter { $0 != 4 }
            let texts = numbers.map { "x\($0)" }
            venues[2].name = "x2"
            venues[4].name = "X4"
            venues[6].name = "X6"
            try context.save()

            try expectEqual(prices(context, "price IN %@", numbers), [0, 1, 2, 3, 5, 6, 7, 8, 9])
            try expectEqual(prices(context, "name IN %@", texts), [2])
            try expectEqual(prices(context, "name IN[c] %@", texts), [2, 6])
            try expectEqual(prices(context, "NOT name IN %@ AND price IN %@", texts, numbers).count, 8)
            try expectEqual(prices(context, "SUBQUERY(city.venues, $v, $v.price IN %@).@count == 4", numbers).count, 5)
        }
    }
}
