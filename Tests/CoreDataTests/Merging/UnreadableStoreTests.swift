import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

private typealias Tag = TestSupport.Tag

@Suite("Reads that fail where nothing can throw")
struct UnreadableStoreTests {
    private let broken: BreakableStack
    private var stack: Stack { broken.stack }

    init() throws { broken = try BreakableStack() }

    @Test func `a refresh that cannot read is reported, and neither changes nor conflicts are lost`() throws {
        let id = try stack.storeCity("old", population: 1)
        let context = stack.context()
        try context.insideQuietly {
            let city = try context.get(id, City.self)
            city.population = 5
            try stack.change(id, City.self) { city, _ in city.name = "new" }
            let log = NotificationLog([.NSManagedObjectContextObjectsDidChange], of: context)
            context.processPendingChanges()
            log.clear()
            try broken.withoutTable(.city) { context.refresh(city, mergeChanges: true) }
            expectEqual(broken.reported().count, 1)
            context.processPendingChanges()
            expect(log.entries.isEmpty)
            expect(city.name == "old" && city.population == 5)
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [city])
            context.refresh(city, mergeChanges: true)
            expect(city.name == "new" && city.population == 5 && broken.reported().isEmpty)
            try context.save()
        }
    }

    @Test func `a merge that cannot read leaves a fault, which shows the new values when it is read again`() throws {
        let ids = try ["plain", "edited"].map { try stack.storeCity($0, population: 1) }
        let context = stack.context()
        try context.insideQuietly {
            let cities = try ids.map { try context.get($0, City.self) }
            for city in cities { _ = city.name }
            cities[1].population = 5
            for id in ids { try stack.change(id, City.self) { city, _ in city.name += "!" } }
            try broken.withoutTable(.city) {
                NSManagedObjectContext.mergeChanges(
                    fromRemoteContextSave: [NSUpdatedObjectIDsKey: ids],
                    into: [context]
                )
            }
            expectEqual(broken.reported().count, 2)
            expect(cities[0].isFault && cities[0].name == "plain!")
            // Changes stay, with the version on which they were made.
            expect(cities[1].name == "edited" && cities[1].population == 5)
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [cities[1]])
        }
    }

    @Test func `objects with unknown changes become faults if they cannot be read`() throws {
        let ids = try ["plain", "edited"].map { try stack.storeCity($0, population: 1) }
        let context = stack.context()
        let entry = try require(stack.coordinator.openStores.first)
        try context.insideQuietly {
            let cities = try ids.map { try context.get($0, City.self) }
            for city in cities { _ = city.name }
            cities[1].population = 5
            for id in ids { try stack.change(id, City.self) { city, _ in city.name += "!" } }
            try broken.withoutTable(.city) { context.mergeUnknownChanges(of: entry) }
            expect(!broken.reported().isEmpty)
            expect(cities[0].isFault && cities[0].name == "plain!")
            expect(cities[1].name == "edited" && cities[1].population == 5)
            try expectEqual(context.versionConflictsOfSave().map(\.sourceObject), [cities[1]])
        }
    }

    @Test func `a deletion that a child cannot look up takes no object away`() throws {
        let (keptID, goneID) = (try stack.storeCity("kept"), try stack.storeCity("gone"))
        let (_, child) = stack.pair()
        let cities = try child.performAndWait {
            try [keptID, goneID].map { id in
                let city = try child.get(id, City.self)
                expectEqual(city.name.count, 4)
                return city
            }
        }
        try stack.delete(goneID)
        try child.insideQuietly {
            let ids = [keptID, goneID]
            try broken.withoutTable(.city) {
                NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSDeletedObjectIDsKey: ids], into: [child])
            }
            expect(!broken.reported().isEmpty)
            expect(!cities[0].isDeleted && !cities[1].isDeleted)
            expectEqual(cities[0].name, "kept")
            // An object that is really gone shows that when it is read.
            expect(cities[1].value(forKey: "name") == nil && cities[1].isDeleted)
        }
    }

    @Test func `a relationship that cannot be read stays a fault and keeps what was changed about it`() throws {
        let cityID = try stack.storeCity()
        let venueIDs = try (0..<3).map { number in
            try stack.store(Venue.self) { venue, context in
                venue.name = "\(number)"
                venue.city = context.object(with: cityID) as? City
                venue.tags = [Tag(context: context)]
            }
        }
        let context = stack.context()
        try context.insideQuietly {
            let city = try context.get(cityID, City.self)
            let venues = try venueIDs.map { try context.get($0, Venue.self) }
            for venue in venues { _ = venue.name }
            let tag = Tag(context: context)
            try broken.withoutTable(.venue) {
                expect(city.venues.isEmpty)
                expect(city.hasFault(forRelationshipNamed: "venues"))
            }
            expectEqual(broken.reported().count, 1)
            expectEqual(city.venues, Set(venues))
            try broken.withoutTable(.tagsOfVenues) {
                expect(venues[0].tags.isEmpty)
                venues[0].tags.insert(tag)
                expectEqual(venues[0].tags, [tag])
            }
            expect(!broken.reported().isEmpty)
            expectEqual(venues[0].tags.count, 2)
            try context.save()
        }
        try expectEqual(stack.read(venueIDs[0], Venue.self) { $0.tags.count }, 2)
    }

    @Test func `an order that cannot be read keeps a save from being made`() throws {
        let id = try stack.store(Venue.self) { venue, context in
            venue.photos = ["a", "b"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
        }
        let context = stack.context()
        try context.insideQuietly {
            let venue = try context.get(id, Venue.self)
            expectEqual(venue.name, nil)
            let photo = Photo(context: context)
            photo.title = "c"
            try broken.withoutTable(.photo) {
                venue.photos.append(photo)
                expectThrows(CocoaError.self) { try context.save() }
            }
            expectEqual(venue.photos.map(\.title), ["a", "b", "c"])
            try context.save()
        }
        try expectEqual(stack.read(id, Venue.self) { $0.photos.map(\.title) }, ["a", "b", "c"])
    }

    @Test(arguments: [true, false])
    func `a cascade that cannot be read is made up for, or else the save throws`(_ isLoaded: Bool) throws {
        let ids = try (0..<2).map { _ in
            try stack.store(Venue.self) { venue, context in venue.photos = [Photo(context: context)] }
        }
        let context = stack.context()
        try context.insideQuietly {
            let venues = try ids.map { try context.get($0, Venue.self) }
            for venue in venues where isLoaded { expectEqual(venue.name, nil) }
            try broken.withoutTable(isLoaded ? .photo : .venue) {
                context.delete(venues[0])
                context.processPendingChanges()
                expect(!broken.reported().isEmpty)
                expectThrows(CocoaError.self) { try context.save() }
            }
            expect(venues[0].isDeleted && context.hasChanges)
            // A second deletion comes before the save, which applies its rules as well.
            context.delete(venues[1])
            context.processPendingChanges()
            try context.save()
        }
        try expectEqual(stack.count("Photo"), 0)
        try expectEqual(stack.count("Venue"), 0)
    }

    @Test func `a relationship that denies deletion denies it also when it cannot be read`() throws {
        let id = try stack.store(User.self) { user, context in
            user.email = "boss"
            let report = User(context: context)
            report.email = "report"
            user.reports = [report]
        }
        let context = stack.context()
        try context.insideQuietly {
            let boss = try context.get(id, User.self)
            expectEqual(boss.email, "boss")
            context.delete(boss)
            try broken.withoutTable(.user) { () throws -> Void in
                #expect { try boss.validateForDelete() } throws: {
                    ($0 as? CocoaError)?.code != .validationRelationshipDeniedDelete
                }
            }
            #expect { try context.save() } throws: {
                ($0 as? CocoaError)?.code == .validationRelationshipDeniedDelete
            }
        }
    }
}
