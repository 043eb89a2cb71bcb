import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Grouped and distinct results")
struct DictionaryGroupingTests {
    @Test(arguments: StoreKind.allCases)
    func `groups give a dictionary each`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "Venue",
            ["city.name", aggregate("sum", "sum:", "price"), aggregate("count", "count:", "objectID")]
        ) {
            $0.propertiesToGroupBy = ["city.name"]
            $0.sortDescriptors = [.by("city.name")]
        }

        expectEqual(results.map { $0["city.name"] as? String }, [nil, "Lisbon", "Porto"])
        expectEqual(results.map { $0["sum"] as? Int }, [5, 60, 30])
        expectEqual(results.map { $0["count"] as? Int }, [1, 3, 2])
    }

    @Test(arguments: StoreKind.allCases)
    func `sort descriptors beside aggregates of all objects have no effect`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let columns: [Any] = [aggregate("sum", "sum:", "price"), aggregate("last", "max:", "name")]
        let plain = try guide.dictionaries("Venue", columns)
        for isDistinct in [false, true] {
            let sorted = try guide.dictionaries("Venue", columns) {
                $0.sortDescriptors = [.by("name"), .by("price", ascending: false), .by("sum")]
                $0.returnsDistinctResults = isDistinct
            }
            expect(plain.count == 1 && sorted == plain)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `groups can be made by a relationship, and by what is computed`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let entity = try require(NSEntityDescription.entity(forEntityName: "Venue", in: context))
            let city = try require(entity.relationshipsByName["city"])
            let byCity = try context.dictionaries("Venue", [city, aggregate("count", "count:", "price")]) {
                $0.propertiesToGroupBy = [city]
                $0.sortDescriptors = [.by("count", ascending: false)]
            }
            let decade = computed("decade", "price / 10", .integer32)
            let byDecade = try context.dictionaries("Venue", [decade, aggregate("count", "count:", "price")]) {
                $0.propertiesToGroupBy = [decade]
                $0.sortDescriptors = [.by("decade")]
            }

            let names = try byCity.map { result in
                try (result["city"] as? NSManagedObjectID).map { try typed(context.existingObject(with: $0)) as City }?
                    .name
            }
            expectEqual(names, ["Lisbon", "Porto", nil])
            expectEqual(byDecade.map { $0["decade"] as? Int }, [0, 1, 2, 3])
            expectEqual(byDecade.map { $0["count"] as? Int }, [1, 2, 2, 1])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a value of all members of a collection is one of the members of all objects of a group`(
        _ kind: StoreKind
    ) throws {
        let guide = try VenueGuide(kind)
        let columns = [
            computed("count", "venues.name.@count", .integer64), computed("sum", "venues.@sum.price", .integer64),
            computed("most", "venues.@max.price", .integer64), computed("least", "venues.@min.price", .integer64),
        ]
        let each = try guide.dictionaries("City", columns)
        let group = computed("group", "venues.@count * 0", .integer64)
        let all = try guide.dictionaries("City", [group] + columns) { $0.propertiesToGroupBy = [group] }

        expectEqual(all.count, 1)
        func values(_ key: String) -> [Int] { each.compactMap { $0[key] as? Int } }
        expect(each.count > 1 && values("count").reduce(0, +) > 1)
        expectEqual(all.first?["count"] as? Int, values("count").reduce(0, +))
        expectEqual(all.first?["sum"] as? Int, values("sum").reduce(0, +))
        expectEqual(all.first?["most"] as? Int, values("most").max())
        expectEqual(all.first?["least"] as? Int, values("least").min())
        // An average of averages is none.
        let mean = computed("mean", "venues.@avg.price", .double)
        let error = expectThrows(CocoaError.self) {
            try guide.dictionaries("City", [group, mean]) { $0.propertiesToGroupBy = [group] }
        }
        expectEqual(error?.code, .persistentStoreOperation)
    }

    @Test(arguments: StoreKind.allCases)
    func `a value of all members of a collection may belong to an object that a path leads to`(_ kind: StoreKind) throws
    {
        let guide = try VenueGuide(kind)
        let columns = [
            computed("count", "city.venues.@count", .integer64), computed("most", "city.venues.@max.price", .integer64),
        ]
        let each = try guide.dictionaries("Venue", columns)
        let group = computed("group", "price * 0", .integer64)
        let all = try guide.dictionaries("Venue", [group] + columns) { $0.propertiesToGroupBy = [group] }

        func values(_ key: String) -> [Int] { each.compactMap { $0[key] as? Int } }
        expect(all.count == 1 && each.count > 1 && Set(values("most")).count > 1)
        expectEqual(all.first?["count"] as? Int, values("count").reduce(0, +))
        expectEqual(all.first?["most"] as? Int, values("most").max())
    }

    @Test(arguments: StoreKind.allCases)
    func `having keeps the groups that fulfil it`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let count = aggregate("count", "count:", "objectID")
        let variable = NSExpression(forVariable: "count")
        let predicates = [
            NSPredicate(format: "count(objectID) > 1"), NSPredicate(format: "$count > 1"),
            NSPredicate(format: "%@ > 1", variable), NSPredicate(format: "sum(price) > 5 AND city.name != 'Faro'"),
        ]
        for predicate in predicates {
            let results = try guide.dictionaries("Venue", ["city.name", count]) {
                $0.propertiesToGroupBy = ["city.name"]
                $0.havingPredicate = predicate
                $0.sortDescriptors = [.by("city.name")]
            }

            expectEqual(results.map { $0["city.name"] as? String }, ["Lisbon", "Porto"], "\(predicate)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the predicate chooses objects before they are grouped`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", ["city.name", aggregate("sum", "sum:", "price")]) {
            $0.predicate = NSPredicate(format: "price >= 20")
            $0.propertiesToGroupBy = ["city.name"]
            $0.sortDescriptors = [.by("sum")]
        }

        expectEqual(results.map { $0["city.name"] as? String }, ["Porto", "Lisbon"])
        expectEqual(results.map { $0["sum"] as? Int }, [20, 50])
    }

    @Test(arguments: StoreKind.allCases)
    func `limit and offset count groups`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", ["price", aggregate("count", "count:", "objectID")]) {
            $0.propertiesToGroupBy = ["price"]
            $0.sortDescriptors = [.by("count", ascending: false)]
            $0.fetchOffset = 1
            $0.fetchLimit = 2
        }

        // Among groups of one size the smaller key comes first.
        expect(results.map { $0["price"] as? Int } == [20, 5] && results.map { $0["count"] as? Int } == [2, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `a group without rows is not there, but all objects are one group`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let count = aggregate("count", "count:", "objectID")

        let grouped = try guide.dictionaries("Venue", [count]) {
            $0.propertiesToGroupBy = ["price"]
            $0.predicate = NSPredicate(value: false)
        }
        let whole = try guide.dictionaries("Venue", [count]) { $0.predicate = NSPredicate(value: false) }

        expect(grouped.isEmpty && whole.map { $0["count"] as? Int } == [0])
    }

    @Test(arguments: StoreKind.allCases)
    func `what is made of grouped values only needs no group of its own`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries(
            "Venue",
            [computed("loud", "uppercase(city.name)"), computed("mean", "sum(price) / count(price)")]
        ) {
            $0.propertiesToGroupBy = ["city.name"]
            $0.sortDescriptors = [.by("mean")]
        }

        expectEqual(results.map { $0["loud"] as? String }, [nil, "PORTO", "LISBON"])
        expectEqual(results.map { $0["mean"] as? Int }, [5, 15, 20])
    }

    // MARK: - Distinct

    @Test(arguments: StoreKind.allCases)
    func `distinct results are given once`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let prices = try guide.dictionaries("Venue", ["price"]) { $0.returnsDistinctResults = true }
        let pairs = try guide.dictionaries("Venue", ["city.name", "favorite"]) {
            $0.returnsDistinctResults = true
            $0.sortDescriptors = [.by("city.name", ascending: false)]
        }

        expectEqual(prices.compactMap { $0["price"] as? Int }, [5, 10, 20, 30])
        expectEqual(pairs.map { $0["city.name"] as? String }, ["Porto", "Porto", "Lisbon", "Lisbon", nil])
        expectEqual(pairs.map { $0["favorite"] as? Bool }, [false, true, false, true, false])
    }

    @Test(arguments: StoreKind.allCases)
    func `distinct results are sorted by what comes first among the equal ones`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        let nearest = try guide.dictionaries("Venue", ["price"]) {
            $0.returnsDistinctResults = true
            $0.sortDescriptors = [.by("distance")]
        }
        let farthest = try guide.dictionaries("Venue", ["price"]) {
            $0.returnsDistinctResults = true
            $0.sortDescriptors = [.by("distance", ascending: false)]
            $0.fetchLimit = 2
        }

        expectEqual(nearest.compactMap { $0["price"] as? Int }, [30, 20, 10, 5])
        expectEqual(farthest.compactMap { $0["price"] as? Int }, [5, 10])
    }

    @Test(arguments: StoreKind.allCases)
    func `distinct needs propertiesToFetch`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            for _ in 0..<2 { Tag(context: context).title = "twin" }
            try context.save()
        }
        try expectEqual(guide.dictionaries("Tag", nil) { $0.returnsDistinctResults = true }.count, 3)
        try expectEqual(guide.dictionaries("Tag", ["title"]) { $0.returnsDistinctResults = true }.count, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `groups can be made distinct`(_ kind: StoreKind) throws {
        let results = try VenueGuide(kind).dictionaries("Venue", [aggregate("count", "count:", "objectID")]) {
            $0.propertiesToGroupBy = ["price"]
            $0.returnsDistinctResults = true
        }

        expectEqual(results.map { $0["count"] as? Int }, [1, 2])
    }

    // MARK: - Counting

    @Test(arguments: StoreKind.allCases)
    func `a count is that of the dictionaries`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let request = NSFetchRequest<NSDictionary>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = ["price"]
            try expectEqual(context.count(for: request), 6)
            request.returnsDistinctResults = true
            try expectEqual(context.count(for: request), 4)
            request.fetchOffset = 1
            try expectEqual(context.count(for: request), 3)
            request.fetchLimit = 2
            try expectEqual(context.count(for: request), 2)

            let groups = NSFetchRequest<NSDictionary>(entityName: "Venue")
            groups.resultType = .dictionaryResultType
            groups.propertiesToFetch = ["city", aggregate("sum", "sum:", "price")]
            groups.propertiesToGroupBy = ["city"]
            try expectEqual(context.count(for: groups), 3)
            groups.havingPredicate = NSPredicate(format: "sum(price) > 10")
            try expectEqual(context.count(for: groups), 2)

            let whole = NSFetchRequest<NSDictionary>(entityName: "Venue")
            whole.resultType = .dictionaryResultType
            whole.propertiesToFetch = [aggregate("sum", "sum:", "price")]
            try expectEqual(context.count(for: whole), 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a count result takes limit, offset and distinct into account`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let request = NSFetchRequest<NSNumber>(entityName: "Venue")
            request.resultType = .countResultType
            func number() throws -> Int? { try context.fetch(request).first?.intValue }

            try expectEqual(number(), 6)
            request.predicate = NSPredicate(format: "price < 30")
            try expectEqual(number(), 5)
            request.fetchOffset = 1
            request.fetchLimit = 3
            try expectEqual(number(), 3)
            request.fetchOffset = 4
            try expectEqual(number(), 1)
            request.fetchOffset = 9
            try expectEqual(number(), 0)
            request.fetchOffset = 0
            request.fetchLimit = 0
            request.propertiesToFetch = ["price"]
            try expectEqual(number(), 5)
            request.returnsDistinctResults = true
            try expectEqual(number(), 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a count of objects knows of unsaved changes`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try guide.read { context throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "price == 10")
            request.fetchLimit = 2
            try expectEqual(context.count(for: request), 2)
            for venue in try context.fetch(request) { venue.price = 11 }
            try expectEqual(context.count(for: request), 0)
            for _ in 0..<3 { Venue(context: context).price = 10 }
            try expectEqual(context.count(for: request), 2)
            request.fetchOffset = 2
            try expectEqual(context.count(for: request), 1)
            request.includesPendingChanges = false
            request.fetchOffset = 1
            try expectEqual(context.count(for: request), 1)
        }
    }
}
