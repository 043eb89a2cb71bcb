import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Changes and the values before them")
struct ChangeTrackingTests {
    private func storeVenue(_ stack: Stack) throws -> NSManagedObjectID {
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "Ria"
            venue.price = 5
            let city = City(context: context)
            city.name = "Faro"
            venue.city = city
            try context.save()
            return venue.objectID
        }
    }

    // CS-76
    @Test(arguments: StoreKind.allCases)
    func `changed values are those since the last save, committed values those of it (CS-76)`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            expect(venue.changedValues().isEmpty)
            let faro = try require(venue.city)
            let beja = City(context: context)
            beja.name = "Beja"
            venue.name = "Sol"
            venue.site = nil
            venue.city = beja
            let photo = Photo(context: context)
            venue.photos = [photo]
            let changed = venue.changedValues()
            expectEqual(Set(changed.keys), ["name", "city", "photos"])
            expectEqual(changed["name"] as? String, "Sol")
            expect(changed["city"] as? City === beja)
            expectEqual((changed["photos"] as? NSOrderedSet)?.array as? [Photo], [photo])
            let committed = venue.committedValues(forKeys: ["name", "price", "city", "photos", "site", "nonsense"])
            expectEqual(committed["name"] as? String, "Ria")
            expectEqual(committed["price"] as? Int16, 5)
            expect(committed["city"] as? City === faro)
            expectEqual((committed["photos"] as? NSOrderedSet)?.count, 0)
            expect(committed["site"] is NSNull)
            expect(committed["nonsense"] == nil)
            expect(venue.committedValues(forKeys: nil).count > 15)
            expectEqual((faro.committedValues(forKeys: ["venues"])["venues"] as? NSSet)?.count, 1)
            try context.save()
            expect(venue.changedValues().isEmpty)
            expectEqual(venue.committedValues(forKeys: ["name"])["name"] as? String, "Sol")
            expectEqual((faro.committedValues(forKeys: ["venues"])["venues"] as? NSSet)?.count, 0)
            venue.name = nil
            expect(venue.changedValues()["name"] is NSNull)
        }
    }

    // CS-77
    @Test(arguments: StoreKind.allCases)
    func `a value set back is no persistent change (CS-77)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            venue.price = 6
            expect(venue.hasPersistentChangedValues)
            venue.price = 5
            expect(venue.hasChanges)
            expect(venue.isUpdated)
            expect(!venue.hasPersistentChangedValues)
            expect(venue.changedValues().isEmpty)
            venue.note = "transient"
            expect(!venue.hasPersistentChangedValues)
            let tag = try require(venue.tags.isEmpty ? TestSupport.Tag(context: context) : nil)
            venue.tags = [tag]
            expect(venue.hasPersistentChangedValues)
            venue.tags = []
            expect(!venue.hasPersistentChangedValues)
            let city = try require(venue.city)
            city.venues = []
            city.venues = [venue]
            expect(!city.hasPersistentChangedValues)
            expect(!venue.hasPersistentChangedValues)
        }
    }

    // CS-84
    @Test(arguments: StoreKind.allCases)
    func `flags distinguish inserted, updated and deleted objects`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "a"
            expect(city.isInserted && !city.isUpdated && !city.isDeleted && city.hasChanges)
            context.processPendingChanges()
            city.name = "b"
            expect(city.isInserted && !city.isUpdated)
            try context.save()
            expect(!city.isInserted && !city.isUpdated && !city.isDeleted && !city.hasChanges)
            city.name = "c"
            expect(!city.isInserted && city.isUpdated)
            context.delete(city)
            expect(city.isDeleted)
            try context.save()
            expect(!city.isInserted && !city.isUpdated && !city.isDeleted)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the values before the current event are those at its start`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            expect(venue.changedValuesForCurrentEvent().isEmpty)
            let faro = try require(venue.city)
            venue.name = "one"
            venue.name = "two"
            venue.city = nil
            let before = venue.changedValuesForCurrentEvent()
            expectEqual(Set(before.keys), ["name", "city"])
            expectEqual(before["name"] as? String, "Ria")
            expect(before["city"] as? City === faro)
            expectEqual((faro.changedValuesForCurrentEvent()["venues"] as? Set<Venue>), [venue])
            context.processPendingChanges()
            expect(venue.changedValuesForCurrentEvent().isEmpty)
            expect(faro.changedValuesForCurrentEvent().isEmpty)
            venue.name = "three"
            expectEqual(venue.changedValuesForCurrentEvent()["name"] as? String, "two")
            expectEqual(venue.changedValues()["name"] as? String, "three")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `adding what is there, and removing what is not, is no change`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            let city = try require(venue.city)
            let stranger = try require(try context.all(City.self).first)
            expect(stranger === city)
            city.add(venue, toRelationshipNamed: "venues")
            expect(!context.hasChanges)
            let other = Venue(context: context)
            context.processPendingChanges()
            city.remove(other, fromRelationshipNamed: "venues")
            _ = city.venues
            city.remove(other, fromRelationshipNamed: "venues")
            city.add(venue, toRelationshipNamed: "venues")
            expect(!city.hasChanges)
            expect(city.changedValuesForCurrentEvent().isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `rows shared with other contexts are never written to`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        let reader = stack.context()
        let mirror = try reader.performAndWait {
            let venue = try reader.object(Venue.self, id)
            expectEqual(venue.name, "Ria")
            return venue
        }
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            for round in 1...3 {
                venue.name = "round \(round)"
                venue.price = Int16(round)
                context.processPendingChanges()
                venue.name = "round \(round), again"
                expectEqual(reader.performAndWait { mirror.name }, "Ria")
                try context.save()
                // The row that the save has shared must not change with the next write.
                let saved = stack.context()
                let copy = try saved.performAndWait {
                    let copy = try saved.object(Venue.self, id)
                    expectEqual(copy.name, "round \(round), again")
                    return copy
                }
                venue.name = "later"
                expectEqual(saved.performAndWait { copy.name }, "round \(round), again")
                expectEqual(reader.performAndWait { mirror.name }, "Ria")
                context.rollback()
                expectEqual(venue.name, "round \(round), again")
            }
        }
        reader.performAndWait {
            reader.refresh(mirror, mergeChanges: true)
            expectEqual(mirror.name, "round 3, again")
        }
    }

    // CS-69
    @Test(arguments: StoreKind.allCases)
    func `a rollback gives values, relationships and collections back`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.colour = ["red"]
            venue.photos = (0..<3).map { number in
                let photo = Photo(context: context)
                photo.title = "\(number)"
                return photo
            }
            let city = City(context: context)
            city.name = "Faro"
            venue.city = city
            try context.save()
            return venue.objectID
        }
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            let city = try require(venue.city)
            let photos = venue.photos
            expectEqual(venue.colour, ["red"])
            venue.colour = ["green"]
            venue.photos = [photos[2]]
            venue.photos.append(Photo(context: context))
            venue.city = nil
            context.delete(photos[0])
            context.processPendingChanges()
            context.rollback()
            expectEqual(venue.colour, ["red"])
            expectEqual(venue.photos, photos)
            expect(venue.city === city)
            expectEqual(city.venues, [venue])
            expect(photos.allSatisfy { $0.venue === venue && !$0.hasChanges })
            expect(!context.hasChanges)
            expect(context.insertedObjects.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a failed save leaves everything as it was, and the next one succeeds`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        try stack.inContext { context throws in
            let venue = try context.object(Venue.self, id)
            let city = City(context: context)
            venue.city = city
            venue.name = "Sol"
            let cityID = city.objectID
            // The city lacks the required name.
            expectThrows(CocoaError.self) { try context.save() }
            expect(cityID.isTemporaryID)
            expect(city.isInserted)
            expect(venue.isUpdated)
            expect(venue.city === city)
            expectEqual(city.venues, [venue])
            expectEqual(Set(venue.changedValues().keys), ["city", "name"])
            city.name = "Olhão"
            try context.save()
            expect(!city.objectID.isTemporaryID)
            expect(!context.hasChanges)
        }
        try stack.inContext { context throws in try expectEqual(context.object(Venue.self, id).city?.name, "Olhão") }
    }
}
