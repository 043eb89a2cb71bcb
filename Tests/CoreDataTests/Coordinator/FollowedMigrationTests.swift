import CoreData
import Expectations
import TestSupport
import Testing

/// A stack whose store moves elsewhere while contexts are in use.
private final class Move: Sendable {
    let stack: Stack
    private let to: StoreKind

    init(_ from: StoreKind, _ to: StoreKind) throws {
        stack = try Stack(from)
        self.to = to
    }

    @discardableResult
    func migrate(_ name: String = "moved.sqlite") throws -> NSPersistentStore {
        let store = try require(stack.coordinator.persistentStores.first)
        let target = stack.folder.appendingPathComponent(name)
        return try stack.coordinator.migratePersistentStore(store, to: target, type: to.type)
    }

    /// The names of the cities that are stored.
    func cities() throws -> [String] {
        let context = stack.context("reading")
        return try context.performAndWait { try context.all(City.self).map(\.name).sorted() }
    }
}

@Suite("Contexts that are in use while their store is migrated")
struct FollowedMigrationTests {
    private static let moves: [(StoreKind, StoreKind)] =
        StoreKind.isPostgreSQL
        ? [(.postgreSQL, .sqlite), (.sqlite, .postgreSQL), (.postgreSQL, .postgreSQL)]
        : [(.sqlite, .sqlite), (.sqlite, .memory), (.memory, .sqlite)]

    @Test(arguments: moves)
    func `a deletion in the new store is merged with a change in the old one that still waits`(
        from: StoreKind,
        to: StoreKind
    ) throws {
        let move = try Move(from, to)
        let id = try move.stack.storeCity("Porto")
        let follower = move.stack.context("follower")
        let writer = move.stack.context("writer")
        follower.automaticallyMergesChangesFromParent = true
        var city: City?
        try follower.performAndWait {
            city = try follower.get(id, City.self)
            expectEqual(city?.name, "Porto")
        }

        // Messages wait as long as the follower's queue is busy.
        try follower.performAndWait {
            try writer.performAndWait {
                try writer.get(id, City.self).population = 7
                try writer.save()
            }
            try move.migrate()
            try writer.performAndWait {
                // After a batch the row cache may lack rows, so a merge looks a deleted row up in its store.
                let batch = NSBatchUpdateRequest(entityName: "City")
                batch.propertiesToUpdate = ["population": 8]
                try writer.execute(batch)
                writer.delete(try writer.get(id, City.self))
                try writer.save()
            }
        }

        follower.performAndWait {
            expectEqual(city?.isDeleted, true)
            expect(!follower.hasChanges)
        }
    }

    @Test(arguments: moves)
    func `objects that are read, faults, changed, deleted or new go on in the new store`(
        from: StoreKind,
        to: StoreKind
    ) throws {
        let move = try Move(from, to)
        let ids = try ["read", "fault", "changed", "deleted"].map { try move.stack.storeCity($0) }
        let context = move.stack.context()
        var objects: [City] = []
        var reserved: NSManagedObjectID?
        try context.performAndWait {
            objects = try ids.map { try context.get($0, City.self) }
            expectEqual(objects[0].name, "read")
            objects[2].population = 7
            context.delete(objects[3])
            for name in ["with a permanent ID", "new"] {
                let city = City(context: context)
                city.name = name
                objects.append(city)
            }
            try context.obtainPermanentIDs(for: [objects[4]])
            reserved = objects[4].objectID
            let venue = Venue(context: context)
            venue.city = objects[2]
        }

        let store = try move.migrate()

        try context.performAndWait {
            expect(objects[1].isFault)
            expectEqual(objects[1].name, "fault")
            expectEqual(objects[0].name, "read")
            for (id, object) in zip(ids, objects) {
                expect(context.object(with: id) === object)
                expect(object.objectID != id)
                expectEqual(object.objectID.persistentStore, store)
                expectEqual(
                    move.stack.coordinator.managedObjectID(forURIRepresentation: id.uriRepresentation()),
                    object.objectID
                )
            }
            try expect(context.existingObject(with: ids[0]) === objects[0])
            try context.save()
            let known = try require(reserved)
            expect(context.object(with: known) === objects[4])
        }
        try expectEqual(move.cities(), ["changed", "fault", "new", "read", "with a permanent ID"])
        try expectEqual(move.stack.read(ids[2], City.self) { $0.population }, 7)
        try expectEqual(move.stack.read(ids[2], City.self) { $0.venues.count }, 1)
        let missing = expectThrows(CocoaError.self) { try move.stack.read(ids[3], City.self) { $0.name } }
        expectEqual(missing?.code, .managedObjectReferentialIntegrity)
    }

    @Test(arguments: moves)
    func `the new store has all that the old one had, members in their order too`(
        from: StoreKind,
        to: StoreKind
    ) throws {
        let move = try Move(from, to)
        let context = move.stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            venue.name = "v"
            let photos = (0..<4).map { number in
                let photo = Photo(context: context)
                photo.title = "\(number)"
                return photo
            }
            // Neither the order of the keys nor its reverse.
            venue.photos = [2, 0, 3, 1].map { photos[$0] }
            venue.map = Data(repeating: 7, count: 200_000)
            let bar = Bar(context: context)
            bar.name = "b"
            let user = User(context: context)
            user.email = "e"
            user.favourites = [bar, venue]
            let other = User(context: context)
            other.email = "f"
            (other.favourites, other.boss) = ([venue, bar], user)
            venue.tags = [TestSupport.Tag(context: context)]
            try context.save()
        }
        let before = try move.stack.state()

        try move.migrate()

        try expectEqual(move.stack.state().differences(from: before, ignoring: StoreState.identity), [])
        // The order can be changed there, too.
        try context.performAndWait {
            let venue = try require(try context.all(Venue.self).first { $0.name == "v" })
            expectEqual(venue.photos.map { $0.title ?? "" }, ["2", "0", "3", "1"])
            venue.photos.swapAt(0, 3)
            try context.save()
        }
        try expectEqual(
            move.stack.state().differences(from: before, ignoring: StoreState.identity),
            [
                "+ Venue v.photos -> [Photo 1, Photo 0, Photo 3, Photo 2]",
                "- Venue v.photos -> [Photo 2, Photo 0, Photo 3, Photo 1]",
            ]
        )
    }

    @Test(arguments: moves)
    func `the old file keeps what it had`(from: StoreKind, to: StoreKind) throws {
        guard from == .sqlite else { return }
        let move = try Move(from, to)
        let id = try move.stack.storeCity("Porto")
        let context = move.stack.context()
        try context.performAndWait { try context.get(id, City.self).name = "Rome" }
        try move.migrate()
        try context.performAndWait { try context.save() }
        try expectEqual(move.cities(), ["Rome"])
        let old = try move.stack.secondCoordinator()
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = old
        try reader.performAndWait { try expectEqual(reader.all(City.self).map(\.name), ["Porto"]) }
    }

    @Test(arguments: moves)
    func `a save conflicts with what others have saved before or after, and with nothing else`(
        from: StoreKind,
        to: StoreKind
    ) throws {
        let move = try Move(from, to)
        let ids = try ["before", "after", "never"].map { try move.stack.storeCity($0) }
        // Versions differ from row to row.
        try move.stack.change(ids[2], City.self) { city, _ in city.population = 2 }
        let contexts = ids.map { _ in move.stack.context() }
        for (context, id) in zip(contexts, ids) {
            try context.performAndWait {
                // Held by its change.
                try context.get(id, City.self).population = 9
            }
        }
        try move.stack.change(ids[0], City.self) { city, _ in city.name = "other" }
        try move.migrate()
        try move.stack.change(ids[1], City.self) { city, _ in city.name = "other" }

        for context in contexts.prefix(2) {
            let error = expectThrows(CocoaError.self) { try context.performAndWait { try context.save() } }
            expectEqual(error?.code, .managedObjectMerge)
        }
        try contexts[2].performAndWait { try contexts[2].save() }
        contexts[1].performAndWait { contexts[1].mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
        try contexts[1].performAndWait { try contexts[1].save() }
        let populations = try ids.map { id in try move.stack.read(id, City.self) { $0.population } }
        expectEqual(populations, [1, 9, 9])
        try expectEqual(move.cities(), ["never", "other", "other"])
    }

    @Test(arguments: moves)
    func `children of a context go on as well`(from: StoreKind, to: StoreKind) throws {
        let move = try Move(from, to)
        let ids = try ["changed", "fault"].map { try move.stack.storeCity($0) }
        let parent = move.stack.context("parent")
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        var held: [City] = []
        try child.performAndWait {
            held = try ids.map { try child.get($0, City.self) }
            held[0].name = "changed in the child"
            let city = City(context: child)
            city.name = "new in the child"
        }

        try move.migrate()

        try child.performAndWait {
            expectEqual(held[1].name, "fault")
            expect(child.object(with: ids[1]) === held[1])
            try child.save()
        }
        try parent.performAndWait { try parent.save() }
        try expectEqual(move.cities(), ["changed in the child", "fault", "new in the child"])
    }

    @Test(arguments: moves)
    func `relationships that were not read yet, and predicates with captured objects, read the new store`(
        from: StoreKind,
        to: StoreKind
    ) throws {
        let move = try Move(from, to)
        let id = try move.stack.store(City.self) { city, context in
            city.name = "Porto"
            for name in ["a", "b"] {
                let venue = Venue(context: context)
                venue.name = name
                venue.city = city
                for title in ["2", "1", "3"] {
                    let photo = Photo(context: context)
                    photo.title = title
                    venue.photos.append(photo)
                }
            }
        }
        let context = move.stack.context()
        var city: City?
        try context.performAndWait {
            city = try context.get(id, City.self)
            expectEqual(city?.name, "Porto")
        }
        try move.migrate()
        try context.performAndWait {
            let porto = try require(city)
            expectEqual(porto.venues.compactMap(\.name).sorted(), ["a", "b"])
            expectEqual(porto.venues.first?.photos.compactMap(\.title), ["2", "1", "3"])
            for constant in [id, porto, porto.objectID] as [any CVarArg] {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = NSPredicate(format: "city == %@", constant)
                try expectEqual(context.count(for: request), 2)
            }
        }
    }

    @Test(arguments: moves)
    func `the key of a deleted object is not given to another one`(from: StoreKind, to: StoreKind) throws {
        let move = try Move(from, to)
        _ = try move.stack.storeCity("stays")
        let deleted = try move.stack.storeCity("goes")
        try move.stack.delete(deleted)
        try move.migrate()
        _ = try move.stack.storeCity("new")
        let error = expectThrows(CocoaError.self) { try move.stack.read(deleted, City.self) { $0.name } }
        expectEqual(error?.code, .managedObjectReferentialIntegrity)
        try expectEqual(move.cities(), ["new", "stays"])
    }

    @Test func `IDs lead on through several migrations`() throws {
        let move = try Move(.database, .sqlite)
        let id = try move.stack.storeCity("Porto")
        let uri = id.uriRepresentation()
        for name in ["first.sqlite", "second.sqlite"] { try move.migrate(name) }
        try expectEqual(move.stack.read(id, City.self) { $0.name }, "Porto")
        let found = try require(move.stack.coordinator.managedObjectID(forURIRepresentation: uri))
        expectEqual(found.persistentStore, move.stack.coordinator.persistentStores.first)
        try expectEqual(move.stack.read(found, City.self) { $0.name }, "Porto")
        // The properties of an ID never change.
        expectEqual(id.uriRepresentation(), uri)
    }

    @Test func `a pinned context reads nothing of the old store, and saves to the new one`() throws {
        let move = try Move(.database, .sqlite)
        let ids = try ["changed", "fault"].map { try move.stack.storeCity($0) }
        let (reading, saving) = (try move.stack.pinnedContext(), try move.stack.pinnedContext())
        try saving.performAndWait { try saving.get(ids[0], City.self).population = 5 }
        try move.migrate()
        let error = expectThrows(CocoaError.self) { try reading.performAndWait { try reading.all(City.self).count } }
        expectEqual(error?.code, .persistentStoreOperation)
        // A fault that cannot be read is no object without values.
        expectThrows(CocoaError.self) {
            try reading.performAndWait { try reading.get(ids[1], City.self).name }
        }
        try saving.performAndWait {
            try saving.save()
            try expectEqual(saving.get(ids[1], City.self).name, "fault")
        }
        try reading.performAndWait {
            try reading.setQueryGenerationFrom(.current)
            try expectEqual(reading.storedCityNames(), ["changed", "fault"])
        }
        try expectEqual(move.stack.read(ids[0], City.self) { $0.population }, 5)
    }

    @Test func `a place where a store has had objects before is refused`() throws {
        let move = try Move(.database, .sqlite)
        _ = try move.stack.storeCity("Porto")
        let other = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let target = move.stack.folder.appendingPathComponent("moved.sqlite")
        let store = try other.addPersistentStore(type: .sqlite, at: target)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = other
        try context.performAndWait {
            let city = City(context: context)
            city.name = "was here"
            try context.save()
            context.delete(city)
            try context.save()
        }
        try other.remove(store)

        let error = expectThrows(CocoaError.self) { try move.migrate() }
        expectEqual(error?.code, .persistentStoreOperation)
        try expectEqual(move.cities(), ["Porto"])
        _ = try move.stack.storeCity("Rome")
        try move.stack.coordinator.destroyPersistentStore(at: target, type: .sqlite)
        try move.migrate()
        try expectEqual(move.cities(), ["Porto", "Rome"])
    }

    @Test(.timeLimit(.minutes(20)), arguments: [StoreKind.database, .memory])
    func `contexts that read and save while a store moves lose nothing, and read nothing that is not there`(
        _ kind: StoreKind
    ) throws {
        let move = try Move(kind, .sqlite)
        let id = try move.stack.storeCity("Porto")
        let count = 60
        let isDone = Shared(false)
        let saving = onThread {
            defer { isDone.update { $0 = true } }
            let context = move.stack.context("saving")
            for number in 0..<count {
                try context.performAndWait {
                    try context.get(id, City.self).population += 1
                    City(context: context).name = "city \(number)"
                    try context.save()
                }
            }
        }
        let reading = onThread {
            while !isDone.current {
                let context = move.stack.context("reading")
                try context.performAndWait {
                    try expectEqual(context.get(id, City.self).name, "Porto")
                    try expect(context.all(City.self).contains { $0.name == "Porto" })
                    let request = NSFetchRequest<City>(entityName: "City")
                    try expect(context.count(for: request) > 0)
                }
            }
        }
        for number in 0..<3 { try move.migrate("moved-\(number).sqlite") }
        try saving.join()
        try reading.join()
        try expectEqual(move.cities().count, count + 1)
        try expectEqual(move.stack.read(id, City.self) { $0.population }, Int64(count + 1))
    }
}
