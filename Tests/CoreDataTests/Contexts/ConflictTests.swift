import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

@Suite("Conflicts: their contents, and their resolution")
struct ConflictTests {
    // MARK: - Contents

    @Test(arguments: StoreKind.allCases)
    func `between a context and the row cache (CS-97, 100, 101, 103, 104)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity()
        let id = try stack.store(Venue.self) { venue, context in
            venue.name = "old"
            venue.city = context.object(with: cityID) as? City
            venue.tags = [Tag(context: context)]
        }
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.name = "mine"
            try stack.change(id, Venue.self) { venue, _ in venue.name = "theirs" }
            let conflicts = try context.versionConflictsOfSave()
            expectEqual(conflicts.count, 1)
            let conflict = try require(conflicts.first)
            expect(conflict.sourceObject === venue)
            expect(conflict.oldCount == 1 && conflict.newCount == 2)
            expectEqual(conflict.objectSnapshot?["name"] as? String, "old")
            expectEqual(conflict.cachedSnapshot?["name"] as? String, "theirs")
            expect(conflict.persistedSnapshot == nil)
            for snapshot in [conflict.objectSnapshot, conflict.cachedSnapshot] {
                expectEqual(snapshot?["city"] as? NSManagedObjectID, cityID)
                expect(snapshot?["rating"] is NSNull)
                expect(snapshot?["tags"] == nil && snapshot?["photos"] == nil)
            }
            expect(conflict.description.contains("differs in name"))
            expectEqual(venue.name, "mine")
        }
    }

    @Test func `between the row cache and the store, when another coordinator has written (CS-102)`() throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("old")
        let second = try stack.secondCoordinator()
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "mine"
            try second.change(id) { $0.name = "theirs" }
            let conflict = try require(try context.versionConflictsOfSave().first)
            expect(conflict.oldCount == 1 && conflict.newCount == 2)
            expectEqual(conflict.objectSnapshot?["name"] as? String, "old")
            expectEqual(conflict.cachedSnapshot?["name"] as? String, "old")
            expectEqual(conflict.persistedSnapshot?["name"] as? String, "theirs")
            // The conflict has made the newer row known here.
            context.refresh(city, mergeChanges: true)
            expectEqual(city.name, "mine")
            try context.save()
        }
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test(arguments: StoreKind.allCases)
    func `an error has all conflicts, and a made one has what it was made of (user demand 12)`(_ kind: StoreKind) throws
    {
        let stack = try Stack(kind)
        let ids = try (0..<5).map { try stack.storeCity("city \($0)") }
        let context = stack.context()
        try context.performAndWait {
            let cities = try ids.map { try context.get($0, City.self) }
            for city in cities { city.population = 10 }
            for id in ids.prefix(3) { try stack.change(id, City.self) { city, _ in city.population = 20 } }
            try stack.delete(ids[3])
            let conflicts = try context.versionConflictsOfSave()
            expectEqual(Set(conflicts.map(\.sourceObject.objectID)), Set(ids.prefix(4)))
            expectEqual(conflicts.filter { $0.newCount == 0 }.map(\.sourceObject), [cities[3]])
            let made = NSMergeConflict(
                source: cities[4],
                newVersion: 7,
                oldVersion: 6,
                cachedSnapshot: ["name": "x"],
                persistedSnapshot: nil
            )
            expect(made.sourceObject === cities[4] && made.newCount == 7 && made.oldCount == 6)
            expectEqual(made.cachedSnapshot?["name"] as? String, "x")
            expectEqual(made.objectSnapshot?["name"] as? String, "city 4")
        }
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `several conflicts of one save are all resolved`(_ kind: StoreKind, _ policy: Policy) throws {
        let stack = try Stack(kind)
        let ids = try (0..<6).map { try stack.storeCity("city \($0)") }
        let context = stack.context(policy)
        try context.performAndWait {
            for id in ids.prefix(5) { try context.get(id, City.self).population = 10 }
            context.delete(try context.get(ids[5], City.self))
            context.processPendingChanges()
            for id in ids.prefix(3) { try stack.change(id, City.self) { city, _ in city.population = 20 } }
            try stack.delete(ids[3])
            try stack.change(ids[5], City.self) { city, _ in city.population = 20 }
            City(context: context).name = "new"
            try context.save()
            expect(!context.hasChanges)
        }
        let reader = stack.context()
        let stored = try reader.performAndWait {
            try Dictionary(uniqueKeysWithValues: reader.all(City.self).map { ($0.name, $0.population) })
        }
        let expected: [String: Int64] =
            policy.memoryWins
            ? ["city 0": 10, "city 1": 10, "city 2": 10, "city 3": 10, "city 4": 10, "new": 0]
            : ["city 0": 20, "city 1": 20, "city 2": 20, "city 4": 10, "city 5": 20, "new": 0]
        expectEqual(stored, expected)
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `an attribute that was set to nil is nil in the store, if memory wins`(_ kind: StoreKind, _ isMerged: Bool)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, _ in venue.name = "old" }
        let context = stack.context(.objectTrump)
        context.automaticallyMergesChangesFromParent = isMerged
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.name, "old")
            venue.name = nil
        }
        try stack.change(id, Venue.self) { venue, _ in venue.rating = 4 }
        try context.performAndWait {
            try context.save()
            let venue = try context.get(id, Venue.self)
            expect(venue.name == nil && venue.rating == 4)
        }
        try expect(stack.read(id, Venue.self) { $0.name == nil && $0.rating == 4 })
    }

    // MARK: - Detecting

    @Test(arguments: StoreKind.allCases)
    func `an unchanged object takes part in the check of the next save, and only of that (CS-111)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (readID, writtenID) = (try stack.storeCity("read"), try stack.storeCity("written"))
        let context = stack.context()
        try context.performAndWait {
            let read = try context.get(readID, City.self)
            let written = try context.get(writtenID, City.self)
            context.detectConflicts(for: read)
            written.population = read.population + 1
            try stack.change(readID, City.self) { city, _ in city.population = 5 }
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [read])
            expect(!read.hasChanges)
            // The save is refused until the object is refreshed.
            try expectEqual(context.versionConflictsOfSave().count, 1)
            context.refresh(read, mergeChanges: true)
            try context.save()
            try stack.change(readID, City.self) { city, _ in city.population = 6 }
            written.population += 1
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `it is checked as well if only its to-many relationship changed (CS-111)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            context.detectConflicts(for: city)
            Venue(context: context).city = city
            try stack.change(id, City.self) { city, _ in city.population = 5 }
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [city])
        }
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `an object that was only read takes the stored values, or comes back (CS-111)`(
        _ kind: StoreKind,
        _ policy: Policy
    )
        throws
    {
        let stack = try Stack(kind)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        let context = stack.context(policy)
        try context.performAndWait {
            let (changed, deleted) = (try context.get(changedID, City.self), try context.get(deletedID, City.self))
            context.detectConflicts(for: changed)
            context.detectConflicts(for: deleted)
            try stack.change(changedID, City.self) { city, _ in city.population = 5 }
            try stack.delete(deletedID)
            try context.save()
            expectEqual(changed.population, 5)
            expect(!context.hasChanges)
            expectEqual(deleted.isDeleted, !policy.memoryWins)
        }
        try expectEqual(stack.count("City"), policy.memoryWins ? 2 : 1)
    }

    // MARK: - Custom policies

    @Test(arguments: StoreKind.allCases)
    func `a subclass may merge as it likes (CS-112)`(_ kind: StoreKind) throws {
        /// Adds up what both sides have added.
        final class Summing: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
                for conflict in list {
                    let city = try require(conflict.sourceObject as? City)
                    let base = try require(conflict.objectSnapshot?["population"] as? Int64)
                    let theirs = try require(conflict.cachedSnapshot?["population"] as? Int64)
                    city.population += theirs - base
                }
            }
        }
        let stack = try Stack(kind)
        let id = try stack.storeCity("a", population: 100)
        let context = stack.context()
        try context.performAndWait {
            context.mergePolicy = Summing(merge: .errorMergePolicyType)
            let city = try context.get(id, City.self)
            city.population += 1
            try stack.change(id, City.self) { city, _ in city.population += 10 }
            try context.save()
            expectEqual(city.population, 111)
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, 111)
    }

    @Test(arguments: StoreKind.allCases)
    func `a subclass that resolves nothing leaves what is in memory (CS-112)`(_ kind: StoreKind) throws {
        /// Resolves nothing.
        final class Idle: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            override func resolve(mergeConflicts list: [Any]) throws {}
        }
        let stack = try Stack(kind)
        let (changedID, deletedID) = (try stack.storeCity("changed"), try stack.storeCity("deleted"))
        _ = try stack.store(User.self) { user, _ in user.email = "a@b" }
        let context = stack.context()
        try context.performAndWait {
            context.mergePolicy = Idle(merge: .rollbackMergePolicyType)
            try context.get(changedID, City.self).population = 2
            try context.get(deletedID, City.self).population = 3
            try stack.change(changedID, City.self) { city, _ in city.name = "theirs" }
            try stack.delete(deletedID)
            try context.save()
            // Two rows cannot have the same value, so this conflict is reported nevertheless.
            let user = User(context: context)
            user.email = "a@b"
            try expectEqual(context.constraintConflictsOfSave().first?.conflictingObjects, [user])
            expect(user.isInserted)
        }
        try expectEqual(stack.read(changedID, City.self) { ["\($0.population)", $0.name] }, ["2", "changed"])
        try expectEqual(stack.read(deletedID, City.self) { $0.population }, 3)
    }

    @Test(arguments: StoreKind.allCases)
    func `a policy that resolves is asked again whenever others are faster`(_ kind: StoreKind) throws {
        /// Lets another context save before it resolves, again and again.
        final class Overtaken: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: used by the one thread that saves.
            var rivals = 150
            var rival: () throws -> Void = {}
            override func resolve(mergeConflicts list: [Any]) throws {
                rivals -= 1
                if rivals > 0 { try rival() }
                try super.resolve(mergeConflicts: list)
            }
        }
        let stack = try Stack(kind)
        let id = try stack.storeCity("Porto", population: 1)
        let policy = Overtaken(merge: .mergeByPropertyObjectTrumpMergePolicyType)
        policy.rival = { try stack.change(id, City.self) { city, _ in city.population += 1 } }
        let context = stack.context()
        try context.performAndWait {
            context.mergePolicy = policy
            try context.get(id, City.self).name = "Braga"
            try policy.rival()
            try context.save()
        }
        expectEqual(policy.rivals, 0)
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "Braga 151")
    }

    @Test(arguments: StoreKind.allCases)
    func `conflicts of versions are resolved before those of constraints (CS-112)`(_ kind: StoreKind) throws {
        /// Notes what it is asked to resolve.
        final class Noting: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: the notes are locked.
            let notes = Shared<[String]>([])

            override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
                notes.update { $0.append("versions \(list.count)") }
                try super.resolve(optimisticLockingConflicts: list)
            }

            override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
                notes.update { $0.append("constraints \(list.count)") }
                try super.resolve(constraintConflicts: list)
            }
        }
        let stack = try Stack(kind)
        let id = try stack.storeCity()
        let userID = try stack.store(User.self) { user, _ in user.email = "a@b" }
        let context = stack.context()
        try context.performAndWait {
            let policy = Noting(merge: .mergeByPropertyObjectTrumpMergePolicyType)
            context.mergePolicy = policy
            try context.get(id, City.self).population = 2
            let user = User(context: context)
            user.email = "a@b"
            user.name = "new"
            try stack.change(id, City.self) { city, _ in city.population = 3 }
            try context.save()
            expectEqual(policy.notes.current, ["versions 1", "constraints 1"])
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, 2)
        try expectEqual(stack.read(userID, User.self) { $0.name }, "new")
    }

    @Test(arguments: StoreKind.allCases)
    func `what a subclass throws comes out of the save, and nothing has changed (CS-112)`(_ kind: StoreKind) throws {
        struct Refused: Error {}
        /// Throws.
        final class Refusing: NSMergePolicy, @unchecked Sendable {
            // @unchecked Sendable: no state.
            override func resolve(constraintConflicts list: [NSConstraintConflict]) throws {
                for case let user as User in list.flatMap(\.conflictingObjects) { user.name = "meddled" }
                try super.resolve(constraintConflicts: list)
                throw Refused()
            }
        }
        let stack = try Stack(kind)
        let storedID = try stack.store(User.self) { user, _ in user.email = "a@b" }
        let context = stack.context()
        try context.performAndWait {
            context.mergePolicy = Refusing(merge: .mergeByPropertyObjectTrumpMergePolicyType)
            let user = User(context: context)
            user.email = "a@b"
            user.name = "new"
            expectThrows(Refused.self) { try context.save() }
            expect(user.isInserted && user.name == "new" && user.email == "a@b")
            expect(context.insertedObjects == [user] && context.updatedObjects.isEmpty)
            user.email = "c@d"
            try context.save()
        }
        try expectEqual(stack.read(storedID, User.self) { $0.name }, nil)
    }

    // Without a write-ahead log no context hears of others' commits.
    @Test func `a row that a save finds to be gone is gone for other contexts, too`() throws {
        let options: [AnyHashable: Any] = [NSSQLitePragmasOption: ["journal_mode": "DELETE"]]
        let stack = try Stack(.database, model: GuideModel.make(), options: options)
        let id = try stack.storeCity()
        let second = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try second.addPersistentStore(
            type: StoreKind.database.type,
            configuration: nil,
            at: stack.storeURL,
            options: options
        )
        let context = stack.context()
        try context.performAndWait {
            try context.get(id, City.self).name = "mine"
            let neighbour = NSManagedObjectContext(.privateQueue)
            neighbour.persistentStoreCoordinator = second
            try neighbour.performAndWait {
                for city in try neighbour.all(City.self) { neighbour.delete(city) }
                try neighbour.save()
            }
            try expectEqual(context.versionConflictsOfSave().count, 1)
        }
        let other = stack.context()
        other.performAndWait { _ = expectThrows(CocoaError.self) { try other.existingObject(with: id) } }
    }
}

extension NSPersistentStoreCoordinator {
    /// Changes a city that another coordinator of the same file knows by `id`, and saves.
    func change(_ id: NSManagedObjectID, _ body: (City) -> Void) throws {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = self
        let own = try require(managedObjectID(forURIRepresentation: id.uriRepresentation()))
        try context.performAndWait {
            body(try typed(context.existingObject(with: own)))
            try context.save()
        }
    }
}
