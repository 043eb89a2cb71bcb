import CoreData
import Expectations
import TestSupport
import Testing

@Suite("A unit of work, from insert to fetch")
struct UnitOfWorkTests {
    @Test(arguments: StoreKind.allCases)
    func `what one context saves another one fetches`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let writer = stack.context("writer")
        let id = try writer.performAndWait {
            let city = City(context: writer)
            city.name = "Lisbon"
            let venue = Venue(context: writer)
            venue.name = "Bar do Rio, a place with a long name"
            venue.price = 12
            venue.distance = 1.5
            venue.favorite = true
            venue.createdAt = Date(timeIntervalSinceReferenceDate: 1000)
            venue.rating = Decimal(string: "4.5")
            venue.code = UUID(uuidString: "E8AFD1EB-9427-4A64-ABDA-AA06F7B1092C")
            venue.site = URL(string: "https://example.com/a")
            venue.map = Data([1, 2, 3])
            venue.seats = 40
            venue.visits = 1 << 40
            venue.score = 2.25
            venue.city = city
            let tag = Tag(context: writer)
            tag.title = "quiet"
            venue.tags = [tag]
            let photos = (0..<3).map { index in
                let photo = Photo(context: writer)
                photo.title = "photo \(index)"
                return photo
            }
            venue.photos = photos
            expect(venue.objectID.isTemporaryID)
            expectEqual(city.venues, [venue])
            let captured = venue.objectID
            try writer.save()
            let id = venue.objectID
            expect(captured.isTemporaryID && !id.isTemporaryID)
            expect(writer.object(with: captured) === venue)
            expect(!writer.hasChanges)
            return id
        }
        let reader = stack.context("reader")
        try reader.performAndWait {
            let request = NSFetchRequest<Venue>(entityName: "Venue")
            request.predicate = NSPredicate(format: "name BEGINSWITH %@ AND city.name == %@", "Bar", "Lisbon")
            let venues = try reader.fetch(request)
            let venue = try require(venues.first)
            expect(venue.objectID === id)
            expect(venue.isFault)
            expectEqual(venue.name, "Bar do Rio, a place with a long name")
            expect(!venue.isFault)
            expectEqual(venue.price, 12)
            expectEqual(venue.distance, 1.5)
            expect(venue.favorite)
            expectEqual(venue.createdAt, Date(timeIntervalSinceReferenceDate: 1000))
            expectEqual(venue.rating, Decimal(string: "4.5"))
            expectEqual(venue.code, UUID(uuidString: "E8AFD1EB-9427-4A64-ABDA-AA06F7B1092C"))
            expectEqual(venue.site, URL(string: "https://example.com/a"))
            expectEqual(venue.map, Data([1, 2, 3]))
            expectEqual(venue.seats, 40)
            expectEqual(venue.visits, 1 << 40)
            expectEqual(venue.score, 2.25)
            expectEqual(venue.city?.name, "Lisbon")
            expectEqual(venue.city?.venues, [venue])
            expectEqual(venue.tags.map(\.title), ["quiet"])
            expectEqual(venue.photos.map(\.title), ["photo 0", "photo 1", "photo 2"])
            try expectEqual(reader.count(for: NSFetchRequest<Photo>(entityName: "Photo")), 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the second of two writers of one object is refused`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let first = stack.context("first")
        let second = stack.context("second")
        let id = try first.performAndWait {
            let city = City(context: first)
            city.name = "Porto"
            try first.save()
            return city.objectID
        }
        second.performAndWait {
            let city = second.object(with: id) as! City
            expectEqual(city.name, "Porto")
            city.population = 5
        }
        try first.performAndWait {
            (first.object(with: id) as! City).name = "Oporto"
            try first.save()
        }
        second.performAndWait {
            expectThrows(CocoaError.self) { try second.save() }
            expect(second.hasChanges)
            second.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            #expect(throws: Never.self) { try second.save() }
            let city = second.object(with: id) as! City
            expectEqual(city.name, "Oporto")
            expectEqual(city.population, 5)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `pending changes are folded into fetches`(_ kind: StoreKind) throws {
        let stack = try Stack(kind)
        let context = stack.context()
        try context.performAndWait {
            for index in 0..<10 {
                let city = City(context: context)
                city.name = "city \(index)"
                city.population = Int64(index)
            }
            try context.save()
            let request = NSFetchRequest<City>(entityName: "City")
            request.sortDescriptors = [NSSortDescriptor(key: "population", ascending: true)]
            request.predicate = NSPredicate(format: "population > %d", 3)
            try expectEqual(context.fetch(request).map(\.population), [4, 5, 6, 7, 8, 9])
            let all = try context.fetch(NSFetchRequest<City>(entityName: "City"))
            let byPopulation = Dictionary(uniqueKeysWithValues: all.map { ($0.population, $0) })
            context.delete(byPopulation[5]!)
            byPopulation[0]!.population = 100
            let new = City(context: context)
            new.name = "new"
            new.population = 7
            try expectEqual(context.fetch(request).map(\.population), [4, 6, 7, 7, 8, 9, 100])
            request.fetchLimit = 2
            request.fetchOffset = 1
            try expectEqual(context.fetch(request).map(\.population), [6, 7])
            try expectEqual(context.count(for: request), 2)
            request.includesPendingChanges = false
            request.fetchLimit = 0
            request.fetchOffset = 0
            try expectEqual(context.count(for: request), 6)
        }
    }
}
