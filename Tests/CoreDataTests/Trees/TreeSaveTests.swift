import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: saving one level up")
struct TreeSaveTests {
    @Test(arguments: StoreKind.allCases)
    func `a child's save goes one level up and does not touch the store (CS-40)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (root, middle, leaf) = stack.chain()
        leaf.insertCity("Faro")
        try leaf.saveAndWait()
        leaf.performAndWait { expect(!leaf.hasChanges) }
        middle.performAndWait {
            expect(middle.hasChanges)
            expectEqual(middle.insertedObjects.count, 1)
        }
        root.performAndWait { expect(!root.hasChanges) }
        try expectEqual(stack.count("City"), 0)
        try middle.saveAndWait()
        middle.performAndWait { expect(!middle.hasChanges) }
        root.performAndWait { expectEqual(root.insertedObjects.count, 1) }
        try expectEqual(stack.count("City"), 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `only the root's save writes, and then everybody sees it (CS-41)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (root, middle, leaf) = stack.chain()
        leaf.insertCity("Faro")
        for context in [leaf, middle, root] { try context.saveAndWait() }
        try expectEqual(stack.context().cityNames(), ["Faro"])
    }

    @Test(arguments: StoreKind.allCases)
    func `updates and deletes go up as inserts do (CS-42)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (changed, deleted) = (try stack.storeCity("Beja"), try stack.storeCity("Chaves"))
        let (root, middle, leaf) = stack.chain()
        try leaf.edit(changed, City.self) { $0.population = 7 }
        try leaf.performAndWait { leaf.delete(try leaf.existingObject(with: deleted)) }
        for context in [leaf, middle] {
            try context.saveAndWait()
            let above = try require(context.parent)
            above.performAndWait {
                expectEqual(above.updatedObjects.map(\.objectID), [changed])
                expectEqual(above.deletedObjects.map(\.objectID), [deleted])
            }
        }
        try expectEqual(stack.count("City"), 2)
        try root.saveAndWait()
        try expectEqual(stack.count("City"), 1)
        try expectEqual(stack.read(changed, City.self) { $0.population }, 7)
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships of every kind arrive complete, inverses included (CS-48)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (root, middle, leaf) = stack.chain()
        let id = leaf.performAndWait {
            let venue = Venue(context: leaf)
            venue.name = "Tasca"
            venue.city = City(context: leaf)
            venue.city?.name = "Porto"
            venue.licence = Licence(context: leaf)
            venue.licence?.number = "L1"
            for title in ["a", "b", "c"] {
                let tag = Tag(context: leaf)
                tag.title = title
                venue.tags.insert(tag)
                let photo = Photo(context: leaf)
                photo.title = title
                venue.photos.append(photo)
            }
            venue.photos.swapAt(0, 2)
            let user = User(context: leaf)
            user.email = "u@example.com"
            user.favourites = [venue]
            return venue.objectID
        }
        func check(_ context: NSManagedObjectContext) throws {
            try context.look(id, Venue.self) { venue in
                expect(venue.city?.name == "Porto" && venue.city?.venues == [venue])
                expect(venue.licence?.number == "L1" && venue.licence?.venue === venue)
                expectEqual(Set(venue.tags.map(\.title)), ["a", "b", "c"])
                expect(venue.tags.allSatisfy { $0.venues == [venue] })
                expectEqual(venue.photos.map(\.title), ["c", "b", "a"])
                expect(venue.photos.allSatisfy { $0.venue === venue })
                expectEqual(venue.fans.first?.favourites, [venue])
            }
        }
        for context in [leaf, middle, root] {
            try check(context)
            try context.saveAndWait()
            try check(context)
        }
        for context in [leaf, middle, root, stack.context()] { try check(context) }
    }

    @Test(arguments: StoreKind.allCases)
    func `changes of stored relationships arrive complete (CS-48)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let setUp = stack.context()
        let (venueID, otherID, porto, faro) = try setUp.performAndWait {
            let venue = Venue(context: setUp)
            let other = Venue(context: setUp)
            let (porto, faro) = (City(context: setUp), City(context: setUp))
            (porto.name, faro.name) = ("Porto", "Faro")
            venue.city = porto
            other.city = porto
            venue.licence = Licence(context: setUp)
            for title in ["a", "b", "c"] {
                let tag = Tag(context: setUp)
                tag.title = title
                venue.tags.insert(tag)
                let photo = Photo(context: setUp)
                photo.title = title
                venue.photos.append(photo)
            }
            try setUp.save()
            return (venue.objectID, other.objectID, porto.objectID, faro.objectID)
        }
        let (root, middle, leaf) = stack.chain()
        try leaf.performAndWait {
            let venue = try leaf.get(venueID, Venue.self)
            let other = try leaf.get(otherID, Venue.self)
            venue.city = try leaf.get(faro, City.self)
            other.licence = venue.licence
            venue.tags = venue.tags.filter { $0.title != "b" }
            other.tags = venue.tags
            venue.photos.reverse()
            venue.photos.removeLast()
            let photo = Photo(context: leaf)
            photo.title = "d"
            venue.photos.insert(photo, at: 1)
        }
        func check(_ context: NSManagedObjectContext) throws {
            try context.performAndWait {
                let venue = try context.get(venueID, Venue.self)
                let other = try context.get(otherID, Venue.self)
                expect(venue.city?.objectID == faro && other.city?.objectID == porto)
                try expectEqual(context.get(porto, City.self).venues, [other])
                try expectEqual(context.get(faro, City.self).venues, [venue])
                expect(venue.licence == nil && other.licence?.venue === other)
                expect(Set(venue.tags.map(\.title)) == ["a", "c"] && other.tags == venue.tags)
                expect(venue.tags.allSatisfy { $0.venues == [venue, other] })
                expectEqual(venue.photos.map(\.title), ["c", "d", "b"])
            }
        }
        for context in [leaf, middle, root] {
            try context.saveAndWait()
            try check(context)
        }
        for context in [leaf, middle, root, stack.context()] { try check(context) }
    }

    @Test func `what the parent has absorbed and saved need not stay registered there (CS-49)`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let id = child.insertCity("Faro")
        try child.saveAndWait()
        try parent.saveAndWait()
        parent.performAndWait { parent.refreshAllObjects() }
        // Registered or not, it is found.
        try expectEqual(parent.look(id, City.self) { $0.name }, "Faro")
    }

    @Test func `mergePolicy is not consulted in a child's save: the last to save wins, property by property (CS-50)`()
        throws
    {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Beja", population: 1)
        let parent = stack.context()
        let (first, second) = (parent.child("first"), parent.child("second"))
        first.mergePolicy = NSMergePolicy.error
        second.mergePolicy = NSMergePolicy.rollback
        try first.edit(id, City.self) { $0.name = "first" }
        try second.edit(id, City.self) {
            $0.name = "second"
            $0.population = 2
        }
        try second.saveAndWait()
        try first.saveAndWait()
        try parent.look(id, City.self) { expect($0.name == "first" && $0.population == 2) }
        // After its save a child shows what the parent has made of it.
        try first.look(id, City.self) { expectEqual($0.population, 2) }
        // And what one child changed next does not bring back what it never touched.
        try second.edit(id, City.self) { $0.population = 3 }
        try second.saveAndWait()
        try parent.look(id, City.self) { expect($0.name == "first" && $0.population == 3) }
    }

    @Test(arguments: StoreKind.allCases)
    func `validation runs at each level's save, and a failed one leaves both as they were (CS-52)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        child.performAndWait {
            let user = User(context: child)
            user.setValue(nil, forKey: "email")
            let city = City(context: child)
            city.name = "fine"
            expectThrows(CocoaError.self) { try child.save() }
            expectEqual(child.insertedObjects, [user, city])
            user.email = "u@example.com"
        }
        parent.performAndWait { expect(!parent.hasChanges && parent.registeredObjects.isEmpty) }
        try child.saveAndWait()
        parent.performAndWait { expectEqual(parent.insertedObjects.count, 2) }
        // The parent's own save validates again.
        try parent.performAndWait {
            let user = try require(try parent.all(User.self).first)
            user.setValue(nil, forKey: "email")
            expectThrows(CocoaError.self) { try parent.save() }
        }
    }

    @Test func `awakeFromInsert is sent once, where the object is inserted (CS-53)`() throws {
        let stack = try Stack(.memory, model: TreeModel.make())
        let (root, middle, leaf) = stack.chain()
        let id = leaf.performAndWait {
            let note = DraftNote(context: leaf)
            expectEqual(note.text, "awake in leaf")
            return note.objectID
        }
        for context in [leaf, middle, root] { try context.saveAndWait() }
        for context in [leaf, middle, root] {
            try expectEqual(context.look(id, DraftNote.self) { $0.text }, "awake in leaf")
        }
    }

    @Test func `hooks of saving are sent in the context that saves`() throws {
        let stack = try Stack(.memory, model: TreeModel.make())
        let (parent, child) = stack.pair()
        let log = Shared<[String]>([])
        try DraftNote.$log.withValue(log) {
            let id = child.performAndWait { DraftNote(context: child).objectID }
            try child.saveAndWait()
            expectEqual(log.current, ["insert child", "willSave child", "didSave child"])
            log.update { $0 = [] }
            try parent.saveAndWait()
            expectEqual(log.current, ["willSave parent", "didSave parent"])
            log.update { $0 = [] }
            try child.performAndWait { child.delete(try child.existingObject(with: id)) }
            try child.saveAndWait()
            expectEqual(log.current.filter { $0.hasPrefix("delete") }, ["delete child"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `inserts and deletes annihilate, in the child and in the parent`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (parent, child) = stack.pair()
        child.performAndWait {
            let city = City(context: child)
            child.delete(city)
        }
        try child.saveAndWait()
        parent.performAndWait { expect(!parent.hasChanges && parent.registeredObjects.isEmpty) }
        let id = child.insertCity("short-lived")
        try child.saveAndWait()
        parent.performAndWait { expectEqual(parent.insertedObjects.count, 1) }
        try child.performAndWait { child.delete(try child.existingObject(with: id)) }
        try child.saveAndWait()
        parent.performAndWait { expect(parent.insertedObjects.isEmpty && parent.deletedObjects.isEmpty) }
        try parent.saveAndWait()
        try expectEqual(stack.count("City"), 0)
        try expectEqual(parent.cityNames(), [])
        try expectEqual(child.cityNames(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `delete rules reach what only the parent knows`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("Porto")
        let (parent, child) = stack.pair()
        try child.performAndWait { child.delete(try child.existingObject(with: cityID)) }
        let venueID = try parent.performAndWait {
            let venue = Venue(context: parent)
            venue.city = try parent.get(cityID, City.self)
            return venue.objectID
        }
        try child.saveAndWait()
        try expectEqual(parent.look(venueID, Venue.self) { $0.city }, nil)
        try parent.saveAndWait()
        try expectEqual(stack.read(venueID, Venue.self) { $0.city }, nil)
        try expectEqual(stack.count("City"), 0)
    }

    @Test func `an object that the parent has deleted takes the child's changes with it`() throws {
        let stack = try Stack(.memory)
        let (deleted, saved) = (try stack.storeCity("deleted"), try stack.storeCity("saved"))
        let (parent, child) = stack.pair()
        let cities = try child.performAndWait {
            try [deleted, saved].map { try child.existingObject(with: $0) as? City }
        }
        try parent.performAndWait {
            parent.delete(try parent.existingObject(with: saved))
            try parent.save()
            parent.delete(try parent.existingObject(with: deleted))
        }
        let fresh = try child.performAndWait {
            cities.forEach { $0?.population = 5 }
            let venue = Venue(context: child)
            venue.city = cities[0]
            let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: child)
            try child.save()
            expect(cities.allSatisfy { $0?.managedObjectContext == nil && $0?.hasChanges == false })
            expectEqual(log.entries.flatMap { $0.objects(NSDeletedObjectsKey) }.count, 2)
            return venue.objectID
        }
        parent.performAndWait { expect(parent.deletedObjects.count == 1 && parent.updatedObjects.isEmpty) }
        try expectEqual(parent.look(fresh, Venue.self) { $0.city }, nil)
        try parent.saveAndWait()
        try expectEqual(stack.count("City"), 0)
    }

    @Test func `a save transfers only what changed`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Beja", population: 1)
        for number in 0..<100 { _ = try stack.storeCity("c\(number)") }
        let (parent, child) = stack.pair()
        try child.performAndWait {
            for city in try child.all(City.self) { _ = city.name }
            try child.get(id, City.self).population = 2
            try child.save()
        }
        try parent.performAndWait {
            expectEqual(parent.registeredObjects.map(\.objectID), [id])
            let keys = try parent.get(id, City.self).changedValues().keys.sorted()
            expectEqual(keys, ["population"])
        }
    }

    @Test func `a value that was set back is not transferred`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Beja", population: 1)
        let (parent, child) = stack.pair()
        try child.edit(id, City.self) {
            $0.population = 2
            $0.population = 1
        }
        try child.saveAndWait()
        parent.performAndWait { expect(!parent.hasChanges) }
        child.performAndWait { expect(!child.hasChanges) }
    }

    @Test func `when the store has been removed a child's save loses what was in it, and keeps what is new`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Beja", population: 1)
        let (parent, child) = stack.pair()
        try child.edit(id, City.self) { $0.population = 2 }
        child.insertCity("new")
        try stack.coordinator.remove(stack.coordinator.persistentStores[0])
        // The row has gone with its store: the parent has nothing to change.
        try child.saveAndWait()
        parent.performAndWait { expect(parent.updatedObjects.isEmpty && parent.insertedObjects.count == 1) }
        expectThrows(CocoaError.self) { try parent.saveAndWait() }
        parent.performAndWait { expectEqual(parent.insertedObjects.count, 1) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a failed save of the root leaves the whole tree as it was, and the same save succeeds later`(
        _ kind: StoreKind
    )
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Beja", population: 1)
        let (parent, child) = stack.pair()
        let fresh = child.insertCity("new")
        try child.edit(id, City.self) { $0.population = 2 }
        try child.saveAndWait()
        try stack.change(id, City.self) { city, _ in city.population = 9 }
        #expect { try parent.saveAndWait() } throws: { $0.cocoaCode == .managedObjectMerge }
        expect(fresh.isTemporaryID)
        try parent.look(id, City.self) { expect($0.population == 2 && $0.isUpdated) }
        try child.look(id, City.self) { expectEqual($0.population, 2) }
        try expectEqual(child.cityNames(), ["Beja", "new"])
        parent.performAndWait { parent.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
        try parent.saveAndWait()
        expect(!fresh.latest.isTemporaryID)
        try expectEqual(stack.read(id, City.self) { $0.population }, 2)
        try expectEqual(child.look(fresh, City.self) { $0.name }, "new")
    }

    @Test func `many-to-many and ordered additions of siblings come together`() throws {
        let stack = try Stack(.database)
        let venueID = try stack.store(Venue.self) { venue, context in
            let photo = Photo(context: context)
            photo.title = "0"
            venue.photos = [photo]
        }
        let parent = stack.context()
        let children = (1...3).map { parent.child("\($0)") }
        for (number, child) in children.enumerated() {
            try child.edit(venueID, Venue.self) { venue in
                let tag = Tag(context: child)
                tag.title = "t\(number + 1)"
                venue.tags.insert(tag)
                let photo = Photo(context: child)
                photo.title = "\(number + 1)"
                venue.photos.append(photo)
            }
        }
        for child in children { try child.saveAndWait() }
        for context in [parent, stack.context()] {
            try context.look(venueID, Venue.self) { venue in
                if context !== parent { return }
                expectEqual(Set(venue.tags.map { $0.title ?? "" }), ["t1", "t2", "t3"])
                expectEqual(Set(venue.photos.map { $0.title ?? "" }), ["0", "1", "2", "3"])
                expectEqual(venue.photos.first?.title, "0")
            }
        }
        try parent.saveAndWait()
        try stack.context().look(venueID, Venue.self) { venue in
            expect(venue.tags.count == 3 && venue.photos.count == 4)
            expect(venue.photos.allSatisfy { $0.venue === venue })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `siblings that move one object leave the parent's inverses in step`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.city = City(context: context)
            venue.city?.name = "start"
            venue.licence = Licence(context: context)
        }
        let (firstCity, secondCity) = (try stack.storeCity("first"), try stack.storeCity("second"))
        let other = try stack.store(Venue.self) { _, _ in }
        let parent = stack.context()
        let (first, second) = (parent.child(), parent.child())
        try first.performAndWait {
            let venue = try first.get(venueID, Venue.self)
            venue.city = try first.get(firstCity, City.self)
            try first.get(other, Venue.self).licence = venue.licence
        }
        try second.performAndWait {
            let venue = try second.get(venueID, Venue.self)
            venue.city = try second.get(secondCity, City.self)
            venue.licence = Licence(context: second)
        }
        try first.saveAndWait()
        try second.saveAndWait()
        func check(_ context: NSManagedObjectContext) throws {
            try context.performAndWait {
                let venue = try context.get(venueID, Venue.self)
                expectEqual(venue.city?.objectID, secondCity)
                try expectEqual(context.get(secondCity, City.self).venues, [venue])
                try expect(context.get(firstCity, City.self).venues.isEmpty)
                expect(venue.licence?.venue === venue)
                let licences = try context.all(Licence.self)
                for licence in licences where licence.venue != nil { expect(licence.venue?.licence === licence) }
            }
        }
        try check(parent)
        try parent.saveAndWait()
        try check(stack.context())
    }
}
