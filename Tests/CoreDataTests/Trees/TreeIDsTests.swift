import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials

@Suite("Trees: identity")
struct TreeIDsTests {
    @Test(arguments: StoreKind.allCases)
    func `an object has its permanent ID in every context once the root has saved (CS-28)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (root, middle, leaf) = stack.chain()
        let sibling = middle.child("sibling")
        let (city, id) = leaf.performAndWait {
            let city = City(context: leaf)
            city.name = "Faro"
            return (city, city.objectID)
        }
        let uri = id.uriRepresentation()
        try leaf.saveAndWait()
        let (inSibling, inMiddle) = (
            try sibling.performAndWait { try sibling.existingObject(with: id) },
            try middle.performAndWait { try middle.existingObject(with: id) }
        )
        try middle.saveAndWait()
        expect(id.isTemporaryID)
        let before = id.hash
        try root.saveAndWait()
        expect(id.isTemporaryID && id.uriRepresentation() == uri)
        expectEqual(id.hash, before)
        let permanent = id.latest
        expect(!permanent.isTemporaryID && permanent != id)
        for (context, object) in [(leaf, city), (sibling, inSibling), (middle, inMiddle)] {
            try context.performAndWait {
                expect(object.objectID === permanent)
                expect(context.object(with: id) === object && context.object(with: permanent) === object)
                let (existing, all) = (try context.existingObject(with: id), try context.all(City.self))
                expect(existing === object && all == [object as? City])
                expect(!object.hasChanges && !object.isInserted)
            }
        }
        expect(stack.coordinator.managedObjectID(forURIRepresentation: uri) === id)
        expect(stack.coordinator.managedObjectID(forURIRepresentation: permanent.uriRepresentation()) === permanent)
    }

    @Test func `a child's save makes no permanent ID (CS-43)`() throws {
        let stack = try Stack(.memory)
        let (root, middle, leaf) = stack.chain()
        let id = leaf.insertCity("Faro")
        try leaf.saveAndWait()
        expect(id.isTemporaryID)
        try middle.saveAndWait()
        expect(id.latest.isTemporaryID)
        try root.saveAndWait()
        expect(!id.latest.isTemporaryID)
    }

    @Test(arguments: StoreKind.allCases)
    func `objects that became permanent are edited, related, saved and deleted on`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (root, middle, leaf) = stack.chain()
        let (city, venue) = leaf.performAndWait {
            let city = City(context: leaf)
            city.name = "Faro"
            let venue = Venue(context: leaf)
            venue.city = city
            return (city, venue)
        }
        for context in [leaf, middle, root] { try context.saveAndWait() }
        let venueID = venue.objectID
        try leaf.performAndWait {
            expect(venue.city === city && city.venues == [venue])
            let second = Venue(context: leaf)
            second.city = city
            expectEqual(city.venues, [venue, second])
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "city == %@", city)
            let found = Set(try leaf.fetch(request))
            expectEqual(found, [venue, second])
            city.population = 3
            leaf.delete(venue)
        }
        for context in [leaf, middle, root] { try context.saveAndWait() }
        try expectEqual(stack.count("Venue"), 1)
        try stack.read(city.objectID, City.self) { expect($0.population == 3 && $0.venues.count == 1) }
        expectThrows(CocoaError.self) { try stack.context().look(venueID, Venue.self) { _ in } }
    }

    @Test func `unsaved edits in a child outlive the promotion of what they name`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let cityID = parent.insertCity("Faro")
        let venue = try child.performAndWait {
            let venue = Venue(context: child)
            venue.city = try child.get(cityID, City.self)
            let tag = Tag(context: child)
            venue.tags = [tag]
            return venue
        }
        try parent.saveAndWait()
        try child.performAndWait {
            expectEqual(venue.city?.name, "Faro")
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "city == %@", cityID)
            try expectEqual(child.fetch(request), [venue])
            expect(venue.changedValues()["city"] as? City === venue.city)
            try child.save()
        }
        try parent.saveAndWait()
        try stack.context().look(venue.objectID, Venue.self) { stored in
            expect(stored.city?.objectID == cityID.latest && stored.tags.count == 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `obtainPermanentIDs in a child needs no save, and goes up for what others have inserted (CS-30)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let (root, middle, leaf) = stack.chain()
        let above = middle.insertCity("above")
        let top = root.insertCity("top")
        let (own, city) = try leaf.performAndWait {
            let city = City(context: leaf)
            city.name = "own"
            let venue = Venue(context: leaf)
            venue.city = city
            let others = try leaf.all(City.self)
            try leaf.obtainPermanentIDs(for: others + [venue])
            expect(others.allSatisfy { !$0.objectID.isTemporaryID })
            expect(city.isInserted && venue.isInserted && venue.city === city && city.venues == [venue])
            return (city.objectID, city)
        }
        expect(!above.latest.isTemporaryID && !top.latest.isTemporaryID)
        try expectEqual(stack.count("City"), 0)
        middle.performAndWait { expectEqual(middle.insertedObjects.map(\.objectID), [above.latest]) }
        root.performAndWait { expectEqual(root.insertedObjects.map(\.objectID), [top.latest]) }
        try expectEqual(leaf.cityNames(), ["above", "own", "top"])
        for context in [leaf, middle, root] { try context.saveAndWait() }
        leaf.performAndWait { expect(city.objectID === own && !city.hasChanges && city.venues.count == 1) }
        try expectEqual(stack.context().cityNames(), ["above", "own", "top"])
        try stack.context().look(own, City.self) { expectEqual($0.venues.count, 1) }
    }

    @Test func `object(with:) in a parent for a child's unsaved object finds it once the child saves`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let id = child.insertCity("Faro")
        let early = parent.performAndWait { parent.object(with: id) }
        parent.performAndWait { expect(early.isFault && early.objectID === id) }
        try child.saveAndWait()
        try parent.performAndWait {
            expect(early.isInserted && (early as? City)?.name == "Faro")
            try parent.save()
            expect(parent.object(with: id) === early && !early.objectID.isTemporaryID)
        }
    }

    @Test func `existingObject in a child throws for what neither the parent nor the store has`() throws {
        let stack = try Stack(.memory)
        let deleted = try stack.storeCity("deleted")
        let (parent, child) = stack.pair()
        let unknown = stack.context().insertCity("elsewhere")
        try parent.performAndWait { parent.delete(try parent.existingObject(with: deleted)) }
        for id in [deleted, unknown] {
            #expect { try child.look(id, City.self) { _ in } } throws: {
                $0.cocoaCode == .managedObjectReferentialIntegrity
            }
        }
        child.performAndWait { expect(child.registeredObjects.isEmpty) }
    }

    @Test func `registeredObject answers only what the child itself has (CS-32)`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let id = parent.insertCity("Faro")
        try child.performAndWait {
            expectEqual(child.registeredObject(for: id), nil)
            let city = try child.existingObject(with: id)
            expect(child.registeredObject(for: id) === city)
        }
    }

    @Test func `one object for one row, however it was met`() throws {
        let stack = try Stack(.database)
        let (root, middle, leaf) = stack.chain()
        let (cityID, venueID) = root.performAndWait {
            let city = City(context: root)
            city.name = "Faro"
            let venue = Venue(context: root)
            venue.city = city
            return (city.objectID, venue.objectID)
        }
        let venue = try leaf.performAndWait { try leaf.existingObject(with: venueID) as? Venue }
        try root.saveAndWait()
        try leaf.performAndWait {
            // By a relationship that named the temporary key, by ID, by fetch, and by the inverse.
            let city = try require(venue?.city)
            expect(leaf.object(with: cityID) === city)
            try expectEqual(leaf.all(City.self), [city])
            expectEqual(city.venues, [venue])
            expectEqual(leaf.registeredObjects.count, 2)
        }
        _ = middle
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an object that the root saves between a child's question and its use of the answer is one object`(
        _ kind: StoreKind,
        isMetBefore: Bool
    ) throws {
        let stack = try Stack(kind)
        _ = (try stack.storeCity("Aveiro"), try stack.storeCity("Beja"))
        let (parent, child) = stack.pair()
        let id = parent.insertCity("Chaves")
        try child.performAndWait {
            let answer = try require(try ChildQuestion(id).askParent(of: child))
            try parent.performAndWait { try parent.save() }
            let permanent = id.latest
            expect(!permanent.isTemporaryID)
            let met = isMetBefore ? try child.existingObject(with: permanent) : nil

            let object = child.object(of: answer)

            expect(met == nil || met === object)
            expect(object.objectID === permanent)
            expect(child.object(of: answer) === object)
            try expect(child.existingObject(with: id) === object)
            expectEqual((object as? City)?.name, "Chaves")
            expectEqual(child.registeredObjects, [object])
        }
    }
}
