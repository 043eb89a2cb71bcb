import CoreData
import Expectations
import TestSupport
import Testing

@testable import StrataSQLiteStore

private typealias Tag = TestSupport.Tag

@Suite("Stores of one's own")
struct CustomStoreTests {
    private let folder: StoreFolder

    init() throws { folder = try StoreFolder() }

    private func request(_ predicate: NSPredicate? = nil, sortedBy key: String = "price") -> NSFetchRequest<Venue> {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = predicate
        request.sortDescriptors = [NSSortDescriptor(key: key, ascending: true)]
        return request
    }

    @Test(arguments: CustomKind.allCases)
    func `what is saved is fetched again, by predicate, order, limit and offset`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let ids = try stack.storeVenues(["a", "b", "c", "d", "e"])
        expect(ids.allSatisfy { !$0.isTemporaryID && $0.persistentStore === stack.coordinator.persistentStores[0] })
        try stack.inContext { context throws in
            let all = request(NSPredicate(format: "price > 1"))
            try expectEqual(context.fetch(all).map(\.name), ["b", "c", "d", "e"])
            all.fetchOffset = 1
            all.fetchLimit = 2
            try expectEqual(context.fetch(all).map(\.name), ["c", "d"])
            try expectEqual(context.count(for: all), 2)
            all.sortDescriptors = [NSSortDescriptor(key: "name", ascending: false)]
            try expectEqual(context.fetch(all).map(\.name), ["d", "c"])
            try expectEqual(context.count(for: NSFetchRequest<Venue>(entityName: "Venue")), 5)
            let wanted = NSFetchRequest<NSManagedObjectID>(entityName: "Venue")
            wanted.resultType = .managedObjectIDResultType
            wanted.predicate = NSPredicate(format: "name == %@", "c")
            try expectEqual(context.fetch(wanted), [ids[2]])
            let number = NSFetchRequest<NSNumber>(entityName: "Venue")
            number.resultType = .countResultType
            try expectEqual(context.fetch(number).map(\.intValue), [5])
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `another coordinator on the same data reads what was saved, and finds objects by their URIs`(
        _ kind: CustomKind
    )
        throws
    {
        let stack = try CustomStack.make(kind, in: folder)
        let id = try stack.storeVenues(["a"])[0]
        let uri = id.uriRepresentation()
        let second = try stack.reopened(kind)
        let found = try require(second.coordinator.managedObjectID(forURIRepresentation: uri))
        expectEqual(found.uriRepresentation(), uri)
        expectEqual(found.entity.name, "Venue")
        try second.inContext { context throws in
            let venue = try require(try context.existingObject(with: found) as? Venue)
            expectEqual(venue.name, "a")
            expect(venue.objectID === found)
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `relationships of every kind are saved and read`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.inContext { context throws in
            let city = City(context: context)
            city.name = "Porto"
            let venues = ["a", "b"].map { name in
                let venue = Venue(context: context)
                venue.name = name
                venue.city = city
                return venue
            }
            let tags = ["x", "y"].map { title in
                let tag = Tag(context: context)
                tag.title = title
                return tag
            }
            venues[0].tags = Set(tags)
            venues[1].tags = [tags[0]]
            venues[0].photos = ["1", "2", "3"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
            let user = User(context: context)
            user.email = "me"
            user.favourites = [venues[1], venues[0]]
            try context.save()
        }
        for stack in [stack, try stack.reopened(kind)] {
            try stack.inContext { context throws in
                let venues = try context.fetch(request(sortedBy: "name"))
                expectEqual(venues.map { $0.city?.name }, ["Porto", "Porto"])
                expect(venues[0].city === venues[1].city)
                expectEqual(venues[0].city?.venues, Set(venues))
                expectEqual(Set(venues[0].tags.map(\.title)), ["x", "y"])
                expectEqual(venues[1].tags.first?.venues, Set(venues))
                expectEqual(venues[0].photos.map(\.title), ["1", "2", "3"])
                expect(venues[0].photos[0].venue === venues[0])
                let user = try require(try context.all(User.self).first)
                expectEqual(user.favourites.map(\.name), ["b", "a"])
                expectEqual(user.boss, nil)
            }
        }
        try stack.inContext { context throws in
            let user = try require(try context.all(User.self).first)
            user.favourites.reverse()
            let venue = try require(user.favourites.first)
            venue.photos.remove(at: 0)
            venue.city = nil
            try context.save()
        }
        for stack in [stack, try stack.reopened(kind)] {
            try stack.inContext { context throws in
                let user = try require(try context.all(User.self).first)
                expectEqual(user.favourites.map(\.name), ["a", "b"])
                expectEqual(user.favourites[0].photos.map(\.title), ["2", "3"])
                expectEqual(user.favourites[0].city, nil)
                try expectEqual(context.all(City.self).first?.venues.map(\.name), ["b"])
            }
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `sub-entities are fetched with their super-entity, and by themselves`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.storeVenues(["a"])
        try stack.inContext { context throws in
            let bar = Bar(context: context)
            bar.name = "b"
            bar.beers = 7
            try context.save()
        }
        for stack in [stack, try stack.reopened(kind)] {
            try stack.inContext { context throws in
                let all = try context.fetch(request(sortedBy: "name"))
                expectEqual(all.map(\.name), ["a", "b"])
                expectEqual((all[1] as? Bar)?.beers, 7)
                try expectEqual(context.all(Bar.self).map(\.name), ["b"])
                let narrow = request()
                narrow.includesSubentities = false
                try expectEqual(context.fetch(narrow).map(\.name), ["a"])
            }
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `deleted objects go, and delete rules are saved`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let id = try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "a"
            venue.city = City(context: context)
            venue.city?.name = "Porto"
            venue.photos = [Photo(context: context)]
            try context.save()
            return venue.objectID
        }
        try stack.inContext { context throws in
            context.delete(try context.existingObject(with: id))
            try context.save()
        }
        for stack in [stack, try stack.reopened(kind)] {
            try stack.inContext { context throws in
                try expect(context.all(Venue.self).isEmpty)
                try expect(context.all(Photo.self).isEmpty)
                try expectEqual(context.all(City.self).first?.venues, [])
            }
        }
        try stack.inContext { context throws in
            let error = expectThrows(CocoaError.self) { try context.existingObject(with: id) }
            expectEqual(error?.code, .managedObjectReferentialIntegrity)
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `pending changes fold into fetches and counts`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let ids = try stack.storeVenues(["a", "b", "c", "d"])
        try stack.inContext { context throws in
            context.delete(try context.existingObject(with: ids[0]))
            try context.get(ids[1], Venue.self).price = 0
            try context.get(ids[3], Venue.self).name = "z"
            let new = Venue(context: context)
            new.name = "new"
            new.price = 3
            let wanted = request(NSPredicate(format: "price > 0"))
            try expectEqual(context.fetch(wanted).map(\.name), ["c", "new", "z"])
            try expectEqual(context.count(for: wanted), 3)
            wanted.fetchOffset = 1
            wanted.fetchLimit = 1
            try expectEqual(context.fetch(wanted).map(\.name), ["new"])
            wanted.includesPendingChanges = false
            try expectEqual(context.count(for: wanted), 1)
            context.rollback()
            try expectEqual(context.fetch(request()).map(\.name), ["a", "b", "c", "d"])
            expect(!context.hasChanges)
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `two contexts that change one object conflict, and merge policies decide`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let id = try stack.storeVenues(["a"])[0]
        let late = stack.context()
        try late.performAndWait {
            let venue = try late.get(id, Venue.self)
            venue.price = 50
            try stack.inContext { context throws in
                try context.get(id, Venue.self).name = "changed"
                try context.save()
            }
            let error = expectThrows(CocoaError.self) { try late.save() }
            expectEqual(error?.code, .managedObjectMerge)
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
            expect(conflicts?.count == 1 && conflicts?.first?.sourceObject === venue)
            expect(conflicts?.first?.oldVersionNumber == 1 && conflicts?.first?.newVersionNumber == 2)
            expect(venue.price == 50 && venue.hasChanges)
            late.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            try late.save()
            expectEqual(venue.name, "changed")
        }
        for stack in [stack, try stack.reopened(kind)] {
            try stack.inContext { context throws in
                let venue = try context.fetch(request())[0]
                expect(venue.name == "changed" && venue.price == 50)
            }
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `a change of an object that another context has deleted conflicts, and so does a locked one`(
        _ kind: CustomKind
    )
        throws
    {
        let stack = try CustomStack.make(kind, in: folder)
        let ids = try stack.storeVenues(["a", "b"])
        let late = stack.context()
        try late.performAndWait {
            try late.get(ids[0], Venue.self).price = 50
            let locked = try late.get(ids[1], Venue.self)
            _ = locked.name
            late.detectConflicts(for: locked)
            try stack.inContext { context throws in
                context.delete(try context.get(ids[0], Venue.self))
                try context.get(ids[1], Venue.self).price = 9
                try context.save()
            }
            let error = expectThrows(CocoaError.self) { try late.save() }
            expectEqual(error?.code, .managedObjectMerge)
            let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
            expectEqual(Set(conflicts?.map(\.sourceObject.objectID) ?? []), Set(ids))
            expectEqual(conflicts?.first { $0.sourceObject.objectID == ids[0] }?.newVersionNumber, 0)
            late.mergePolicy = NSMergePolicy.rollback
            try late.save()
            expectEqual(locked.price, 9)
        }
        try stack.inContext { context throws in try expectEqual(context.fetch(request()).map(\.name), ["b"]) }
    }

    @Test(arguments: CustomKind.allCases)
    func `stores of one's own and ours stand side by side`(_ kind: CustomKind) throws {
        let model = GuideModel.make()
        let entities = model.entitiesByName
        let names = ["City", "Venue", "Bar", "Tag", "Photo", "Licence"]
        model.setEntities(names.compactMap { entities[$0] }, forConfigurationName: "guide")
        model.setEntities([try require(entities["User"])], forConfigurationName: "people")
        precondition(ServerStore.isRegistered && JSONStore.isRegistered)
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.addPersistentStore(
            type: kind == .server ? ServerStore.storeType : JSONStore.storeType,
            configuration: "guide",
            at: kind == .server ? Server().url : folder.file("store.json")
        )
        try coordinator.addPersistentStore(type: .sqlite, configuration: "people", at: folder.file())
        let stack = CustomStack(coordinator, folder.url)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "a"
            let user = User(context: context)
            user.email = "me"
            try context.save()
            expect(venue.objectID.persistentStore === coordinator.persistentStores[0])
            expect(user.objectID.persistentStore === coordinator.persistentStores[1])
            venue.price = 4
            user.age = 5
            try context.save()
            user.favourites = [venue]
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectExternalRelationship)
        }
        try stack.inContext { context throws in
            try expectEqual(context.fetch(request()).map(\.price), [4])
            try expectEqual(context.all(User.self).map(\.age), [5])
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `one entity in a store of one's own and in ours is fetched from both, in order`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let other = try stack.coordinator.addPersistentStore(type: .inMemory, at: folder.file("memory"))
        try stack.storeVenues(["a", "c"])
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "b"
            context.assign(venue, to: other)
            try context.save()
            expect(venue.objectID.persistentStore === other)
            let all = request(sortedBy: "name")
            try expectEqual(context.fetch(all).map(\.name), ["a", "b", "c"])
            all.fetchOffset = 1
            all.fetchLimit = 1
            try expectEqual(context.fetch(all).map(\.name), ["b"])
            try expectEqual(context.count(for: request()), 3)
            all.affectedStores = [other]
            all.fetchOffset = 0
            try expectEqual(context.fetch(all).map(\.name), ["b"])
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `obtainPermanentIDs gives the IDs that the save keeps`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            let city = City(context: context)
            city.name = "Porto"
            venue.city = city
            let captured = venue.objectID
            try context.obtainPermanentIDs(for: [venue, city, venue])
            expect(!venue.objectID.isTemporaryID && captured.isTemporaryID)
            expect(venue.isInserted)
            let (venueID, cityID) = (venue.objectID, city.objectID)
            try context.save()
            expect(venue.objectID === venueID && city.objectID === cityID)
            expect(captured != venueID && captured.latest === venueID)
            expect(context.object(with: captured) === venue)
            expect(context.object(with: venueID) === venue)
            expect(venue.city === city && city.venues == [venue])
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `a child context fetches, changes and saves through its parent`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.storeVenues(["a", "b"])
        let parent = stack.context()
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        let id = try child.performAndWait {
            let found = try child.fetch(request())
            expectEqual(found.map(\.name), ["a", "b"])
            found[0].name = "changed"
            child.delete(found[1])
            let new = Venue(context: child)
            new.name = "new"
            new.price = 9
            try child.save()
            return new.objectID
        }
        try stack.inContext { context throws in try expectEqual(context.fetch(request()).map(\.name), ["a", "b"]) }
        try parent.performAndWait { try parent.save() }
        expect(!id.latest.isTemporaryID)
        try stack.inContext { context throws in
            try expectEqual(context.fetch(request()).map(\.name), ["changed", "new"])
        }
        let name = try child.performAndWait { (try child.existingObject(with: id) as? Venue)?.name }
        expectEqual(name, "new")
    }

    @Test(arguments: CustomKind.allCases)
    func `a merged save of another context shows the new values`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let id = try stack.storeVenues(["a"])[0]
        let follower = stack.context()
        follower.automaticallyMergesChangesFromParent = true
        follower.performAndWait { expectEqual((follower.object(with: id) as? Venue)?.name, "a") }
        try stack.inContext { context throws in
            try context.get(id, Venue.self).name = "b"
            try context.save()
        }
        follower.performAndWait { expectEqual((follower.object(with: id) as? Venue)?.name, "b") }
    }

    @Test(arguments: CustomKind.allCases)
    func `dictionaries are made of what the store says`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.storeVenues(["a", "b", "c"])
        try stack.inContext { context throws in
            let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.predicate = NSPredicate(format: "price > 1")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: false)]
            request.propertiesToFetch = ["name", "price"]
            let found = try context.fetch(request)
            expectEqual(found.map { $0["name"] as? String }, ["c", "b"])
            expectEqual(found.map { ($0["price"] as? NSNumber)?.intValue }, [3, 2])
            let sum = NSExpressionDescription()
            sum.name = "sum"
            sum.expression = NSExpression(forFunction: "sum:", arguments: [NSExpression(forKeyPath: "price")])
            sum.expressionResultType = .integer64AttributeType
            request.propertiesToFetch = [sum]
            request.sortDescriptors = nil
            try expectEqual(context.fetch(request).map { ($0["sum"] as? NSNumber)?.intValue }, [5])
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `an asynchronous fetch is answered off the context's queue`(_ kind: CustomKind) async throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.storeVenues(["a", "b"])
        let context = stack.context()
        let names = try await withCheckedThrowingContinuation { (done: CheckedContinuation<[String?], any Error>) in
            context.perform {
                let request = NSAsynchronousFetchRequest(fetchRequest: request()) { result in
                    if let error = result.operationError {
                        done.resume(throwing: error)
                    } else {
                        done.resume(returning: result.finalResult?.map(\.name) ?? [])
                    }
                }
                do { try context.execute(request) } catch { done.resume(throwing: error) }
            }
        }
        expectEqual(names, ["a", "b"])
    }

    @Test(arguments: CustomKind.allCases)
    func `a read-only store refuses saves`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let id = try stack.storeVenues(["a"])[0]
        stack.coordinator.persistentStores[0].isReadOnly = true
        try stack.inContext { context throws in
            try context.get(id, Venue.self).price = 3
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .fileWriteNoPermission)
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `a store of one's own migrates into a SQLite file`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        try stack.inContext { context throws in
            let venue = Venue(context: context)
            venue.name = "a"
            venue.tags = [Tag(context: context)]
            try context.save()
        }
        let store = stack.coordinator.persistentStores[0]
        try stack.coordinator.migratePersistentStore(store, to: folder.file("new.sqlite"), type: .sqlite)
        try stack.inContext { context throws in
            let venue = try require(try context.fetch(request()).first)
            expect(venue.name == "a" && venue.tags.count == 1)
            expectEqual(venue.objectID.persistentStore?.type, NSSQLiteStoreType)
        }
        let error = expectThrows(CocoaError.self) {
            try stack.coordinator.migratePersistentStore(
                stack.coordinator.persistentStores[0],
                to: kind == .server ? Server().url : folder.file("back.json"),
                type: kind == .server ? ServerStore.storeType : JSONStore.storeType
            )
        }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual(stack.coordinator.persistentStores.map(\.type), [NSSQLiteStoreType])
    }

    @Test(arguments: CustomKind.allCases)
    func `objects of a store of one's own go on in the SQLite file that it is migrated to`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let ids = try stack.storeVenues(["a", "b", "c"])
        let uri = ids[1].uriRepresentation()
        let context = stack.context()
        var venues: [Venue] = []
        try context.performAndWait {
            venues = try ids.map { try context.get($0, Venue.self) }
            venues[0].price = 9
            context.delete(venues[2])
            Venue(context: context).name = "d"
        }
        let store = stack.coordinator.persistentStores[0]
        try stack.coordinator.migratePersistentStore(store, to: folder.file("new.sqlite"), type: .sqlite)
        try context.performAndWait {
            expectEqual(venues[1].name, "b")
            try context.save()
        }
        try stack.inContext { context throws in
            let found = try context.fetch(request()).map { "\($0.name ?? "") \($0.price)" }
            expectEqual(found.sorted(), ["a 9", "b 2", "d 0"])
            let id = try require(stack.coordinator.managedObjectID(forURIRepresentation: uri))
            try expectEqual(context.get(id, Venue.self).name, "b")
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `a removed store is not asked any more`(_ kind: CustomKind) throws {
        let stack = try CustomStack.make(kind, in: folder)
        let id = try stack.storeVenues(["a"])[0]
        try stack.coordinator.remove(stack.coordinator.persistentStores[0])
        expectEqual(id.persistentStore, nil)
        try stack.inContext { context throws in
            expectThrows(CocoaError.self) { try context.existingObject(with: id) }
            expectThrows(CocoaError.self) { try context.fetch(request()) }
        }
    }

    @Test(arguments: CustomKind.allCases)
    func `a description adds the store`(_ kind: CustomKind) throws {
        precondition(ServerStore.isRegistered && JSONStore.isRegistered)
        let description = NSPersistentStoreDescription(url: kind == .server ? Server().url : folder.file("store.json"))
        description.type = kind == .server ? "Server" : "JSON"
        let container = NSPersistentContainer(name: "Guide", managedObjectModel: GuideModel.make())
        container.persistentStoreDescriptions = [description]
        var failure: (any Error)?
        container.loadPersistentStores { failure = $1 }
        expect(failure == nil)
        let store = try require(container.persistentStoreCoordinator.persistentStores.first)
        expectEqual(store.type, description.type)
        expect(store.metadata[NSStoreModelVersionHashesKey] != nil)
        expectEqual(store.metadata[NSStoreUUIDKey] as? String, store.identifier)
        let context = container.newBackgroundContext()
        try context.performAndWait {
            Venue(context: context).name = "a"
            try context.save()
        }
    }
}
