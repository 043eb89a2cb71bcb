import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelClasses
@testable import CoreDataModelFiles
@testable import StrataArchives

private typealias Tag = TestSupport.Tag

@Suite("Relationships to rows that another context has deleted")
struct DeletedTargetTests {
    /// Checks that no stored relationship leads to a row that is not there.
    private func expectNothingDangles(_ stack: Stack) throws {
        let context = stack.context()
        try context.performAndWait {
            for venue in try context.all(Venue.self) {
                if let city = venue.city {
                    #expect(throws: Never.self) { try context.existingObject(with: city.objectID) }
                }
                for tag in venue.tags { #expect(throws: Never.self) { try context.existingObject(with: tag.objectID) } }
            }
            for tag in try context.all(Tag.self) {
                for venue in tag.venues {
                    #expect(throws: Never.self) { try context.existingObject(with: venue.objectID) }
                }
            }
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `are a conflict of the deleted object, which the error policy reports`(_ kind: StoreKind, _ isNew: Bool) throws
    {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone")
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(cityID, City.self)
            expectEqual(city.name, "gone")
            let venue = try isNew ? Venue(context: context) : context.get(venueID, Venue.self)
            venue.city = city
            try stack.delete(cityID)
            let conflicts = try context.versionConflictsOfSave()
            expectEqual(conflicts.map(\.sourceObject), [city])
            expect(conflicts.first?.newCount == 0 && conflicts.first?.oldCount == 1)
            expectEqual(conflicts.first?.objectSnapshot?["name"] as? String, "gone")
            expect(venue.city === city && venue.hasChanges)
            // The same save succeeds once the cause is gone.
            venue.city = nil
            try context.save()
        }
        try expectNothingDangles(stack)
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `become nil where the store wins, and bring the object back where memory wins`(
        _ kind: StoreKind,
        _ policy: Policy
    )
        throws
    {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone", population: 9)
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context(policy)
        try context.performAndWait {
            let city = try context.get(cityID, City.self)
            expectEqual(city.population, 9)
            let old = try context.get(venueID, Venue.self)
            let new = Venue(context: context)
            old.city = city
            new.city = city
            try stack.delete(cityID)
            try context.save()
            expect(!context.hasChanges)
            let expected = policy.memoryWins ? city : nil
            expect(old.city === expected && new.city === expected)
            expectEqual((city.managedObjectContext == nil), !policy.memoryWins)
            if policy.memoryWins { expectEqual(city.venues, [old, new]) }
        }
        try expectNothingDangles(stack)
        try expectEqual(stack.count("City"), policy.memoryWins ? 1 : 0)
        let name = try stack.read(venueID, Venue.self) { $0.city.map { "\($0.name) \($0.population)" } }
        expectEqual(name, policy.memoryWins ? "gone 9" : nil)
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `become nil for an object that was never read, which no context could bring back`(
        _ kind: StoreKind,
        _ policy: Policy
    )
        throws
    {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone")
        let context = stack.context(policy)
        try context.performAndWait {
            let venue = Venue(context: context)
            venue.city = try context.get(cityID, City.self)
            try stack.delete(cityID)
            try context.save()
            expectEqual(venue.city, nil)
        }
        try expectNothingDangles(stack)
    }

    @Test(arguments: StoreKind.allCases, Policy.allCases)
    func `a membership of a deleted object, or in one, dangles no more than a reference does`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind)
        let tagID = try stack.store(Tag.self) { tag, _ in tag.title = "gone" }
        let deletedVenueID = try stack.store(Venue.self) { venue, _ in venue.name = "gone" }
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "stays" }
        let context = stack.context(policy)
        try context.performAndWait {
            let (tag, venue) = (try context.get(tagID, Tag.self), try context.get(venueID, Venue.self))
            let deleted = try context.get(deletedVenueID, Venue.self)
            _ = (tag.title, venue.name, deleted.name)
            venue.tags.insert(tag)
            deleted.tags.insert(Tag(context: context))
            try stack.delete(tagID)
            try stack.delete(deletedVenueID)
            if policy == .error {
                expectEqual(Set(try context.versionConflictsOfSave().map(\.sourceObject)), [tag, deleted])
            } else {
                try context.save()
                expect(!context.hasChanges)
                expectEqual(venue.tags, policy.memoryWins ? [tag] : [])
            }
        }
        try expectNothingDangles(stack)
        try expectEqual(stack.count("Venue"), policy.memoryWins ? 2 : 1)
    }

    @Test(arguments: StoreKind.allCases, [Policy.storeTrump, .objectTrump])
    func `cannot become nil where they are not optional`(_ kind: StoreKind, _ policy: Policy) throws {
        let (owners, items) = (StoreModels.entity("Owner"), StoreModels.entity("Item"))
        let required = StoreModels.toOne("owner", owners)
        required.isOptional = false
        items.properties = [required]
        let stack = try Stack(kind, model: StoreModels.model(owners, items))
        let (context, other) = (stack.context(policy), stack.context())
        try context.performAndWait {
            let owner = NSManagedObject(entity: owners, insertInto: context)
            try context.save()
            let item = NSManagedObject(entity: items, insertInto: context)
            // The context has never read it, so there is nothing to bring back.
            context.refresh(owner, mergeChanges: false)
            item.setValue(owner, forKey: "owner")
            let id = owner.objectID
            try other.performAndWait {
                other.delete(other.object(with: id))
                try other.save()
            }
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [owner])
            expect(item.isInserted && item.value(forKey: "owner") as? NSManagedObject === owner)
        }
    }

    /// Fresh stores give the same keys to objects of different hierarchies.
    @Test(arguments: StoreKind.allCases, [["City"], ["User"], ["Tag"], ["City", "User"], ["Tag", "User"], []])
    func `are each found out, though targets of several hierarchies have the same key`(
        _ kind: StoreKind,
        _ deleted: [String]
    ) throws {
        let stack = try Stack(kind)
        let ids = [
            "City": try stack.storeCity("there"),
            "User": try stack.store(User.self) { user, _ in user.email = "boss" },
            "Tag": try stack.store(Tag.self) { tag, _ in tag.title = "open" },
        ]
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(require(ids["City"]), City.self)
            let boss = try context.get(require(ids["User"]), User.self)
            let tag = try context.get(require(ids["Tag"]), Tag.self)
            expect(city.name == "there" && boss.email == "boss" && tag.title == "open")
            let venue = Venue(context: context)
            venue.city = city
            venue.tags = [tag]
            let user = User(context: context)
            user.email = "new"
            user.boss = boss
            for name in deleted { try stack.delete(require(ids[name])) }
            guard !deleted.isEmpty else { return try context.save() }
            let conflicts = try context.versionConflictsOfSave()
            expectEqual(conflicts.compactMap(\.sourceObject.entity.name).sorted(), deleted)
        }
        try expectEqual(stack.count("Venue"), deleted.isEmpty ? 1 : 0)
        try expectNothingDangles(stack)
        try expectEqual(stack.problems(), [])
    }

    /// As above, for deletions that a context merges.
    @Test(arguments: StoreKind.allCases, [true, false])
    func `leave objects of other hierarchies alone that have the same key`(_ kind: StoreKind, _ isBatch: Bool) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone")
        let tagID = try stack.store(Tag.self) { tag, _ in tag.title = "open" }
        let userID = try stack.store(User.self) { user, _ in user.email = "a" }
        let context = stack.context()
        let objects = try context.performAndWait {
            let objects = (
                try context.get(cityID, City.self), try context.get(tagID, Tag.self), try context.get(userID, User.self)
            )
            expect(objects.0.name == "gone" && objects.1.title == "open" && objects.2.email == "a")
            return UncheckedSendable(objects)
        }
        if isBatch {
            try stack.execute(NSBatchDeleteRequest(objectIDs: [cityID]))
        } else {
            try stack.delete(cityID)
        }
        NSManagedObjectContext.mergeChanges(
            fromRemoteContextSave: [NSDeletedObjectIDsKey: [cityID]],
            into: [context]
        )
        try context.performAndWait {
            let (city, tag, user) = objects.value
            expect(city.isDeleted || city.managedObjectContext == nil)
            expect(!tag.isDeleted && tag.title == "open" && tag.managedObjectContext === context)
            expect(!user.isDeleted && user.email == "a" && user.managedObjectContext === context)
            tag.title = "closed"
            user.name = "Ada"
            try context.save()
        }
        try expectEqual(stack.all(Tag.self) { $0.title ?? "" }, ["closed"])
        try expectEqual(stack.all(User.self) { $0.name ?? "" }, ["Ada"])
    }

    @Test(arguments: StoreKind.allCases)
    func `what the context deletes itself is no conflict, whatever its rules leave behind`(_ kind: StoreKind) throws {
        let (owners, items) = (StoreModels.entity("Owner"), StoreModels.entity("Item"))
        items.properties = [StoreModels.toOne("owner", owners), StoreModels.attribute("name", .string)]
        let stack = try Stack(kind, model: StoreModels.model(owners, items))
        let context = stack.context()
        try context.performAndWait {
            let owner = NSManagedObject(entity: owners, insertInto: context)
            let old = NSManagedObject(entity: items, insertInto: context)
            try context.save()
            let new = NSManagedObject(entity: items, insertInto: context)
            old.setValue(owner, forKey: "owner")
            new.setValue(owner, forKey: "owner")
            context.delete(owner)
            try context.save()
            // The save does not check a relationship again that did not change.
            old.setValue("renamed", forKey: "name")
            try context.save()
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `one way, a member added to an owner that another deletes is a conflict`(_ kind: StoreKind, _ isMerged: Bool)
        throws
    {
        let (owners, items) = (StoreModels.entity("Owner"), StoreModels.entity("Item"))
        owners.properties = [StoreModels.toMany("items", items)]
        let stack = try Stack(kind, model: StoreModels.model(owners, items))
        let (context, other) = (stack.context(), stack.context())
        context.automaticallyMergesChangesFromParent = isMerged
        try context.performAndWait {
            let owner = NSManagedObject(entity: owners, insertInto: context)
            let item = NSManagedObject(entity: items, insertInto: context)
            try context.save()
            owner.mutableSetValue(forKey: "items").add(item)
            let id = owner.objectID
            try other.performAndWait {
                other.delete(other.object(with: id))
                try other.save()
            }
        }
        // The merge has run when this block gets the queue.
        try context.performAndWait {
            let conflicts = try context.versionConflictsOfSave()
            expectEqual(conflicts.map(\.sourceObject.entity.name), ["Owner"])
            expect(context.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases, [NSDeleteRule.nullifyDeleteRule, .noActionDeleteRule])
    func `no object stays related to a deleted one that another context has befriended`(
        _ kind: StoreKind,
        _ rule: NSDeleteRule
    ) throws {
        let people = StoreModels.entity("Person")
        let friends = StoreModels.toMany("friends", people)
        friends.inverseRelationship = friends
        friends.deleteRule = rule
        people.properties = [StoreModels.attribute("name", .string), friends]
        let stack = try Stack(kind, model: StoreModels.model(people))
        let (context, other) = (stack.context(.objectTrump), stack.context())
        func person(_ name: String) -> NSManagedObject {
            let person = NSManagedObject(entity: people, insertInto: context)
            person.setValue(name, forKey: "name")
            return person
        }
        try context.performAndWait {
            let (a, b, c) = (person("a"), person("b"), person("c"))
            a.mutableSetValue(forKey: "friends").add(b)
            try context.save()
            expectEqual((a.value(forKey: "friends") as? Set<NSManagedObject>), [b])
            let (aID, cID) = (a.objectID, c.objectID)
            try other.performAndWait {
                other.object(with: cID).mutableSetValue(forKey: "friends").add(other.object(with: aID))
                try other.save()
            }
            context.delete(a)
            try context.save()
        }
        let reader = stack.context()
        try reader.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: "Person")
            request.predicate = NSPredicate(format: "friends.@count > 0")
            let befriended = try reader.fetch(request)
            expect(befriended.isEmpty)
        }
        if kind == .sqlite {
            let tables = try stack.column("SELECT name FROM sqlite_master WHERE name LIKE 'Z\\_%FRIENDS' ESCAPE '\\'")
            expectEqual(tables.count, 1)
            for table in tables { try expectEqual(stack.column("SELECT count(*) FROM \(table)"), ["0"]) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `racing with deletions they never dangle`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        let rounds = 40
        let cityIDs = try (0..<rounds).map { try stack.storeCity("city \($0)") }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for id in cityIDs { #expect(throws: Never.self) { try stack.delete(id) } }
            }
            for policy in [Policy.storeTrump, .rollback] {
                group.addTask {
                    let context = stack.context(policy)
                    for id in cityIDs {
                        context.performAndWait {
                            Venue(context: context).city = context.object(with: id) as? City
                            #expect(throws: Never.self) { try context.save() }
                        }
                    }
                }
            }
        }
        try expectEqual(stack.count("Venue"), 2 * rounds)
        try expectEqual(stack.count("City"), 0)
        let reader = stack.context()
        try reader.performAndWait {
            let venues = try reader.all(Venue.self)
            expect(venues.allSatisfy { $0.city == nil })
        }
        try expectNothingDangles(stack)
    }
}

@Suite("Deleting rows that another context has related others to meanwhile")
struct StragglerTests {
    @Test(arguments: StoreKind.allCases)
    func `sets those free, whose owners find out`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("doomed")
        let (deleting, adding, following) = (stack.context(), stack.context(), stack.context())
        following.automaticallyMergesChangesFromParent = true
        try deleting.performAndWait {
            deleting.delete(try deleting.get(cityID, City.self))
            deleting.processPendingChanges()
        }
        let added = try adding.performAndWait {
            let venue = Venue(context: adding)
            venue.city = try adding.get(cityID, City.self)
            try adding.save()
            return UncheckedSendable(venue)
        }
        let venueID = added.value.objectID
        let followed = try following.performAndWait {
            let venue = try following.get(venueID, Venue.self)
            expect(venue.city != nil)
            return UncheckedSendable(venue)
        }
        let told = Shared<Set<NSManagedObjectID>>([])
        let name = NSManagedObjectContext.didSaveObjectIDsNotification
        let token = NotificationCenter.default.addObserver(forName: name, object: deleting, queue: nil) {
            notification in
            let ids = notification.userInfo?[NSManagedObjectContext.NotificationKey.updatedObjectIDs.rawValue]
            told.update { $0 = ids as? Set<NSManagedObjectID> ?? [] }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try deleting.performAndWait { try deleting.save() }
        // A program that passes the IDs on has to know of this row, though the context has no object for it.
        expect(told.current.contains(venueID))
        try expect(stack.read(venueID, Venue.self) { $0.city == nil })
        try adding.performAndWait {
            let venue = added.value
            venue.name = "late"
            try expectEqual(adding.versionConflictsOfSave().map(\.sourceObject), [venue])
            adding.refresh(venue, mergeChanges: true)
            expectEqual(venue.city, nil)
            try adding.save()
        }
        following.performAndWait { expectEqual(followed.value.city, nil) }
    }

    @Test(arguments: StoreKind.allCases)
    func `sets those free that the save writes for the sake of something else`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("doomed")
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let (deleting, adding) = (stack.context(), stack.context())
        try deleting.performAndWait {
            deleting.delete(try deleting.get(cityID, City.self))
            deleting.processPendingChanges()
        }
        try adding.performAndWait {
            try adding.get(venueID, Venue.self).city = try adding.get(cityID, City.self)
            try adding.save()
        }
        try deleting.performAndWait {
            let venue = try deleting.get(venueID, Venue.self)
            venue.name = "renamed"
            try deleting.save()
            expect(venue.city == nil && venue.name == "renamed" && !deleting.hasChanges)
            // The object has the version that is stored.
            venue.name = "again"
            try deleting.save()
        }
        try expect(stack.read(venueID, Venue.self) { $0.name == "again" && $0.city == nil })
        let fresh = stack.context()
        fresh.stalenessInterval = 0
        try expect(fresh.performAndWait { try fresh.get(venueID, Venue.self).city == nil })
    }

    @Test(arguments: StoreKind.allCases)
    func `also at the other end of a one-to-one relationship`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "doomed" }
        let deleting = stack.context()
        try deleting.performAndWait {
            deleting.delete(try deleting.get(venueID, Venue.self))
            deleting.processPendingChanges()
        }
        // This writes only the other side, so that the venue's row stays as it is.
        let model = stack.coordinator.frozenModel
        let store = try require(stack.coordinator.openStores.first)
        let licence = Row(layout: try require(model.entitiesByName["Licence"]).layout, key: -1)
        let venue = ObjectReference(key: venueID.current.key, entity: venueID.layout.number)
        licence.setReference(venue, try require(licence.layout.slot(named: "venue")))
        let changes = StoreChanges(inserted: [licence])
        try expect(store.rows.save(changes) { _ = changes.settle($0) }.isEmpty)
        try deleting.performAndWait { try deleting.save() }
        let reader = stack.context()
        try reader.performAndWait {
            let request = NSFetchRequest<Licence>(entityName: "Licence")
            request.predicate = NSPredicate(format: "venue == nil")
            let count = try reader.count(for: request)
            expectEqual(count, 1)
        }
    }
}
