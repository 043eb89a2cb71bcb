import CoreData
import Expectations
import Foundation
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataSQLite
@testable import StrataSQLiteStore

/// A pinned context reads its version while another process writes, and empties the log if it can.
@Suite("Pinned contexts: other processes")
struct PinnedProcessTests {
    private static let rounds = 4
    private static let cities = 15

    /// The place of the pinned version: completely in the file, partly in the log, or on a server.
    enum Place {
        case file
        case log
        case server
    }

    @Test(arguments: StoreKind.isPostgreSQL ? [Place.server] : [.file, .log])
    func `a pin is kept while another process deletes and rewrites everything, and empties the log if it can`(
        _ place: Place
    )
        async throws
    {
        let folder = try SharedFolder(signals: "begin", "written", "free")
        let store = folder.store
        let unpinned = try store.context("unpinned")
        try await unpinned.perform { try Self.fill(unpinned, "old") }
        if store.kind == .sqlite { try unpinned.pool.checkpoint(.passive) }
        try await unpinned.perform { try Self.populate(unpinned) }
        if place == .file { try unpinned.pool.checkpoint(.truncate) }
        let (expected, venue) = try await unpinned.perform {
            (try Self.everything(unpinned), try unpinned.all(Venue.self)[0].objectID)
        }
        let pinned = NSManagedObjectContext(.privateQueue)
        pinned.persistentStoreCoordinator = unpinned.persistentStoreCoordinator
        try await pinned.perform {
            try pinned.setQueryGenerationFrom(.current)
            try expectEqual(pinned.count(for: citiesByName()), Self.cities)
        }

        async let other = #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try store.context("other")
            for round in 1...Self.rounds {
                store.wait(for: "begin")
                try await context.perform { try Self.rewrite(context, "new \(round)") }
                if store.kind == .sqlite {
                    let pool = try context.pool
                    try expect(!pool.checkpoint(.passive))
                    for mode in [ConnectionPool.CheckpointMode.restart, .truncate] {
                        let error = expectThrows(SQLiteError.self) { try pool.checkpoint(mode, timeout: 0.05) }
                        expectEqual(error?.code, .busy)
                    }
                }
                store.signal("written")
            }
            store.wait(for: "free")
            guard store.kind == .sqlite else { return }
            try expect(context.pool.checkpoint(.truncate, timeout: 60))
            expectEqual(store.size("-wal"), 0)
        }
        for round in 1...Self.rounds {
            store.signal("begin")
            await store.arrival(of: "written")
            try await pinned.perform {
                // Until the first round the context has read only the number of cities.
                let fault: Venue = try pinned.get(venue)
                expect(fault.isFault && fault.name?.hasPrefix("old") == true && fault.city != nil)
                try expectEqual(Self.everything(pinned), expected)
                pinned.refreshAllObjects()
            }
            try await unpinned.perform { () throws in
                unpinned.reset()
                let newest = citiesByName()
                newest.predicate = NSPredicate(format: "name BEGINSWITH %@", "new \(round)")
                try expectEqual(unpinned.count(for: newest), Self.cities)
                try expectEqual(unpinned.count(for: citiesByName()), Self.cities)
            }
        }
        try await pinned.perform {
            try pinned.setQueryGenerationFrom(.current)
            let newest = expected.map { $0.replacingOccurrences(of: "old", with: "new \(Self.rounds)") }
            try expectEqual(Self.everything(pinned), newest)
            try pinned.setQueryGenerationFrom(nil)
        }
        store.signal("free")
        _ = await other
    }

    // MARK: - What is stored

    /// Saves cities, venues, and objects that belong to venues.
    ///
    /// All names begin alike.
    private static func fill(_ context: NSManagedObjectContext, _ prefix: String) throws {
        let tag = TestSupport.Tag(context: context)
        tag.title = "\(prefix) tag"
        let user = User(context: context)
        user.email = "\(prefix) user"
        for number in 0..<cities {
            let city = City(context: context)
            city.name = "\(prefix) city \(number)"
            for place in 0..<3 {
                let venue = Venue(context: context)
                venue.name = "\(prefix) venue \(number) \(place)"
                // These values fill many pages that the other process can overwrite.
                venue.map = Data(repeating: UInt8(number * 3 + place), count: 3000)
                venue.city = city
                if place == 0 { venue.tags = [tag] }
                venue.photos = (0..<2).map { index in
                    let photo = Photo(context: context)
                    photo.title = "\(prefix) photo \(number) \(place) \(index)"
                    return photo
                }
                user.favourites.insert(venue, at: 0)
            }
        }
        try context.save()
    }

    /// Changes all cities and saves.
    private static func populate(_ context: NSManagedObjectContext) throws {
        for (index, city) in try context.fetch(citiesByName()).enumerated() { city.population = Int64(index + 1) }
        try context.save()
    }

    /// Deletes everything and puts similar objects in its place.
    private static func rewrite(_ context: NSManagedObjectContext, _ prefix: String) throws {
        for user in try context.all(User.self) { context.delete(user) }
        for tag in try context.all(TestSupport.Tag.self) { context.delete(tag) }
        for venue in try context.all(Venue.self) { context.delete(venue) }
        for city in try context.all(City.self) { context.delete(city) }
        try context.save()
        try fill(context, prefix)
        try populate(context)
        context.reset()
    }

    /// Everything that a context reads, with a line for each object.
    private static func everything(_ context: NSManagedObjectContext) throws -> [String] {
        let cities = try context.fetch(citiesByName()).map { city in
            "\(city.name) \(city.population): \(city.venues.compactMap(\.name).sorted())"
        }
        let venues = try context.all(Venue.self).map { venue in
            """
            \(venue.name ?? "-") \(venue.map?.first ?? 0) \(venue.map?.count ?? 0): \(venue.city?.name ?? "-") \
            \(venue.tags.compactMap(\.title)) \(venue.photos.compactMap(\.title)) \(venue.fans.map(\.email))
            """
        }
        let photos = try context.all(Photo.self).map { "\($0.title ?? "-"): \($0.venue?.name ?? "-")" }
        let users = try context.all(User.self).map { "\($0.email): \($0.favourites.compactMap(\.name))" }
        return cities + venues.sorted() + photos.sorted() + users
    }
}

extension NSManagedObjectContext {
    /// The connections of the context's store, a SQLite file.
    fileprivate var pool: ConnectionPool {
        get throws {
            let store = try require(persistentStoreCoordinator?.persistentStores.first as? SQLiteStore)
            return try store.openFile().pool
        }
    }
}
