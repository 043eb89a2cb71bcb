import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Objects in a context")
struct ObjectLifeTests {
    @Test(arguments: StoreKind.allCases)
    func `look-ups give one instance for each ID (CS-26, 32, 33, 34)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        try context.performAndWait { () throws in
            expectEqual(context.registeredObject(for: id), nil)
            let city = context.object(with: id)
            expect(city.isFault)
            expect(context.registeredObject(for: id) === city)
            try expect(context.existingObject(with: id) === city)
            expect(!city.isFault)
            try expectEqual(context.all(City.self), [city])
            expect(context.object(with: id) === city)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an ID without a row gives a fault, which existingObject refuses (CS-33, 34, 73)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        try stack.delete(id)
        let context = stack.context()
        context.performAndWait {
            let error = expectThrows(CocoaError.self) { try context.existingObject(with: id) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
            let city = context.object(with: id)
            expect(city.isFault)
            expect(city.value(forKey: "name") == nil)
            expectEqual((city as? City)?.population, 0)
            expect(city.isDeleted)
            expect(!context.hasChanges)
            expectThrows(CocoaError.self) { try context.existingObject(with: id) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `without shouldDeleteInaccessibleFaults the handler is notified and the object is not deleted (CS-74, 75)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        try stack.delete(id)
        let context = stack.context()
        context.performAndWait {
            context.shouldDeleteInaccessibleFaults = false
            var told: [NSManagedObject] = []
            context.inaccessibleFaultHandler = { told.append($0) }
            let city = context.object(with: id)
            expect(city.value(forKey: "name") == nil)
            expectEqual(told, [city])
            expect(!city.isDeleted)
        }
        let custom = AskedContext(.privateQueue)
        custom.persistentStoreCoordinator = stack.coordinator
        custom.performAndWait {
            _ = custom.object(with: id).value(forKey: "name")
            expectEqual(custom.asked, [id])
        }
    }

    private final class AskedContext: NSManagedObjectContext, @unchecked Sendable {
        // @unchecked Sendable: `asked` is used inside the scope only.
        var asked: [NSManagedObjectID] = []

        override func shouldHandleInaccessibleFault(
            _ fault: NSManagedObject,
            for oid: NSManagedObjectID,
            triggeredByProperty property: NSPropertyDescription?
        ) -> Bool {
            asked.append(oid)
            return true
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a new object has a temporary ID until it is saved, and keys are not used again (CS-29, 36)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let first = City(context: context)
            first.name = "first"
            let id = first.objectID
            let uri = id.uriRepresentation()
            expect(id.isTemporaryID)
            try context.save()
            expect(id.isTemporaryID && id.uriRepresentation() == uri)
            expect(!first.objectID.isTemporaryID && first.objectID != id)
            expect(stack.coordinator.managedObjectID(forURIRepresentation: uri) === id)
            let old = first.objectID.uriRepresentation()
            context.delete(first)
            try context.save()
            let second = City(context: context)
            second.name = "second"
            try context.save()
            expect(second.objectID.uriRepresentation() != old)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `permanent IDs can be had before the save, and relationships go on working (CS-30)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let venue = Venue(context: context)
            venue.city = city
            let tag = Tag(context: context)
            venue.tags = [tag]
            let captured = city.objectID
            try context.obtainPermanentIDs(for: [city, city, venue])
            let id = city.objectID
            expect(captured.isTemporaryID && !id.isTemporaryID && context.object(with: captured) === city)
            expect(!venue.objectID.isTemporaryID)
            expect(city.isInserted)
            expect(context.object(with: id) === city)
            try context.obtainPermanentIDs(for: [city])
            expect(city.objectID === id)
            expectEqual(city.venues, [venue])
            venue.city = city
            expect(!venue.changedValuesForCurrentEvent().keys.contains("city") || venue.city === city)
            expectEqual(city.venues, [venue])
            venue.tags = []
            expect(tag.venues.isEmpty)
            venue.tags = [tag]
            venue.city = nil
            expect(city.venues.isEmpty)
            venue.city = city
            try context.save()
            expectEqual(id, city.objectID)
            expect(!city.isInserted)
        }
        let reader = stack.context()
        try reader.performAndWait {
            let venue = try require(try reader.all(Venue.self).first)
            expectEqual(venue.city?.name, "Porto")
            expectEqual(venue.city?.venues, [venue])
            expectEqual(venue.tags.first?.venues, [venue])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object with a permanent ID that is rolled back is gone`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let city = City(context: context)
            try context.obtainPermanentIDs(for: [city])
            let id = city.objectID
            context.rollback()
            expectEqual(city.managedObjectContext, nil)
            expect(city.objectID === id)
            expectEqual(context.registeredObject(for: id), nil)
            try expectEqual(context.count(for: NSFetchRequest<City>(entityName: "City")), 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an unsaved object of another context is a fault that is found once it was saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let writer = stack.context("writer")
        let reader = stack.context("reader")
        let (city, id) = writer.performAndWait {
            let city = City(context: writer)
            city.name = "Porto"
            return (city, city.objectID)
        }
        let stranger = reader.performAndWait { reader.object(with: id) }
        try writer.performAndWait {
            try writer.save()
            expect(!city.objectID.isTemporaryID)
        }
        try reader.performAndWait { () throws in
            expect(reader.object(with: id) === stranger)
            try expectEqual(reader.all(City.self), [stranger])
            expectEqual(stranger.value(forKey: "name") as? String, "Porto")
        }
    }

    // MARK: - Objects that are kept

    @Test func `objects that are not held go, and changed ones stay (CS-27)`() throws {
        let stack = try Stack(.memory)
        let writer = stack.context()
        try writer.performAndWait {
            for index in 0..<5_000 {
                let city = City(context: writer)
                city.name = "city \(index)"
                city.population = Int64(index)
            }
            try writer.save()
        }
        let reader = stack.context()
        try reader.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "population == 7")
            let held = try require(try reader.fetch(request).first)
            request.predicate = NSPredicate(format: "population == 8")
            weak let changed = try reader.fetch(request).first
            changed?.name = "changed"
            weak var dropped: City?
            try withExtendedLifetime(reader.all(City.self)) { cities in
                dropped = cities.first { $0.population == 9 }
                expect(dropped != nil)
                expectEqual(reader.registeredObjects.count, 5_000)
            }
            reader.perform {}
            reader.sweep()
            expectEqual(dropped, nil)
            expect(reader.registeredObjects.count < 100)
            expectEqual(changed?.name, "changed")
            try expect(reader.all(City.self).contains(held))
        }
    }

    @Test func `a context that retains its objects keeps them all (CS-27)`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity()
        let context = stack.context()
        context.retainsRegisteredObjects = true
        try context.performAndWait {
            weak let city = try context.existingObject(with: id)
            context.sweep()
            expect(city != nil)
            try stack.change(id, City.self) { city, _ in city.name = "renamed" }
            try expectEqual(context.all(City.self).first?.name, "Porto")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what is not held is read anew by the next fetch or look-up (CS-212)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        try context.performAndWait {
            try expectEqual(context.all(City.self).map(\.name), ["Porto"])
            try stack.change(id, City.self) { city, _ in city.name = "Oporto" }
            try expectEqual(context.all(City.self).map(\.name), ["Oporto"])
            try stack.change(id, City.self) { city, _ in city.name = "Cale" }
            try expectEqual(context.existingObject(with: id).value(forKey: "name") as? String, "Cale")
            try stack.change(id, City.self) { city, _ in city.name = "Portus Cale" }
            expectEqual(context.object(with: id).value(forKey: "name") as? String, "Portus Cale")
            try stack.change(id, City.self) { city, _ in city.name = "Invicta" }
            let bare = NSFetchRequest<City>(entityName: "City")
            bare.includesPropertyValues = false
            try expectEqual(context.fetch(bare).map(\.name), ["Invicta"])
            try stack.change(id, City.self) { city, _ in city.name = "Portus Cale" }
            let held = try context.get(id, City.self)
            expectEqual(held.name, "Portus Cale")
            try stack.change(id, City.self) { city, _ in city.name = "Porto" }
            try expect(
                context.all(City.self).map(\.name) == ["Portus Cale"],
                "CS-72: a refetch leaves what is held alone"
            )
            let request = NSFetchRequest<City>(entityName: "City")
            request.shouldRefreshRefetchedObjects = true
            try expectEqual(context.fetch(request).map(\.name), ["Porto"])
        }
    }

    @Test func `objects that outlive their context still know their IDs`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity()
        var context: NSManagedObjectContext? = stack.context()
        let held = try require(
            try context?.performAndWait { try context?.fetch(NSFetchRequest<City>(entityName: "City")).first }
        )
        let new = try require(context.map { context in context.performAndWait { City(context: context) } })
        context = nil
        expectEqual(held.managedObjectContext, nil)
        expect(held.objectID === id)
        expect(new.objectID.isTemporaryID)
    }

    @Test func `an object that outlives its context has the ID of the store that its store was migrated to`() throws {
        let stack = try Stack(.sqlite)
        let id = try stack.storeCity()
        var context: NSManagedObjectContext? = stack.context()
        let held = try require(
            try context?.performAndWait { try context?.fetch(NSFetchRequest<City>(entityName: "City")).first }
        )
        context = nil
        let store = try require(stack.coordinator.persistentStores.first)
        let place = stack.folder.appendingPathComponent("other.sqlite")
        let migrated = try stack.coordinator.migratePersistentStore(store, to: place, options: nil, type: .sqlite)
        expect(held.objectID.persistentStore === migrated)
        expect(held.objectID !== id)
        try expectEqual(stack.read(held.objectID, City.self) { $0.name }, "Porto")
    }

    // MARK: - Insert and delete

    @Test(arguments: StoreKind.allCases)
    func `the sets of changed objects do not overlap`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let kept = try stack.storeCity("kept")
        let doomed = try stack.storeCity("doomed")
        let context = stack.context()
        try context.performAndWait {
            let updated = try context.get(kept, City.self)
            let deleted = try context.get(doomed, City.self)
            updated.population = 9
            deleted.population = 9
            context.delete(deleted)
            let inserted = City(context: context)
            inserted.name = "new"
            let never = City(context: context)
            context.delete(never)
            expectEqual(context.insertedObjects, [inserted])
            expectEqual(context.updatedObjects, [updated])
            expectEqual(context.deletedObjects, [deleted])
            expect(context.hasChanges)
            try context.save()
            expect(!context.hasChanges)
            expectEqual(never.managedObjectContext, nil)
            expectEqual(deleted.managedObjectContext, nil)
            expect(!deleted.isDeleted)
            expect(deleted.objectID === doomed)
            expectEqual(deleted.name, "doomed")
        }
        try expectEqual(stack.count("City"), 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `inserting a deleted object takes the deletion back`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            context.delete(city)
            context.processPendingChanges()
            context.insert(city)
            expect(!city.isDeleted)
            expect(context.deletedObjects.isEmpty)
            try context.save()
        }
        try expectEqual(stack.count("City"), 1)
    }

    // MARK: - Refresh, rollback, reset

    @Test(arguments: StoreKind.allCases)
    func `a refresh without merging drops the changes and makes a fault (CS-64)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 5)
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.population = 6
            context.refresh(city, mergeChanges: false)
            expect(city.isFault)
            expect(!city.isUpdated)
            expect(!context.hasChanges)
            expectEqual(city.population, 5)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a merging refresh keeps the edits on the newer row, and the save does not conflict (CS-65, 66)`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 5)
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.population = 6
            try stack.change(id, City.self) { city, _ in
                city.name = "Oporto"
                city.population = 100
            }
            context.refresh(city, mergeChanges: true)
            expectEqual(city.name, "Oporto")
            expectEqual(city.population, 6)
            expectEqual(city.changedValues().keys.sorted(), ["population"])
            try context.save()
        }
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "Oporto 6")
    }

    @Test(arguments: StoreKind.allCases)
    func `refreshAllObjects brings everything up to date and keeps unsaved work (CS-67)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let first = try stack.storeCity("first")
        let second = try stack.storeCity("second")
        let context = stack.context()
        try context.performAndWait {
            let one = try context.get(first, City.self)
            let two = try context.get(second, City.self)
            let new = City(context: context)
            new.name = "new"
            one.population = 50
            expectEqual(two.name, "second")
            try stack.change(first, City.self) { city, _ in city.name = "first!" }
            try stack.change(second, City.self) { city, _ in city.name = "second!" }
            context.refreshAllObjects()
            expectEqual(one.name, "first!")
            expectEqual(one.population, 50)
            expect(two.isFault)
            expectEqual(two.name, "second!")
            expectEqual(new.name, "new")
            expectEqual(context.insertedObjects, [new])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a rollback restores values, relationships and deleted objects (CS-69)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.name = "bar"
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
            let tag = Tag(context: context)
            tag.title = "quiet"
            venue.tags = [tag]
        }
        let context = stack.context()
        try context.performAndWait {
            context.undoManager = UndoManager()
            let venue = try context.get(id, Venue.self)
            let city = try require(venue.city)
            let tag = try require(venue.tags.first)
            venue.name = "changed"
            venue.tags = []
            venue.city = nil
            let new = Venue(context: context)
            new.city = city
            expectEqual(city.venues, [new])
            context.delete(tag)
            context.processPendingChanges()
            context.rollback()
            expect(!context.hasChanges)
            expectEqual(venue.name, "bar")
            expect(venue.city === city)
            expectEqual(venue.tags, [tag])
            expectEqual(city.venues, [venue])
            expect(!tag.isDeleted)
            expectEqual(new.managedObjectContext, nil)
            expectEqual(context.undoManager?.canUndo, false)
            try context.save()
        }
        try expectEqual(stack.count("Venue"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a reset forgets everything and says so (CS-68, 123)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        try context.performAndWait {
            context.undoManager = UndoManager()
            let city = try context.get(id, City.self)
            city.name = "changed"
            let new = City(context: context)
            context.processPendingChanges()
            let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
            context.reset()
            expectEqual(log.entries.count, 1)
            expect(log.entries[0].notification.userInfo?[NSInvalidatedAllObjectsKey] != nil)
            expect(context.registeredObjects.isEmpty)
            expect(!context.hasChanges)
            expectEqual(context.undoManager?.canUndo, false)
            expectEqual(city.managedObjectContext, nil)
            expect(city.objectID === id)
            expect(new.objectID.isTemporaryID)
            try expect(context.get(id, City.self) !== city)
            try expectEqual(context.get(id, City.self).name, "Porto")
        }
    }

    // MARK: - Stores that cannot be read

    @Test func `an object of a removed store reads empty and throws where it can (user demand 16)`() throws {
        let stack = try Stack(.memory)
        let id = try stack.storeCity("Porto")
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            try stack.coordinator.remove(try require(stack.coordinator.persistentStores.first))
            expect(city.name.isEmpty)
            expect(city.objectID === id)
            expectThrows(CocoaError.self) { try context.existingObject(with: id) }
            expectThrows(CocoaError.self) { try context.all(City.self) }
            expectEqual(id.persistentStore, nil)
        }
    }
}
