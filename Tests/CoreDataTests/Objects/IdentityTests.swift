import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

@Suite("Identity: one object for a row, and its ID")
struct IdentityTests {
    private func storeVenue(_ stack: Stack) throws -> NSManagedObjectID {
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Faro"
            let venue = Venue(context: context)
            venue.name = "Ria"
            venue.city = city
            try context.save()
            return venue.objectID
        }
    }

    // CS-26
    @Test(arguments: StoreKind.allCases)
    func `fetches, look-ups and relationships lead to the identical object`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        try stack.inContext { context throws in
            let fetched = try require(try context.all(Venue.self).first)
            try expect(context.all(Venue.self).first === fetched)
            expect(context.object(with: id) === fetched)
            expect(context.registeredObject(for: id) === fetched)
            try expect(context.existingObject(with: id) === fetched)
            expect(fetched.city?.venues.first === fetched)
            expect(fetched.objectID === id)
            expectEqual(fetched, context.object(with: id))
        }
        stack.inContext { context in
            let other = context.object(with: id)
            expect(other.objectID === id)
            expect(other.managedObjectContext === context)
        }
    }

    // CS-29
    @Test(arguments: StoreKind.allCases)
    func `the permanent IDs of a save are other ones than the temporary IDs, which stay`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let cities = (0..<50).map { number in
                let city = City(context: context)
                city.name = "\(number)"
                return city
            }
            let ids = cities.map(\.objectID)
            let hashes = ids.map(\.hash)
            let set = Set(ids)
            let names = Dictionary(uniqueKeysWithValues: zip(ids, cities.map { $0.name as String }))
            expect(ids.allSatisfy { $0.isTemporaryID && $0.persistentStore == nil })
            try context.save()
            expect(ids.allSatisfy { $0.isTemporaryID && $0.persistentStore == nil })
            expect(cities.allSatisfy { !$0.objectID.isTemporaryID && $0.objectID.persistentStore != nil })
            expect(zip(cities, ids).allSatisfy { $0.objectID === $1.latest && $0.objectID != $1 })
            expectEqual(ids.map(\.hash), hashes)
            expect(ids.allSatisfy(set.contains) && cities.allSatisfy { !set.contains($0.objectID) })
            expect(zip(cities, ids).allSatisfy { names[$1] == $0.name && context.registeredObject(for: $1) === $0 })
            let permanent = Dictionary(uniqueKeysWithValues: cities.map { ($0.objectID, $0.name as String) })
            expect(cities.allSatisfy { context.registeredObject(for: $0.objectID) === $0 })
            try stack.inContext { other in
                for city in try other.all(City.self) { expectEqual(permanent[city.objectID], city.name) }
            }
        }
    }

    // CS-28, CS-30, CS-31
    @Test(arguments: StoreKind.allCases)
    func `obtaining permanent IDs leaves objects unsaved and relationships whole`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let (first, second) = (City(context: context), City(context: context))
            (first.name, second.name) = ("first", "second")
            let venue = Venue(context: context)
            venue.city = first
            let tag = Tag(context: context)
            venue.tags = [tag]
            venue.photos = [Photo(context: context), Photo(context: context)]
            let photos = venue.photos
            let captured = venue.objectID
            let uri = captured.uriRepresentation()
            try context.obtainPermanentIDs(for: [first, second, venue, tag, photos[0]])
            let id = venue.objectID
            expect(!id.isTemporaryID && captured.isTemporaryID && captured != id)
            expect(context.object(with: captured) === venue)
            expect(id.persistentStore === stack.coordinator.persistentStores.first)
            expect(venue.isInserted)
            expectEqual(context.insertedObjects.count, 6)
            expect(venue.city === first)
            expectEqual(first.venues, [venue])
            expectEqual(venue.photos, photos)
            venue.city = second
            expect(first.venues.isEmpty)
            expectEqual(second.venues, [venue])
            venue.tags = []
            expect(tag.venues.isEmpty)
            venue.tags = [tag]
            venue.photos = photos.reversed()
            try context.obtainPermanentIDs(for: [venue])
            expect(venue.objectID === id)
            let stored = try stack.inContext { try $0.all(Venue.self).count }
            expectEqual(stored, 0)
            try context.save()
            expect(!venue.isInserted)
            expect(venue.objectID === id)
            expect(stack.coordinator.managedObjectID(forURIRepresentation: uri) === captured)
        }
        try stack.inContext { context throws in
            let venue = try require(try context.all(Venue.self).first)
            expectEqual(venue.city?.name, "second")
            expectEqual(venue.tags.count, 1)
            expectEqual(venue.photos.count, 2)
            expectEqual(venue.city?.venues, [venue])
        }
    }

    // CS-35
    @Test(arguments: StoreKind.allCases)
    func `an ID and its URI lead to one another`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        let uri = id.uriRepresentation()
        let store = try require(stack.coordinator.persistentStores.first)
        let identifier = try require(store.identifier)
        expectEqual(uri.absoluteString, "x-coredata://\(identifier)/Venue/p1")
        expect(stack.coordinator.managedObjectID(forURIRepresentation: uri) === id)
        expect(id.description.contains("/Venue/p1"))
        expectEqual(id.entity.name, "Venue")
        expect(id.copy() as? NSManagedObjectID === id)
        let stranger = try require(URL(string: "x-coredata://\(UUID().uuidString)/Venue/p1"))
        expectEqual(stack.coordinator.managedObjectID(forURIRepresentation: stranger), nil)
        let nonsense = try require(URL(string: "https://example.com/Venue/p1"))
        expectEqual(stack.coordinator.managedObjectID(forURIRepresentation: nonsense), nil)
    }

    // CS-28
    @Test(arguments: StoreKind.allCases)
    func `a temporary URI finds its ID before and after the save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Beja"
            let id = city.objectID
            let uri = id.uriRepresentation()
            expect(uri.absoluteString.hasPrefix("x-coredata:///City/t"))
            expect(stack.coordinator.managedObjectID(forURIRepresentation: uri) === id)
            try context.save()
            expect(id.uriRepresentation() == uri && city.objectID.uriRepresentation() != uri)
            expect(stack.coordinator.managedObjectID(forURIRepresentation: uri) === id)
            expect(context.object(with: id) === city)
        }
    }

    // CS-33, CS-34
    @Test(arguments: StoreKind.allCases)
    func `an unknown ID gives a fault, and an error where the object must exist`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        let uri = id.uriRepresentation().absoluteString.replacingOccurrences(of: "/p1", with: "/p4711")
        let url = try require(URL(string: uri))
        let unknown = try require(stack.coordinator.managedObjectID(forURIRepresentation: url))
        stack.inContext { context in
            let fault = context.object(with: unknown)
            expect(fault.isFault)
            let error = expectThrows(CocoaError.self) { _ = try context.existingObject(with: unknown) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
        }
    }

    // CS-36
    @Test(arguments: StoreKind.allCases)
    func `the key of a deleted object is not given out again`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            let first = Tag(context: context)
            try context.save()
            let uri = first.objectID.uriRepresentation()
            context.delete(first)
            try context.save()
            let second = Tag(context: context)
            try context.save()
            expect(second.objectID.uriRepresentation() != uri)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the IDs of deleted objects can be asked for after the save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try storeVenue(stack)
        let uri = id.uriRepresentation()
        try stack.inContext { context throws in
            let venue = try require(try context.all(Venue.self).first)
            let city = try require(venue.city)
            context.delete(venue)
            context.delete(city)
            try context.save()
            expectEqual(venue.objectID.uriRepresentation(), uri)
            expectEqual(city.objectID.uriRepresentation().lastPathComponent, "p1")
            expectEqual(venue.managedObjectContext, nil)
            expectEqual(venue.name, "Ria")
        }
    }

    @Test
    func `IDs may be followed on any thread while a save gives their objects permanent ones`() async throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        let ids = context.performAndWait {
            (0..<200).map { number in
                let city = City(context: context)
                city.name = "\(number)"
                return city.objectID
            }
        }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var permanent = 0
                    while permanent < ids.count {
                        permanent = ids.count { $0.isTemporaryID && $0.latest.uriRepresentation().host != nil }
                    }
                    return permanent
                }
            }
            try await context.perform { try context.save() }
            for try await count in group { expectEqual(count, ids.count) }
        }
    }

    // CS-27
    @Test(arguments: StoreKind.allCases)
    func `a context releases unchanged objects that are not held, and keeps the others`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.inContext { context throws in
            for number in 0..<5000 { Tag(context: context).title = "\(number)" }
            try context.save()
        }
        let context = stack.context()
        let (held, changedID, deletedID) = try context.performAndWait {
            let tags = try context.all(Tag.self, sortedBy: "title")
            tags[1].title = "changed"
            context.delete(tags[2])
            // Though the collection of this to-many relationship was read, it must not keep the members.
            expect(tags[3].venues.isEmpty)
            return (tags[0], tags[1].objectID, tags[2].objectID)
        }
        // At the end of an event a context looks for objects that are no longer held.
        context.perform {}
        context.performAndWait {
            expect(context.registeredObjects.count < 100)
            expect(context.registeredObject(for: held.objectID) === held)
            expectEqual((context.registeredObject(for: changedID) as? Tag)?.title, "changed")
            expectEqual(context.registeredObject(for: deletedID)?.isDeleted, true)
            expectEqual(held.title, "0")
        }
    }

    // CS-27
    @Test
    func `retainsRegisteredObjects keeps everything`() throws {
        let stack = try Stack(.memory)
        try stack.inContext { context throws in
            for _ in 0..<5000 { _ = Tag(context: context) }
            try context.save()
        }
        let context = stack.context()
        try context.performAndWait {
            context.retainsRegisteredObjects = true
            _ = try context.all(Tag.self)
        }
        context.perform {}
        context.performAndWait { expectEqual(context.registeredObjects.count, 5000) }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects related in circles go with their context`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        weak var lostVenue: Venue?
        weak var lostTag: Tag?
        weak var lostContext: NSManagedObjectContext?
        do {
            let context = stack.context()
            lostContext = context
            try context.performAndWait {
                let venue = Venue(context: context)
                let tag = Tag(context: context)
                venue.tags = [tag]
                expectEqual(tag.venues, [venue])
                expectEqual(venue.tags, [tag])
                expectEqual(venue.value(forKey: "tags") as? Set<Tag>, [tag])
                try context.save()
                expectEqual(tag.venues, [venue])
                expectEqual(venue.tags, [tag])
                (lostVenue, lostTag) = (venue, tag)
            }
        }
        expectEqual(lostContext, nil)
        expectEqual(lostVenue, nil)
        expectEqual(lostTag, nil)
    }
}
