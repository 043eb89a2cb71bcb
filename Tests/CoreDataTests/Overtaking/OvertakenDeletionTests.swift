import CoreData
import Expectations
import TestSupport
import Testing

/// A message of a deletion may come before that of the insertion.
///
/// A context that merges both must not keep a ghost.
@Suite("Deletions that overtake what they delete")
struct OvertakenDeletionTests {
    /// The objects that a context showed as inserted, and still shows after all merges.
    private func ghosts(_ log: NotificationLog) -> Set<NSManagedObject> {
        log.entries.reduce(into: []) { $0.formUnion($1.objects(NSInsertedObjectsKey)) }
    }

    @Test(arguments: StoreKind.allCases)
    func `one that is followed overtakes an insertion that is merged on request`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (writer, view) = (stack.context("writer"), stack.context("view"))
        view.automaticallyMergesChangesFromParent = true
        let id = await writer.perform {
            let city = City(context: writer)
            city.name = "short-lived"
            return city.objectID
        }
        let gate = Gate()
        let busy = Task {
            try await view.perform {
                gate.stopOnce()
                // The row is in the store, and its insertion waits to be merged here.
                let city = try view.get(id, City.self)
                expectEqual(city.name, "short-lived")
                try stack.delete(id)
                return UncheckedSendable(city)
            }
        }
        await gate.arrival()
        let observation = UncheckedSendable(whenPosted(.NSManagedObjectContextDidSave, by: writer) { gate.open() })
        try await writer.save(mergingInto: [view])
        observation.value.remove()
        let city = try await busy.value
        try await view.perform {
            expect(city.value.isDeleted)
            let all = try view.all(City.self)
            expect(all.isEmpty)
            expect(!view.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `one that is reported without its owner takes the object out of loaded relationships`(
        _ kind: StoreKind,
        isRead: Bool
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            let city = City(context: context)
            (city.name, venue.name, venue.city) = ("Porto", "bar", city)
        }
        let context = stack.context()
        try context.performAndWait {
            let city = try require(try context.all(City.self).first)
            let venue = try require(city.venues.first)
            if isRead { expectEqual(venue.name, "bar") }
            try stack.delete(id)
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectsKey: [id]], into: [context])
            context.processPendingChanges()
            expect(city.venues.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `one by a did-save handler of the insertion's save`(_ kind: StoreKind, isFetched: Bool) throws {
        let stack = try Stack(kind)
        let (writer, view) = (stack.context("writer"), stack.context("view"))
        view.automaticallyMergesChangesFromParent = true
        let log = NotificationLog(.ofContexts, of: view)
        var city: City?
        try view.performAndWait {
            try writer.performAndWait {
                let new = City(context: writer)
                new.name = "short-lived"
                let observation = whenPosted(.NSManagedObjectContextDidSave, by: writer) {
                    #expect(throws: Never.self) {
                        if isFetched {
                            city = try view.performAndWait { try view.all(City.self).first }
                            expectEqual(city?.name, "short-lived")
                        }
                        try stack.delete(new.objectID)
                    }
                }
                try writer.save()
                observation.remove()
            }
        }
        view.performAndWait {
            expectEqual(city?.isDeleted, isFetched ? true : nil)
            expect(ghosts(log).isEmpty)
            expect(view.registeredObjects.allSatisfy { $0.isDeleted })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a handler that deletes what its context has just saved`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (writer, view) = (stack.context("writer"), stack.context("view"))
        view.automaticallyMergesChangesFromParent = true
        let log = NotificationLog(.ofContexts, of: view)
        var changes = writer.changes.makeAsyncIterator()
        var seen = view.changes.makeAsyncIterator()
        let id = try view.performAndWait {
            // While this block runs, the context cannot merge anything.
            try writer.performAndWait {
                let city = City(context: writer)
                city.name = "short-lived"
                let observation = whenPosted(.NSManagedObjectContextDidSave, by: writer) {
                    guard !city.isDeleted, city.managedObjectContext != nil else { return }
                    writer.delete(city)
                    #expect(throws: Never.self) { try writer.save() }
                }
                try writer.save()
                observation.remove()
                return city.objectID
            }
        }
        let change = try require(await changes.next())
        expect(change.deletedObjectIDs == [id] && change.insertedObjectIDs.isEmpty)
        await view.perform {
            expect(ghosts(log).isEmpty)
            expect(view.registeredObjects.isEmpty)
        }
        let merged = try require(await seen.next())
        expect(merged.deletedObjectIDs == [id] && merged.insertedObjectIDs.isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `siblings in a tree`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let parent = stack.context("parent")
        let (writer, other, reader) = (parent.child("writer"), parent.child("other"), parent.child("reader"))
        reader.automaticallyMergesChangesFromParent = true
        let log = NotificationLog(.ofContexts, of: reader)
        let id = writer.insertCity("short-lived")
        var met: City?
        try reader.performAndWait {
            try writer.performAndWait {
                let observation = whenPosted(.NSManagedObjectContextDidSave, by: writer) {
                    #expect(throws: Never.self) {
                        met = try reader.performAndWait { try typed(reader.existingObject(with: id)) }
                        try other.performAndWait {
                            other.delete(try other.existingObject(with: id))
                            try other.save()
                        }
                    }
                }
                try writer.save()
                observation.remove()
            }
        }
        try reader.performAndWait {
            expectEqual(met?.isDeleted, true)
            expect(ghosts(log).isEmpty)
            let all = try reader.all(City.self)
            expect(all.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `messages of a row that is gone are those of a deletion, and spare unsaved edits`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try ["loaded", "edited", "fault", "unknown"].map { try stack.storeCity($0) }
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        let cities = try context.performAndWait {
            let cities = try ids.prefix(3).map { try context.get($0, City.self) }
            expectEqual(cities[0].name, "loaded")
            cities[1].population = 7
            return cities
        }
        for id in ids { try stack.delete(id) }
        log.clear()
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [
                NSUpdatedObjectIDsKey: [ids[0], ids[1]], NSInsertedObjectIDsKey: [ids[2], ids[3]],
            ],
            into: [context]
        )
        try context.performAndWait {
            expect(cities[0].isDeleted && cities[0].name == "loaded")
            expect(cities[1].isUpdated && !cities[1].isDeleted && cities[1].population == 7)
            expect(cities[2].isDeleted)
            expectEqual(context.registeredObject(for: ids[3]), nil)
            expect(ghosts(log).isEmpty)
            let merged = try require(
                log.entries.first { $0.name == .NSManagedObjectContextDidMergeChangesObjectIDs }
            )
            expect(merged.ids(NSInsertedObjectIDsKey).isEmpty)
            expect(merged.ids(NSDeletedObjectIDsKey).isSuperset(of: [ids[0], ids[2], ids[3]]))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a row that is deleted and back is no deletion, in any order of the messages`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let (winner, view) = (stack.context("winner"), stack.context("view"))
        view.automaticallyMergesChangesFromParent = true
        winner.mergePolicy = NSMergePolicy.overwrite
        let city = try view.performAndWait {
            let city = try view.get(id, City.self)
            expectEqual(city.name, "old")
            try winner.performAndWait { try winner.get(id, City.self).name = "back" }
            try stack.delete(id)
            try winner.performAndWait { try winner.save() }
            return city
        }
        view.performAndWait { expect(city.name == "back" && !city.isDeleted) }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an object that is released after its deletion was merged does not come back in loaded relationships`(
        _ kind: StoreKind,
        isRead: Bool
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            let city = City(context: context)
            (city.name, venue.name, venue.city) = ("Porto", "bar", city)
        }
        let context = stack.context()
        let city = try context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.relationshipKeyPathsForPrefetching = ["venues"]
            let city = try require(try context.fetch(request).first)
            expectEqual(city.name, "Porto")
            // The object is held until its deletion is merged, and no longer.
            let venue = try context.get(id, Venue.self)
            if isRead { expectEqual(venue.name, "bar") } else { context.refresh(venue, mergeChanges: false) }
            try stack.delete(id)
            NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectsKey: [id]], into: [context])
            expect(venue.isDeleted)
            return UncheckedSendable(city)
        }
        context.performAndWait { expect(city.value.venues.isEmpty) }
    }

    // Here the row cache shows that the row is back. On a server it does not, since other processes may change rows.
    @Test(arguments: StoreKind.allCases.filter { $0 != .postgreSQL })
    func `a deletion that is reported again after the row came back shows it`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let (winner, loser, view) = (stack.context("winner"), stack.context("loser"), stack.context("view"))
        winner.mergePolicy = NSMergePolicy.overwrite
        let log = NotificationLog([.NSManagedObjectContextDidSave], of: loser)
        try view.performAndWait {
            let city = try view.get(id, City.self)
            expectEqual(city.name, "old")
            try winner.edit(id, City.self) { $0.name = "back" }
            try loser.performAndWait {
                loser.delete(try loser.get(id, City.self))
                try loser.save()
            }
            let deletion = try require(log.entries.first).notification
            view.mergeChanges(fromContextDidSave: deletion)
            expect(city.isDeleted)
            try winner.saveAndWait()
            view.mergeChanges(fromContextDidSave: deletion)
            expect(city.name == "back" && !city.isDeleted)
            try expectEqual(view.all(City.self), [city])
        }
    }
}
