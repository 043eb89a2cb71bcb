import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles

@Suite("Prefetching")
struct PrefetchingTests {
    /// Six venues, two of them bars, in two cities; three tags for all, photos in reverse order, and a fan each.
    private func makeStack(_ kind: StoreKind) throws -> Stack {
        let stack = try Stack(kind)
        let context = stack.context("setting up")
        try context.performAndWait { () throws -> Void in
            let cities = ["Aveiro", "Braga"].map { name in
                let city = City(context: context)
                city.name = name
                return city
            }
            let tags = (0..<3).map { number in
                let tag = Tag(context: context)
                tag.title = "tag \(number)"
                return tag
            }
            let fan = User(context: context)
            fan.email = "fan@example.org"
            for number in 0..<6 {
                let venue = number < 2 ? Bar(context: context) : Venue(context: context)
                venue.name = "\(number)"
                venue.city = number == 5 ? nil : cities[number % 2]
                if number < 4 { venue.tags = Set(tags[...(number % 3)]) }
                venue.photos = (0..<2).map { place in
                    let photo = Photo(context: context)
                    photo.title = "\(number) \(place)"
                    return photo
                }
                venue.photos.reverse()
            }
            try context.save()
            fan.favourites = try context.fetch(venues()).reversed()
            try context.save()
        }
        stack.coolDown()
        return stack
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-one takes one query for all`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.relationshipKeyPathsForPrefetching = ["city"]
            let found = try context.fetch(request)
            expect(log.saw(2))
            expect(found.allSatisfy { $0.isFault })
            expectEqual(found.map { $0.city?.name }, ["Aveiro", "Braga", "Aveiro", "Braga", "Aveiro", nil])
            expect(log.saw(0))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a to-many takes one query for members and rows`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            request.relationshipKeyPathsForPrefetching = ["venues"]
            let cities = try context.fetch(request)
            expect(log.saw(2))
            expect(cities.allSatisfy { !$0.hasFault(forRelationshipNamed: "venues") })
            let names = cities.map { city in city.venues.compactMap(\.name).sorted() }
            expectEqual(names, [["0", "2", "4"], ["1", "3"]])
            expect(log.saw(0))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `ordered and many-to-many relationships come in one query each, in their order`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.relationshipKeyPathsForPrefetching = ["photos", "tags", "fans"]
            let found = try context.fetch(request)
            expect(log.saw(4))
            expectEqual(found.map { $0.photos.map(\.title) }, (0..<6).map { ["\($0) 1", "\($0) 0"] })
            expectEqual(found.map(\.tags.count), [1, 2, 3, 1, 0, 0])
            expectEqual(Set(found[2].tags.map(\.title)), ["tag 0", "tag 1", "tag 2"])
            expect(found.allSatisfy { $0.fans.map(\.email) == ["fan@example.org"] })
            expect(log.saw(0))

            let users = NSFetchRequest<User>(entityName: "User")
            users.relationshipKeyPathsForPrefetching = ["favourites"]
            let user = try require(try context.fetch(users).first)
            expectEqual(user.favourites.map(\.name), ["5", "4", "3", "2", "1", "0"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `nested paths take one query for each level, shared by the paths that begin alike`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = NSFetchRequest<City>(entityName: "City")
            request.relationshipKeyPathsForPrefetching = ["venues.photos", "venues.tags", "venues.tags.venues.city"]
            let cities = try context.fetch(request)
            // Cities, venues, photos, tags, their venues, and no more cities: those are known.
            expect(log.saw(5))
            let venues = cities.flatMap(\.venues)
            expect(venues.count == 5 && venues.flatMap(\.photos).compactMap(\.title).count == 10)
            expectEqual(Set(venues.flatMap(\.tags).flatMap(\.venues).compactMap(\.name)), ["0", "1", "2", "3"])
            expectEqual(Set(venues.flatMap(\.tags).flatMap(\.venues).compactMap { $0.city?.name }).count, 2)
            expect(log.saw(0))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what is known is not read again`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let log = try QueryLog(stack)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.relationshipKeyPathsForPrefetching = ["city"]
            let found = try context.fetch(request)
            expect(log.saw(2))
            try expectEqual(context.fetch(request), found)
            expect(log.saw(1))
            let other = stack.context()
            try other.performAndWait { () throws -> Void in try expectEqual(other.fetch(request).count, 6) }
            // The row cache has the cities.
            expect(log.saw(1))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `pending edits stay on top`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let all = try context.fetch(venues())
            let city = try require(all[0].city)
            city.name = "Changed"
            let added = Venue(context: context)
            added.name = "new"
            added.city = city
            all[2].city = nil
            all[3].tags = []
            all[4].photos.swapAt(0, 1)
            context.delete(all[5])

            let request = venues()
            request.relationshipKeyPathsForPrefetching = ["city.venues", "tags", "photos"]
            let found = try context.fetch(request)
            expectEqual(found.map(\.name), ["0", "1", "2", "3", "4", "new"])
            expect(city.name == "Changed" && city.hasChanges)
            expectEqual(Set(city.venues.compactMap(\.name)), ["0", "4", "new"])
            expect(found[2].city == nil && found[3].tags.isEmpty)
            expectEqual(found[4].photos.map(\.title), ["4 0", "4 1"])
            expect(found[5].city === city)
            try context.save()
        }
        let other = stack.context()
        try other.performAndWait { () throws -> Void in
            let found = try other.fetch(venues())
            expectEqual(found.map { $0.city?.name }, ["Changed", "Braga", nil, "Braga", "Changed", "Changed"])
            expectEqual(found[4].photos.map(\.title), ["4 0", "4 1"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `what was prefetched for a fault goes with a refresh and with a merge`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = NSFetchRequest<City>(entityName: "City")
            request.predicate = NSPredicate(format: "name == 'Braga'")
            request.relationshipKeyPathsForPrefetching = ["venues"]
            let city = try require(try context.fetch(request).first)
            expect(city.isFault && !city.hasFault(forRelationshipNamed: "venues"))
            try stack.change(city.objectID, City.self) { city, context in
                let venue = Venue(context: context)
                venue.name = "late"
                venue.city = city
            }
            context.refresh(city, mergeChanges: false)
            expect(city.hasFault(forRelationshipNamed: "venues"))
            expectEqual(city.venues.count, 3)
        }
    }

    /// The ways in which a context forgets what was prefetched.
    enum Forgetting: CaseIterable { case refresh, refreshAll, merge, automaticMerge }

    @Test(arguments: StoreKind.allCases, Forgetting.allCases)
    func `relationships of each kind that were prefetched for a fault are read anew`(
        _ kind: StoreKind,
        _ way: Forgetting
    ) throws {
        let stack = try makeStack(kind)
        let context = stack.context()
        let (city, venue) = try context.performAndWait { () throws in
            context.automaticallyMergesChangesFromParent = way == .automaticMerge
            let cities = NSFetchRequest<City>(entityName: "City")
            cities.predicate = NSPredicate(format: "name == 'Braga'")
            cities.relationshipKeyPathsForPrefetching = ["venues"]
            let request = venues("name == '4'")
            request.relationshipKeyPathsForPrefetching = ["tags", "photos", "fans"]
            let city = try require(try context.fetch(cities).first)
            let venue = try require(try context.fetch(request).first)
            expect(city.isFault && !city.hasFault(forRelationshipNamed: "venues"))
            expect(venue.isFault && !venue.hasFault(forRelationshipNamed: "photos"))
            return (UncheckedSendable(city), UncheckedSendable(venue))
        }
        let (cityID, venueID) = context.performAndWait { (city.value.objectID, venue.value.objectID) }
        try stack.change(venueID, Venue.self) { venue, context in
            let photo = Photo(context: context)
            photo.title = "late"
            venue.photos = [photo] + venue.photos
            venue.tags.insert(TestSupport.Tag(context: context))
            let fan = User(context: context)
            fan.email = "late"
            venue.fans = [fan]
            Venue(context: context).city = try? context.get(cityID, City.self)
        }
        switch way {
        case .refresh:
            context.performAndWait {
                context.refresh(city.value, mergeChanges: false)
                context.refresh(venue.value, mergeChanges: false)
            }
        case .refreshAll: context.performAndWait { context.refreshAllObjects() }
        case .merge:
            NSManagedObjectContext.mergeChanges(
                fromRemoteContextSave: [NSUpdatedObjectIDsKey: [cityID, venueID]],
                into: [context]
            )
        case .automaticMerge: break
        }
        context.performAndWait {
            // Two were in the city before.
            expectEqual(city.value.venues.count, 3)
            expectEqual(venue.value.tags.count, 1)
            expectEqual(venue.value.photos.map(\.title), ["late", "4 1", "4 0"])
            expectEqual(venue.value.fans.map(\.email), ["late"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `prefetched objects survive until they are asked for`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let context = stack.context()
        try context.performAndWait { () throws -> Void in
            let request = venues()
            request.relationshipKeyPathsForPrefetching = ["city"]
            let found = try context.fetch(request)
            context.sweep()
            stack.coolDown()
            expectEqual(found.compactMap { $0.city }.count, 5)
            expectEqual(Set(found.compactMap { $0.city }).count, 2)
            context.sweep()
            context.sweep()
            expectEqual(context.identityMap.storedCount, 6)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a path of a hundred thousand steps is refused`(_ kind: StoreKind) throws {
        let context = try Stack(kind).context()
        context.performAndWait {
            let request = NSFetchRequest<User>(entityName: "User")
            request.relationshipKeyPathsForPrefetching = [
                Array(repeating: "boss", count: 100_000).joined(separator: ".")
            ]
            let error = expectThrows(CocoaError.self) { try context.fetch(request) }
            expectEqual(error?.code, .persistentStoreOperation)
            expect((error?.localizedDescription.utf8.count ?? .max) < 2_000)
            request.relationshipKeyPathsForPrefetching = [Array(repeating: "boss", count: 60).joined(separator: ".")]
            #expect(throws: Never.self) { try context.fetch(request) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a wrong path is refused by name`(_ kind: StoreKind) throws {
        let stack = try makeStack(kind)
        let context = stack.context()
        context.performAndWait {
            func refusal(_ path: String) -> String {
                let request = venues()
                request.relationshipKeyPathsForPrefetching = [path]
                return message { _ = try context.fetch(request) }
            }
            expect(refusal("town").contains("\"town\": entity Venue has no property \"town\""))
            expect(refusal("city.mayor").contains("\"city.mayor\": entity City has no property \"mayor\""))
            expect(refusal("city.name").contains("\"name\" of City is no stored relationship"))
            expect(refusal("note").contains("\"note\" of Venue is no stored relationship"))
            expect(refusal("").contains("no property \"\""))
            expect(refusal("city..venues").contains("no property \"\""))
        }
    }
}
