import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Objects that are refreshed unsaved, or reset")
struct DroppedObjectTests {
    @Test(arguments: StoreKind.allCases)
    func `a refresh without merging makes an unsaved object a fault, which no save stores`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for context in [stack.context(), stack.context().child()] {
            try context.performAndWait { () throws in
                let (dropped, kept) = (City(context: context), City(context: context))
                let venue = Venue(context: context)
                (dropped.name, kept.name) = ("dropped", "kept")
                venue.city = dropped
                context.refresh(kept, mergeChanges: true)
                expect(!kept.isFault && kept.isInserted && kept.name == "kept")
                context.refresh(dropped, mergeChanges: false)
                expect(dropped.isFault && !dropped.isInserted && dropped.objectID.isTemporaryID)
                context.delete(venue)
                try context.save()
                try expectEqual(context.all(City.self).map(\.name), ["kept"])
                expectEqual(dropped.name, "")
                context.delete(kept)
                try context.save()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships to an unsaved object that was refreshed are stored empty`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let id = try context.performAndWait { () throws in
            let (city, venue) = (City(context: context), Venue(context: context))
            city.name = "dropped"
            venue.city = city
            context.processPendingChanges()
            context.refresh(city, mergeChanges: false)
            try context.save()
            return venue.objectID
        }
        try expect(stack.read(id, Venue.self) { $0.city == nil })
        try expectEqual(stack.count("City"), 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `after a reset objects are faults`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 7)
        let context = stack.context()
        try context.performAndWait { () throws in
            let (stored, new) = (try context.get(id, City.self), City(context: context))
            new.name = "new"
            expectEqual(stored.population, 7)
            context.reset()
            expect(stored.isFault && new.isFault)
            expect(stored.faultingState == 1 && !stored.hasChanges && !new.hasChanges)
            expect(stored.population == 0 && new.name == "")
            expect(stored.objectID === id)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an inserted object has no committed values`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait { () throws in
            let city = City(context: context)
            city.name = "Porto"
            expect(city.committedValues(forKeys: nil).isEmpty)
            expect(city.committedValues(forKeys: ["name", "venues"]).isEmpty)
            try context.save()
            city.name = "Faro"
            expectEqual(city.committedValues(forKeys: ["name"])["name"] as? String, "Porto")
        }
    }
}
