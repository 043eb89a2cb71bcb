import CoreData
import Expectations
import TestSupport
import Testing

/// One coordinator with two stores, over which the venues of a guide are spread.
private struct SplitGuide {
    let stack: Stack
    let stores: [NSPersistentStore]

    init(_ kind: StoreKind) throws {
        stack = try Stack(kind)
        let second = stack.folder.appendingPathComponent("second.sqlite")
        try stack.coordinator.addPersistentStore(
            type: kind == .sqlite ? .sqlite : .inMemory,
            configuration: nil,
            at: second,
            options: nil
        )
        stores = stack.coordinator.persistentStores
        let context = stack.context("filling")
        try context.performAndWait {
            for (number, price) in [30, 10, 20, 10, 40, 20, 50].enumerated() {
                let venue = Venue(context: context)
                venue.name = "Venue \(number)"
                venue.price = Int16(price)
                venue.distance = Double(number)
                context.assign(venue, to: stores[number % 2])
            }
            for store in stores {
                let city = City(context: context)
                city.name = "City"
                context.assign(city, to: store)
            }
            try context.save()
        }
    }

    func read<Result>(_ body: (NSManagedObjectContext) throws -> Result) throws -> Result {
        let context = stack.context("reading")
        return try context.performAndWait { try body(context) }
    }
}

@Suite("Fetches from several stores")
struct FetchingFromSeveralStoresTests {
    private func request<T>(_ type: T.Type, _ resultType: NSFetchRequestResultType = []) -> NSFetchRequest<T> {
        let request = NSFetchRequest<T>(entityName: "Venue")
        request.resultType = resultType
        request.sortDescriptors = [.by("price"), .by("distance", ascending: false)]
        return request
    }

    @Test(arguments: StoreKind.allCases)
    func `objects come in one order, with limit and offset over the whole`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let request = request(Venue.self)
            try expectEqual(context.fetch(request).map(\.price), [10, 10, 20, 20, 30, 40, 50])
            try expectEqual(context.fetch(request).map(\.distance), [3, 1, 5, 2, 0, 4, 6])
            request.fetchOffset = 2
            request.fetchLimit = 3
            try expectEqual(context.fetch(request).map(\.distance), [5, 2, 0])
            request.fetchOffset = 6
            try expectEqual(context.fetch(request).map(\.distance), [6])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `IDs come in the order of the objects`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let objects = request(Venue.self)
            let ids = request(NSManagedObjectID.self, .managedObjectIDResultType)
            for (limit, offset) in [(0, 0), (3, 2), (0, 5), (2, 6)] {
                (objects.fetchLimit, objects.fetchOffset) = (limit, offset)
                (ids.fetchLimit, ids.fetchOffset) = (limit, offset)
                try expectEqual(context.fetch(ids), context.fetch(objects).map(\.objectID))
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `counts are of all stores within one window`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let request = request(Venue.self)
            try expectEqual(context.count(for: request), 7)
            request.fetchLimit = 5
            try expectEqual(context.count(for: request), 5)
            request.fetchOffset = 4
            try expectEqual(context.count(for: request), 3)
            request.fetchOffset = 9
            try expectEqual(context.count(for: request), 0)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `unsaved changes fold into the whole`(_ kind: StoreKind) throws {
        let guide = try SplitGuide(kind)
        try guide.read { context throws in
            let request = request(Venue.self)
            let all = try context.fetch(request)
            all[0].price = 35
            context.delete(all[1])
            let new = Venue(context: context)
            new.price = 15
            context.assign(new, to: guide.stores[1])

            try expectEqual(context.fetch(request).map(\.price), [15, 20, 20, 30, 35, 40, 50])
            request.fetchLimit = 3
            request.fetchOffset = 2
            try expectEqual(context.fetch(request).map(\.price), [20, 30, 35])
            try expectEqual(context.count(for: request), 3)
            let ids = self.request(NSManagedObjectID.self, .managedObjectIDResultType)
            (ids.fetchLimit, ids.fetchOffset) = (3, 2)
            try expectEqual(context.fetch(ids), context.fetch(request).map(\.objectID))
        }
    }

    @Test(arguments: StoreKind.allCases, ["here", "elsewhere", "here, without values", "elsewhere, without values"])
    func `stored values decide the order and the window, although objects show others`(
        _ kind: StoreKind,
        changed form: String
    ) throws {
        let (isChangedHere, includesValues) = (form.hasPrefix("here"), !form.hasSuffix("without values"))
        let guide = try SplitGuide(kind)
        try guide.read { context throws in
            let request = request(Venue.self)
            let ids = self.request(NSManagedObjectID.self, .managedObjectIDResultType)
            let all = try context.fetch(request)
            expectEqual(all.map(\.price), [10, 10, 20, 20, 30, 40, 50])
            let (least, greatest) = (all[0], all[6])
            var expected = [6.0, 1, 5, 2]
            if isChangedHere {
                (least.price, greatest.price) = (99, 5)
                (request.includesPendingChanges, ids.includesPendingChanges) = (false, false)
                expected = [3, 1, 5, 2]
            } else {
                let other = guide.stack.context("changing")
                try other.performAndWait {
                    try other.get(least.objectID, Venue.self).price = 99
                    try other.get(greatest.objectID, Venue.self).price = 5
                    try other.save()
                }
            }
            (request.includesPropertyValues, ids.includesPropertyValues) = (includesValues, includesValues)
            for (offset, limit) in [(0, 1), (0, 2), (1, 3), (0, 4)] {
                (request.fetchOffset, request.fetchLimit) = (offset, limit)
                (ids.fetchOffset, ids.fetchLimit) = (offset, limit)
                let window = Array(expected[offset..<min(offset + limit, 4)])
                try expectEqual(context.fetch(request).map(\.distance), window, "\(offset), \(limit)")
                try expectEqual(context.fetch(ids), context.fetch(request).map(\.objectID))
                try expectEqual(context.batchedResults(for: request).map(\.distance), window)
            }
            // The objects keep their values.
            expectEqual([least.price, greatest.price], isChangedHere ? [99, 5] : [10, 50])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `affected stores alone are asked`(_ kind: StoreKind) throws {
        let guide = try SplitGuide(kind)
        try guide.read { context throws in
            let request = request(NSDictionary.self, .dictionaryResultType)
            request.propertiesToFetch = ["distance"]
            request.affectedStores = [guide.stores[1]]
            try expectEqual(context.fetch(request).map { $0["distance"] as? Double }, [3, 1, 5])
            try expectEqual(context.count(for: request), 3)
            request.affectedStores = []
            try expect(context.fetch(request).isEmpty)
        }
    }

    // MARK: - Dictionaries

    @Test(arguments: StoreKind.allCases)
    func `dictionaries come in one order, also by what they do not have`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let request = request(NSDictionary.self, .dictionaryResultType)
            request.propertiesToFetch = ["name", "objectID"]
            try expect(
                context.fetch(request).map { $0["name"] as? String } == [3, 1, 5, 2, 0, 4, 6].map { "Venue \($0)" }
            )
            request.fetchOffset = 2
            request.fetchLimit = 3
            let window = try context.fetch(request)
            expectEqual(window.map { $0["name"] as? String }, [5, 2, 0].map { "Venue \($0)" })
            expect(window.allSatisfy { $0.count == 2 })
            let ids = window.compactMap { $0["objectID"] as? NSManagedObjectID }
            try expectEqual(ids.map { (try context.existingObject(with: $0) as? Venue)?.distance }, [5, 2, 0])
            try expectEqual(context.count(for: request), 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `groups and aggregates are of all stores`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let columns: [Any] = [
                aggregate("count", "count:", "objectID"), aggregate("sum", "sum:", "distance"),
                aggregate("mean", "average:", "distance"), aggregate("last", "max:", "name"),
            ]
            let whole = try context.dictionaries("Venue", columns)
            let groups = try context.dictionaries("Venue", ["price"] + columns) {
                $0.propertiesToGroupBy = ["price"]
                $0.havingPredicate = NSPredicate(format: "count(objectID) > 1")
                $0.sortDescriptors = [.by("price", ascending: false)]
            }
            let window = try context.dictionaries("Venue", ["price"]) {
                $0.propertiesToGroupBy = ["price"]
                $0.fetchLimit = 2
                $0.fetchOffset = 2
            }

            expect(whole.count == 1 && whole[0]["count"] as? Int == 7 && whole[0]["sum"] as? Double == 21)
            expect(whole[0]["mean"] as? Double == 3 && whole[0]["last"] as? String == "Venue 6")
            expect(groups.map { $0["price"] as? Int } == [20, 10] && groups.map { $0["count"] as? Int } == [2, 2])
            expectEqual(groups.map { $0["mean"] as? Double }, [3.5, 2])
            expectEqual(window.map { $0["price"] as? Int }, [30, 40])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what is equal in two stores is distinct once`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let names = try context.dictionaries("City", ["name"]) { $0.returnsDistinctResults = true }
            let cities = try context.dictionaries("City", ["objectID"]) { $0.returnsDistinctResults = true }
            let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["price"]
            request.returnsDistinctResults = true

            expectEqual(names.map { $0["name"] as? String }, ["City"])
            // The keys in the two stores are the same number, and yet they are two objects.
            expect(cities.count == 2 && Set(cities.compactMap { $0["objectID"] as? NSManagedObjectID }).count == 2)
            try expectEqual(context.fetch(request).compactMap { $0["price"] as? Int }, [10, 20, 30, 40, 50])
            try expectEqual(context.count(for: request), 5)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `all objects of no store are one group`(_ kind: StoreKind) throws {
        try SplitGuide(kind).read { context throws in
            let results = try context.dictionaries("Venue", [aggregate("count", "count:", "objectID")]) {
                $0.affectedStores = []
            }

            expect(results.count == 1 && results[0]["count"] as? Int == 0)
        }
    }
}
