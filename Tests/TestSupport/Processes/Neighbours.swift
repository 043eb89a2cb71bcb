import CoreData
import Dispatch
import Foundation
import Synchronization

/// Contexts on separate threads that change, add, delete, fetch and merge as long as a test runs.
///
/// They only increment `population` of the cities and `visits` of the venues that they are given, so that neither ever
/// falls. Objects that they add are called "passing".
package final class Neighbours: Sendable {
    private let stack: Stack
    private let cities: [NSManagedObjectID]
    private let venues: [NSManagedObjectID]
    private let isOver = Atomic(false)
    private let group = DispatchGroup()
    private let failures = Shared<[String]>([])
    /// How often each of them has done its work; guarded by the condition.
    nonisolated(unsafe) private var rounds = [0, 0, 0]
    private let roundEnded = NSCondition()

    package init(_ stack: Stack, cities: [NSManagedObjectID] = [], venues: [NSManagedObjectID] = []) {
        (self.stack, self.cities, self.venues) = (stack, cities, venues)
    }

    /// Runs `body` among neighbours, which have stopped when this returns.
    ///
    /// Each neighbour does its work once before the body begins, and again while it runs.
    ///
    /// - Returns: The result of the body.
    /// - Throws: Errors of the body or of the neighbours.
    package func around<T>(_ body: () throws -> T) throws -> T {
        for (number, work) in [changeRows, comeAndGo, follow].enumerated() {
            let context = stack.context("neighbour")
            context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
            group.enter()
            Thread { [self] in
                defer { group.leave() }
                while !isOver.load(ordering: .relaxed) {
                    do {
                        try context.performAndWait { try work(context) }
                    } catch {
                        failures.update { $0.append("\(error)") }
                    }
                    roundEnded.withLock {
                        rounds[number] += 1
                        roundEnded.broadcast()
                    }
                    if !failures.current.isEmpty { return }
                }
            }.start()
        }
        let result = Result {
            try awaitRounds(after: [0, 0, 0])
            let before = roundEnded.withLock { rounds }
            let result = try body()
            try awaitRounds(after: before)
            return result
        }
        isOver.store(true, ordering: .relaxed)
        group.wait()
        guard failures.current.isEmpty else { throw Trouble(what: failures.current) }
        return try result.get()
    }

    /// Waits until each neighbour has done its work more often than before; at most one minute.
    private func awaitRounds(after before: [Int]) throws {
        let deadline = Date(timeIntervalSinceNow: 60)
        let ended = roundEnded.withLock {
            while !zip(rounds, before).allSatisfy(>), failures.current.isEmpty {
                guard roundEnded.wait(until: deadline) else { return false }
            }
            return true
        }
        guard ended else { throw Trouble(what: ["a neighbour stands still"]) }
    }

    private struct Trouble: Error {
        let what: [String]
    }

    private func changeRows(_ context: NSManagedObjectContext) throws {
        for case let city as City in try cities.map(context.existingObject) { city.population += 1 }
        for case let venue as Venue in try venues.map(context.existingObject) { venue.visits += 1 }
        try context.save()
    }

    private func comeAndGo(_ context: NSManagedObjectContext) throws {
        let city = City(context: context)
        city.name = "passing"
        let venue = Venue(context: context)
        venue.name = "passing"
        venue.city = city
        venue.photos = [Photo(context: context)]
        try context.save()
        context.delete(venue)
        context.delete(city)
        try context.save()
    }

    private func follow(_ context: NSManagedObjectContext) throws {
        if !context.automaticallyMergesChangesFromParent { context.automaticallyMergesChangesFromParent = true }
        for city in try context.all(City.self) where !city.isDeleted {
            guard !city.name.isEmpty || city.isDeleted else { throw Trouble(what: ["a city without a name"]) }
        }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: [NSUpdatedObjectIDsKey: cities], into: [context])
        context.refreshAllObjects()
    }
}

extension Neighbours {
    /// The number of times that tests run something among neighbours.
    package static let rounds = 15

    /// A stored city and a venue in it with two photos.
    package static func prepare(_ stack: Stack) throws -> (city: NSManagedObjectID, venue: NSManagedObjectID) {
        let cityID = try stack.storeCity("own", population: 0)
        let venueID = try stack.store(Venue.self) { venue, context in
            venue.name = "own"
            venue.city = context.object(with: cityID) as? City
            venue.photos = [Photo(context: context), Photo(context: context)]
        }
        return (cityID, venueID)
    }

    /// Runs `body` again and again among neighbours, each time in a new context with the object-trump policy.
    package static func among(
        _ kind: StoreKind,
        _ body: (Stack, NSManagedObjectContext, NSManagedObjectID, NSManagedObjectID) throws -> Void
    ) throws {
        let stack = try Stack(kind)
        let (city, venue) = try prepare(stack)
        try Neighbours(stack, cities: [city], venues: [venue]).around {
            for _ in 0..<rounds {
                let context = stack.context("tested")
                context.mergePolicy = NSMergePolicy.mergeByPropertyObjectTrump
                try context.performAndWait { try body(stack, context, city, venue) }
            }
        }
    }
}
