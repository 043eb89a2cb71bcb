import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Trees: membership when others move the same objects")
struct TreeMembershipTests {
    /// Three stored cities, with a venue in the first.
    private func prepare(_ stack: Stack) throws -> (cities: [NSManagedObjectID], venue: NSManagedObjectID) {
        let cities = try (0..<3).map { try stack.storeCity("\($0)") }
        let venue = try stack.store(Venue.self) { venue, context in
            venue.city = context.object(with: cities[0]) as? City
        }
        return (cities, venue)
    }

    private func move(_ venue: NSManagedObjectID, to city: NSManagedObjectID, in context: NSManagedObjectContext) throws
    {
        try context.performAndWait { try context.get(venue, Venue.self).city = try context.get(city, City.self) }
    }

    /// The number of the venue's city, and the numbers of the cities that have the venue.
    private func places(_ venue: NSManagedObjectID, _ cities: [NSManagedObjectID], in context: NSManagedObjectContext)
        throws -> [Int]
    {
        try context.performAndWait {
            let object = try context.get(venue, Venue.self)
            let own = cities.firstIndex { $0 == object.city?.objectID } ?? -1
            let theirs = try cities.indices.filter { try context.get(cities[$0], City.self).venues.contains(object) }
            return [own] + theirs
        }
    }

    @Test(arguments: StoreKind.allCases, [false, true])
    func `what a child has given to another does not go with the one that it deletes`(
        _ kind: StoreKind,
        _ parentHasLoaded: Bool
    ) throws {
        let stack = try Stack(kind)
        let heir = try stack.store(Venue.self) { venue, _ in venue.name = "heir" }
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b", "c"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
            venue.licence = Licence(context: context)
        }
        let (parent, child) = stack.pair()
        func picture(_ context: NSManagedObjectContext) throws -> [String] {
            try context.performAndWait {
                let venue = try context.get(heir, Venue.self)
                return venue.photos.map { $0.isDeleted ? "deleted" : $0.title ?? "" }
                    + [venue.licence.map { $0.isDeleted ? "deleted" : "licence" } ?? "none"]
            }
        }
        try parent.performAndWait {
            parent.retainsRegisteredObjects = true
            if parentHasLoaded { _ = try parent.get(id, Venue.self).photos.map(\.title) }
        }
        try child.performAndWait {
            let (venue, heir) = (try child.get(id, Venue.self), try child.get(heir, Venue.self))
            venue.photos[1].venue = heir
            venue.photos[1].venue = nil
            venue.licence?.venue = heir
            child.processPendingChanges()
            child.delete(venue)
            try child.save()
        }
        try expectEqual(picture(parent), ["b", "licence"])
        try parent.saveAndWait()
        try expectEqual(picture(stack.context()), ["b", "licence"])
        try expectEqual(stack.count("Photo"), 2)
        try expectEqual(stack.count("Venue"), 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `a move that the parent has made too is no change of the child's any more`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cities, venue) = try prepare(stack)
        let (parent, child) = stack.pair()
        try move(venue, to: cities[1], in: child)
        try move(venue, to: cities[1], in: parent)
        child.performAndWait { child.refreshAllObjects() }
        try move(venue, to: cities[0], in: parent)
        child.performAndWait { child.refreshAllObjects() }
        try expectEqual(places(venue, cities, in: child), [0, 0])
        try child.saveAndWait()
        try expectEqual(places(venue, cities, in: parent), [0, 0])
        try parent.saveAndWait()
        try expectEqual(places(venue, cities, in: stack.context()), [0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `what was moved here and elsewhere is here where it was moved to, and nowhere else`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cities, venue) = try prepare(stack)
        let (parent, child) = stack.pair()
        try move(venue, to: cities[1], in: child)
        try move(venue, to: cities[2], in: parent)
        try child.performAndWait { child.refresh(try child.existingObject(with: venue), mergeChanges: true) }
        try expectEqual(places(venue, cities, in: child), [1, 1])
        try child.saveAndWait()
        try expectEqual(places(venue, cities, in: parent), [1, 1])
        try parent.saveAndWait()
        try expectEqual(places(venue, cities, in: stack.context()), [1, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `siblings that move one object leave it in one place`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cities, venue) = try prepare(stack)
        let parent = stack.context("parent")
        let (first, second) = (parent.child("first"), parent.child("second"))
        try move(venue, to: cities[1], in: first)
        try move(venue, to: cities[2], in: second)
        try first.saveAndWait()
        try second.saveAndWait()
        try expectEqual(places(venue, cities, in: parent), [2, 2])
        try move(venue, to: cities[0], in: first)
        try first.saveAndWait()
        try expectEqual(places(venue, cities, in: parent), [0, 0])
        try parent.saveAndWait()
        try expectEqual(places(venue, cities, in: stack.context()), [0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `a merge of a move leaves what was moved here in one place`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cities, venue) = try prepare(stack)
        let (context, other) = (stack.context(), stack.context("other"))
        context.automaticallyMergesChangesFromParent = true
        try move(venue, to: cities[1], in: context)
        try move(venue, to: cities[2], in: other)
        try other.saveAndWait()
        try expectEqual(places(venue, cities, in: context), [1, 1])
        try context.saveAndWait()
        try expectEqual(places(venue, cities, in: stack.context()), [1, 1])
        try move(venue, to: cities[0], in: context)
        try move(venue, to: cities[0], in: other)
        other.performAndWait { other.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump }
        try other.saveAndWait()
        try expectEqual(places(venue, cities, in: context), [0, 0])
        try move(venue, to: cities[2], in: other)
        try other.saveAndWait()
        try expectEqual(places(venue, cities, in: context), [2, 2])
    }

    @Test(arguments: StoreKind.allCases)
    func `an owner that has lost the member before is not reported as changed`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let (cities, venue) = try prepare(stack)
        let parent = stack.context("parent")
        let (first, second) = (parent.child("first"), parent.child("second"))
        try move(venue, to: cities[1], in: second)
        try move(venue, to: cities[2], in: first)
        try first.saveAndWait()
        try parent.saveAndWait()
        try second.saveAndWait()
        try expectEqual(places(venue, cities, in: parent), [1, 1])
        parent.performAndWait {
            expectEqual(Set(parent.updatedObjects.map(\.objectID)), [venue, cities[1], cities[2]])
        }
        try parent.saveAndWait()
        try expectEqual(places(venue, cities, in: stack.context()), [1, 1])
    }
}
