import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Entities in predicates")
struct EntityPredicateTests {
    /// Three venues, two of them bars, in one city.
    private func context(_ kind: StoreKind, isSaved: Bool = true) throws -> NSManagedObjectContext {
        let context = try Stack(kind).context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Lisbon"
            for (number, venue) in [Venue(context: context), Bar(context: context), Bar(context: context)].enumerated()
            {
                venue.name = "venue \(number)"
                venue.price = Int16(number)
                venue.city = city
                (venue as? Bar)?.beers = Int16(number * 10)
            }
            if isSaved { try context.save() }
        }
        return context
    }

    private func names(_ context: NSManagedObjectContext, _ text: String, _ arguments: Any...) throws -> [String] {
        try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: text, argumentArray: arguments)
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let found = try context.fetch(request)
            let all = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            // The three ways to ask give one answer.
            try expectEqual(context.count(for: request), found.count)
            expectEqual(Set(all.filter { request.predicate?.evaluate(with: $0) == true }), Set(found))
            return found.compactMap { $0.name?.replacingOccurrences(of: "venue ", with: "") }
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an object's entity is compared with others`(_ kind: StoreKind, _ isSaved: Bool) throws {
        let context = try context(kind, isSaved: isSaved)
        let entities = try require(context.persistentStoreCoordinator?.managedObjectModel.entitiesByName)
        let (venue, bar) = (try require(entities["Venue"]), try require(entities["Bar"]))

        try expectEqual(names(context, "entity == %@", bar), ["1", "2"])
        try expectEqual(names(context, "entity == %@", venue), ["0"])
        try expectEqual(names(context, "entity != %@", bar), ["0"])
        try expectEqual(names(context, "SELF.entity IN %@", [venue, bar]), ["0", "1", "2"])
        try expectEqual(names(context, "entity IN %@", [bar]), ["1", "2"])
        try expectEqual(names(context, "entity == nil"), [])
        try expect(
            names(context, "licence.entity == nil AND city.entity == %@", try require(entities["City"])).count == 3
        )
        try expect(
            names(context, "SUBQUERY(city.venues, $v, $v.entity == %@ AND $v.price == 1).@count == 1", bar).count
                == 3
        )
        try expectEqual(names(context, "ANY city.venues.entity == %@", bar).count, 3)
        // An entity of a copy of the model is the one of its name.
        let copy = try require(GuideModel.make().entitiesByName["Bar"])
        try expectEqual(names(context, "entity == %@", copy), ["1", "2"])
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `a cast is nil for objects of other entities`(_ kind: StoreKind, _ isSaved: Bool) throws {
        let context = try context(kind, isSaved: isSaved)

        try expectEqual(names(context, "CAST(SELF, 'Bar') != nil"), ["1", "2"])
        try expectEqual(names(context, "CAST(SELF, 'Bar') == nil"), ["0"])
        try expectEqual(names(context, "CAST(SELF, 'Bar').beers > 10"), ["2"])
        try expectEqual(names(context, "CAST(SELF, 'Bar').price < 2"), ["1"])
        try expectEqual(names(context, "CAST(SELF, 'Bar').beers == nil"), ["0"])
        try expectEqual(names(context, "CAST(SELF, 'Venue').price == 0"), ["0"])
        try expectEqual(names(context, "CAST(SELF, 'Bar').city.name == 'Lisbon'"), ["1", "2"])
        try expectEqual(names(context, "ANY CAST(city.venues, 'Bar').beers == 20").count, 3)
        try expectEqual(names(context, "SUBQUERY(city.venues, $v, CAST($v, 'Bar').beers >= 10).@count == 2").count, 3)
        try expectEqual(names(context, "SELF == CAST(SELF, 'Bar')"), ["1", "2"])
    }

    @Test(arguments: [
        ("entity > %@", "no order"), ("entity == 3", "cannot be compared"),
        ("entity.name == 'Bar'", "no name under a value"),
        ("CAST(SELF, 'City') != nil", "never one of City"),
        ("CAST(SELF, 'Nothing') != nil", "no type and no entity Nothing"),
        ("CAST(name, 'Bar') != nil", "Only objects"), ("CAST(SELF, 'Bar').nothing == 1", "no property nothing"),
        ("entity == name", "cannot be compared"), ("city.venues.@max.entity == %@", "cannot be taken"),
    ])
    func `what makes no sense is an error of the fetch`(_ text: String, _ reason: String) throws {
        let context = try context(.memory)
        let bar = try require(context.persistentStoreCoordinator?.managedObjectModel.entitiesByName["Bar"])

        try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: text, argumentArray: text.contains("%@") ? [bar] : [])
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.localizedDescription.contains(reason), true, "\(error?.localizedDescription ?? "")")
            let all = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            for venue in all { _ = request.predicate?.evaluate(with: venue) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a property that an object lacks is no match in memory, and an error in a fetch`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            let all = try context.fetch(request)
            for text in [
                "nothing == 1", "city.nothing != 1", "ANY tags.nothing == 1 OR nothing == nil", "NOT nothing == 1",
            ] {
                let predicate = NSPredicate(format: text)
                request.predicate = predicate
                expect(!all.contains { predicate.evaluate(with: $0) })
                let error = expectThrows(CocoaError.self) { try context.fetch(request) }
                expectEqual(error?.localizedDescription.contains("nothing"), true)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a regular expression that takes for ever ends in an error`(_ kind: StoreKind) throws {
        let context = try context(kind)
        try context.performAndWait {
            let text = String(repeating: "a", count: 40) + "c"
            let venue = Venue(context: context)
            venue.name = text
            try context.save()
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "name MATCHES '(a+)+b'")

            let error = expectThrows(CocoaError.self) { try context.fetch(request) }

            let reason = "\(error?.localizedDescription ?? "") \(error?.userInfo[NSUnderlyingErrorKey] ?? "")"
            expect(reason.contains("takes too long"))
            expectEqual(request.predicate?.evaluate(with: venue), false)
            request.predicate = NSPredicate(format: "name MATCHES '(a+)+c'")
            try expectEqual(context.fetch(request), [venue])
        }
    }
}
