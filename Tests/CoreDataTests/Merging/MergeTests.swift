import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

@Suite("Merging what other contexts have saved")
struct MergeTests {
    /// Saves `body`'s changes in another context and gives the did-save notification, of objects or of IDs.
    private func save(
        _ stack: Stack,
        _ name: Notification.Name = .NSManagedObjectContextDidSave,
        _ body: (NSManagedObjectContext) throws -> Void
    ) throws -> Notification {
        let other = stack.context("other")
        let log = NotificationLog([name], of: other)
        try other.performAndWait {
            try body(other)
            try other.save()
        }
        return try require(log.entries.first).notification
    }

    private static let names: [Notification.Name] = [
        .NSManagedObjectContextDidSave, .NSManagedObjectContextDidSaveObjectIDs,
    ]

    @Test(arguments: StoreKind.allCases, names)
    func `a merged insertion is reachable, and is reported as an object and by ID (CS-127, 128, 135)`(
        _ kind: StoreKind,
        _ name: Notification.Name
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        let saved = try save(stack, name) { City(context: $0).name = "new" }
        context.performAndWait {
            context.mergeChanges(fromContextDidSave: saved)
            expect(
                log.names == [
                    .NSManagedObjectContextObjectsDidChange, .NSManagedObjectContextDidMergeChangesObjectIDs,
                ]
            )
            let inserted = log.entries[0].objects(NSInsertedObjectsKey)
            expectEqual(inserted.count, 1)
            let city = inserted.first as? City
            expect(city?.isFault == true && city?.managedObjectContext === context)
            expectEqual(city?.name, "new")
            expectEqual(log.entries[1].ids(NSInsertedObjectIDsKey), Set(inserted.map(\.objectID)))
            // CS-132: the merge leaves no changes.
            expect(!context.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases, names)
    func `a merged update refreshes what is registered and keeps unsaved edits (CS-129, 130, 132)`(
        _ kind: StoreKind,
        _ name: Notification.Name
    ) throws {
        let stack = try Stack(kind)
        let ids = try ["edited", "read", "fault", "unknown"].map { try stack.storeCity($0) }
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        try context.performAndWait {
            let cities = try ids.prefix(3).map { try context.get($0, City.self) }
            cities[0].population = 7
            _ = cities[1].name
            context.processPendingChanges()
            log.clear()
            let saved = try save(stack, name) { other in
                for id in ids {
                    let city = try other.get(id, City.self)
                    city.name += "!"
                    city.population = 9
                }
            }
            context.mergeChanges(fromContextDidSave: saved)
            expect(cities[2].isFault)
            expectEqual(context.registeredObject(for: ids[3]), nil)
            expectEqual(cities.map(\.name), ["edited!", "read!", "fault!"])
            expectEqual(cities.map(\.population), [7, 9, 9])
            expectEqual(context.updatedObjects, [cities[0]])
            // Objects that are known only as faults count as changed: user demand 14.
            expectEqual(log.entries[0].objects(NSRefreshedObjectsKey), [cities[0], cities[1], cities[2]])
            expectEqual(log.entries[1].ids(NSUpdatedObjectIDsKey), Set(ids))
            // The edit belongs to the merged version, so the save meets no conflict.
            try context.save()
        }
        try expectEqual(stack.read(ids[0], City.self) { "\($0.name) \($0.population)" }, "edited! 7")
    }

    @Test(arguments: StoreKind.allCases, names)
    func `a merged deletion marks what is registered, which stays readable while no fetch finds it (CS-131)`(
        _ kind: StoreKind,
        _ name: Notification.Name
    ) throws {
        let stack = try Stack(kind)
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.name = "bar"
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
            venue.tags = [Tag(context: context)]
        }
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        try context.performAndWait {
            let venue = try context.get(venueID, Venue.self)
            let city = try require(venue.city)
            let tag = try require(venue.tags.first)
            expect(city.venues == [venue] && tag.venues == [venue])
            let saved = try save(stack, name) { $0.delete($0.object(with: venueID)) }
            context.mergeChanges(fromContextDidSave: saved)
            expect(venue.isDeleted && venue.name == "bar")
            expect(context.registeredObject(for: venueID) === venue)
            expectEqual(log.entries[0].objects(NSDeletedObjectsKey), [venue])
            try expect(context.all(Venue.self).isEmpty)
            expect(city.venues.isEmpty && tag.venues.isEmpty)
            // CS-132: the deletion leaves nothing to save.
            expect(!context.hasChanges && context.deletedObjects.isEmpty)
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `relationships that others have changed follow, on both sides`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (fromID, toID) = (try stack.storeCity("from"), try stack.storeCity("to"))
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: fromID) as? City
            venue.photos = ["a", "b"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(venueID, Venue.self)
            let (from, to) = (try context.get(fromID, City.self), try context.get(toID, City.self))
            expect(from.venues == [venue] && to.venues.isEmpty && venue.photos.map(\.title) == ["a", "b"])
            // An unsaved member stays in the relationship.
            let own = Venue(context: context)
            own.city = to
            let saved = try save(stack) { other in
                let venue = try other.get(venueID, Venue.self)
                venue.city = try other.get(toID, City.self)
                venue.photos.reverse()
            }
            context.mergeChanges(fromContextDidSave: saved)
            expect(from.venues.isEmpty && to.venues == [venue, own] && venue.city === to)
            expectEqual(venue.photos.map(\.title), ["b", "a"])
            try context.save()
        }
        try expectEqual(stack.read(toID, City.self) { $0.venues.count }, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a row that was deleted and is back is no deletion, in whatever order the saves are merged`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.storeCity("phoenix")
        let (context, reviving) = (stack.context(), stack.context(.objectTrump))
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expectEqual(city.name, "phoenix")
            try reviving.performAndWait { try reviving.get(id, City.self).population = 8 }
            let deletion = try save(stack) { $0.delete($0.object(with: id)) }
            let log = NotificationLog([.NSManagedObjectContextDidSave], of: reviving)
            try reviving.performAndWait { try reviving.save() }
            context.mergeChanges(fromContextDidSave: try require(log.entries.first).notification)
            context.mergeChanges(fromContextDidSave: deletion)
            expect(!city.isDeleted && city.population == 8)
            try expectEqual(context.all(City.self), [city])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a handler of a merge may fetch and save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            _ = city.name
            var calls = 0
            let tokens = [
                Notification.Name.NSManagedObjectContextObjectsDidChange,
                .NSManagedObjectContextDidMergeChangesObjectIDs,
            ].map { name in
                whenPosted(name, by: context) {
                    calls += 1
                    #expect(throws: Never.self) { try context.all(City.self) }
                    guard city.population < 10 else { return }
                    city.population += 10
                    #expect(throws: Never.self) { try context.save() }
                }
            }
            let saved = try save(stack) { try $0.get(id, City.self).population = 3 }
            context.mergeChanges(fromContextDidSave: saved)
            tokens.forEach { $0.remove() }
            expect(calls >= 2)
            expectEqual(city.population, 13)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what was changed before a merge is a separate event`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            context.undoManager = UndoManager()
            city.population = 5
            let saved = try save(stack) { try $0.get(id, City.self).name = "merged" }
            context.mergeChanges(fromContextDidSave: saved)
            context.undo()
            expect(city.name == "merged" && city.population == 1)
            expect(!context.hasChanges)
        }
    }

    // MARK: - Changes from other coordinators

    /// The forms in which another coordinator's changes arrive.
    enum Form: String, CaseIterable, Sendable {
        case ids
        case uris
        case uriTexts
        case idSets

        func data(_ lists: [NSManagedObjectContext.NotificationKey: [NSManagedObjectID]]) -> [AnyHashable: Any] {
            var data: [AnyHashable: Any] = [:]
            for (key, ids) in lists {
                switch self {
                case .ids: data[key.rawValue] = ids
                case .uris: data[key.rawValue] = ids.map { $0.uriRepresentation() }
                case .uriTexts: data[key.rawValue] = ids.map { $0.uriRepresentation().absoluteString }
                case .idSets: data[key.rawValue] = Set(ids)
                }
            }
            return data
        }
    }

    @Test(arguments: Form.allCases, [true, false])
    func `changes of another coordinator come in by ID, into several contexts (CS-133, user demand 15)`(
        _ form: Form,
        _ usesObjectKeys: Bool
    ) throws {
        let stack = try Stack(.database)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let second = try stack.secondCoordinator()
        let contexts = [stack.context("first"), stack.context("second")]
        var cities: [[City]] = []
        for context in contexts {
            try context.performAndWait {
                let known = [try context.get(changedID, City.self), try context.get(deletedID, City.self)]
                expectEqual(known.map(\.name), ["changed", "deleted"])
                cities.append(known)
            }
        }
        let writer = NSManagedObjectContext(.privateQueue)
        writer.persistentStoreCoordinator = second
        let newURI = try writer.performAndWait {
            for city in try writer.all(City.self) {
                if city.name == "changed" { city.name = "theirs" } else { writer.delete(city) }
            }
            let city = City(context: writer)
            city.name = "new"
            try writer.save()
            return city.objectID.uriRepresentation()
        }
        let newID = try require(stack.coordinator.managedObjectID(forURIRepresentation: newURI))
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: form.data(
                usesObjectKeys
                    ? [.insertedObjects: [newID], .updatedObjects: [changedID], .deletedObjects: [deletedID]]
                    : [.insertedObjectIDs: [newID], .updatedObjectIDs: [changedID], .deletedObjectIDs: [deletedID]]
            ),
            into: contexts
        )
        for (context, known) in zip(contexts, cities) {
            context.performAndWait {
                expectEqual(known[0].name, "theirs")
                expect(known[1].isDeleted)
                expectEqual((context.registeredObject(for: newID) as? City)?.name, "new")
                expect(!context.hasChanges)
            }
        }
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs of unknown objects are left out (CS-133)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        let log = NotificationLog(.ofContexts, of: context)
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [
                NSUpdatedObjectIDsKey: ["x-coredata://NOWHERE/City/p1", "nonsense", 7, id] as [Any],
                "strange": [id],
                NSDeletedObjectsKey: "no list",
            ],
            into: [context]
        )
        expectEqual(log.entries.map { $0.ids(NSUpdatedObjectIDsKey) }, [[id]])
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [:], into: [context])
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectsKey: [id]], into: [])
        expectEqual(log.entries.count, 1)
    }

    @Test func `a did-save of another coordinator on the same file is merged, by ID`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("old")
        let second = try stack.secondCoordinator()
        let context = stack.context()
        let writer = NSManagedObjectContext(.privateQueue)
        writer.persistentStoreCoordinator = second
        let doomed = try stack.storeCity("doomed")
        let log = NotificationLog([.NSManagedObjectContextDidSave], of: writer)
        let merged = NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: context)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            let gone = try context.get(doomed, City.self)
            expectEqual(city.name, "old")
            try writer.performAndWait {
                for other in try writer.all(City.self) {
                    if other.name == "old" { other.name = "theirs" } else { writer.delete(other) }
                }
                City(context: writer).name = "new"
                try writer.save()
            }
            context.mergeChanges(fromContextDidSave: try require(log.entries.first).notification)
            expectEqual(city.name, "theirs")
            expect(gone.isDeleted || gone.managedObjectContext == nil)
        }
        // The notification has the IDs that the context's own coordinator gives.
        let known = try context.performAndWait { try Set(context.all(City.self).map(\.objectID)) }
        let entry = try require(merged.entries.first)
        expectEqual(entry.ids(NSInsertedObjectIDsKey).union(entry.ids(NSUpdatedObjectIDsKey)), known)
        expectEqual(entry.ids(NSDeletedObjectIDsKey), [doomed])
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fault whose members were prefetched shows those that are merged`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        let city = try context.performAndWait {
            let request = NSFetchRequest<City>(entityName: "City")
            request.relationshipKeyPathsForPrefetching = ["venues"]
            let city = try require(try context.fetch(request).first)
            expect(city.isFault)
            return city
        }
        try stack.change(id, City.self) { city, context in
            let venue = Venue(context: context)
            venue.name = "new"
            city.venues = [venue]
        }
        context.performAndWait { expectEqual(city.venues.map(\.name), ["new"]) }
    }

    // MARK: - Orders

    /// A venue with three photos, whose order this context and then another one has changed, and which this context
    /// has merged.
    private func reordered(_ stack: Stack) throws -> (NSManagedObjectContext, UncheckedSendable<Venue>) {
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        let context = stack.context()
        context.automaticallyMergesChangesFromParent = true
        let venue = try context.performAndWait {
            context.undoManager = UndoManager()
            let venue = try context.get(id, Venue.self)
            venue.photos.swapAt(0, 1)
            return UncheckedSendable(venue)
        }
        try stack.change(id, Venue.self) { venue, _ in venue.photos.reverse() }
        try context.performAndWait { try expectEqual(titles(venue.value), ["b", "a", "c"]) }
        return (context, venue)
    }

    private func titles(_ venue: Venue) throws -> [String] { venue.photos.map { $0.title ?? "nil" } }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an order that is set back after another one was merged is stored`(_ kind: StoreKind, _ isUndone: Bool) throws
    {
        let stack = try Stack(kind)
        let (context, kept) = try reordered(stack)
        let id = try context.performAndWait {
            let venue = kept.value
            if isUndone { context.undo() } else { venue.photos.swapAt(0, 1) }
            try expectEqual(titles(venue), ["a", "b", "c"])
            expect(context.hasChanges)
            try context.save()
            return venue.objectID
        }
        try expectEqual(stack.read(id, Venue.self, titles), ["a", "b", "c"])
        try expectEqual(stack.problems(), [])
    }

    @Test(arguments: StoreKind.allCases)
    func `an order that is set to the one that was merged is no change`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (context, kept) = try reordered(stack)
        try context.performAndWait {
            kept.value.photos.reverse()
            kept.value.photos.swapAt(1, 2)
            try expectEqual(titles(kept.value), ["c", "b", "a"])
            expect(!kept.value.hasPersistentChangedValues)
            try context.save()
            try expectEqual(titles(kept.value), ["c", "b", "a"])
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `an order stays on top of the one that was merged, also in a later conflict over something else`(
        _ kind: StoreKind,
        _ isRetried: Bool
    ) throws {
        let stack = try Stack(kind)
        let (context, kept) = try reordered(stack)
        let id = kept.value.objectID
        context.performAndWait {
            context.automaticallyMergesChangesFromParent = false
            context.mergePolicy = isRetried ? NSMergePolicy.error : NSMergePolicy.mergeByPropertyStoreTrump
        }
        try stack.change(id, Venue.self) { venue, _ in venue.name = "theirs" }
        try context.performAndWait {
            if isRetried { try context.save(retrying: 1) } else { try context.save() }
            try expectEqual(titles(kept.value), ["b", "a", "c"])
            expectEqual(kept.value.name, "theirs")
        }
        try expectEqual(stack.read(id, Venue.self, titles), ["b", "a", "c"])
        try expectEqual(stack.problems(), [])
    }
}
