import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@ManagedComposite
struct BureauAddress: Equatable {
    var street: String = ""
    var number: Int16?
}

/// An object with a property of each kind that is made of stored values.
@ManagedObject
final class Bureau: NSManagedObject {
    @Managed var name: String
    @Managed var floors: Int64
    @Managed var address: BureauAddress?
    @Managed(.derived(from: "uppercase:(name)")) var upper: String?
    @Managed(.transient) var label: String?

    /// The name in small letters, which a transient property keeps once it was made.
    var small: String {
        if let label = primitiveValue(forKey: "label") as? String { return label }
        let made = name.lowercased()
        setPrimitiveValue(made, forKey: "label")
        return made
    }
}

@Suite("Reads that fail of values that are made of others")
struct FailedReadKindTests {
    /// One way to read something that cannot be read.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let read: @Sendable (Bureau) -> Void
    }

    static let ways: [Way] = [
        Way(testDescription: "a composite") { _ = $0.address },
        Way(testDescription: "an element of a composite") { _ = $0.address?.street },
        Way(testDescription: "a composite by its key") { _ = $0.value(forKey: "address") },
        Way(testDescription: "an element by its key path") { _ = $0.value(forKeyPath: "address.street") },
        Way(testDescription: "a composite as a primitive value") { _ = $0.primitiveValue(forKey: "address") },
        Way(testDescription: "an element in a predicate") {
            _ = NSPredicate(format: "address.street == ''").evaluate(with: $0)
        },
        Way(testDescription: "a write of an element") { $0.setValue("Rua", forKeyPath: "address.street") },
        Way(testDescription: "a derived attribute") { _ = $0.upper },
        Way(testDescription: "a derived attribute by its key") { _ = $0.value(forKey: "upper") },
        Way(testDescription: "a transient attribute") { _ = $0.label },
        Way(testDescription: "a transient attribute by its key") { _ = $0.value(forKey: "label") },
        Way(testDescription: "an accessor that reads a stored attribute") { _ = $0.small },
    ]

    private let broken: BreakableStack
    private var stack: Stack { broken.stack }
    private let id: NSManagedObjectID
    private let otherID: NSManagedObjectID

    init() throws {
        broken = try BreakableStack(model: try NSManagedObjectModel(for: Bureau.self))
        id = try broken.stack.store(Bureau.self) { bureau, _ in
            bureau.name = "Hq"
            bureau.floors = 1000
            bureau.address = BureauAddress(street: "Main", number: 3)
        }
        otherID = try broken.stack.store(Bureau.self) { bureau, _ in
            bureau.name = "Other"
            bureau.floors = 1
        }
        broken.stack.coolDown()
    }

    @Test(arguments: ways)
    func `fail the block, and the save of what may have been computed from them`(_ way: Way) throws {
        let context = stack.context(.objectTrump)
        let failure = expectThrows(CocoaError.self) {
            try broken.withoutTable(.bureau) {
                try context.performAndWait { () throws in way.read(try context.get(id, Bureau.self)) }
            }
        }
        expectEqual(failure.flatMap { CoreDataFailure($0) }, .environment)
        expect(!broken.reported().isEmpty)
        try context.performAndWait { () throws in
            let other = try context.get(otherID, Bureau.self)
            other.floors += 1
            let error = try require(expectThrows(CocoaError.self) { try context.save() })
            expectEqual(error.code, .persistentStoreSave)
            expectEqual(CoreDataFailure(error), .environment)
            expectEqual(
                error.userInfo[NSAffectedObjectsErrorKey] as? [NSManagedObject],
                [context.object(with: id)]
            )
            context.rollback()
            let bureau = try context.get(id, Bureau.self)
            expect(bureau.address == BureauAddress(street: "Main", number: 3) && bureau.floors == 1000)
            expect(bureau.upper == "HQ" && bureau.small == "hq")
            bureau.floors += 10
            other.floors += 1
            try context.save()
        }
        try expectEqual(stack.read(id, Bureau.self) { $0.floors }, 1010)
        try expectEqual(stack.read(otherID, Bureau.self) { $0.floors }, 2)
        try expectEqual(stack.read(id, Bureau.self) { $0.address?.street }, "Main")
    }

    @Test func `what an accessor has kept of a missing value goes when the row is read`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let bureau = try context.get(id, Bureau.self)
            try broken.withoutTable(.bureau) { expectEqual(bureau.small, "") }
            expect(!broken.reported().isEmpty)
            let other = try context.get(otherID, Bureau.self)
            other.name = bureau.small
            try context.save()
            // A value that is set now stays.
            bureau.label = "own"
            expectEqual(bureau.small, "own")
        }
        try expectEqual(stack.read(otherID, Bureau.self) { $0.name }, "hq")
    }

    @Test func `a derived attribute is computed by the save that the context makes after all`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let bureau = try context.get(id, Bureau.self)
            try broken.withoutTable(.bureau) { bureau.name += "2" }
            expectThrows(CocoaError.self) { try context.save() }
            context.refresh(bureau, mergeChanges: false)
            bureau.name += "2"
            try context.save()
            expectEqual(bureau.upper, "HQ2")
        }
    }
}

@Suite("Reads that fail while results are brought up to date")
struct FailedReadResultTests {
    private let broken: BreakableStack
    private var stack: Stack { broken.stack }
    private let venueID: NSManagedObjectID

    init() throws {
        broken = try BreakableStack()
        venueID = try broken.stack.store(Venue.self) { venue, _ in venue.name = "Cais" }
    }

    /// Stores more venues.
    private func store(_ names: String...) throws {
        for name in names { _ = try stack.store(Venue.self) { venue, _ in venue.name = name } }
        stack.coolDown()
    }

    // MARK: - Controllers

    @Test func `a controller drops no result when a merged change cannot be read`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let controller = Guide.controller(Guide.venues("price < 5", sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            expectEqual(controller.names, ["Cais"])
            try stack.change(venueID, Venue.self) { venue, _ in venue.price = 1 }
            try broken.withoutTable(.venue) {
                NSManagedObjectContext.mergeChanges(
                    fromRemoteContextSave: [NSUpdatedObjectIDsKey: [venueID]],
                    into: [context]
                )
                context.processPendingChanges()
                expectEqual(controller.fetchedObjects?.count, 1)
            }
            expect(!broken.reported().isEmpty)
            expect(recorder.take().isEmpty)
            let venue = try context.get(venueID, Venue.self)
            expectEqual(venue.price, 1)
            venue.price = 9
            context.processPendingChanges()
            expectEqual(controller.names, [])
            expectEqual(recorder.take(), ["Cais delete 0/0 -"])
        }
    }

    @Test func `a controller that cannot compare objects keeps all, and orders them at the next event`() throws {
        try store("Bar", "Doca")
        let context = stack.context()
        try context.insideQuietly {
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            // The rows that the fetch has brought are not the newest any more.
            try stack.change(venueID, Venue.self) { venue, _ in venue.price = 9 }
            try broken.withoutTable(.venue) {
                Guide.venue("Clube", in: context)
                context.processPendingChanges()
                expectEqual(controller.fetchedObjects?.count, 4)
            }
            expect(!broken.reported().isEmpty)
            expectEqual(recorder.take().count, 1)
            Guide.venue("Esplanada", in: context)
            context.processPendingChanges()
            expectEqual(controller.names, ["Bar", "Cais", "Clube", "Doca", "Esplanada"])
            recorder.expectCopy(of: controller)
            expect(broken.reported().isEmpty)
        }
    }

    @Test func `a controller whose fetch after a reset has failed fetches at the next event`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let controller = Guide.controller(Guide.venues(sortedBy: "name"), context)
            let recorder = ResultsRecorder()
            try recorder.start(controller)
            try broken.withoutTable(.venue) { context.reset() }
            expect(controller.fetchedObjects == nil)
            expect(!broken.reported().isEmpty)
            Guide.venue("Bar", in: context)
            context.processPendingChanges()
            expectEqual(controller.names, ["Bar", "Cais"])
            expect(broken.reported().isEmpty)
            expect(recorder.take().isEmpty)
        }
    }

    // MARK: - Live results

    @Test func `live results whose fetch fails throw, and another loop goes on`() async throws {
        let context = stack.context()
        var results = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(results.next()?.objectIDs, [venueID])
        try stack.change(venueID, Venue.self) { venue, _ in venue.price = 3 }
        try broken.hide(.venue)
        do {
            _ = try await results.next()
            Issue.record("There is a snapshot of what cannot be read.")
        } catch {
            expectEqual(CoreDataFailure(error), .environment)
        }
        try broken.show(.venue)
        var others = context.results(for: Guide.venues(sortedBy: "name")).makeAsyncIterator()
        try await expectEqual(others.next()?.objectIDs, [venueID])
    }

    // MARK: - Batches

    private func batches(of size: Int) -> NSFetchRequest<Venue> {
        let request = Guide.venues(sortedBy: "name")
        request.fetchBatchSize = size
        return request
    }

    @Test func `a batch of an array that cannot be read fails the block, and drops no object`() throws {
        try store("Bar", "Doca")
        let context = stack.context()
        try context.insideQuietly {
            let venues = try context.fetch(batches(of: 2))
            try broken.withoutTable(.venue) {
                expectThrows(CocoaError.self) { try context.performAndWait { () throws in _ = venues.map(\.name) } }
                expect(venues.allSatisfy { $0.isFault && !$0.isDeleted })
            }
            expect(!broken.reported().isEmpty)
            City(context: context).name = "Faro"
            expectThrows(CocoaError.self) { try context.save() }
            expectEqual(venues.map(\.name), ["Bar", "Cais", "Doca"])
            try context.save()
        }
    }

    @Test func `a batch of batched results that cannot be read fails the block, and drops no object`() throws {
        try store("Bar", "Doca")
        let context = stack.context()
        try context.insideQuietly {
            let results = try context.batchedResults(for: batches(of: 2))
            try broken.withoutTable(.venue) {
                expectThrows(CocoaError.self) { try context.performAndWait { () throws in _ = results[0].name } }
                expectEqual(results.count, 3)
            }
            expect(!broken.reported().isEmpty)
            expectEqual(results.map(\.name), ["Bar", "Cais", "Doca"])
            City(context: context).name = "Faro"
            try context.save()
        }
    }

    @Test func `a batch that was to refresh objects, and cannot, fails the block`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let venue = try context.get(venueID, Venue.self)
            expectEqual(venue.name, "Cais")
            try stack.change(venueID, Venue.self) { venue, _ in venue.name = "Doca" }
            let request = batches(of: 2)
            request.shouldRefreshRefetchedObjects = true
            let results = try context.batchedResults(for: request)
            try broken.withoutTable(.venue) {
                expectThrows(CocoaError.self) { try context.performAndWait { () throws in _ = results[0] } }
            }
            expect(!broken.reported().isEmpty)
            expectEqual(venue.name, "Cais")
            let others = try context.batchedResults(for: request)
            expect(others[0] === venue && venue.name == "Doca")
        }
    }

    @Test func `batch requests do what they are asked to after a read has failed`() throws {
        let context = stack.context()
        try context.insideQuietly {
            let venue = try context.get(venueID, Venue.self)
            stack.coolDown()
            try broken.withoutTable(.venue) { expectEqual(venue.name, nil) }
            City(context: context).name = "Lagos"
            let insertion = NSBatchInsertRequest(entityName: "City", objects: [["name": "Faro"]])
            insertion.resultType = .count
            try expectEqual((context.execute(insertion) as? NSBatchInsertResult)?.result as? Int, 1)
            let update = NSBatchUpdateRequest(entityName: "City")
            update.propertiesToUpdate = ["population": 5]
            update.resultType = .updatedObjectsCountResultType
            try expectEqual((context.execute(update) as? NSBatchUpdateResult)?.result as? Int, 1)
            let cities = NSFetchRequest<NSFetchRequestResult>(entityName: "City")
            cities.predicate = NSPredicate(format: "population == 5")
            let deletion = NSBatchDeleteRequest(fetchRequest: cities)
            deletion.resultType = .resultTypeCount
            try expectEqual((context.execute(deletion) as? NSBatchDeleteResult)?.result as? Int, 1)
            // The changes of the context are another matter.
            expectThrows(CocoaError.self) { try context.save() }
            expectEqual(venue.name, "Cais")
            try context.save()
        }
        try expectEqual(stack.count("City"), 1)
    }
}
