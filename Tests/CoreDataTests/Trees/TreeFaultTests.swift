import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: faults, refresh, rollback, undo")
struct TreeFaultTests {
    @Test(arguments: StoreKind.allCases)
    func `a refresh in a child asks the parent, not the store (CS-54)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored", population: 1)
        let (parent, child) = stack.pair()
        let city: City = try child.performAndWait { try typed(child.existingObject(with: id)) }
        try parent.edit(id, City.self) { $0.name = "in the parent" }
        try stack.change(id, City.self) { city, _ in city.population = 2 }
        child.performAndWait {
            city.population = 5
            child.refresh(city, mergeChanges: true)
            expect(city.name == "in the parent" && city.population == 5 && city.isUpdated)
            child.refresh(city, mergeChanges: false)
            expect(city.isFault && !city.isUpdated)
            // The parent has the row as it was when it loaded it.
            expect(city.name == "in the parent" && city.population == 1)
        }
        parent.performAndWait { parent.refreshAllObjects() }
        child.performAndWait {
            child.refreshAllObjects()
            expect(city.population == 2 && city.name == "in the parent")
        }
    }

    @Test func `a refresh of an object that only the parent has shows its new values`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let id = parent.insertCity("one")
        let city: City = try child.performAndWait { try typed(child.existingObject(with: id)) }
        try parent.edit(id, City.self) { $0.name = "two" }
        child.performAndWait {
            child.refresh(city, mergeChanges: true)
            expectEqual(city.name, "two")
            city.name = "mine"
            child.refresh(city, mergeChanges: false)
            expectEqual(city.name, "two")
        }
    }

    @Test func `a fault of the parent stays one when a child reads the object`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Faro")
        let (parent, child) = stack.pair()
        let fault = parent.performAndWait { parent.object(with: id) }
        try expectEqual(child.look(id, City.self) { $0.name }, "Faro")
        parent.performAndWait { expect(fault.isFault) }
    }

    @Test func `a to-many relationship of a child holds what the parent added and removed`() throws {
        let stack = try Stack(.database)
        let venueID = try stack.store(Venue.self) { venue, context in
            for title in ["a", "b"] {
                let tag = Tag(context: context)
                tag.title = title
                venue.tags.insert(tag)
            }
        }
        let (root, _, leaf) = stack.chain()
        try root.edit(venueID, Venue.self) { venue in
            venue.tags = venue.tags.filter { $0.title == "b" }
            let tag = Tag(context: root)
            tag.title = "c"
            venue.tags.insert(tag)
        }
        let venue: Venue = try leaf.performAndWait {
            let venue: Venue = try typed(leaf.existingObject(with: venueID))
            expectEqual(Set(venue.tags.compactMap(\.title)), ["b", "c"])
            expectEqual(venue.objectIDs(forRelationshipNamed: "tags").count, 2)
            return venue
        }
        try root.performAndWait { root.delete(try require(try root.all(Tag.self).first { $0.title == "b" })) }
        leaf.performAndWait {
            leaf.refresh(venue, mergeChanges: false)
            expectEqual(venue.tags.compactMap(\.title), ["c"])
        }
    }

    @Test func `a fault whose object the parent has deleted counts as deleted`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Faro")
        let (parent, child) = stack.pair()
        let city: City = try child.performAndWait { try child.get(id) }
        try parent.performAndWait { parent.delete(try parent.existingObject(with: id)) }
        child.performAndWait {
            expectEqual(city.population, 0)
            expect(city.isDeleted)
        }
    }

    @Test func `rollback in a child goes back to what the parent has, and the parent is not touched`() throws {
        let stack = try Stack(.memory)
        let (stored, deleted) = (try stack.storeCity("stored"), try stack.storeCity("deleted"))
        let (parent, child) = stack.pair()
        let inserted = parent.insertCity("in the parent")
        try child.performAndWait {
            try child.get(stored, City.self).name = "x"
            try child.get(inserted, City.self).name = "y"
            child.delete(try child.existingObject(with: deleted))
            _ = City(context: child)
            child.rollback()
            expect(!child.hasChanges)
        }
        try expectEqual(child.cityNames(), ["deleted", "in the parent", "stored"])
        try expectEqual(parent.cityNames(), ["deleted", "in the parent", "stored"])
        try child.saveAndWait()
        parent.performAndWait { expect(parent.insertedObjects.count == 1 && parent.updatedObjects.isEmpty) }
    }

    @Test func `reset in a child forgets everything, objects of the parent's included`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let id = parent.insertCity("in the parent")
        try child.edit(id, City.self) { $0.name = "changed" }
        child.performAndWait {
            child.reset()
            expect(child.registeredObjects.isEmpty && !child.hasChanges)
        }
        try parent.saveAndWait()
        try expectEqual(child.look(id, City.self) { $0.name }, "in the parent")
    }

    @Test(arguments: StoreKind.allCases)
    func `a discarded child leaves no trace`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let parent = stack.context("parent")
        let log = NotificationLog(.ofContexts, of: parent)
        do {
            let child = parent.child("discarded")
            child.insertCity("new")
            try child.edit(id, City.self) { $0.name = "changed" }
            try child.performAndWait { child.delete(try child.existingObject(with: id)) }
        }
        try parent.performAndWait {
            expect(!parent.hasChanges && parent.registeredObjects.isEmpty)
            let names = try parent.all(City.self).map(\.name)
            expectEqual(names, ["stored"])
        }
        expect(log.entries.isEmpty)
    }

    @Test func `objects of a child that is gone stay readable and have no context`() throws {
        let stack = try Stack(.memory)
        let parent = stack.context()
        let id = parent.insertCity("unsaved")
        let city: City
        do {
            let child = parent.child()
            city = try child.performAndWait { try typed(child.existingObject(with: id)) }
        }
        expect(city.managedObjectContext == nil && city.name == "unsaved")
        expect(city.objectID === id)
    }

    @Test func `undo and redo in a child, also across its save`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("one", population: 1)
        let (parent, child) = stack.pair()
        child.performAndWait { child.undoManager = UndoManager() }
        try child.performAndWait {
            let city = try child.get(id, City.self)
            city.name = "two"
            child.processPendingChanges()
            child.undo()
            expectEqual(city.name, "one")
            child.redo()
            expectEqual(city.name, "two")
            try child.save()
            child.undo()
            expect(city.name == "one" && city.isUpdated)
            try child.save()
        }
        try expectEqual(parent.look(id, City.self) { $0.name }, "one")
        // An insertion that the parent has absorbed is undone by a deletion.
        try child.performAndWait {
            let fresh = City(context: child)
            fresh.name = "fresh"
            child.processPendingChanges()
            try child.save()
            child.undo()
            expect(fresh.isDeleted)
            try child.save()
        }
        try expectEqual(parent.cityNames(), ["one"])
        try parent.saveAndWait()
        try expectEqual(stack.count("City"), 1)
    }

    @Test func `an undo manager of the parent takes a child's save back in one step`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("one")
        let (parent, child) = stack.pair()
        parent.performAndWait { parent.undoManager = UndoManager() }
        try child.performAndWait {
            try child.get(id, City.self).name = "two"
            let fresh = City(context: child)
            fresh.name = "fresh"
            try child.save()
        }
        try expectEqual(parent.cityNames(), ["fresh", "two"])
        parent.performAndWait { parent.undo() }
        try expectEqual(parent.cityNames(), ["one"])
        parent.performAndWait { parent.redo() }
        try expectEqual(parent.cityNames(), ["fresh", "two"])
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships without an inverse go up and come down`(_ kind: StoreKind) throws {
        let stack = try Stack(kind, model: TreeModel.make())
        let (root, middle, leaf) = stack.chain()
        let (first, second, third) = leaf.performAndWait {
            let notes = (0..<3).map { _ in DraftNote(context: leaf) }
            notes[0].next = notes[1]
            notes[0].pages = [notes[1], notes[2]]
            return (notes[0].objectID, notes[1].objectID, notes[2].objectID)
        }
        func check(_ context: NSManagedObjectContext, _ pages: Set<NSManagedObjectID>) throws {
            try context.look(first, DraftNote.self) {
                expectEqual($0.next?.objectID, second.latest)
                expectEqual(Set($0.pages.map(\.objectID)), Set(pages.map(\.latest)))
            }
        }
        for context in [leaf, middle, root] {
            try context.saveAndWait()
            for each in [leaf, middle] { try check(each, [second, third]) }
        }
        try check(stack.context(), [second, third])
        try leaf.performAndWait {
            let note = try leaf.get(first, DraftNote.self)
            note.pages.remove(try leaf.get(second, DraftNote.self))
        }
        for context in [leaf, middle, root] { try context.saveAndWait() }
        for context in [leaf, middle, root, stack.context()] { try check(context, [third]) }
    }
}
