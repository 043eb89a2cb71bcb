import CoreData
import Expectations
import TestSupport
import Testing

@Suite("Dictionary results that make no sense")
struct DictionaryMisuseTests {
    /// Expects that a fetch of venues throws an error with Apple's code, whose text contains these words.
    private func expectRefusal(
        _ kind: StoreKind,
        saying words: String...,
        of properties: [Any]?,
        _ setUp: (NSFetchRequest<NSDictionary>) -> Void = { _ in },
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let guide = try VenueGuide(kind)
        let error = #expect(throws: CocoaError.self, sourceLocation: sourceLocation) {
            try guide.dictionaries("Venue", properties, setUp)
        }
        let text = error?.localizedDescription ?? ""
        #expect(error?.code == .persistentStoreOperation, sourceLocation: sourceLocation)
        for word in words + ["Venue"] { #expect(text.contains(word), "\(text)", sourceLocation: sourceLocation) }
    }

    @Test(arguments: StoreKind.allCases)
    func `unknown, transient and to-many properties are refused by name`(_ kind: StoreKind) throws {
        try expectRefusal(kind, saying: "colour2", of: ["colour2"])
        try expectRefusal(kind, saying: "mayor", "City", of: ["city.mayor"])
        try expectRefusal(kind, saying: "note", "transient", of: ["note"])
        try expectRefusal(kind, saying: "tags", "to-many", of: ["tags"])
        try expectRefusal(kind, saying: "city.venues", "to-many", of: ["city.venues"])
        try expectRefusal(kind, saying: "city.venues.name", "to-many", of: ["city.venues.name"])
        try expectRefusal(kind, saying: "price2", of: [aggregate("sum", "sum:", "price2")])
        try expectRefusal(kind, saying: "tags", of: ["price"]) { $0.propertiesToGroupBy = ["tags"] }
        try expectRefusal(kind, saying: "Int", "propertiesToFetch", of: [7])
    }

    @Test(arguments: StoreKind.allCases)
    func `a property that differs within a group is refused by name`(_ kind: StoreKind) throws {
        let sum = aggregate("sum", "sum:", "price")
        try expectRefusal(kind, saying: "\"name\"", "propertiesToGroupBy", of: ["name", sum]) {
            $0.propertiesToGroupBy = ["city"]
        }
        try expectRefusal(kind, saying: "\"name\"", "aggregate", of: ["name", sum])
        try expectRefusal(kind, saying: "city.name", of: [computed("x", "uppercase(city.name)")]) {
            $0.propertiesToGroupBy = ["city"]
        }
        try expectRefusal(kind, saying: "distance", of: ["price"]) {
            $0.propertiesToGroupBy = ["price"]
            $0.sortDescriptors = [.by("distance")]
        }
        try expectRefusal(kind, saying: "distance", of: ["price"]) {
            $0.propertiesToGroupBy = ["price"]
            $0.havingPredicate = NSPredicate(format: "distance > 1")
        }
        try expectRefusal(kind, saying: "tags", of: ["price"]) {
            $0.propertiesToGroupBy = ["price"]
            $0.havingPredicate = NSPredicate(format: "ANY tags.title == 'old'")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the message says whether a column, a sort descriptor or the having predicate is at fault`(_ kind: StoreKind)
        throws
    {
        let sum = aggregate("sum", "sum:", "price")
        for groups in [[], ["city"]] as [[String]] {
            try expectRefusal(kind, saying: "cannot give \"name\"", of: ["name", sum]) {
                $0.propertiesToGroupBy = groups
            }
        }
        try expectRefusal(kind, saying: "cannot be sorted by \"name\"", of: ["city", sum]) {
            $0.propertiesToGroupBy = ["city"]
            $0.sortDescriptors = [.by("city"), .by("name")]
        }
        try expectRefusal(kind, saying: "cannot be restricted by \"name\"", "havingPredicate", of: ["city", sum]) {
            $0.propertiesToGroupBy = ["city"]
            $0.havingPredicate = NSPredicate(format: "$sum > 1 AND name == 'x'")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `an aggregate of an aggregate, or as a group, is refused`(_ kind: StoreKind) throws {
        let sum = aggregate("sum", "sum:", "price")
        try expectRefusal(kind, saying: "aggregate of an aggregate", of: [computed("x", "max(sum(price))")])
        try expectRefusal(kind, saying: "grouped", of: [sum]) { $0.propertiesToGroupBy = [sum] }
    }

    @Test(arguments: StoreKind.allCases)
    func `having needs groups, and groups need dictionaries`(_ kind: StoreKind) throws {
        let guide = try VenueGuide(kind)
        try expectRefusal(kind, saying: "havingPredicate", "propertiesToGroupBy", of: ["price"]) {
            $0.havingPredicate = NSPredicate(format: "price > 1")
        }
        try guide.read { context throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.propertiesToGroupBy = ["price"]
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.localizedDescription.contains("dictionaryResultType"), true)
            expectThrows(CocoaError.self) { try context.count(for: request) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `expression descriptions need a name, an expression and a fitting type`(_ kind: StoreKind) throws {
        let unnamed = computed("", "price")
        let empty = NSExpressionDescription()
        empty.name = "hollow"
        try expectRefusal(kind, saying: "without a name", of: [unnamed])
        try expectRefusal(kind, saying: "hollow", "without an expression", of: [empty])
        try expectRefusal(kind, saying: "\"size\"", "Integer 32", of: [computed("size", "uppercase(name)", .integer32)])
        try expectRefusal(kind, saying: "\"x\"", "two", of: [computed("x", "price"), computed("x", "distance")])
        try expectRefusal(kind, saying: "\"x\"", "String", of: [computed("x", "city", .string)])
        try expectRefusal(kind, saying: "\"x\"", "key path", of: [computed("x", "TERNARY(price > 1, city, nil)")])
    }

    @Test(arguments: StoreKind.allCases)
    func `an order by a property that is not there is refused by name`(_ kind: StoreKind) throws {
        try expectRefusal(kind, saying: "total", of: ["price"]) { $0.sortDescriptors = [.by("total")] }
        try expectRefusal(kind, saying: "price", of: [aggregate("count", "count:", "objectID")]) {
            $0.propertiesToGroupBy = ["price"]
            $0.returnsDistinctResults = true
            $0.sortDescriptors = [.by("price")]
        }
    }

    @Test func `several result types at once are refused`() throws {
        let guide = try VenueGuide(.memory)
        try guide.read { context throws in
            let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Venue")
            request.resultType = [.dictionaryResultType, .countResultType]
            expectThrows(CocoaError.self) { try context.fetch(request) }
        }
    }

    @Test func `a result type that does not fit the request's generic type is an error`() throws {
        let guide = try VenueGuide(.memory)
        try guide.read { context throws in
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.resultType = .dictionaryResultType
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.localizedDescription.contains("resultType"), true)
        }
    }
}
