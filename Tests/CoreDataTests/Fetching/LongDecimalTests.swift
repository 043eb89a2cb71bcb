import CoreData
import Expectations
import TestSupport
import Testing

/// Decimals with more digits than a double has.
@Suite("Long decimals")
struct LongDecimalTests {
    /// The nearest double of these two is the same.
    private static let pair = ["9007199254740992", "9007199254740993"]

    private func insert(_ texts: [String], _ context: NSManagedObjectContext) throws {
        for text in texts {
            let venue = Venue(context: context)
            venue.name = text
            venue.rating = Decimal(string: text)
        }
        try context.save()
    }

    private func names(_ context: NSManagedObjectContext, _ predicate: NSPredicate) throws -> [String] {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.predicate = predicate
        return try context.fetch(request).compactMap(\.name).sorted()
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch compares them as doubles, whatever the store keeps of them`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            try insert(Self.pair + ["9007199254740994", "12345678901234567890"], context)
            for text in Self.pair {
                let number = NSDecimalNumber(string: text)
                try expectEqual(names(context, NSPredicate(format: "rating == %@", number)), Self.pair)
                try expectEqual(names(context, NSPredicate(format: "rating IN %@", [number])), Self.pair)
                try expectEqual(names(context, NSPredicate(format: "rating BETWEEN %@", [number, number])), Self.pair)
                try expectEqual(names(context, NSPredicate(format: "noindex:(rating) == %@", number)), Self.pair)
                try expectEqual(
                    names(context, NSPredicate(format: "rating > %@", number)),
                    ["12345678901234567890", "9007199254740994"]
                )
            }
            let other = NSDecimalNumber(string: "12345678901234567891")
            try expectEqual(
                names(context, NSPredicate(format: "rating == %@", other)),
                ["12345678901234567890"]
            )
            try expectEqual(names(context, NSPredicate(format: "rating < 9007199254740992")), [])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `pending ones are compared as saved ones are`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            try insert([Self.pair[0]], context)
            let venue = Venue(context: context)
            venue.name = Self.pair[1]
            venue.rating = Decimal(string: Self.pair[1])
            let predicate = NSPredicate(format: "rating == %@", NSDecimalNumber(string: Self.pair[1]))
            try expectEqual(names(context, predicate), Self.pair)
            try context.save()
            try expectEqual(names(context, predicate), Self.pair)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `they come back with all digits, but from a file as the shortest number of their double`(_ kind: StoreKind)
        throws
    {
        let shortest = [
            "12345678901234567890": "12345678901234567000", "-98765432109876543210.5": "-98765432109876540000",
            "0.12345678901234567890123": "0.12345678901234568",
            // Whole ones in 64 bits keep their digits.
            "9007199254740993": "9007199254740993",
        ]
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            try insert(shortest.keys.sorted(), context)
            context.reset()
            let venues = try context.fetch(NSFetchRequest<Venue>(entityName: "Venue"))
            expectEqual(venues.count, shortest.count)
            for venue in venues {
                let name = try require(venue.name)
                let expected = kind == .sqlite ? shortest[name] : name
                expectEqual(venue.rating, expected.flatMap { Decimal(string: $0) }, "\(name)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a file sorts whole ones in 64 bits by their digits, and others by their doubles`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            try insert(Self.pair + ["12345678901234567890", "12345678901234567891"], context)
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.sortDescriptors = [
                NSSortDescriptor(key: "rating", ascending: false), NSSortDescriptor(key: "name", ascending: true),
            ]
            let names = try context.fetch(request).compactMap(\.name)
            expectEqual(Array(names.prefix(2)), ["12345678901234567890", "12345678901234567891"])
            expectEqual(Array(names.suffix(2)), kind == .sqlite ? Self.pair.reversed() : Self.pair)
        }
    }
}
