import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Faults in batches")
struct BatchFaultingTests {
    private func request(_ size: Int = 10) -> NSFetchRequest<Venue> {
        let request = venues()
        request.fetchBatchSize = size
        return request
    }

    /// Whether a fetch keeps the values of as many small batches as it has read.
    private func keepsBatches(_ count: Int) -> Bool { WorkSize.keptBatches >= count }

    @Test(arguments: StoreKind.allCases)
    func `the first touch of a member reads its batch`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(45)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let found = try context.fetch(request())
            expect(found.count == 45 && found.allSatisfy { $0.isFault })
            expect(log.saw(1))
            expectEqual(found[13].name, "013")
            expect(log.saw(1))
            expect(found[10].name == "010" && found[19].name == "019")
            expect(found[11].isFault && log.saw(0))
            expectEqual(found.map(\.name), (0..<45).map { String(format: "%03d", $0) })
            expect(log.saw(4))
            expectEqual(context.rowsInAdvance.batchedFetches.isEmpty, keepsBatches(5))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch that everything fits in is read at once`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(45)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = request(10)
            request.fetchLimit = 10
            try expectEqual(context.fetch(request).map(\.name).count, 10)
            expect(log.saw(1))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes and deletions count, and a row that goes leaves a fault`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(30)
        stack.coolDown()
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let changed: Venue = try context.get(ids[0])
            changed.name = "0155"
            context.delete(try context.get(ids[1], Venue.self))
            let added = Venue(context: context)
            added.name = "0145"
            let found = try context.fetch(request(5))
            try stack.delete(ids[20])
            expectEqual(found.count, 30)
            expectEqual(found.first?.name, "002")
            let index = try require(found.firstIndex { $0 === added })
            expectEqual(found[index - 1...index + 2].map(\.name), ["014", "0145", "015", "0155"])
            expect(found[index + 2] === changed)
            let gone = try require(found.first { $0.objectID == ids[20] })
            expect(gone.isFault && gone.name == nil && gone.isDeleted)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch never overwrites what is realised or changed`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(10)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let realised: Venue = try context.get(ids[1])
            expectEqual(realised.price, 1)
            let changed: Venue = try context.get(ids[2])
            changed.price = 200
            try stack.change(ids[1], Venue.self) { venue, _ in venue.price = 100 }
            try stack.change(ids[3], Venue.self) { venue, _ in venue.price = 300 }
            let found = try context.fetch(request(5))
            expectEqual(found.map(\.price)[..<5], [0, 1, 200, 300, 4])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what a request prefetches comes with each batch`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(30)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = request(10)
            request.relationshipKeyPathsForPrefetching = ["city"]
            let found = try context.fetch(request)
            expect(log.saw(1))
            expectEqual(found.compactMap { $0.city?.name }.count, 30)
            // There are three queries for batches, and one for the three cities, which are known afterwards.
            expect(log.saw(4))
        }
    }

    /// Stores venues with a tag each, and returns a request that prefetches the tags.
    private func tagged(_ stack: Stack, _ count: Int) throws -> NSFetchRequest<Venue> {
        let ids = try stack.storeVenues(count)
        let context = stack.context("tagging")
        try context.performAndWait { () throws -> Void in
            for id in ids {
                let tag = Tag(context: context)
                tag.title = id.uriRepresentation().lastPathComponent
                try context.get(id, Venue.self).tags = [tag]
            }
            try context.save()
        }
        let request = request(10)
        request.relationshipKeyPathsForPrefetching = ["tags"]
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-many relationship that is touched first reads the batch`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let request = try tagged(stack, 60)
        let log = try QueryLog(stack)
        for isCold in [true, false] {
            if isCold { stack.coolDown() }
            let context = stack.context()
            try context.performAndWait { () throws -> Void in
                log.clear()
                let found = try context.fetch(request)
                expectEqual(found.map(\.tags.count).reduce(0, +), 60)
                // There are six batches, each with one query for venues that are not cached, and one for the tags.
                expect(log.queries.count <= 13, "cold: \(isCold)")
                log.clear()
                expect(found.allSatisfy { $0.tags.first?.title?.isEmpty == false && $0.name != nil })
                // A store in memory needs no query for objects that it has given before.
                expectEqual(log.queries.isEmpty, keepsBatches(6) || kind == .memory)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `rows that the context has already do not keep a batch from prefetching`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let request = try tagged(stack, 60)
        let log = try QueryLog(stack)
        for isRealised in [true, false] {
            stack.coolDown()
            let context = stack.context()
            try context.performAndWait { () throws -> Void in
                let known = try context.fetch(venues())
                if isRealised { expect(known.allSatisfy { $0.name != nil }) }
                log.clear()
                let found = try context.fetch(request)
                expectEqual(found.map(\.tags.count).reduce(0, +), 60)
                expect(log.queries.count <= 13, "realised: \(isRealised)")
                expect(zip(known, found).allSatisfy { $0 === $1 })
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `walking over an array lets go of the values of batches that were passed by`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for _ in 0..<5 { try stack.storeVenues(999) }
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let found = try context.fetch(request(500))
            found[5].note = "changed"
            let held = [found[3]]
            let names = found.map(\.name)
            // Ten batches were read; the latest ones keep their values, and so do a held object and a changed one.
            let passed = 500 * (10 - WorkSize.keptBatches)
            expectEqual(found.filter { !$0.isFault }.count, 4995 - passed + 2)
            expect(!held[0].isFault && found[3] === held[0])
            expect(!found[5].isFault && found[5].note == "changed" && found[5].isUpdated)
            expect(found[0].isFault && found[passed - 1].isFault && !found[passed].isFault)
            stack.coolDown()
            log.clear()
            expectEqual(found[0].name, names[0])
            expect(log.saw(1))
            expectEqual(found[..<500].map(\.name), Array(names[..<500]))
            expect(log.saw(0))
            expectEqual(found.map(\.name), names)
            try context.save()
            expectEqual(found[5].note, "changed")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects outlive their array with the values that they have shown`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        for _ in 0..<5 { try stack.storeVenues(999) }
        stack.coolDown()
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let picked: [Venue]
            do {
                let found = try context.fetch(request(500))
                picked = stride(from: 0, to: found.count, by: 500).map { found[$0] }
            }
            for venue in picked { expect(venue.name != nil) }
            expect(picked.count == 10 && picked.allSatisfy { !$0.isFault })
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the context forgets a batched fetch that is not held`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(30)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            _ = try context.fetch(request(5)).count
            expectEqual(context.rowsInAdvance.batchedFetches.count, 1)
            context.sweep()
            expect(context.rowsInAdvance.batchedFetches.isEmpty)
            for _ in 0..<20 { _ = try context.fetch(request(5)) }
            expect(context.rowsInAdvance.batchedFetches.count <= 8)
            context.reset()
            expect(context.rowsInAdvance.batchedFetches.isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `faults of a to-many are filled by one fetch with SELF IN`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(60)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let city = try require(try context.fetch(NSFetchRequest<City>(entityName: "City")).first)
            let faults = city.venues
            expect(faults.count == 20 && faults.allSatisfy { $0.isFault })
            log.clear()
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "SELF IN %@", faults)
            request.returnsObjectsAsFaults = false
            let filled = try context.fetch(request)
            expect(Set(filled) == faults && faults.allSatisfy { !$0.isFault })
            expect(log.saw(1))
            expect(faults.allSatisfy { $0.name != nil } && log.saw(0))
        }
    }
}
