import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles

private typealias Tag = TestSupport.Tag

@Suite("Reads that fail in a block")
struct FailedReadTests {
    /// One way to read something that cannot be read.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let table: BreakableStack.Table
        let read: @Sendable (City, Venue) -> Void
    }

    static let ways: [Way] = [
        Way(testDescription: "a text", table: .city) { city, _ in _ = city.name },
        Way(testDescription: "a number", table: .city) { city, _ in _ = city.population },
        Way(testDescription: "by its key", table: .city) { city, _ in _ = city.value(forKey: "name") },
        Way(testDescription: "a primitive value", table: .city) { city, _ in _ = city.primitiveValue(forKey: "name") },
        Way(testDescription: "committed values", table: .city) { city, _ in _ = city.committedValues(forKeys: ["name"])
        },
        Way(testDescription: "a key path", table: .city) { _, venue in _ = venue.value(forKeyPath: "city.name") },
        Way(testDescription: "a to-one", table: .venue) { _, venue in _ = venue.city },
        Way(testDescription: "a date", table: .venue) { _, venue in _ = venue.createdAt },
        Way(testDescription: "a decimal", table: .venue) { _, venue in _ = venue.rating },
        Way(testDescription: "a to-many", table: .venue) { city, _ in _ = city.venues },
        Way(testDescription: "a to-many by its key", table: .venue) { city, _ in _ = city.value(forKey: "venues") },
        Way(testDescription: "a mutable set", table: .venue) { city, _ in
            _ = city.mutableSetValue(forKey: "venues").count
        },
        Way(testDescription: "an ordered to-many", table: .photo) { _, venue in _ = venue.photos },
        Way(testDescription: "a many-to-many", table: .tagsOfVenues) { _, venue in _ = venue.tags },
        Way(testDescription: "an aggregate", table: .venue) { city, _ in _ = city.value(forKeyPath: "venues.@count") },
        Way(testDescription: "a predicate", table: .city) { city, _ in
            _ = NSPredicate(format: "name == ''").evaluate(with: city)
        },
        Way(testDescription: "a write", table: .city) { city, _ in city.population += 10 },
    ]

    private let broken: BreakableStack
    private var stack: Stack { broken.stack }
    private let cityID: NSManagedObjectID
    private let venueID: NSManagedObjectID

    init() throws {
        broken = try BreakableStack()
        cityID = try broken.stack.storeCity("Porto", population: 1000)
        venueID = try broken.stack.store(Venue.self) { venue, context in
            venue.name = "Cais"
            venue.createdAt = Date(timeIntervalSinceReferenceDate: 1)
            venue.rating = 1
            venue.photos = [Photo(context: context)]
            venue.tags = [Tag(context: context)]
        }
        try broken.stack.change(venueID, Venue.self) { [cityID] venue, context in
            venue.city = try context.get(cityID, City.self)
        }
        broken.stack.coolDown()
    }

    private func faults(_ context: NSManagedObjectContext) throws -> (City, Venue) {
        (try typed(context.object(with: cityID)), try typed(context.object(with: venueID)))
    }

    // MARK: - The block

    @Test(arguments: ways)
    func `fail the block, which throws at its end`(_ way: Way) throws {
        let context = stack.context()
        let ended = Shared(false)
        let error: (any Error)? = try broken.withoutTable(way.table) {
            do {
                try context.performAndWait { () throws in
                    let (city, venue) = try faults(context)
                    if way.table != .city { _ = city.name }
                    if way.table != .venue { _ = venue.name }
                    way.read(city, venue)
                    ended.update { $0 = true }
                }
                return nil
            } catch {
                return error
            }
        }
        // The code inside the block has not been interrupted.
        expect(ended.current)
        expectEqual(CoreDataFailure(try require(error)), .environment)
        expectEqual(broken.reported().isEmpty, false)
        // The next block answers for itself only.
        try context.performAndWait { () throws in
            context.rollback()
            let (city, venue) = try faults(context)
            expect(city.name == "Porto" && city.population == 1000 && venue.name == "Cais" && venue.city === city)
            expectEqual([venue.photos.count, venue.tags.count, city.venues.count], [1, 1, 1])
        }
    }

    @Test func `fail an awaited block`() async throws {
        let context = stack.context()
        try broken.hide(.city)
        do {
            let name = try await context.perform { () throws -> String in
                let city: City = try typed(context.object(with: cityID))
                return city.name
            }
            Issue.record("The block has returned \(name).")
        } catch {
            expectEqual(CoreDataFailure(error), .environment)
        }
        try broken.show(.city)
        let name = try await context.perform { () throws -> String in
            let city: City = try typed(context.object(with: cityID))
            return city.name
        }
        expectEqual(name, "Porto")
    }

    @Test func `fail a background task`() async throws {
        let container = NSPersistentContainer(name: "guide", managedObjectModel: GuideModel.make())
        let description = NSPersistentStoreDescription(url: stack.storeURL)
        description.type = stack.kind.type.rawValue
        container.persistentStoreDescriptions = [description]
        container.loadPersistentStores { _, error in expect(error == nil) }
        let coordinator = container.persistentStoreCoordinator
        coordinator.unreportableErrorHandler = { _, _ in }
        let id = try require(coordinator.managedObjectID(forURIRepresentation: cityID.uriRepresentation()))
        try broken.hide(.city)
        do {
            let name = try await container.performBackgroundTask { context -> String in
                let city: City = try typed(context.object(with: id))
                return city.name
            }
            Issue.record("The task has returned \(name).")
        } catch {
            expectEqual(CoreDataFailure(error), .environment)
        }
        try broken.show(.city)
        let name = try await container.performBackgroundTask { context -> String in
            let city: City = try typed(context.object(with: id))
            return city.name
        }
        expectEqual(name, "Porto")
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    @Test func `a block that throws by itself throws its own error`() throws {
        struct Own: Error {}
        let context = stack.context()
        try broken.withoutTable(.city) {
            expectThrows(Own.self) {
                try context.performAndWait {
                    let city: City = try typed(context.object(with: cityID))
                    _ = city.name
                    throw Own()
                }
            }
        }
        // Nothing is left of it for the next one.
        try context.performAndWait { () throws in try expectEqual(context.count(for: citiesByName()), 1) }
    }

    @Test func `an inner block throws for itself, and one that cannot throw leaves that to the outer block`() throws {
        let context = stack.context()
        try broken.withoutTable(.city) {
            try context.performAndWait { () throws in
                let city: City = try typed(context.object(with: cityID))
                var caught = 0
                do {
                    try context.performAndWait { () throws in _ = city.name }
                } catch {
                    caught += 1
                }
                // It was handled here.
                expectEqual(caught, 1)
            }
            expectThrows(CocoaError.self) {
                try context.performAndWait { () throws in
                    let city: City = try typed(context.object(with: cityID))
                    expectEqual(context.performAndWait { city.name }, "")
                }
            }
            // Nothing around it can throw: as before, the error is reported only.
            _ = broken.reported()
            let population = context.performAndWait { (context.object(with: cityID) as? City)?.population }
            expectEqual(population, 0)
            expectEqual(broken.reported().count, 1)
        }
    }

    // MARK: - Saves

    @Test(arguments: Policy.allCases)
    func `nothing that was computed from them is saved, under any policy`(_ policy: Policy) throws {
        let context = stack.context(policy)
        let other = try stack.storeCity("Faro", population: 7)
        stack.coolDown()
        try broken.withoutTable(.city) {
            context.performAndWait {
                let city = context.object(with: cityID) as? City
                city?.population += 10
            }
        }
        try context.performAndWait { () throws in
            for _ in 0..<2 {
                let error = try require(expectThrows(CocoaError.self) { try context.save() })
                expectEqual(error.code, .persistentStoreSave)
                expectEqual(CoreDataFailure(error), .environment)
                expectEqual(
                    error.userInfo[NSAffectedObjectsErrorKey] as? [NSManagedObject],
                    [context.object(with: cityID)]
                )
                expect(error.userInfo[NSUnderlyingErrorKey] is any Error)
            }
            let city: City = try typed(context.object(with: cityID))
            // A merging refresh, or a read, would leave the number that was computed.
            context.refresh(city, mergeChanges: true)
            expectThrows(CocoaError.self) { try context.save() }
            try expectEqual(stack.read(cityID, City.self) { $0.population }, 1000)
            context.rollback()
            expect(city.name == "Porto" && city.population == 1000 && !context.hasChanges)
            city.population += 10
            try context.save()
            try expectEqual(stack.read(cityID, City.self) { $0.population }, 1010)
            try expectEqual(stack.read(other, City.self) { $0.population }, 7)
        }
    }

    @Test func `a save waits until what the program has looked at was read`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let (city, venue) = try faults(context)
            expectEqual(venue.price, 0)
            try broken.withoutTable(.city) {
                // Computed from zero.
                venue.price = Int16(city.population + 1)
            }
            expectThrows(CocoaError.self) { try context.save() }
            expectThrows(CocoaError.self) { try context.save() }
            venue.price = Int16(city.population + 1)
            try context.save()
        }
        try expectEqual(stack.read(venueID, Venue.self) { $0.price }, 1001)
    }

    @Test func `a sum of a read that failed and a write that did not is not saved`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let (city, _) = try faults(context)
            let population = try broken.withoutTable(.city) { city.population }
            // As one statement does if the read fails once: the write reads the row.
            city.population = population + 10
            expectEqual(city.name, "Porto")
            expectThrows(CocoaError.self) { try context.save() }
            context.refresh(city, mergeChanges: true)
            expectThrows(CocoaError.self) { try context.save() }
            context.rollback()
            city.population += 10
            try context.save()
        }
        try expectEqual(stack.read(cityID, City.self) { $0.population }, 1010)
    }

    @Test func `a block after the one that failed may write without reading`() throws {
        let context = stack.context()
        expectThrows(CocoaError.self) {
            try broken.withoutTable(.city) {
                try context.performAndWait { () throws in
                    let (city, _) = try faults(context)
                    _ = city.population
                }
            }
        }
        try context.performAndWait { () throws in
            let (city, _) = try faults(context)
            city.population = 5
            try context.save()
        }
        try expectEqual(stack.read(cityID, City.self) { $0.population }, 5)
    }

    @Test(arguments: [BreakableStack.Table.photo, .tagsOfVenues])
    func `members that were not read are not replaced`(_ table: BreakableStack.Table) throws {
        let context = stack.context(.objectTrump)
        try context.insideQuietly {
            let (_, venue) = try faults(context)
            _ = venue.name
            try broken.withoutTable(table) {
                venue.name = "\(venue.photos.count) \(venue.tags.count)"
            }
            expectThrows(CocoaError.self) { try context.save() }
            context.refresh(venue, mergeChanges: false)
            expectEqual([venue.photos.count, venue.tags.count], [1, 1])
            venue.name = "\(venue.photos.count) \(venue.tags.count)"
            try context.save()
        }
        try expectEqual(stack.read(venueID, Venue.self) { $0.name }, "1 1")
    }

    @Test func `reset() forgets them`() throws {
        let context = stack.context()
        try context.insideQuietly {
            try broken.withoutTable(.city) { _ = (context.object(with: cityID) as? City)?.name }
            context.reset()
            City(context: context).name = "Faro"
            try context.save()
        }
        try expectEqual(stack.count("City"), 2)
    }

    @Test func `a child whose parent cannot read saves nothing into it`() throws {
        let (parent, child) = stack.pair()
        expectThrows(CocoaError.self) {
            try broken.withoutTable(.city) {
                try child.performAndWait { () throws in
                    let city: City = try typed(child.object(with: cityID))
                    city.population += 10
                }
            }
        }
        try child.performAndWait { () throws in
            let error = expectThrows(CocoaError.self) { try child.save() }
            expectEqual(error.flatMap { CoreDataFailure($0) }, .environment)
        }
        parent.performAndWait { expect(!parent.hasChanges) }
        try child.performAndWait { () throws in
            child.rollback()
            let city: City = try typed(child.object(with: cityID))
            city.population += 10
            try child.save()
        }
        try parent.performAndWait { () throws in try parent.save() }
        try expectEqual(stack.read(cityID, City.self) { $0.population }, 1010)
    }

    @Test func `what was read before is saved, if nothing failed`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let (city, _) = try faults(context)
            _ = city.name
            try broken.withoutTable(.venue) { _ = city.venues.count }
            // Nothing has changed: there is nothing to refuse.
            try context.save()
            expectEqual(city.venues.count, 1)
            city.population = 5
            try context.save()
        }
        try expectEqual(stack.read(cityID, City.self) { $0.population }, 5)
    }
}
