import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Saves that wait for merges, and saves that try again")
struct SaveVariantTests {
    // MARK: - Merging

    @Test(arguments: StoreKind.allCases, [true, false])
    func `when save(mergingInto:) returns, the named contexts show what was saved, reported once (user demand 14)`(
        _ kind: StoreKind,
        _ isFollowing: Bool
    ) async throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("old")
        let views = [stack.context("first view"), stack.context("second view")]
        for view in views { view.automaticallyMergesChangesFromParent = isFollowing }
        let logs = views.map { NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: $0) }
        let cities = try views.map { view in
            try view.performAndWait {
                let city = try view.get(id, City.self)
                expectEqual(city.name, "old")
                return UncheckedSendable(city)
            }
        }
        let context = stack.context("background")
        try await context.perform { try context.get(id, City.self).name = "new" }
        try await context.save(mergingInto: views + [context])
        // This holds at once, before the queues have run anything else.
        expectEqual(logs.map(\.entries.count), [1, 1])
        for (view, city) in zip(views, cities) { await view.perform { expectEqual(city.value.name, "new") } }
        expectEqual(logs.map(\.entries.count), [1, 1])
        await context.perform { expect(!context.hasChanges) }
    }

    @Test(arguments: StoreKind.allCases)
    func `a save without changes, or into no context, does not wait`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, view) = (stack.context(), stack.context())
        let log = NotificationLog(.ofContexts, of: view)
        try await context.save(mergingInto: [view])
        expect(log.entries.isEmpty)
        await context.perform { City(context: context).name = "new" }
        try await context.save(mergingInto: [])
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `what a did-save handler saves is merged as well`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, view) = (stack.context(), stack.context())
        let token = await context.perform {
            let city = City(context: context)
            city.name = "first"
            return UncheckedSendable(
                whenPosted(.NSManagedObjectContextDidSave, by: context) {
                    guard context.registeredObjects.count == 1 else { return }
                    City(context: context).name = "second"
                    #expect(throws: Never.self) { try context.save() }
                }
            )
        }
        let log = NotificationLog([.NSManagedObjectContextDidMergeChangesObjectIDs], of: view)
        try await context.save(mergingInto: [view])
        token.value.remove()
        expectEqual(log.entries.map { $0.ids(NSInsertedObjectIDsKey).count }, [2])
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that fails throws, and nothing is merged`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let (context, view) = (stack.context(), stack.context())
        let log = NotificationLog(.ofContexts, of: view)
        await context.perform { _ = User(context: context) }
        await expectThrows(CocoaError.self) { try await context.save(mergingInto: [view]) }
        expect(log.entries.isEmpty)
        await expect(context.perform { context.hasChanges })
    }

    @Test(arguments: StoreKind.allCases)
    func `a child's save is merged into its siblings, and reported as its change`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let parent = stack.context("parent")
        let children = ["child", "sibling"].map { name in
            let child = NSManagedObjectContext(.privateQueue)
            child.name = name
            child.parent = parent
            return child
        }
        let (child, sibling) = (children[0], children[1])
        var changes = child.changes.makeAsyncIterator()
        let id = await child.perform {
            let city = City(context: child)
            city.name = "new"
            return city.objectID
        }
        try await child.save(mergingInto: [sibling])
        await expectEqual(changes.next()?.insertedObjectIDs, [id])
        await sibling.perform { expectEqual((sibling.registeredObject(for: id) as? City)?.name, "new") }
        expect(id.isTemporaryID)
    }

    @Test func `a context of another coordinator on the same file merges too`() async throws {
        let stack = try Stack(.database)
        let id = try stack.storeCity("old")
        let second = try stack.secondCoordinator()
        let view = NSManagedObjectContext(.privateQueue)
        view.persistentStoreCoordinator = second
        let city = try await view.perform {
            let city = try require(try view.all(City.self).first)
            expectEqual(city.name, "old")
            return UncheckedSendable(city)
        }
        let context = stack.context()
        try await context.perform { try context.get(id, City.self).name = "new" }
        try await context.save(mergingInto: [view])
        await view.perform { expectEqual(city.value.name, "new") }
        for store in second.persistentStores { try second.remove(store) }
    }

    @Test(arguments: StoreKind.allCases)
    func `contexts that save into one another do not wait for ever`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let contexts = (0..<3).map { stack.context("\($0)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for context in contexts {
                group.addTask {
                    for round in 0..<20 {
                        await context.perform { City(context: context).name = "city \(round)" }
                        try await context.save(mergingInto: contexts)
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(stack.count("City"), 60)
    }

    // MARK: - Trying again

    @Test(arguments: StoreKind.allCases)
    func `a retried save keeps the edits made here on top of what others have saved (user demand 12)`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let (changedID, deletedID) = (try stack.storeCity("old"), try stack.storeCity("doomed"))
        let context = stack.context()
        try context.performAndWait {
            let (changed, doomed) = (try context.get(changedID, City.self), try context.get(deletedID, City.self))
            changed.population = 5
            context.delete(doomed)
            context.processPendingChanges()
            try stack.change(changedID, City.self) { city, _ in city.name = "theirs" }
            try stack.change(deletedID, City.self) { city, _ in city.name = "theirs" }
            try context.save(retrying: 1)
            expect(changed.name == "theirs" && changed.population == 5)
            expect(!context.hasChanges)
        }
        try expectEqual(stack.read(changedID, City.self) { "\($0.name) \($0.population)" }, "theirs 5")
        try expectEqual(stack.count("City"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a retried save overwrites nothing that others have changed as well, be it to the same value`(
        _ kind: StoreKind
    ) throws {
        for theirs in [90, 85] as [Int64] {
            let stack = try Stack(kind)
            let id = try stack.storeCity("account", population: 100)
            let context = stack.context()
            try context.performAndWait {
                let account = try context.get(id, City.self)
                account.population -= 10
                try stack.change(id, City.self) { account, _ in account.population = theirs }
                // The second save does not overwrite it either, though the newer value is known by then.
                for _ in 0..<2 {
                    let error = expectThrows(CocoaError.self) { try context.save(retrying: 3) }
                    expectEqual(error?.code, .managedObjectMerge)
                    let conflicts = error?.userInfo[NSPersistentStoreSaveConflictsErrorKey] as? [NSMergeConflict]
                    expectEqual(conflicts?.map(\.sourceObject), [account])
                    expect(account.isUpdated && account.population == 90)
                }
                context.refresh(account, mergeChanges: false)
                account.population -= 10
                try context.save(retrying: 3)
            }
            try expectEqual(stack.read(id, City.self) { $0.population }, theirs - 10)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `nor does it overwrite what is changed between two attempts`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("account", population: 100)
        let context = stack.context()
        try context.performAndWait {
            let account = try context.get(id, City.self)
            account.population -= 10
            var attempts = 0
            let token = whenPosted(.NSManagedObjectContextWillSave, by: context) {
                attempts += 1
                #expect(throws: Never.self) {
                    try stack.change(id, City.self) { account, _ in
                        if attempts == 1 { account.name = "theirs" } else { account.population = 50 }
                    }
                }
            }
            let error = expectThrows(CocoaError.self) { try context.save(retrying: 3) }
            expect(error?.code == .managedObjectMerge && attempts == 2)
            token.remove()
            expect(account.name == "theirs" && account.population == 90)
            expectThrows(CocoaError.self) { try context.save(retrying: 3) }
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, 50)
    }

    @Test(arguments: StoreKind.allCases)
    func `a retried save overwrites no order, and no destination, that others have changed as well`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let city = try stack.storeCity("theirs")
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        func titles() throws -> [String] { try stack.read(id, Venue.self) { $0.photos.compactMap(\.title) } }
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(id, Venue.self)
            venue.photos = [venue.photos[2], venue.photos[0], venue.photos[1]]
            try stack.change(id, Venue.self) { venue, _ in
                venue.photos = [venue.photos[1], venue.photos[0], venue.photos[2]]
                venue.price = 5
            }
            expectThrows(CocoaError.self) { try context.save(retrying: 3) }
            try expectEqual(titles(), ["b", "a", "c"])
            context.refresh(venue, mergeChanges: false)

            // An order that only one side has changed is no conflict. Members that both sides have added are none
            // either.
            venue.photos = [venue.photos[2], venue.photos[0], venue.photos[1]]
            try stack.change(id, Venue.self) { venue, _ in venue.price = 6 }
            try context.save(retrying: 3)
            try expectEqual(titles(), ["c", "b", "a"])

            let mine = City(context: context)
            mine.name = "mine"
            venue.city = mine
            try stack.change(id, Venue.self) { venue, other in
                venue.city = try? other.existingObject(with: city) as? City
            }
            expectThrows(CocoaError.self) { try context.save(retrying: 3) }
        }
        try expectEqual(stack.read(id, Venue.self) { $0.city?.name }, "theirs")
    }

    @Test(arguments: StoreKind.allCases)
    func `it gives up after the given number of retries`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let id = try stack.storeCity("contested")
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(id, City.self)
            city.population = 5
            var attempts = 0
            let token = whenPosted(.NSManagedObjectContextWillSave, by: context) {
                // Another context is always faster.
                attempts += 1
                #expect(throws: Never.self) { try stack.change(id, City.self) { city, _ in city.name += "!" } }
            }
            let error = expectThrows(CocoaError.self) { try context.save(retrying: 3) }
            expectEqual(error?.code, .managedObjectMerge)
            expectEqual(attempts, 4)
            expect(city.isUpdated && city.population == 5)
            token.remove()
            try context.save(retrying: 1)
        }
        try expectEqual(stack.read(id, City.self) { $0.population }, 5)
    }

    @Test(arguments: StoreKind.allCases)
    func `it does not try again what a refresh cannot mend`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (deletedID, readID) = (try stack.storeCity("deleted"), try stack.storeCity("read"))
        _ = try stack.store(User.self) { user, _ in user.email = "a@b" }
        let context = stack.context()
        try context.performAndWait {
            var attempts = 0
            let token = whenPosted(.NSManagedObjectContextWillSave, by: context) { attempts += 1 }
            func expectFailure(_ code: CocoaError.Code) {
                attempts = 0
                let error = expectThrows(CocoaError.self) { try context.save(retrying: 5) }
                expectEqual(error?.code, code)
                expectEqual(attempts, 1)
                context.rollback()
            }
            try context.get(deletedID, City.self).population = 2
            try stack.delete(deletedID)
            expectFailure(.managedObjectMerge)

            context.detectConflicts(for: try context.get(readID, City.self))
            City(context: context).name = "depends on what was read"
            try stack.change(readID, City.self) { city, _ in city.name = "theirs" }
            expectFailure(.managedObjectMerge)

            User(context: context).email = "a@b"
            expectFailure(.managedObjectConstraintMerge)

            _ = User(context: context)
            expectFailure(.validationMissingMandatoryProperty)
            token.remove()
        }
    }
}
