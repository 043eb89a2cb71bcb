import CoreData
import Expectations
import TestSupport
import Testing

@Suite("What is read while other contexts save, delete and merge the same rows")
struct NeighbourReadingTests {
    private func request<Object: NSManagedObject>(_ type: Object.Type, _ format: String) -> NSFetchRequest<Object> {
        let request = NSFetchRequest<Object>(managedClass: Object.self)
        request.predicate = NSPredicate(format: format)
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `a refetch leaves what is loaded unless it should not, and a reset forgets everything (CS-63, 68, 72, 123)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { _, context, _, venueID in
            let venue = try context.get(venueID, Venue.self)
            let visits = venue.visits
            expect(venue.hasFault(forRelationshipNamed: "photos"))
            expect(venue.photos.count == 2 && !venue.hasFault(forRelationshipNamed: "photos"))
            let request = request(Venue.self, "name == 'own'")
            try expectEqual(context.fetch(request), [venue])
            expectEqual(venue.visits, visits)
            venue.seats = 9
            request.shouldRefreshRefetchedObjects = true
            try expectEqual(context.fetch(request), [venue])
            expect(venue.visits >= visits && venue.seats == 9 && venue.isUpdated)
            let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
            context.reset()
            expect(log.entries.last?.notification.userInfo?[NSInvalidatedAllObjectsKey] != nil)
            expect(!context.hasChanges && context.registeredObjects.isEmpty && venue.managedObjectContext == nil)
            try expect(context.get(venueID, Venue.self).visits >= visits)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fault is a row, or deleted and empty, whatever becomes of its row meanwhile (CS-73)`(_ kind: StoreKind)
        throws
    {
        try Neighbours.among(kind) { _, context, _, _ in
            let ids = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
            ids.resultType = .managedObjectIDResultType
            for id in try context.fetch(ids) {
                let venue = try context.get(id, Venue.self)
                expect(venue.isFault)
                let name = venue.name
                expect(venue.isDeleted ? name == nil : name == "own" || name == "passing")
                // If the venue is deleted, then its relationships are empty too. Otherwise they are complete.
                let city = venue.city
                if venue.isDeleted {
                    expect(city == nil && venue.photos.isEmpty)
                } else {
                    expect(city != nil)
                }
            }
            expect(!context.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `windows, IDs, counts and batches fold in what is pending, and nothing twice (CS-140, 141, 142, 146)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { _, context, cityID, _ in
            let added = ["a", "b"].map { name in
                let city = City(context: context)
                city.name = "added " + name
                return city
            }
            let request = request(City.self, "name == 'own' OR name BEGINSWITH 'added'")
            let own = try context.get(cityID, City.self)
            try expectEqual(context.fetch(request), added + [own])
            try expectEqual(context.count(for: request), 3)
            request.fetchBatchSize = 1
            let batched = try context.fetch(request)
            expect(batched.count == 3 && batched.map(\.name) == ["added a", "added b", "own"])
            request.fetchBatchSize = 0
            request.fetchOffset = 1
            request.fetchLimit = 2
            try expectEqual(context.fetch(request), [added[1], own])
            let ids = NSFetchRequest<NSManagedObjectID>(entityName: "City")
            ids.predicate = request.predicate
            ids.sortDescriptors = request.sortDescriptors
            ids.resultType = .managedObjectIDResultType
            ids.fetchOffset = 1
            ids.fetchLimit = 2
            try expectEqual(context.fetch(ids), [added[1].objectID, cityID])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a merge reports what was saved, as IDs and as objects of its context (CS-118, 120, 127, 128, 133, 135)`(
        _ kind: StoreKind
    ) throws {
        try Neighbours.among(kind) { stack, context, cityID, _ in
            let writer = stack.context("writer")
            let written = NotificationLog(.ofContexts, of: writer)
            let newID = try writer.performAndWait {
                let city = City(context: writer)
                city.name = "merged"
                try writer.save()
                return city.objectID
            }
            expect(
                written.names == [
                    .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextWillSave,
                    .NSManagedObjectContextDidSave, .NSManagedObjectContextDidSaveObjectIDs,
                ]
            )
            let saved = try require(written.entries.last)
            expect(written.entries[1].notification.userInfo == nil && saved.ids(NSInsertedObjectIDsKey) == [newID])
            let city = try context.get(cityID, City.self)
            let before = city.population
            let log = NotificationLog(.ofContexts, of: context)
            context.mergeChanges(fromContextDidSave: saved.notification)
            expect(
                log.names == [
                    .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextDidMergeChangesObjectIDs,
                ]
            )
            let inserted = log.entries[0].objects(NSInsertedObjectsKey)
            expectEqual(inserted.map(\.objectID), [newID])
            expect(inserted.allSatisfy { $0.managedObjectContext === context && ($0 as? City)?.name == "merged" })
            expectEqual(log.entries[1].ids(NSInsertedObjectIDsKey), [newID])
            expect(!context.hasChanges)
            let uris = [cityID.uriRepresentation()]
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: uris], into: [context])
            expect(city.population >= before && !context.hasChanges)
            expectEqual(log.entries.last?.ids(NSUpdatedObjectIDsKey), [cityID])
            try writer.performAndWait {
                writer.delete(try writer.existingObject(with: newID))
                try writer.save()
            }
        }
    }
}
