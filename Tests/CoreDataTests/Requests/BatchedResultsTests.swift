import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Batched results")
struct BatchedResultsTests {
    private func request(_ size: Int = 10) -> NSFetchRequest<Venue> {
        let request = venues()
        request.fetchBatchSize = size
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `they are the array that fetch gives, read from any place`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(47)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let expected = try context.fetch(venues()).map(\.name)
            let results = try context.batchedResults(for: request())
            expect(results.count == 47 && results.indices == 0..<47)
            expectEqual(results.map(\.name), expected)
            expectEqual(results[44].name, "044")
            expectEqual(results[20..<23].map(\.name), ["020", "021", "022"])
            expectEqual(results.reversed().prefix(2).map(\.name), ["046", "045"])
            expect(results.first?.name == "000" && results.last?.name == "046")
            expect(results[30] === results[30])
            let where25 = results.partitioningIndex { ($0.name ?? "") >= "025" }
            expectEqual(where25, 25)
        }
    }

    @Test func `a read outside of the scope names the results and the context`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let stack = try Stack(.memory)
            try stack.storeVenues(3)
            let context = stack.context("reader")
            let results = try context.performAndWait { UncheckedBox(try context.batchedResults(for: venues())) }
            _ = results.value[0].name
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("BatchedResults was used on queue"), "\(text)")
        expect(text.contains("confined to private-queue context \"reader\""), "\(text)")
    }

    @Test(arguments: StoreKind.allCases)
    func `counting reads no object, and each batch that is entered takes one query`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(45)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let results = try context.batchedResults(for: request())
            expect(results.count == 45 && !results.isEmpty)
            expect(context.registeredObjects.isEmpty)
            expect(log.saw(1))
            for venue in results[10..<30] { expect(venue.name != nil) }
            expect(log.saw(2))
            expect(results[12].name == "012" && results[19].price == 19)
            expect(log.saw(0))
            // The results hold the last batch that was entered.
            expectEqual(context.registeredObjects.count, 10)
            for venue in results { expect(venue.name != nil) }
            expect(log.saw(3))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what was passed by goes when it is not held`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(999)
        try stack.storeVenues(999)
        try stack.storeVenues(999)
        try stack.storeVenues(999)
        try stack.storeVenues(999)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let results = try context.batchedResults(for: request(50))
            let kept = results[7]
            var most = 0
            for venue in results {
                venue.willAccessValue(forKey: nil)
                most = max(most, context.identityMap.storedCount)
            }
            for venue in results { venue.willAccessValue(forKey: nil) }
            // From 4096 objects on, a context looks for those that are no longer held each time the number has
            // doubled.
            expect(results.count == 4995 && most <= 4096 + 50)
            expect(results[7] === kept)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes are folded in, with order, limit and offset`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(40)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let moved: Venue = try context.get(ids[3])
            moved.name = "0225"
            let leaving: Venue = try context.get(ids[11])
            leaving.price = 5000
            context.delete(try context.get(ids[20], Venue.self))
            for name in ["0055", "0375", "zzz"] {
                let venue = Venue(context: context)
                venue.name = name
            }
            for (limit, offset) in [(0, 0), (10, 0), (7, 20), (100, 36), (5, 60)] {
                let request = request(4)
                request.predicate = NSPredicate(format: "price < 1000")
                request.fetchLimit = limit
                request.fetchOffset = offset
                let results = try context.batchedResults(for: request)
                request.fetchBatchSize = 0
                let expected = try context.fetch(request)
                expectEqual(results.map(\.name), expected.map(\.name), "limit \(limit) offset \(offset)")
                expect(zip(results, expected).allSatisfy { $0 === $1 })
            }
            let request = request(4)
            request.includesPendingChanges = false
            try expectEqual(context.batchedResults(for: request).count, 40)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `few unsaved changes among many rows read few batches`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(800)
        stack.coolDown()
        let context = stack.context()
        let log = try QueryLog(stack)
        try context.performAndWait { () throws -> Void in
            let venue = Venue(context: context)
            venue.name = "4005"
            let results = try context.batchedResults(for: request(10))
            expectEqual(results.count, 801)
            expect(results[401] === venue)
            expect(log.queries.count < 12)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved objects stay where they are when they are saved`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(20)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let venue = Venue(context: context)
            venue.name = "0055"
            let results = try context.batchedResults(for: request(4))
            try context.save()
            expect(results[6] === venue && results.count == 21)
            expectEqual(results.map(\.name)[5...7], ["005", "0055", "006"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a row deleted meanwhile is a fault that cannot be realised, and the others are found`(_ kind: StoreKind)
        throws
    {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(20)
        stack.coolDown()
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let results = try context.batchedResults(for: request(5))
            try stack.delete(ids[7])
            expectEqual(results.count, 20)
            expect(results[6].name == "006" && results[8].name == "008")
            expect(results[7].isFault)
            expect(results[7].name == nil && results[7].isDeleted)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `they outlive a reset of the context`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(20)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let results = try context.batchedResults(for: request(5))
            let before = results[3]
            context.reset()
            expect(results[3] !== before && results[3].name == "003")
            expect(results[3].managedObjectContext === context)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `objects of a batch can come realised, refreshed, and with what they lead to`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let ids = try stack.storeVenues(20)
        stack.coolDown()
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let known: Venue = try context.get(ids[2])
            expectEqual(known.price, 2)
            known.distance = 7
            try stack.change(ids[2], Venue.self) { venue, _ in venue.price = 99 }
            let request = request(5)
            request.returnsObjectsAsFaults = false
            request.shouldRefreshRefetchedObjects = true
            request.relationshipKeyPathsForPrefetching = ["city"]
            let results = try context.batchedResults(for: request)
            expect(results[0].isFault == false && results[4].isFault == false)
            log.clear()
            expectEqual(results[..<5].compactMap { $0.city?.name }.count, 5)
            expect(log.saw(0))
            expect(known.price == 99 && known.distance == 7)
        }
    }

    @Test func `results of several stores are one collection`() throws {
        let stack = try Stack(.database)
        try stack.storeVenues(12)
        let second = stack.folder.appendingPathComponent("second.sqlite")
        let store = try stack.coordinator.addPersistentStore(
            type: StoreKind.database.type,
            configuration: nil,
            at: second
        )
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            for number in 0..<9 {
                let venue = Venue(context: context)
                venue.name = String(format: "%03d b", number)
                context.assign(venue, to: store)
            }
            try context.save()
            context.reset()
            let names = try context.batchedResults(for: request(4)).map(\.name)
            expect(names.count == 21 && names[..<4] == ["000", "000 b", "001", "001 b"])
            try expectEqual(context.fetch(request(4)).map(\.name), names)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a wrong request is refused`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        try stack.storeVenues(3)
        let context = stack.context()
        context.performAndWait {
            let ids = request()
            ids.resultType = .managedObjectIDResultType
            expect(message { _ = try context.batchedResults(for: ids) }.contains("managedObjectResultType"))
            let wrong = NSFetchRequest<City>(entityName: "Venue")
            expect(message { _ = try context.batchedResults(for: wrong) }.contains("not City"))
            expect(message { _ = try context.batchedResults(for: request(-1)) }.contains("fetchBatchSize"))
        }
    }
}

extension RandomAccessCollection {
    /// The first index whose element fulfils a condition that all later elements fulfil too.
    fileprivate func partitioningIndex(where belongsInSecond: (Element) -> Bool) -> Index {
        var (low, count) = (startIndex, count)
        while count > 0 {
            let middle = index(low, offsetBy: count / 2)
            if belongsInSecond(self[middle]) {
                count /= 2
            } else {
                low = index(after: middle)
                count -= count / 2 + 1
            }
        }
        return low
    }
}
