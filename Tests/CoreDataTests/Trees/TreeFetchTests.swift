import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: fetching through the parent")
struct TreeFetchTests {
    @Test(arguments: StoreKind.allCases, [true, false])
    func `what a child has changed or deleted of its parent's unsaved objects is found once, or not at all`(
        _ kind: StoreKind,
        hasPermanentID: Bool
    ) throws {
        let stack = try Stack(kind)
        let parent = stack.context("parent")
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        try child.performAndWait {
            let city = City(context: child)
            city.name = "a"
            if hasPermanentID { try child.obtainPermanentIDs(for: [city]) }
            try child.save()
            func found() throws -> [Int] {
                let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
                ids.resultType = .managedObjectIDResultType
                return [
                    try child.all(City.self).count, try child.count(for: NSFetchRequest<City>(entityName: "City")),
                    try child.fetch(ids).count,
                ]
            }
            try expectEqual(found(), [1, 1, 1])
            city.name = "b"
            try expectEqual(found(), [1, 1, 1])
            child.delete(city)
            try expectEqual(found(), [0, 0, 0])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's fetch answers from the parent's state, unsaved changes included (CS-44)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (stays, changes, goes) = (
            try stack.storeCity("Aveiro"), try stack.storeCity("Beja"), try stack.storeCity("Chaves")
        )
        let (parent, child) = stack.pair()
        try parent.edit(changes, City.self) { $0.name = "Bragança" }
        try parent.performAndWait { parent.delete(try parent.existingObject(with: goes)) }
        let fresh = parent.insertCity("Dornes")
        try expectEqual(child.cityNames(), ["Aveiro", "Bragança", "Dornes"])
        try child.performAndWait {
            let ids = Set(try child.all(City.self).map(\.objectID))
            expectEqual(ids, [stays, changes, fresh])
            try expectEqual(child.count(for: NSFetchRequest<City>(entityName: "City")), 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `stored values reach a grandchild through all levels (CS-45)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 230_000)
        let (_, _, leaf) = stack.chain()
        try leaf.performAndWait {
            let city = try require(try leaf.all(City.self).first)
            expectEqual(city.objectID, id)
            expectEqual(city.name, "Porto")
            expectEqual(city.population, 230_000)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a parent's unsaved object that is not held is asked for anew`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        let id = parent.insertCity("Porto", population: 1)
        try expectEqual(child.look(id, City.self) { $0.population }, 1)
        let sibling = parent.child("sibling")
        try sibling.edit(id, City.self) { $0.population = 2 }
        try sibling.saveAndWait()
        try expectEqual(child.performAndWait { try child.all(City.self).map(\.population) }, [2])
        try sibling.edit(id, City.self) { $0.population = 3 }
        try sibling.saveAndWait()
        let shown = child.performAndWait { (child.object(with: id) as? City)?.population }
        expectEqual(shown, 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that leads to an unsaved one is asked for anew when it is not held`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        let stored = try stack.storeCity("Porto", population: 1)
        let id = try parent.performAndWait {
            let venue = Venue(context: parent)
            venue.city = City(context: parent)
            venue.name = "Adega"
            Venue(context: parent).city = try parent.get(stored, City.self)
            return venue.objectID
        }
        // The row of the venue, and the members of the stored city, name unsaved objects.
        try expectEqual(child.look(id, Venue.self) { $0.name }, "Adega")
        try expectEqual(child.look(stored, City.self) { $0.venues.count }, 1)
        try parent.edit(id, Venue.self) { $0.name = "Bica" }
        try parent.edit(stored, City.self) { $0.population = 2 }
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = NSPredicate(format: "name == 'Bica'")
        try expectEqual(child.performAndWait { try child.fetch(request).map(\.name) }, ["Bica"])
        try expectEqual(child.performAndWait { try child.all(City.self).map(\.population).sorted() }, [0, 2])
        try parent.edit(id, Venue.self) { $0.name = "Cais" }
        expectEqual(child.performAndWait { (child.object(with: id) as? Venue)?.name }, "Cais")
    }

    @Test(arguments: StoreKind.allCases)
    func `an unsaved object of a batched fetch is asked for anew when it is not held`(_ kind: StoreKind) throws {
        let (parent, child) = try Stack(kind).pair()
        let ids = ["a", "b", "c"].map { parent.insertCity($0) }
        try child.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.fetchBatchSize = 2
            try expectEqual(child.fetch(request).map(\.name).sorted(), ["a", "b", "c"])
        }
        for id in ids { try parent.edit(id, City.self) { $0.name += "2" } }
        try expectEqual(child.cityNames(), ["a2", "b2", "c2"])
        try parent.saveAndWait()
        for id in ids { try parent.edit(id, City.self) { $0.name += "3" } }
        try expectEqual(child.cityNames(), ["a23", "b23", "c23"])
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that is held learns the permanent keys of the unsaved ones to which it leads`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        let id = parent.performAndWait {
            let venue = Venue(context: parent)
            venue.city = City(context: parent)
            venue.city?.name = "Porto"
            return venue.objectID
        }
        let held = try child.performAndWait {
            let venue: Venue = try typed(child.existingObject(with: id))
            expect(venue.city?.objectID.isTemporaryID == true)
            child.sweep()
            return UncheckedSendable(venue)
        }
        try parent.saveAndWait()
        child.performAndWait {
            expect(held.value.city?.objectID.isTemporaryID == false)
            expectEqual(held.value.city?.name, "Porto")
        }
    }

    @Test func `a grandchild sees the unsaved changes of every level`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("Porto")
        let (root, middle, leaf) = stack.chain()
        try root.edit(id, City.self) { $0.population = 5 }
        root.insertCity("Root")
        middle.insertCity("Middle")
        leaf.insertCity("Leaf")
        try middle.edit(id, City.self) { $0.name = "Oporto" }
        try expectEqual(leaf.cityNames(), ["Leaf", "Middle", "Oporto", "Root"])
        try expectEqual(leaf.look(id, City.self) { $0.population }, 5)
        try expectEqual(middle.cityNames(), ["Middle", "Oporto", "Root"])
        try expectEqual(root.cityNames(), ["Porto", "Root"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a child lays its own inserts, changes and deletes over the parent's answer (CS-46)`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        let (first, second) = (try stack.storeCity("Aveiro"), try stack.storeCity("Beja"))
        let (parent, child) = stack.pair()
        let third = parent.insertCity("Coimbra")
        child.insertCity("Dornes")
        try child.performAndWait {
            child.delete(try child.existingObject(with: first))
            try child.get(second, City.self).name = "Elvas"
            try child.get(third, City.self).name = "Faro"
        }
        try expectEqual(child.cityNames(), ["Dornes", "Elvas", "Faro"])
        try expectEqual(parent.cityNames(), ["Aveiro", "Beja", "Coimbra"])
        try child.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name < %@", "F")
            let count = try child.count(for: request)
            expectEqual(count, 2)
            request.includesPendingChanges = false
            // For a child, the parent's objects count as saved.
            try expectEqual(child.count(for: request), 3)
        }
    }

    @Test func `a parent never sees a child's unsaved changes (CS-47)`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Lagos")
        let (parent, child) = stack.pair()
        child.insertCity("Tavira")
        try child.edit(id, City.self) { $0.name = "Changed" }
        try child.performAndWait { child.delete(try child.existingObject(with: id)) }
        try expectEqual(parent.cityNames(), ["Lagos"])
        parent.performAndWait {
            expect(!parent.hasChanges)
            expect(parent.insertedObjects.isEmpty && parent.deletedObjects.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `order, offset and limit hold over the changes of all levels`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for number in 0..<10 { _ = try stack.storeCity("c\(number)", population: Int64(number) * 10) }
        let (root, middle, leaf) = stack.chain()
        root.insertCity("root", population: 15)
        middle.insertCity("middle", population: 25)
        leaf.insertCity("leaf", population: 35)
        try middle.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name == %@", "c4")
            try middle.delete(require(try middle.fetch(request).first))
        }
        try leaf.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "population", ascending: true)]
            let names = try leaf.fetch(request).map(\.name)
            expectEqual(names, ["c0", "c1", "root", "c2", "middle", "c3", "leaf", "c5", "c6", "c7", "c8", "c9"])
            request.fetchOffset = 2
            request.fetchLimit = 5
            try expectEqual(leaf.fetch(request).map(\.name), ["root", "c2", "middle", "c3", "leaf"])
            try expectEqual(leaf.count(for: request), 5)
            let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            ids.resultType = .managedObjectIDResultType
            ids.sortDescriptors = request.sortDescriptors
            ids.fetchOffset = 2
            ids.fetchLimit = 5
            try expectEqual(leaf.fetch(ids), leaf.fetch(request).map(\.objectID))
            let count = NSFetchRequest<NSNumber>(entityName: "City")
            count.resultType = .countResultType
            try expectEqual(leaf.fetch(count), [12])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a predicate over a relationship sees the parent's unsaved objects on both ends`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        let (cityID, venueID) = parent.performAndWait {
            let city = City(context: parent)
            city.name = "Porto"
            let venue = Venue(context: parent)
            venue.name = "Bar"
            venue.city = city
            return (city.objectID, venue.objectID)
        }
        try child.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "city.name == %@", "Porto")
            try expectEqual(child.fetch(request).map(\.objectID), [venueID])
            request.predicate = NSPredicate(format: "city == %@", try child.get(cityID, City.self))
            try expectEqual(child.fetch(request).map(\.objectID), [venueID])
            request.predicate = NSPredicate(format: "city == %@", cityID)
            try expectEqual(child.fetch(request).map(\.objectID), [venueID])
            let cities = NSFetchRequest<City>(entityName: "City")
            cities.predicate = NSPredicate(format: "ANY venues.name == %@", "Bar")
            try expectEqual(child.fetch(cities).map(\.objectID), [cityID])
        }
    }

    @Test func `sub-entities and several stores go through the tree`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        parent.performAndWait {
            _ = Bar(context: parent)
            _ = Venue(context: parent)
        }
        try child.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            let venues = try child.fetch(request)
            expect(venues.count == 2 && venues.contains { $0 is Bar })
            request.includesSubentities = false
            try expectEqual(child.fetch(request).count, 1)
            try expectEqual(child.count(for: NSFetchRequest<Bar>(entityName: "Bar")), 1)
        }
        let second = try stack.coordinator.addPersistentStore(type: .inMemory, configuration: nil, at: stack.folder)
        let writer = stack.context()
        try writer.performAndWait {
            for (name, store) in [("first", stack.coordinator.persistentStores[0]), ("second", second)] {
                let city = City(context: writer)
                city.name = name
                writer.assign(city, to: store)
            }
            try writer.save()
        }
        parent.insertCity("new")
        try expectEqual(child.cityNames(), ["first", "new", "second"])
        try child.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: false)]
            request.fetchLimit = 2
            try expectEqual(child.fetch(request).map(\.name), ["second", "new"])
            request.affectedStores = [second]
            request.fetchLimit = 0
            request.predicate = NSPredicate(format: "name != %@", "new")
            try expectEqual(child.fetch(request).map(\.name), ["second"])
            // A change in the child goes to the store that holds the object.
            let city = try require(try child.fetch(request).first)
            city.name = "zweite"
            try child.save()
        }
        try parent.saveAndWait()
        try writer.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.affectedStores = [second]
            request.predicate = NSPredicate(format: "name == %@", "zweite")
            let count = try writer.count(for: request)
            expectEqual(count, 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's fetch and its faults register nothing in the parent`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for number in 0..<50 { _ = try stack.storeCity("c\(number)") }
        let (root, middle, leaf) = stack.chain()
        try expectEqual(leaf.cityNames().count, 50)
        for context in [root, middle] {
            context.performAndWait { expect(context.registeredObjects.isEmpty) }
        }
        // This also holds if the parent has to fold in its unsaved changes.
        middle.insertCity("new")
        try expectEqual(leaf.cityNames().count, 51)
        try leaf.performAndWait {
            leaf.reset()
            let request = NSFetchRequest<City>(entityName: "City")
            request.includesPropertyValues = false
            let names = try leaf.fetch(request).map(\.name)
            expectEqual(names.count, 51)
        }
        middle.performAndWait { expectEqual(middle.registeredObjects.count, 1) }
        root.performAndWait { expect(root.registeredObjects.isEmpty) }
    }

    @Test func `a fault that was fetched shows what the parent changed afterwards`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("before")
        let (parent, child) = stack.pair()
        let city = try child.performAndWait { try require(try child.all(City.self).first) }
        try parent.edit(id, City.self) { $0.name = "after" }
        child.performAndWait { expect(city.isFault && city.name == "after") }
        // A loaded object does not change until it is refreshed.
        try parent.edit(id, City.self) { $0.name = "later" }
        child.performAndWait { expectEqual(city.name, "after") }
        try parent.edit(id, City.self) { $0.name = "latest" }
        child.performAndWait {
            child.refresh(city, mergeChanges: false)
            expectEqual(city.name, "latest")
        }
    }

    @Test func `what a child was shown does not change with the parent's next edit`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let (city, id) = parent.performAndWait {
            let city = City(context: parent)
            city.name = "one"
            return (city, city.objectID)
        }
        let seen = try child.performAndWait { try typed(child.existingObject(with: id)) as City }
        // The edit is in the same event of the parent, and so changes the row directly.
        parent.performAndWait { city.name = "two" }
        child.performAndWait { expectEqual(seen.name, "one") }
        parent.performAndWait { expectEqual(city.name, "two") }
        let fetched = try child.performAndWait { try child.all(City.self) }
        expectEqual(fetched, [seen])
        child.performAndWait { expectEqual(seen.name, "one") }
        let request = NSFetchRequest<City>(entityName: "City")
        request.shouldRefreshRefetchedObjects = true
        try child.performAndWait {
            _ = try child.fetch(request)
            expectEqual(seen.name, "two")
        }
    }

    @Test func `a fetch of a child from inside its parent's block does not deadlock`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        try parent.performAndWait {
            let city = City(context: parent)
            city.name = "inside"
            let names = try child.performAndWait { try child.all(City.self).map(\.name) }
            expectEqual(names, ["inside"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that a child has brought back is found once though another context has stored its row again`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let (parent, child) = stack.pair()
        parent.automaticallyMergesChangesFromParent = true
        child.parentConflictPolicy = .overwrite
        let other = stack.context(.overwrite)
        for context in [child, other] { try context.edit(id, City.self) { $0.population = 7 } }
        try stack.delete(id)
        // The parent knows that the row is gone. It takes the object as a new one with its former ID.
        parent.performAndWait {}
        try child.saveAndWait()
        try other.saveAndWait()
        try parent.performAndWait {
            expectEqual(parent.insertedObjects.map(\.objectID), [id])
            let (all, count) = (
                try parent.all(City.self), try parent.count(for: NSFetchRequest<City>(entityName: "City"))
            )
            expect(all.map(\.objectID) == [id] && count == 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a changed object that its parent saves while the child asks is found once`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        let city = try child.performAndWait {
            let city = City(context: child)
            city.name = "a"
            try child.save()
            city.name = "b"
            return UncheckedSendable(city)
        }
        let observation = whenPosted(.NSManagedObjectContextObjectsDidChange, by: parent) {
            #expect(throws: Never.self) { if parent.hasChanges { try parent.save() } }
        }
        defer { observation.remove() }
        try parent.performAndWait {
            // The event ends when the child asks.
            City(context: parent).name = "c"
            let counted = try child.performAndWait {
                try child.count(for: NSFetchRequest<City>(entityName: "City"))
            }
            expectEqual(counted, 2)
            City(context: parent).name = "d"
            let names = try child.performAndWait { try child.all(City.self).map(\.name).sorted() }
            expectEqual(names, ["b", "c", "d"])
        }
        child.performAndWait { expect(city.value.name == "b" && city.value.isUpdated) }
    }
}
