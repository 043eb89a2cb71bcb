import CoreData
import Expectations
import TestSupport
import Testing

private typealias Tag = TestSupport.Tag

@Suite("Undo and redo")
struct UndoTests {
    /// A context with an undo manager.
    private func context(_ stack: Stack) -> NSManagedObjectContext {
        let context = stack.context()
        context.undoManager = UndoManager()
        return context
    }

    @Test(arguments: StoreKind.allCases)
    func `without an undo manager, which is the default, nothing is undone (CS-206)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        context.performAndWait {
            expectEqual(context.undoManager, nil)
            let city = City(context: context)
            city.name = "Porto"
            context.processPendingChanges()
            context.undo()
            context.redo()
            expect(city.isInserted && city.name == "Porto")
        }
    }

    @Test(arguments: StoreKind.allCases, [Policy.objectTrump, .overwrite])
    func `undo after a resolved save takes back what was changed here alone (CS-207)`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.name = "old"
            Tag(context: context).title = "theirs"
        }
        let context = stack.context(policy)
        context.undoManager = UndoManager()
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            expect(venue.tags.isEmpty)
            venue.name = "mine"
            context.processPendingChanges()
            try stack.change(id, Venue.self) { venue, context in
                venue.price = 5
                venue.tags = Set((try? context.all(Tag.self)) ?? [])
            }
            try context.save()
            expect(venue.name == "mine" && venue.tags.count == (policy == .overwrite ? 0 : 1))
            context.undo()
            expect(venue.name == "old" && context.undoManager?.canUndo == false)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an event is one step, back to the values at its start (CS-207)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored", population: 1)
        let context = context(stack)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "a"
            city.population = 2
            city.name = "b"
            context.processPendingChanges()
            city.name = "c"
            context.processPendingChanges()
            context.undo()
            expect(city.name == "b" && city.population == 2)
            context.undo()
            expect(city.name == "stored" && city.population == 1)
            expect(!city.hasChanges && !context.hasChanges)
            context.redo()
            expect(city.name == "b" && city.population == 2 && city.isUpdated)
            context.redo()
            expectEqual(city.name, "c")
            context.undo()
            try context.save()
        }
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population)" }, "b 2")
    }

    @Test(arguments: StoreKind.allCases)
    func `the event under way is the first step to go, however undo is called (CS-207)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let context = context(stack)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "a"
            context.processPendingChanges()
            city.name = "b"
            context.undo()
            expectEqual(city.name, "a")
            city.name = "c"
            context.undoManager?.undo()
            expectEqual(city.name, "a")
            context.undoManager?.undo()
            expectEqual(city.name, "stored")
            expectEqual(context.undoManager?.canUndo, false)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a block of perform is one step (CS-207)`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let context = context(stack)
        for name in ["a", "b"] {
            try await context.perform {
                let city = try context.get(id, City.self)
                city.name = name + "?"
                city.name = name
            }
        }
        try await context.perform {
            context.undo()
            let city = try context.get(id, City.self)
            expectEqual(city.name, "a")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an insertion is undone and done again (CS-208)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("Porto")
        let context = context(stack)
        try context.performAndWait {
            let city = try context.get(cityID, City.self)
            expect(city.venues.isEmpty)
            let venue = Venue(context: context)
            venue.name = "bar"
            venue.city = city
            venue.tags = [Tag(context: context)]
            context.processPendingChanges()
            context.undo()
            expect(venue.managedObjectContext == nil && context.insertedObjects.isEmpty && city.venues.isEmpty)
            expect(!context.hasChanges)
            context.redo()
            expect(venue.isInserted && venue.name == "bar" && venue.city === city && city.venues == [venue])
            expectEqual(venue.tags.count, 1)
            try context.save()
        }
        try expectEqual(stack.read(cityID, City.self) { $0.venues.map(\.name) }, ["bar"])
        try expectEqual(stack.count("Tag"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a deletion is undone and done again, with what its delete rules did (CS-208)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.name = "bar"
            venue.photos = [Photo(context: context), Photo(context: context)]
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
            venue.tags = [Tag(context: context)]
        }
        let context = context(stack)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            let (city, tag, photos) = (try require(venue.city), try require(venue.tags.first), venue.photos)
            expect(city.venues == [venue] && tag.venues == [venue])
            func expectThere() {
                expect(!venue.isDeleted && photos.allSatisfy { !$0.isDeleted && $0.venue === venue })
                expect(venue.photos == photos && venue.city === city && venue.tags == [tag])
                expect(city.venues == [venue] && tag.venues == [venue])
            }
            context.delete(venue)
            context.processPendingChanges()
            expect(venue.isDeleted && photos.allSatisfy(\.isDeleted) && city.venues.isEmpty && tag.venues.isEmpty)
            context.undo()
            expectThere()
            expect(!context.hasChanges)
            context.redo()
            expect(venue.isDeleted && photos.allSatisfy(\.isDeleted) && city.venues.isEmpty && tag.venues.isEmpty)
            context.undo()
            expectThere()
            try context.save()
        }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.count }, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-one relationship is undone on both sides (CS-208)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (fromID, toID) = (try stack.storeCity("from"), try stack.storeCity("to"))
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: fromID) as? City
            venue.licence = Licence(context: context)
        }
        let context = context(stack)
        try context.performAndWait {
            let venue = try context.get(venueID, Venue.self)
            let (from, to) = (try context.get(fromID, City.self), try context.get(toID, City.self))
            let licence = try require(venue.licence)
            venue.city = to
            venue.licence = nil
            context.processPendingChanges()
            context.undo()
            expect(venue.city === from && from.venues == [venue] && to.venues.isEmpty)
            expect(venue.licence === licence && licence.venue === venue)
            expect(!context.hasChanges)
            context.redo()
            expect(venue.city === to && from.venues.isEmpty && to.venues == [venue])
            expect(venue.licence == nil && licence.venue == nil)
            try context.save()
        }
        try expectEqual(stack.read(toID, City.self) { $0.venues.count }, 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `changes of collections are undone: sets, orders and mutable proxies (CS-208)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
            venue.tags = Set(
                ["x", "y"].map { title in
                    let tag = Tag(context: context)
                    tag.title = title
                    return tag
                }
            )
        }
        let context = context(stack)
        func picture(_ venue: Venue) -> String {
            venue.photos.compactMap(\.title).joined() + " " + venue.tags.compactMap(\.title).sorted().joined()
        }
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.photos = [venue.photos[2], venue.photos[0]]
            context.processPendingChanges()
            let tag = try require(venue.tags.first { $0.title == "x" })
            venue.mutableSetValue(forKey: "tags").remove(tag)
            let new = Tag(context: context)
            new.title = "z"
            venue.mutableSetValue(forKey: "tags").add(new)
            context.processPendingChanges()
            expectEqual(picture(venue), "ca yz")
            context.undo()
            expect(picture(venue) == "ca xy" && tag.venues == [venue])
            context.undo()
            expectEqual(picture(venue), "abc xy")
            expect(!context.hasChanges)
            context.redo()
            context.redo()
            expect(picture(venue) == "ca yz" && tag.venues.isEmpty)
            try context.save()
        }
        try expectEqual(stack.read(id, Venue.self, picture), "ca yz")
    }

    // MARK: - Across saves

    @Test(arguments: StoreKind.allCases)
    func `a saved change comes back as an unsaved one (CS-209)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let context = context(stack)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "saved"
            try context.save()
            context.undo()
            expect(city.name == "stored" && city.isUpdated)
            try context.save()
            try expectEqual(stack.read(id, City.self) { $0.name }, "stored")
            context.redo()
            expect(city.name == "saved" && city.isUpdated)
            try context.save()
        }
        try expectEqual(stack.read(id, City.self) { $0.name }, "saved")
    }

    @Test(arguments: StoreKind.allCases)
    func `saved relationships of every kind come back as unsaved changes (CS-209)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.tags = [Tag(context: context)]
            venue.photos = [Photo(context: context), Photo(context: context)]
        }
        let cityID = try stack.storeCity("Porto")
        let context = context(stack)
        func picture(_ venue: Venue) -> [Int] {
            [venue.tags.count, venue.photos.count, venue.city == nil ? 0 : 1, venue.city?.venues.count ?? 0]
        }
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            // No relationship is loaded before it is changed.
            Tag(context: context).venues = [venue]
            context.delete(try require(venue.photos.first))
            venue.city = try context.get(cityID, City.self)
            try context.save()
            expectEqual(picture(venue), [2, 1, 1, 1])
            context.undo()
            expectEqual(picture(venue), [1, 2, 0, 0])
            try context.save()
            try expectEqual(stack.read(id, Venue.self, picture), [1, 2, 0, 0])
            context.redo()
            try context.save()
            expectEqual(picture(venue), [2, 1, 1, 1])
        }
        try expectEqual(stack.read(id, Venue.self, picture), [2, 1, 1, 1])
        try expectEqual(stack.count("Photo"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `objects whose deletion was saved come back as new ones, related to one another (CS-209)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let id = try stack.store(Venue.self) { venue, context in
            venue.name = "bar"
            // Neither their keys nor their titles are in this order.
            let photos = ["a", "b", "c", "d"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
            venue.photos = [photos[2], photos[0], photos[3], photos[1]]
            venue.tags = [Tag(context: context)]
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
        }
        let context = context(stack)
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            let (city, tag) = (try require(venue.city), try require(venue.tags.first))
            context.delete(venue)
            context.delete(city)
            try context.save()
            expectEqual(venue.managedObjectContext, nil)
            context.undo()
            expect(venue.isInserted && city.isInserted && venue.objectID != id)
            expect(venue.city === city && city.venues == [venue])
            expect(venue.photos.map(\.title) == ["c", "a", "d", "b"] && venue.photos.allSatisfy(\.isInserted))
            expect(venue.tags == [tag] && tag.venues == [venue])
            try context.save()
            let newID = venue.objectID
            let stored = try stack.read(newID, Venue.self) { venue in
                [venue.name, venue.city?.name] + venue.photos.map(\.title) + ["\(venue.tags.count)"]
            }
            expectEqual(stored, ["bar", "Porto", "c", "a", "d", "b", "1"])
            context.redo()
            try context.save()
        }
        try expectEqual(["Venue", "City", "Photo", "Tag"].map(stack.count), [0, 0, 0, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `earlier steps know an object that came back under a new key (CS-209)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (firstID, secondID) = (try stack.storeCity("first"), try stack.storeCity("second"))
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: firstID) as? City
        }
        let context = context(stack)
        try context.performAndWait {
            let venue = try context.get(venueID, Venue.self)
            let first = try context.get(firstID, City.self)
            venue.city = try context.get(secondID, City.self)
            try context.save()
            context.delete(first)
            try context.save()
            context.undo()
            try context.save()
            expect(first.objectID != firstID)
            context.undo()
            expect(venue.city === first && first.venues == [venue])
            try context.save()
        }
        try expectEqual(stack.read(venueID, Venue.self) { $0.city?.name }, "first")
    }

    @Test(arguments: StoreKind.allCases)
    func `an insertion that was saved is undone by a deletion (CS-209)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = context(stack)
        try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            try context.save()
            context.undo()
            expect(city.isDeleted)
            try context.save()
            try expectEqual(stack.count("City"), 0)
            context.redo()
            expect(city.isInserted && city.name == "Porto")
            try context.save()
        }
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `undoing takes back what was done here, not what was merged since`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let context = context(stack)
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.population = 5
            Venue(context: context).city = city
            try context.save()
        }
        try stack.change(id, City.self) { city, context in
            city.name = "theirs"
            Venue(context: context).city = city
        }
        try context.performAndWait {
            let city = try context.get(id, City.self)
            expect(city.name == "theirs" && city.venues.count == 2)
            context.undo()
            expect(city.name == "theirs" && city.population == 1)
            expectEqual(city.venues.filter { !$0.isDeleted }.count, 1)
            try context.save()
        }
        try expectEqual(stack.read(id, City.self) { "\($0.name) \($0.population) \($0.venues.count)" }, "theirs 1 1")
    }

    @Test(arguments: StoreKind.allCases)
    func `undoing a change does not bring back what another context has deleted`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (id, otherID) = (try stack.storeCity("doomed"), try stack.storeCity("stays"))
        let context = context(stack)
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            try context.get(id, City.self).population = 5
            try context.get(otherID, City.self).population = 5
            try context.save()
        }
        try stack.delete(id)
        try context.performAndWait {
            context.undo()
            try expectEqual(context.get(otherID, City.self).population, 1)
            try context.save()
        }
        try expectEqual(stack.count("City"), 1)
    }

    // MARK: - Changes that make no step

    @Test(arguments: StoreKind.allCases)
    func `fetching and firing faults is no step (CS-210)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        _ = try stack.storeCity("stored")
        let context = context(stack)
        try context.performAndWait {
            for city in try context.all(City.self) { _ = (city.name, city.venues) }
            context.processPendingChanges()
            expectEqual(context.undoManager?.canUndo, false)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a reset and a rollback forget the context's steps, and only those (CS-68, 69)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let manager = UndoManager()
        let context = stack.context()
        let target = Shared(0)
        context.performAndWait {
            context.undoManager = manager
            for clear in [context.rollback, context.reset] {
                manager.registerUndo(withTarget: target) { $0.update { $0 += 1 } }
                City(context: context).name = "Porto"
                context.processPendingChanges()
                City(context: context).name = "Lisbon"
                clear()
                expect(manager.canUndo)
                context.undo()
                expect(!manager.canUndo && context.insertedObjects.isEmpty)
            }
            expectEqual(target.current, 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `no more steps are kept than levelsOfUndo says (CS-207)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("0", population: 0)
        let context = context(stack)
        try context.performAndWait {
            context.undoManager?.levelsOfUndo = 2
            let city = try context.get(id, City.self)
            for value in 1...5 {
                city.population = Int64(value)
                context.processPendingChanges()
            }
            for _ in 0..<5 { context.undo() }
            expectEqual(city.population, 3)
            for _ in 0..<5 { context.redo() }
            expectEqual(city.population, 5)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a change after an undo leaves nothing to redo (CS-208)`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let context = context(stack)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "a"
            context.undo()
            city.name = "b"
            context.redo()
            expectEqual(city.name, "b")
            expectEqual(context.undoManager?.canRedo, false)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `changes made while registration is disabled cannot be undone`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("stored")
        let context = context(stack)
        try context.performAndWait {
            let city = try context.get(id, City.self)
            context.undoManager?.disableUndoRegistration()
            city.name = "a"
            context.processPendingChanges()
            context.undoManager?.enableUndoRegistration()
            context.undo()
            expectEqual(city.name, "a")
        }
    }

    // MARK: - The manager by itself

    @Test func `groups, names and levels of an undo manager`() {
        let manager = UndoManager()
        let log = Shared<[String]>([])
        func register(_ text: String) {
            manager.registerUndo(withTarget: log) { log in
                log.update { $0.append("undo " + text) }
                manager.registerUndo(withTarget: log) { log in log.update { $0.append("redo " + text) } }
            }
        }
        manager.beginUndoGrouping()
        register("a")
        manager.beginUndoGrouping()
        expectEqual(manager.groupingLevel, 2)
        register("b")
        manager.endUndoGrouping()
        manager.setActionName("typing")
        manager.endUndoGrouping()
        expect(manager.undoActionName == "typing" && !manager.canRedo)
        manager.undo()
        expectEqual(log.current, ["undo b", "undo a"])
        expect(manager.redoActionName == "typing" && !manager.canUndo && manager.canRedo)
        manager.redo()
        expectEqual(log.current.suffix(2), ["redo a", "redo b"])
        register("c")
        let other = Shared(0)
        manager.registerUndo(withTarget: other) { $0.update { $0 += 1 } }
        manager.removeAllActions(withTarget: log)
        manager.undo()
        manager.undo()
        expect(other.current == 1 && log.current.count == 4)
        manager.removeAllActions()
        expect(!manager.canUndo && !manager.canRedo)
    }

    @Test func `a target that has gone is not called`() {
        let manager = UndoManager()
        let calls = Shared(0)
        do {
            let target = Shared(0)
            manager.registerUndo(withTarget: target) { _ in calls.update { $0 += 1 } }
        }
        manager.undo()
        expectEqual(calls.current, 0)
    }

    @Test(arguments: StoreKind.allCases)
    func `what a merge policy has changed is no step`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let context = context(stack)
        context.mergePolicy = NSMergePolicy.mergeByPropertyStoreTrump
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.name = "mine"
            city.population = 5
            context.processPendingChanges()
            try stack.change(id, City.self) { city, _ in city.name = "theirs" }
            try context.save()
            expect(city.name == "theirs" && city.population == 5)
            context.undo()
            expectEqual(city.population, 1)
            expectEqual(context.undoManager?.canUndo, false)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `undoing an order keeps the members that were merged since`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        func photo(_ title: String, _ context: NSManagedObjectContext) -> Photo {
            let photo = Photo(context: context)
            photo.title = title
            return photo
        }
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = [photo("a", context), photo("b", context)]
        }
        let context = context(stack)
        context.automaticallyMergesChangesFromParent = true
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.photos = venue.photos.reversed()
            try context.save()
        }
        try stack.change(id, Venue.self) { venue, context in venue.photos.append(photo("c", context)) }
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.photos.map(\.title), ["b", "a", "c"])
            context.undo()
            expectEqual(venue.photos.map(\.title), ["a", "b", "c"])
            try context.save()
        }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.map(\.title) }, ["a", "b", "c"])
    }

    @Test(arguments: StoreKind.allCases)
    func `an order is taken back with a member whose deletion was undone and saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.store(User.self) { user, context in
            user.email = "a@b"
            user.favourites = ["a", "b", "c"].map { name in
                let venue = Venue(context: context)
                venue.name = name
                return venue
            }
        }
        let context = context(stack)
        try context.performAndWait {
            let user = try context.get(id, User.self)
            user.favourites = user.favourites.reversed()
            try context.save()
            context.delete(user.favourites[1])
            try context.save()
            context.undo()
            try context.save()
            expectEqual(user.favourites.map(\.name), ["c", "b", "a"])
            context.undo()
            expectEqual(user.favourites.map(\.name), ["a", "b", "c"])
            try context.save()
        }
        try expectEqual(stack.read(id, User.self) { $0.favourites.map(\.name) }, ["a", "b", "c"])
    }

    @Test(arguments: StoreKind.allCases)
    func `an owner whose deletion was undone after a save has its members in their order, and takes further ones`(
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let id = try stack.store(User.self) { user, context in
            user.email = "a@b"
            let venues = ["a", "b", "c", "d"].map { name in
                let venue = Venue(context: context)
                venue.name = name
                return venue
            }
            user.favourites = [venues[2], venues[0], venues[3], venues[1]]
        }
        let context = context(stack)
        try context.performAndWait {
            let user = try context.get(id, User.self)
            expectEqual(user.favourites.map(\.name), ["c", "a", "d", "b"])
            context.delete(user)
            try context.save()
            context.undo()
            expectEqual(user.favourites.map(\.name), ["c", "a", "d", "b"])
            try context.save()
            try expectEqual(
                stack.read(user.objectID, User.self) { $0.favourites.map(\.name) },
                ["c", "a", "d", "b"]
            )
            user.favourites.insert(user.favourites.remove(at: 3), at: 0)
            try context.save()
            try expectEqual(
                stack.read(user.objectID, User.self) { $0.favourites.map(\.name) },
                ["b", "c", "a", "d"]
            )
        }
    }
}
