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

@Suite("Answers that need what cannot be read")
struct FailedReadAnswerTests {
    private let broken: BreakableStack
    private var stack: Stack { broken.stack }
    private let cityID: NSManagedObjectID
    private let venueID: NSManagedObjectID

    init() throws {
        broken = try BreakableStack()
        cityID = try broken.stack.storeCity("Porto", population: 1000)
        venueID = try broken.stack.store(Venue.self) { venue, context in
            venue.name = "Cais"
            venue.tags = [Tag(context: context)]
        }
        try broken.stack.change(venueID, Venue.self) { [cityID] venue, context in
            venue.city = try context.get(cityID, City.self)
        }
        broken.stack.coolDown()
    }

    // MARK: - Blocks that run anew

    @Test func `a block that may run anew fails, and leaves no change`() async throws {
        let context = stack.context(.objectTrump)
        try broken.hide(.city)
        let error = expectThrows(CocoaError.self) {
            _ = try context.performAndWait(retrying: 3) { () throws -> Int64 in
                let city: City = try typed(context.object(with: cityID))
                return city.population
            }
        }
        expectEqual(error.flatMap { CoreDataFailure($0) }, .environment)
        do {
            _ = try await context.perform(retrying: 3) { () throws -> Int64 in
                let city: City = try typed(context.object(with: cityID))
                city.population += 10
                return city.population
            }
            Issue.record("The block has returned.")
        } catch {
            expectEqual(CoreDataFailure(error), .environment)
        }
        try broken.show(.city)
        context.performAndWait { expect(!context.hasChanges) }
        let population = try await context.perform(retrying: 3) { () throws -> Int64 in
            let city: City = try typed(context.object(with: cityID))
            city.population += 10
            return city.population
        }
        expectEqual(population, 1010)
        try expectEqual(stack.read(cityID, City.self) { $0.population }, 1010)
    }

    // MARK: - Fetches

    @Test(arguments: [true, false])
    func `a fetch that is answered in memory throws, and so does a count`(_ isCount: Bool) throws {
        let context = stack.context()
        try context.insideQuietly {
            // A pending change of the other entity lets everything be looked at in memory.
            City(context: context).name = "Faro"
            let request = Guide.venues("city.name == 'Porto'", sortedBy: "name")
            func ask() throws -> Int { try isCount ? context.count(for: request) : context.fetch(request).count }
            try broken.withoutTable(.city) {
                let error = expectThrows(CocoaError.self) { _ = try ask() }
                expectEqual(error.flatMap { CoreDataFailure($0) }, .environment)
            }
            expectEqual(try ask(), 1)
            try context.save()
        }
    }

    @Test(arguments: [BreakableStack.Table.city, .photo, .tagsOfVenues], [0, 1])
    func `a fetch that cannot prefetch throws, or reads the relationship when it is used`(
        _ table: BreakableStack.Table,
        _ batchSize: Int
    ) throws {
        let context = stack.context()
        try context.insideQuietly {
            let request = Guide.venues(sortedBy: "name")
            request.relationshipKeyPathsForPrefetching = ["city", "photos", "tags"]
            request.fetchBatchSize = batchSize
            try broken.withoutTable(table) {
                let error = expectThrows(CocoaError.self) {
                    try context.performAndWait { () throws in
                        let venue = try require(context.fetch(request).first)
                        _ = (venue.name, venue.city?.name, venue.photos.count, venue.tags.count)
                    }
                }
                expectEqual(error.flatMap { CoreDataFailure($0) }, .environment)
            }
            let venue = try require(context.fetch(request).first)
            expect(venue.city?.name == "Porto" && venue.tags.count == 1 && venue.photos.isEmpty)
        }
    }

    @Test func `a fetch inside of a predicate that cannot be made fails the block and the save`() throws {
        let context = stack.context()
        let request = NSFetchRequest<City>(entityName: "City")
        let fetch = NSFetchRequestExpression.expression(
            forFetch: NSExpression(forConstantValue: request),
            context: NSExpression(forConstantValue: context),
            countOnly: true
        )
        let predicate = NSComparisonPredicate(
            leftExpression: fetch,
            rightExpression: NSExpression(forConstantValue: 0),
            modifier: .direct,
            type: .greaterThan
        )
        try broken.hide(.city)
        expectThrows(CocoaError.self) {
            try context.performAndWait { () throws in
                let venue = try context.get(venueID, Venue.self)
                if !predicate.evaluate(with: venue) { venue.name = "in no city" }
            }
        }
        try context.performAndWait { () throws in
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error.flatMap { CoreDataFailure($0) }, .environment)
        }
        try broken.show(.city)
        try context.performAndWait { () throws in
            context.rollback()
            let venue = try context.get(venueID, Venue.self)
            expect(predicate.evaluate(with: venue) && venue.name == "Cais")
            venue.price = 3
            try context.save()
        }
    }

    // MARK: - Results

    @Test func `a controller keeps its results while it cannot judge a change, and catches up`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let controller = Guide.controller(Guide.venues("city.name == 'Porto'", sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.names, ["Cais"])
            let venue = try context.get(venueID, Venue.self)
            venue.price = 1
            try broken.withoutTable(.city) {
                if let city = venue.city { context.refresh(city, mergeChanges: false) }
                stack.coolDown()
                context.processPendingChanges()
                expectEqual(controller.fetchedObjects?.count, 1)
            }
            expect(recorder.take().isEmpty)
            expect(!broken.reported().isEmpty)
            venue.price = 2
            context.processPendingChanges()
            expectEqual(controller.names, ["Cais"])
            expectEqual(recorder.take(), ["Cais update 0/0 0/0"])
        }
    }

    @Test func `a controller that cannot read what sections are named after throws`() throws {
        let context = stack.context()
        try context.insideQuietly {
            City(context: context).name = "Faro"
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context, sections: "city.name")
            try broken.withoutTable(.city) { expectThrows(CocoaError.self) { try controller.performFetch() } }
            expect(controller.fetchedObjects == nil)
            try controller.performFetch()
            expectEqual(controller.outline, ["Porto: Cais"])
        }
    }

    // MARK: - What is made good

    @Test func `members that a fetch has brought are read`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let venue: Venue = try typed(context.object(with: venueID))
            _ = venue.name
            try broken.withoutTable(.tagsOfVenues) { venue.price = Int16(venue.tags.count) }
            expectThrows(CocoaError.self) { try context.save() }
            let request = Guide.venues(sortedBy: "name")
            request.relationshipKeyPathsForPrefetching = ["tags"]
            _ = try context.fetch(request)
            venue.price = Int16(venue.tags.count)
            try context.save()
        }
        try expectEqual(stack.read(venueID, Venue.self) { $0.price }, 1)
    }

    @Test func `a fetched property that was fetched again is read`() throws {
        let model = GuideModel.make()
        let property = NSFetchedPropertyDescription()
        property.name = "here"
        let template = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
        template.predicate = NSPredicate(format: "city == $FETCH_SOURCE")
        property.fetchRequest = template
        try require(model.entitiesByName["City"]).properties.append(property)
        let broken = try BreakableStack(model: model)
        let id = try broken.stack.storeCity("Porto", population: 1000)
        let context = broken.stack.context()
        try context.insideQuietly {
            let city = try context.get(id, City.self)
            func count() -> Int64 { Int64((city.value(forKey: "here") as? [Venue])?.count ?? -1) }
            try broken.withoutTable(.venue) { city.population = count() }
            expectThrows(CocoaError.self) { try context.save() }
            city.population = count() + 7
            try context.save()
        }
        try expectEqual(broken.stack.read(id, City.self) { $0.population }, 7)
    }

    // MARK: - Children

    @Test func `a child sees nothing of what its parent has written over a row that it could not read`() throws {
        let (parent, child) = stack.pair()
        try broken.withoutTable(.city) {
            parent.performAndWait { (parent.object(with: cityID) as? City)?.population += 10 }
        }
        expectThrows(CocoaError.self) {
            try child.performAndWait { () throws in
                let city: City = try typed(child.object(with: cityID))
                city.population += 1
            }
        }
        _ = child.performAndWait { expectThrows(CocoaError.self) { _ = try child.existingObject(with: cityID) } }
        parent.performAndWait { parent.rollback() }
        try child.performAndWait { () throws in
            expectThrows(CocoaError.self) { try child.save() }
            child.rollback()
            let city: City = try typed(child.object(with: cityID))
            city.population += 1
            try child.save()
        }
        try parent.performAndWait { () throws in try parent.save() }
        try expectEqual(stack.read(cityID, City.self) { $0.population }, 1001)
    }
}
