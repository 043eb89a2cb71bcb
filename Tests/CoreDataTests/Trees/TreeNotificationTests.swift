import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: notifications and merging")
struct TreeNotificationTests {
    @Test(arguments: StoreKind.allCases)
    func `a child's save posts Apple's notifications in the child, and objects-did-change in the parent`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let (changed, deleted) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let (parent, child) = stack.pair()
        let fresh = child.insertCity("new")
        try child.edit(changed, City.self) { $0.population = 2 }
        try child.performAndWait {
            child.delete(try child.existingObject(with: deleted))
            child.processPendingChanges()
        }
        let below = NotificationLog(.ofContexts, of: child)
        let above = NotificationLog(.ofContexts, of: parent)
        try child.saveAndWait()
        expect(
            below.names == [
                .NSManagedObjectContextWillSave, .NSManagedObjectContextDidSave,
                .NSManagedObjectContextDidSaveObjectIDs,
            ]
        )
        let didSave = below.entries[1]
        expectEqual(didSave.objects(NSInsertedObjectsKey).map(\.objectID), [fresh])
        expectEqual(didSave.objects(NSUpdatedObjectsKey).map(\.objectID), [changed])
        expectEqual(didSave.objects(NSDeletedObjectsKey).map(\.objectID), [deleted])
        let ids = below.entries[2]
        expect(ids.ids(NSInsertedObjectIDsKey) == [fresh] && ids.ids(NSUpdatedObjectIDsKey) == [changed])
        expectEqual(ids.ids(NSDeletedObjectIDsKey), [deleted])
        expectEqual(above.names, [.NSManagedObjectContextObjectsDidChange])
        let didChange = above.entries[0]
        expectEqual(didChange.objects(NSInsertedObjectsKey).map(\.objectID), [fresh])
        expectEqual(didChange.objects(NSUpdatedObjectsKey).map(\.objectID), [changed])
        expectEqual(didChange.objects(NSDeletedObjectsKey).map(\.objectID), [deleted])
        parent.performAndWait {
            expect(didChange.objects(NSInsertedObjectsKey).allSatisfy { $0.managedObjectContext === parent })
        }
    }

    @Test func `a failed save of a child posts will-save only, and nothing in the parent (CS-118, 125)`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        child.performAndWait {
            User(context: child).setValue(nil, forKey: "email")
            child.processPendingChanges()
        }
        let below = NotificationLog(.ofContexts, of: child)
        let above = NotificationLog(.ofContexts, of: parent)
        expectThrows(CocoaError.self) { try child.saveAndWait() }
        expectEqual(below.names, [.NSManagedObjectContextWillSave])
        expect(above.entries.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `with automaticallyMergesChangesFromParent a save of the parent surfaces in the child (CS-56)`(
        _ kind: StoreKind
    )
        throws
    {
        let stack = try Stack(kind)
        let (changed, deleted) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let (parent, child) = stack.pair()
        child.automaticallyMergesChangesFromParent = true
        let objects: [City] = try child.performAndWait {
            try [changed, deleted].map { try typed(child.existingObject(with: $0)) }
        }
        let log = NotificationLog(.ofContexts, of: child)
        let fresh = parent.insertCity("new")
        try parent.edit(changed, City.self) { $0.name = "new name" }
        try parent.performAndWait {
            parent.delete(try parent.existingObject(with: deleted))
            try parent.save()
        }
        child.performAndWait {
            expect(objects[0].name == "new name" && objects[1].isDeleted)
            expect(!child.hasChanges)
        }
        let entry = try require(log.entries.first { $0.name == .NSManagedObjectContextObjectsDidChange })
        expectEqual(entry.objects(NSInsertedObjectsKey).map(\.objectID), [fresh.latest])
        expectEqual(entry.objects(NSRefreshedObjectsKey).map(\.objectID), [changed])
        expectEqual(entry.objects(NSDeletedObjectsKey).map(\.objectID), [deleted])
        let merged = try require(log.entries.first { $0.name == .NSManagedObjectContextDidMergeChangesObjectIDs })
        expect(merged.ids(NSInsertedObjectIDsKey) == [fresh.latest] && merged.ids(NSUpdatedObjectIDsKey) == [changed])
    }

    @Test func `a sibling's save into the parent is merged as well, and with unsaved objects`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("stored")
        let parent = stack.context("parent")
        let (writer, reader) = (parent.child("writer"), parent.child("reader"))
        reader.automaticallyMergesChangesFromParent = true
        writer.automaticallyMergesChangesFromParent = true
        let city: City = try reader.performAndWait { try typed(reader.existingObject(with: id)) }
        let log = NotificationLog(.ofContexts, of: reader)
        let own = NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: writer)
        let fresh = writer.insertCity("new")
        try writer.edit(id, City.self) { $0.name = "changed" }
        try writer.saveAndWait()
        reader.performAndWait { expectEqual(city.name, "changed") }
        expect(log.entries.contains { $0.objects(NSInsertedObjectsKey).map(\.objectID) == [fresh] })
        writer.performAndWait {}
        expect(own.entries.isEmpty, "no context merges its own save")
        // An update and a deletion of what no store has.
        let met: City = try reader.performAndWait { try typed(reader.existingObject(with: fresh)) }
        try writer.edit(fresh, City.self) { $0.name = "newer" }
        try writer.saveAndWait()
        reader.performAndWait { expectEqual(met.name, "newer") }
        try writer.performAndWait {
            writer.delete(try writer.existingObject(with: fresh))
            try writer.save()
        }
        reader.performAndWait { expect(met.isDeleted) }
        try expectEqual(reader.cityNames(), ["changed"])
    }

    @Test func `for a root the parent is the coordinator, and what it merges goes on to its children (CS-57)`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("before")
        let (root, middle, leaf) = stack.chain()
        for context in [root, middle, leaf] { context.automaticallyMergesChangesFromParent = true }
        let cities: [City] = try [leaf, middle, root].map { context in
            try context.performAndWait { try typed(context.existingObject(with: id)) }
        }
        try stack.change(id, City.self) { city, _ in city.name = "after" }
        for (context, city) in zip([root, middle, leaf], cities.reversed()) {
            // Each merge is enqueued before the one below it.
            context.performAndWait { expectEqual(city.name, "after") }
        }
    }

    @Test func `the flag is off by default, and a merge keeps the child's unsaved changes (CS-58, 60)`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("before", population: 1)
        let (parent, child) = stack.pair()
        child.performAndWait { expect(!child.automaticallyMergesChangesFromParent) }
        let city: City = try child.performAndWait { try typed(child.existingObject(with: id)) }
        try parent.edit(id, City.self) { $0.population = 2 }
        try parent.saveAndWait()
        child.performAndWait { expectEqual(city.population, 1) }
        child.performAndWait {
            child.automaticallyMergesChangesFromParent = true
            city.name = "mine"
        }
        try parent.edit(id, City.self) {
            $0.population = 3
            $0.name = "theirs"
        }
        try parent.saveAndWait()
        child.performAndWait {
            expect(city.name == "mine" && city.population == 3 && city.isUpdated)
            child.automaticallyMergesChangesFromParent = false
        }
        try parent.edit(id, City.self) { $0.population = 4 }
        try parent.saveAndWait()
        child.performAndWait { expectEqual(city.population, 3) }
    }

    @Test func `mergeChanges(fromContextDidSave:) takes the parent's, and a sibling's, notification`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("before")
        let parent = stack.context()
        let (writer, reader) = (parent.child(), parent.child())
        let city: City = try reader.performAndWait { try typed(reader.existingObject(with: id)) }
        let log = NotificationLog([.NSManagedObjectContextDidSave], of: writer)
        let fresh = writer.insertCity("new")
        try writer.edit(id, City.self) { $0.name = "after" }
        try writer.saveAndWait()
        let notification = try require(log.entries.first).notification
        reader.performAndWait {
            reader.mergeChanges(fromContextDidSave: notification)
            expectEqual(city.name, "after")
            expect(reader.registeredObject(for: fresh) != nil)
        }
        // For the parent it is no news, and for a context of another tree it is nothing that it could know.
        parent.performAndWait {
            parent.mergeChanges(fromContextDidSave: notification)
            expect(parent.insertedObjects.count == 1 && parent.updatedObjects.count == 1)
        }
        let stranger = stack.context()
        stranger.performAndWait {
            stranger.mergeChanges(fromContextDidSave: notification)
            expectEqual(stranger.registeredObject(for: fresh), nil)
        }
    }

    @Test func `of a parent and a child that are listed together the parent merges first (CS-134)`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("before")
        let (parent, child) = stack.pair()
        let cities: [City] = try [parent, child].map { context in
            try context.performAndWait { try typed(context.existingObject(with: id)) }
        }
        try stack.change(id, City.self) { city, _ in city.name = "after" }
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSUpdatedObjectIDsKey: [id]],
            into: [child, parent]
        )
        parent.performAndWait { expectEqual(cities[0].name, "after") }
        child.performAndWait { expectEqual(cities[1].name, "after") }
    }

    @Test func `a handler of the parent's objects-did-change sees both contexts saved`() throws {
        let stack = try Stack(.memory)
        let (parent, child) = stack.pair()
        let id = child.insertCity("new")
        let seen = Shared<[String]>([])
        let observation = whenPosted(.NSManagedObjectContextObjectsDidChange, by: parent) {
            let name = parent.performAndWait { (parent.object(with: id) as? City)?.name ?? "" }
            let hasChanges = child.performAndWait { child.hasChanges }
            seen.update { $0.append("\(name) \(hasChanges)") }
        }
        defer { observation.remove() }
        try child.saveAndWait()
        expectEqual(seen.current, ["new false"])
    }

    @Test func `a fetched results controller of a child follows its parent and its siblings`() throws {
        let stack = try Stack(.memory)
        _ = try stack.storeCity("b")
        let parent = stack.context()
        let (writer, reader) = (parent.child(), parent.child())
        reader.automaticallyMergesChangesFromParent = true
        // Without a delegate the results stay as they were fetched.
        let recorder = ResultsRecorder()
        let controller = try reader.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: reader,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            try recorder.start(controller)
            return controller
        }
        func names() -> [String] { reader.performAndWait { (controller.fetchedObjects ?? []).map(\.name) } }
        expectEqual(names(), ["b"])
        let fresh = writer.insertCity("a")
        try writer.saveAndWait()
        expectEqual(names(), ["a", "b"])
        try parent.saveAndWait()
        expectEqual(names(), ["a", "b"])
        try writer.edit(fresh, City.self) { $0.name = "c" }
        try writer.saveAndWait()
        expectEqual(names(), ["b", "c"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what a hook has read anew while the child merges is not put back`(_ kind: StoreKind) throws {
        let stack = try Stack.objects(kind)
        let ids = try stack.inContext { context throws in
            let objects = (0..<2).map { _ in Hooked(context: context) }
            try context.save()
            return objects.map(\.objectID)
        }
        let (parent, child) = stack.pair()
        let log = NotificationLog([.NSManagedObjectContextDidSave], of: parent)
        try child.performAndWait {
            let objects = try ids.map { try child.get($0, Hooked.self) }
            for object in objects { expectEqual(object.count, 7) }
            for id in ids { try parent.edit(id, Hooked.self) { $0.count = 1 } }
            try parent.saveAndWait()
            // Whichever is merged first reads the other one, which the parent has changed once more.
            var isFirst = true
            for object in objects {
                object.onSnapshot = { merged in
                    guard isFirst, let other = objects.first(where: { $0 !== merged }) else { return }
                    isFirst = false
                    #expect(throws: Never.self) { try parent.edit(other.objectID, Hooked.self) { $0.count = 2 } }
                    child.refresh(other, mergeChanges: false)
                    expectEqual(other.count, 2)
                }
            }
            child.mergeChanges(fromContextDidSave: try require(log.entries.first).notification)
            expect(!isFirst && objects.map(\.count).sorted() == [1, 2])
        }
    }
}
