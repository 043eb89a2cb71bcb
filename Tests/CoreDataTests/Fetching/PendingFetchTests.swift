import CoreData
import Expectations
import TestSupport
import Testing

/// Fetches beside unsaved changes.
@Suite("Fetches beside unsaved changes")
struct PendingFetchTests {
    @Test(arguments: StoreKind.allCases, DifferentialSeeds.all)
    func `searches find what each object's values say, after any changes`(_ kind: StoreKind, _ seed: UInt64) throws {
        var run = PendingFetchRun(try Stack(kind), seed: seed)
        try run.begin()
        for _ in 0..<8 {
            for _ in 0..<10 { try run.step() }
            try run.changeElsewhere()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed fault whose row is gone is in no answer for a child`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let root = stack.context("root")
        let child = root.child("child")
        let leaf = child.child("leaf")
        child.performAndWait {
            // The city has a changed relationship, but its row is not read.
            Venue(context: child).city = child.object(with: id) as? City
        }
        try stack.delete(id)
        try leaf.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            for predicate in [nil, NSPredicate(format: "NOT ANY venues.name == 'a'")] {
                request.predicate = predicate
                try expectEqual(leaf.fetch(request), [])
                try expectEqual(leaf.count(for: request), 0)
                let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
                ids.predicate = predicate
                ids.resultType = .managedObjectIDResultType
                try expectEqual(leaf.fetch(ids), [])
            }
        }
    }

    /// Another context raises the price of one venue of two, and lowers that of the other.
    ///
    /// The fetching context has read both before, and has not merged.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `beside a change of another entity, saved values of others decide which unchanged objects are found`(
        _ kind: StoreKind,
        inChild: Bool
    ) throws {
        let stack = try Stack(kind)
        let setting = stack.context("setting up")
        let (raised, lowered, porto) = try setting.performAndWait { () throws in
            let porto = City(context: setting)
            porto.name = "Porto"
            let venues = [("raised", 5), ("lowered", 50)].map { name, price in
                let venue = Venue(context: setting)
                (venue.name, venue.price, venue.city) = (name, Int16(price), porto)
                return venue
            }
            try setting.save()
            return (venues[0].objectID, venues[1].objectID, porto.objectID)
        }
        let root = stack.context("root")
        let context = inChild ? root.child("child") : root
        try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "price > 20 AND city.name == 'Porto'")
            request.sortDescriptors = [.by("price")]
            let held = try [raised, lowered].map { try context.get($0, Venue.self) }
            expectEqual(held.map(\.price), [5, 50])
            let other = stack.context("other")
            try other.performAndWait {
                try other.get(raised, Venue.self).price = 60
                try other.get(lowered, Venue.self).price = 6
                try other.save()
            }
            if inChild {
                // The parent has the new values, and the child does not.
                root.performAndWait { root.refreshAllObjects() }
            }
            try expectEqual(context.fetch(request).map(\.name), ["raised"])
            // The city counts as changed from now on.
            let new = Venue(context: context)
            (new.name, new.price) = ("new", 30)
            new.city = try context.get(porto, City.self)
            expect(new.city?.hasChanges == true)
            try expectEqual(context.fetch(request).map(\.name), ["new", "raised"])
            try expectEqual(context.count(for: request), 2)
            request.fetchLimit = 1
            try expectEqual(context.fetch(request).map(\.name), ["new"])
            request.fetchOffset = 1
            try expectEqual(context.fetch(request).map(\.name), ["raised"])
            try expectEqual(context.batchedResults(for: request).map(\.name), ["raised"])
            expectEqual(held.map(\.price), [5, 50])
            // An object's own unsaved value decides about it.
            held[1].price = 70
            (request.fetchOffset, request.fetchLimit) = (0, 0)
            try expectEqual(context.fetch(request).map(\.name), ["new", "raised", "lowered"])
        }
    }
}
