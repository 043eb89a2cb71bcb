import CoreData
import Expectations
import TestSupport
import Testing

/// A row that another context has deleted comes back if a policy prefers the values in memory.
///
/// The revived row must not count as the former one. `stress interleave` has found this.
@Suite("Rows that come back after they were deleted")
struct RevivedRowTests {
    /// A stored venue, and contexts that have read it.
    private struct Scene {
        let stack: Stack
        let id: NSManagedObjectID

        init(_ kind: StoreKind) throws {
            let stack = try Stack(kind)
            let context = stack.context()
            id = try context.performAndWait {
                let venue = Venue(context: context)
                venue.name = "first"
                try context.save()
                return venue.objectID
            }
            self.stack = stack
        }

        func set(_ name: String) throws {
            let context = stack.context()
            try context.performAndWait {
                try context.get(id, Venue.self).name = name
                try context.save()
            }
        }

        func delete() throws {
            let context = stack.context()
            try context.performAndWait {
                context.delete(try context.get(id, Venue.self))
                try context.save()
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save on a version before the deletion is a conflict, not a lost update`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let reviving = scene.stack.context()
        reviving.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
        try reviving.performAndWait { try reviving.get(scene.id, Venue.self).name = "revived" }
        try scene.set("second")
        // Counted from the version that the other context has read, this context has the version that the revived row
        // will get.
        let late = scene.stack.context()
        try late.performAndWait { try late.get(scene.id, Venue.self).price = 5 }
        try scene.delete()
        try reviving.performAndWait { try reviving.save() }
        try late.performAndWait {
            let conflicts = try late.versionConflictsOfSave()
            expect(conflicts.contains { $0.sourceObject.objectID == scene.id })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a context that had seen later versions shows the row that came back`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let reviving = scene.stack.context()
        reviving.mergePolicy = NSMergePolicy.overwrite
        try reviving.performAndWait { try reviving.get(scene.id, Venue.self).name = "revived" }
        for round in 0..<4 { try scene.set("later \(round)") }
        let watching = scene.stack.context()
        try watching.performAndWait {
            let venue = try watching.get(scene.id, Venue.self)
            expectEqual(venue.name, "later 3")
            try scene.delete()
            try reviving.performAndWait { try reviving.save() }
            watching.refresh(venue, mergeChanges: false)
            expectEqual(venue.name, "revived")
        }
    }

    /// Deletes the venue, has the contexts merge the deletion, and brings the venue back.
    private func deleteAndRevive(_ scene: Scene, _ contexts: [NSManagedObjectContext]) throws {
        let reviving = scene.stack.context()
        reviving.mergePolicy = NSMergePolicy.overwrite
        try reviving.performAndWait { try reviving.get(scene.id, Venue.self).name = "revived" }
        try scene.delete()
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSManagedObjectContext.NotificationKey.deletedObjectIDs.rawValue: [scene.id]],
            into: contexts
        )
        try reviving.performAndWait { try reviving.save() }
    }

    @Test(arguments: StoreKind.allCases)
    func `existingObject finds the row that came back, in a context that has merged its deletion`(
        _ kind: StoreKind
    ) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        try context.performAndWait {
            let venue = try context.get(scene.id, Venue.self)
            expectEqual(venue.name, "first")
            try deleteAndRevive(scene, [context])
            expect(venue.isDeleted)
            let found = try context.existingObject(with: scene.id)
            expect(found === venue)
            expect(!venue.isDeleted)
            expectEqual(venue.name, "revived")
            expect(!context.hasChanges)
            venue.name = "changed again"
            expectEqual(context.updatedObjects, [venue])
            try context.save()
        }
        let reader = scene.stack.context()
        let stored = try reader.performAndWait { try reader.get(scene.id, Venue.self).name }
        expectEqual(stored, "changed again")
    }

    @Test(arguments: StoreKind.allCases, ["whole", "in batches", "in part", "without values", "one by one"])
    func `a fetch finds the row that came back, in a context that has merged its deletion`(
        _ kind: StoreKind,
        _ form: String
    ) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        try context.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.fetchBatchSize = form == "in batches" ? 2 : 0
            request.propertiesToFetch = form == "in part" ? ["name"] : nil
            request.includesPropertyValues = form != "without values"
            let venue = try context.get(scene.id, Venue.self)
            expectEqual(venue.name, "first")
            try deleteAndRevive(scene, [context])
            expect(venue.isDeleted)
            try expectEqual(
                form == "one by one" ? Array(context.batchedResults(for: request)) : context.fetch(request),
                [venue]
            )
            expect(!venue.isDeleted && venue.name == "revived")
            expect(!context.hasChanges)
            try scene.delete()
            try expectEqual(context.fetch(request), [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `existingObject throws as long as the row is not back`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        try context.performAndWait {
            let venue = try context.get(scene.id, Venue.self)
            expectEqual(venue.name, "first")
            try scene.delete()
            NSManagedObjectContext.mergeChanges(
                fromRemoteContextSave: [NSManagedObjectContext.NotificationKey.deletedObjectIDs.rawValue: [scene.id]],
                into: [context]
            )
            let error = expectThrows(CocoaError.self) { try context.existingObject(with: scene.id) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
            expect(venue.isDeleted)
            expectEqual(venue.name, "first")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `existingObject of a child finds the row once the parent has it again`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let parent = scene.stack.context()
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        let venue = try child.performAndWait {
            let venue = try child.get(scene.id, Venue.self)
            expectEqual(venue.name, "first")
            return venue
        }
        try deleteAndRevive(scene, [parent, child])
        let known = try parent.performAndWait { try parent.all(Venue.self).map(\.name) }
        expectEqual(known, ["revived"])
        try child.performAndWait {
            expect(venue.isDeleted)
            let found = try child.existingObject(with: scene.id)
            expect(found === venue)
            expect(!venue.isDeleted)
            expectEqual(venue.name, "revived")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an object whose row was missing, and that is not taken for deleted, is read again`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        context.shouldDeleteInaccessibleFaults = false
        try context.performAndWait {
            let venue = try context.get(scene.id, Venue.self)
            context.refresh(venue, mergeChanges: false)
            let reviving = scene.stack.context()
            reviving.mergePolicy = NSMergePolicy.overwrite
            try reviving.performAndWait { try reviving.get(scene.id, Venue.self).name = "revived" }
            try scene.delete()
            expectEqual(venue.name, nil)
            try reviving.performAndWait { try reviving.save() }
            let found = try context.existingObject(with: scene.id)
            expect(found === venue)
            expectEqual(venue.name, "revived")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships of what came back are those that are stored`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let writer = stack.context()
        let id = try writer.performAndWait {
            let city = City(context: writer)
            city.name = "first"
            let venue = Venue(context: writer)
            venue.name = "member"
            venue.city = city
            try writer.save()
            return city.objectID
        }
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.venues.count, 1)
            let reviving = stack.context()
            reviving.mergePolicy = NSMergePolicy.overwrite
            try reviving.performAndWait { try reviving.get(id, City.self).name = "revived" }
            try writer.performAndWait {
                let city = try writer.get(id, City.self)
                for venue in city.venues { venue.city = nil }
                writer.delete(city)
                try writer.save()
            }
            NSManagedObjectContext.mergeChanges(
                fromRemoteContextSave: [NSManagedObjectContext.NotificationKey.deletedObjectIDs.rawValue: [id]],
                into: [context]
            )
            try reviving.performAndWait { try reviving.save() }
            let found = try context.existingObject(with: id)
            expect(found === city)
            expectEqual(city.name, "revived")
            expect(city.venues.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `a fault whose deletion was merged comes back like any other`(_ kind: StoreKind, _ isFetched: Bool) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        try context.performAndWait {
            let venue = try context.get(scene.id, Venue.self)
            try deleteAndRevive(scene, [context])
            expect(venue.isFault)
            expect(venue.isDeleted)
            let found = isFetched ? try context.all(Venue.self).first : try context.existingObject(with: scene.id)
            expect(found === venue)
            expect(!venue.isDeleted)
            expectEqual(venue.name, "revived")
            venue.name = "changed again"
            expectEqual(context.updatedObjects, [venue])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `reading a fault whose deletion was merged brings it back`(_ kind: StoreKind) throws {
        let scene = try Scene(kind)
        let context = scene.stack.context()
        try context.performAndWait {
            let venue = try context.get(scene.id, Venue.self)
            try deleteAndRevive(scene, [context])
            expect(venue.isDeleted)
            expectEqual(venue.name, "revived")
            expect(!venue.isDeleted)
        }
    }

    //     A: deletes, saves                 (is reported late)
    //     B:                brings it back, saves
    @Test(arguments: StoreKind.allCases, [true, false])
    func `a deletion that is reported late does not take out the row that has come back, cached or not`(
        _ kind: StoreKind,
        _ isCached: Bool
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let (a, b, c) = (stack.context("A"), stack.context(.objectTrump, "B"), stack.context("C"))
        let log = NotificationLog([NSManagedObjectContext.didSaveObjectsNotification], of: a)
        let city = try c.performAndWait {
            let city = try c.get(id, City.self)
            expectEqual(city.name, "old")
            return city
        }
        try b.performAndWait { try b.get(id, City.self).name = "back" }
        try a.performAndWait {
            a.delete(try a.get(id, City.self))
            try a.save()
        }
        try b.saveAndWait()
        if !isCached { stack.coordinator.openStores.forEach { $0.cache.removeAll() } }
        let late = try require(log.entries.first)
        c.performAndWait {
            c.mergeChanges(fromContextDidSave: late.notification)
            expect(!city.isDeleted && city.name == "back")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a member that comes back is the last of its owner's`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let photos = Shared<[NSManagedObjectID]>([])
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        try stack.read(id, Venue.self) { venue in photos.update { $0 = venue.photos.map(\.objectID) } }
        let reviving = stack.context(.objectTrump)
        try reviving.performAndWait {
            // The order is not loaded here.
            try reviving.get(photos.current[0], Photo.self).title = "back"
            try stack.delete(photos.current[0])
            try reviving.save()
        }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.map(\.title) }, ["b", "c", "back"])
    }
}
