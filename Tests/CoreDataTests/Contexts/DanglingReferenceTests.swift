import CoreData
import Expectations
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

private typealias Tag = TestSupport.Tag

@Suite("Relationships to objects that the context itself has deleted")
struct DanglingReferenceTests {
    @Test(arguments: StoreKind.allCases, [true, false])
    func `that are set after the delete rules have run fail the save, until they are set otherwise`(
        _ kind: StoreKind,
        _ isStored: Bool
    ) throws {
        let stack = try Stack(kind)
        let cityID = try isStored ? stack.storeCity("gone") : nil
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        try context.performAndWait {
            let city = try cityID.map { try context.get($0, City.self) } ?? City(context: context)
            let venue = try context.get(venueID, Venue.self)
            context.delete(city)
            context.processPendingChanges()
            venue.city = city
            let error = try #require(throws: CocoaError.self) { try context.save() }
            expectEqual(error.code, .managedObjectValidation)
            expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "city")
            expect(error.userInfo[NSValidationObjectErrorKey] as? Venue === venue)
            expect(venue.city === city && city.isDeleted)
            venue.city = nil
            try context.save()
        }
        try stack.inContext { context in
            expect(try context.get(venueID, Venue.self).city == nil)
            try expectEqual(context.count(for: NSFetchRequest<City>(entityName: "City")), 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `to many, that get such a member after the delete rules have run, fail the save`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let tagID = try stack.store(Tag.self) { tag, _ in tag.title = "gone" }
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        for fromVenue in [true, false] {
            try context.performAndWait {
                defer { context.rollback() }
                let tag = try context.get(tagID, Tag.self)
                let venue = try context.get(venueID, Venue.self)
                context.delete(tag)
                context.processPendingChanges()
                if fromVenue { venue.tags.insert(tag) } else { tag.venues.insert(venue) }
                let error = try #require(throws: CocoaError.self) { try context.save() }
                expectEqual(error.code, .managedObjectValidation)
                expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "tags")
            }
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `from an owner, that gets such a member after the delete rules have run, fail the save`(
        _ kind: StoreKind,
        _ isStored: Bool
    ) throws {
        for isLoaded in [true, false] {
            let stack = try Stack(kind)
            let cityID = try stack.storeCity("Porto")
            let venueID = try isStored ? stack.store(Venue.self) { venue, _ in venue.name = "gone" } : nil
            let context = stack.context()
            try context.performAndWait {
                let city = try context.get(cityID, City.self)
                let venue = try venueID.map { try context.get($0, Venue.self) } ?? Venue(context: context)
                if isLoaded { expect(city.venues.isEmpty) }
                context.delete(venue)
                context.processPendingChanges()
                city.venues.insert(venue)
                let error = try #require(throws: CocoaError.self) { try context.save() }
                expectEqual(error.code, .managedObjectValidation)
                expectEqual(error.userInfo[NSValidationKeyErrorKey] as? String, "venues")
                expect(error.userInfo[NSValidationObjectErrorKey] as? City === city)
                expect(error.userInfo[NSValidationValueErrorKey] as? Venue === venue)
                expect(venue.isDeleted)
                city.venues.remove(venue)
                try context.save()
                expect(city.venues.isEmpty && !context.hasChanges)
            }
            try expectEqual(stack.read(cityID, City.self) { $0.venues.count }, 0)
            try expectEqual(stack.count("Venue"), 0)
            try expectEqual(stack.problems(), [])
        }
    }

    @Test(arguments: StoreKind.allCases, Policy.resolving)
    func `to what another context has deleted are a conflict, which the policy resolves`(
        _ kind: StoreKind,
        _ policy: Policy
    ) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone")
        let otherID = try stack.storeCity("deleted here")
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context(policy)
        try context.performAndWait {
            let city = try context.get(cityID, City.self)
            expectEqual(city.name, "gone")
            let venue = try context.get(venueID, Venue.self)
            venue.city = city
            venue.name = "ours"
            context.delete(try context.get(otherID, City.self))
            // The venue conflicts as well, so it is validated again, beside the conflict over the missing city.
            try stack.change(venueID, Venue.self) { venue, _ in venue.name = "theirs" }
            try stack.delete(cityID)
            try context.save()
            expectEqual(venue.city?.name, policy.memoryWins ? "gone" : nil)
            expectEqual(venue.name, policy.memoryWins ? "ours" : "theirs")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `to a fault that turns out to be deleted by another are a conflict, beside deletions`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone")
        let otherID = try stack.storeCity("deleted here")
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        try context.performAndWait {
            let city = try context.get(cityID, City.self)
            let venue = try context.get(venueID, Venue.self)
            venue.city = city
            context.delete(try context.get(otherID, City.self))
            try stack.delete(cityID)
            expect(city.isFault)
            _ = city.name
            expect(city.isDeleted)
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [city])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `that were set before are what the delete rules make of them`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let cityID = try stack.storeCity("gone")
        let tagID = try stack.store(Tag.self) { tag, _ in tag.title = "gone" }
        let venueID = try stack.store(Venue.self) { venue, _ in venue.name = "bar" }
        let context = stack.context()
        try context.performAndWait {
            let venue = try context.get(venueID, Venue.self)
            venue.city = try context.get(cityID, City.self)
            venue.tags.insert(try context.get(tagID, Tag.self))
            context.delete(try context.get(cityID, City.self))
            context.delete(try context.get(tagID, Tag.self))
            try context.save()
        }
        try stack.inContext { context in
            let venue = try context.get(venueID, Venue.self)
            expect(venue.city == nil && venue.tags.isEmpty)
        }
    }
}
