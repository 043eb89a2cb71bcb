import CoreData
import Expectations
import TestSupport
import Testing

/// Swift's own evaluation of a predicate is the measure: a fetch and `evaluate(with:)` have to agree with it.
@Suite("NSPredicate from #Predicate: the meaning")
struct MacroPredicateFetchTests {
    @Test(arguments: MacroCase.all, StoreKind.allCases)
    func `a fetch finds what Swift would`(_ example: MacroCase, _ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venues = FilledGuide.fill(context)
            try context.save()
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = try NSPredicate(translating: example.predicate)

            let found = Set(try context.fetch(request))

            for venue in venues {
                // A forced unwrapping of nil throws in Swift: then there is nothing to compare with.
                guard let expected = try? example.predicate.evaluate(venue) else { continue }
                expectEqual(found.contains(venue), expected, "\(venue.note ?? "")")
                expectEqual(request.predicate?.evaluate(with: venue), expected, "\(venue.note ?? "")")
            }
        }
    }

    /// Values that are missing because another value is, although they have nothing to do with it.
    private static let conditional = [
        MacroCase(
            "name of those with a city, or a",
            #Predicate { venue in (venue.city.flatMap { city in venue.name } ?? "a") == "a" }
        ),
        MacroCase(
            "price of those with a name, or 3",
            #Predicate { venue in (venue.name.flatMap { name in venue.price } ?? 3) == 3 }
        ),
        MacroCase(
            "price of those with a name and a city, or 4",
            #Predicate { venue in
                (venue.name.flatMap { name in venue.city.flatMap { city in venue.price } } ?? 4) > 3
            }
        ),
        MacroCase(
            "favorites of those with a city, or true",
            #Predicate { venue in venue.city.flatMap { city in venue.favorite } ?? true }
        ),
    ]

    @Test(arguments: conditional, StoreKind.allCases)
    func `a default stands in for a value that depends on the presence of another`(
        _ example: MacroCase,
        _ kind: StoreKind
    ) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            let venues = FilledGuide.fill(context)
            let homeless = Venue(context: context)
            homeless.name = "b"
            homeless.price = 7
            let nameless = Venue(context: context)
            nameless.price = 7
            try context.save()
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = try NSPredicate(translating: example.predicate)
            let found = Set(try context.fetch(request))
            for venue in venues + [homeless, nameless] {
                let expected = try example.predicate.evaluate(venue)
                expectEqual(found.contains(venue), expected, "\(venue.note ?? "")")
                expectEqual(request.predicate?.evaluate(with: venue), expected, "\(venue.note ?? "")")
            }
        }
    }

    @Test(arguments: MacroCase.all)
    func `unsaved objects are found as well`(_ example: MacroCase) throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            let venues = FilledGuide.fill(context)
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = try NSPredicate(translating: example.predicate)

            let found = Set(try context.fetch(request))

            for venue in venues {
                guard let expected = try? example.predicate.evaluate(venue) else { continue }
                expectEqual(found.contains(venue), expected, "\(venue.note ?? "")")
            }
        }
    }

    @Test func `objects are compared by their IDs`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            let venues = FilledGuide.fill(context)
            try context.save()
            let first = try require(venues.first { $0.city != nil })
            let id = first.objectID
            let cityID = try require(first.city?.objectID)
            let ids = Array(venues.prefix(3).map(\.objectID))
            func fetch(_ predicate: Predicate<Venue>) throws -> Set<Venue> {
                let request = NSFetchRequest<Venue>(entityName: "Venue")
                request.predicate = try NSPredicate(translating: predicate)
                return Set(try context.fetch(request))
            }

            try expectEqual(fetch(#Predicate { $0.objectID == id }), [first])
            try expectEqual(fetch(#Predicate { $0.city?.objectID == cityID }), first.city?.venues)
            try expectEqual(fetch(#Predicate { ids.contains($0.objectID) }), Set(venues.prefix(3)))
            try expectEqual(fetch(#Predicate { $0.city!.venues.contains { $0.objectID == id } }), first.city?.venues)
        }
    }

    @Test func `a sub-entity is asked for its own properties and for inherited ones`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            _ = FilledGuide.fill(context)
            for beers in 1...4 {
                let bar = Bar(context: context)
                bar.beers = Int16(beers)
                bar.price = Int16(10 - beers)
            }
            try context.save()
            let request = NSFetchRequest<Bar>(entityName: "Bar")
            request.predicate = NSPredicate(#Predicate<Bar> { $0.beers > 1 && $0.price > 6 })

            try expectEqual(context.fetch(request).map(\.beers).sorted(), [2, 3])
        }
    }

    @Test func `an expression is evaluated`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            let tagCount = try NSExpression(translating: #Expression<Venue, Int> { $0.tags.count })
            let dearer = try NSExpression(translating: #Expression<Venue, Int16> { $0.price + 1 })
            expectEqual(tagCount, NSExpression(format: "tags.@count"))
            expectEqual(dearer, NSExpression(format: "price + 1"))
            for venue in FilledGuide.fill(context) {
                expectEqual(tagCount.expressionValue(with: venue, context: nil) as? Int, venue.tags.count)
                expectEqual(dearer.expressionValue(with: venue, context: nil) as? Int16, venue.price + 1)
            }
        }
    }

    @Test func `an object ID is encoded as its URI and decoded for a coordinator`() throws {
        let stack = try Stack(.memory)
        let context = stack.context()
        try context.performAndWait {
            let venue = Venue(context: context)
            try context.save()

            let data = try JSONEncoder().encode([venue.objectID])

            let decoder = JSONDecoder()
            expectThrows(DecodingError.self) { try decoder.decode([NSManagedObjectID].self, from: data) }
            decoder.userInfo[.persistentStoreCoordinator] = stack.coordinator
            try expect(decoder.decode([NSManagedObjectID].self, from: data).first === venue.objectID)
            let stray = Data(#"["x-coredata://nowhere/Venue/p1"]"#.utf8)
            expectThrows(DecodingError.self) { try decoder.decode([NSManagedObjectID].self, from: stray) }
        }
    }
}

/// Venues that differ in what predicates look at.
private enum FilledGuide {
    static func fill(_ context: NSManagedObjectContext) -> [Venue] {
        let cities = [("Lisbon", Int64(5)), ("lisbon", 2), ("a", 4), ("", 0), ("xaáb", 3), ("x", 0), ("A", 1)].map {
            let city = City(context: context)
            city.name = $0
            city.population = $1
            return city
        }
        let tags = ["a", "ab", nil, "b"].map {
            let tag = Tag(context: context)
            tag.title = $0
            return tag
        }
        let names = ["a", "b", nil, "", "abc", "ABC", "xax", "á"]
        let users = (0..<4).map {
            let user = User(context: context)
            user.email = "user\($0)@example.com"
            user.age = Int16($0 * 2)
            user.name = $0.isMultiple(of: 2) ? nil : "user \($0)"
            return user
        }
        return (0..<40).map { index in
            let bar = index % 4 == 3 ? Bar(context: context) : nil
            bar?.beers = Int16(index / 4 % 2)
            let venue = bar ?? Venue(context: context)
            venue.note = "venue \(index)"
            venue.name = names[index % names.count]
            venue.price = Int16(index % 9)
            venue.seats = Int32(index % 5)
            venue.visits = index % 7
            venue.distance = Double(index % 10) - 4 + (index.isMultiple(of: 4) ? 0.5 : 0)
            venue.favorite = index % 3 == 0
            venue.createdAt = index % 4 == 0 ? nil : Date(timeIntervalSinceReferenceDate: Double(index) * 100)
            venue.code = index == 7 ? UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)) : nil
            venue.city = index % 8 == 7 ? nil : cities[index % 8]
            venue.tags = Set(tags.enumerated().filter { index & (1 << $0.offset) != 0 }.map(\.element))
            venue.fans = Set(users.enumerated().filter { index & (2 << $0.offset) != 0 }.map(\.element))
            if index.isMultiple(of: 5) {
                let photo = Photo(context: context)
                photo.title = "photo \(index)"
                venue.photos = [photo]
            }
            if index.isMultiple(of: 6) { venue.licence = Licence(context: context) }
            return venue
        }
    }
}
