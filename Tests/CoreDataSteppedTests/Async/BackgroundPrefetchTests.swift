import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Prefetching beside the context")
struct BackgroundPrefetchTests {
    /// A request for venues with what their relationships lead to.
    @Sendable private static func venues(_ paths: [String]) -> NSFetchRequest<Venue> {
        let request = NSFetchRequest<Venue>(entityName: "Venue")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        request.relationshipKeyPathsForPrefetching = paths
        return request
    }

    private func storeVenues(_ stack: Stack) throws {
        let context = stack.context("setting up")
        try context.performAndWait {
            let (porto, faro) = (City(context: context), City(context: context))
            (porto.name, faro.name) = ("Porto", "Faro")
            let tags = ["cheap", "late", "loud"].map { title in
                let tag = Tag(context: context)
                tag.title = title
                return tag
            }
            for (index, name) in ["A", "B", "C"].enumerated() {
                let venue = Venue(context: context)
                venue.name = name
                venue.city = index == 2 ? faro : porto
                venue.tags = Set(tags.prefix(index))
            }
            try context.save()
        }
    }

    @Test(arguments: [true, false])
    func `what was prefetched is there without the store, at any depth`(asFaults: Bool) async throws {
        let stack = try Stack(.database)
        try storeVenues(stack)
        let context = stack.context()
        let task = Task {
            let request = Self.venues(["city.venues.tags", "tags.venues.city"])
            request.returnsObjectsAsFaults = asFaults
            return try await context.fetch(request, progress: nil) { venues in
                // Behind the coordinator's back.
                try stack.sql(
                    "DELETE FROM ZCITY; DELETE FROM ZTAG; DELETE FROM ZVENUE",
                    postgreSQL: "DELETE FROM city; DELETE FROM tag; DELETE FROM venue"
                )
                return venues.map { venue in
                    let neighbours = (venue.city?.venues ?? []).compactMap(\.name).sorted()
                    let tags = venue.tags.compactMap(\.title).sorted()
                    let others = Set(venue.tags.flatMap(\.venues).compactMap { $0.city?.name }).sorted()
                    return "\(venue.name ?? "") \(venue.city?.name ?? "") \(neighbours) \(tags) \(others)"
                }
            }
        }
        try await expect(
            task.value == [
                #"A Porto ["A", "B"] [] []"#,
                #"B Porto ["A", "B"] ["cheap"] ["Faro", "Porto"]"#,
                #"C Faro ["C"] ["cheap", "late"] ["Faro", "Porto"]"#,
            ]
        )
    }

    @Test
    func `members that are saved while it reads are there`() async throws {
        let stack = try Stack(.database)
        try storeVenues(stack)
        let context = stack.context()
        let gate = Gate()
        let task = Task {
            try await context.fetch(Self.venues(["tags"])) { progress in
                if progress.expectedRows != nil { gate.stopOnce() }
            } _: {
                $0.map { "\($0.name ?? "") \($0.tags.count)" }
            }
        }
        await gate.arrival()
        try stack.inContext { other throws in
            let tags = try other.all(Tag.self)
            try other.all(Venue.self, sortedBy: "name")[0].tags = Set(tags)
            try other.save()
        }
        gate.open()
        try await expectEqual(task.value, ["A 3", "B 1", "C 2"])
    }

    @Test(.timeLimit(.minutes(1)))
    func `members that are saved while the rest is prefetched are there`() async throws {
        let options = [NSPersistentStoreConnectionPoolMaxSizeKey: 2]
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: options)
        try storeVenues(stack)
        // The cities are to be read from the file.
        try require(stack.coordinator.openStores.first).cache.removeAll()
        let other = stack.context("other")
        let (venue, tags) = try other.performAndWait {
            let venue = try other.all(Venue.self, sortedBy: "name")[0]
            expect(venue.tags.isEmpty)
            return (UncheckedSendable(venue), UncheckedSendable(Set(try other.all(Tag.self))))
        }
        let gate = Gate()
        try stack.stopReadingCities(at: gate)
        let context = stack.context()
        let task = Task {
            try await context.fetch(Self.venues(["tags", "city"]), progress: nil) { venues in
                venues.map { "\($0.name ?? "") \($0.tags.count)" }
            }
        }
        // The tags are read, and the cities come next.
        await gate.arrival()
        try other.performAndWait {
            venue.value.tags = tags.value
            try other.save()
        }
        gate.open()
        try await expectEqual(task.value, ["A 3", "B 1", "C 2"])
    }

    @Test(arguments: StoreKind.allCases)
    func `pending changes stay on top, and unsaved objects are filled as well`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try storeVenues(stack)
        let context = stack.context()
        try context.performAndWait {
            let venues = try context.fetch(Self.venues([]))
            let new = Tag(context: context)
            new.title = "new"
            venues[0].tags = [new]
            venues[2].city = venues[0].city
            Venue(context: context).name = "D"
        }
        let task = Task {
            try await context.fetch(Self.venues(["city", "tags"]), progress: nil) { venues in
                venues.map { "\($0.name ?? "") \($0.city?.name ?? "") \($0.tags.compactMap(\.title).sorted())" }
            }
        }
        try await expect(
            task.value == [
                #"A Porto ["new"]"#, #"B Porto ["cheap"]"#, #"C Porto ["cheap", "late"]"#, "D  []",
            ]
        )
    }

    @Test(.timeLimit(.minutes(1)))
    func `the queue is free meanwhile, and cancelling stops the store`() async throws {
        let stack = try Stack(.database)
        try storeVenues(stack)
        // No tag is ever found.
        try stack.makeTagsEndless(givingRows: false)
        let context = stack.context()
        let task = Task {
            try await context.fetch(Self.venues(["tags"]), progress: nil) { $0.count }
        }
        // The venues are there, so what goes on is the prefetching.
        while await context.perform({ context.identityMap.isEmpty }) {
            // With small sizes the context looks for released objects all the time, and nothing holds the venues yet.
            if WorkSize.sweptObjects < 3, try !stack.isQuiet() { break }
            await Task.yield()
        }
        try await expectEqual(context.perform { try context.count(for: citiesByName()) }, 2)
        task.cancel()
        await expectThrows(CancellationError.self) { try await task.value }
        try await expect(stack.becomesQuiet())
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch that prefetches ends though others save all the time`(_ kind: StoreKind) async throws {
        let stack = try Stack(kind)
        try storeVenues(stack)
        let context = stack.context()
        let isDone = Shared(false)
        let writer = Task.detached {
            let other = stack.context("writer")
            var count = 0
            while !isDone.current {
                try await other.perform {
                    let tag = Tag(context: other)
                    tag.venues = Set(try other.fetch(Self.venues([])))
                    try other.save()
                }
                count += 1
            }
            return count
        }
        for _ in 0..<20 {
            let counts = try await context.fetch(Self.venues(["city", "tags.venues"]), progress: nil) { venues in
                venues.map(\.tags.count)
            }
            expectEqual(counts.count, 3)
            await context.perform { context.reset() }
        }
        isDone.update { $0 = true }
        let added = try await writer.value
        let counts = try await context.fetch(Self.venues(["tags"]), progress: nil) { $0.map(\.tags.count) }
        expectEqual(counts, [added, added + 1, added + 2])
    }
}
