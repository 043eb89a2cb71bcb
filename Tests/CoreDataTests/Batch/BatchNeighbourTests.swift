import CoreData
import Expectations
import StrataLocks
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations

/// Batches run while other contexts save, delete and merge the same rows.
@Suite("Batches beside others")
struct BatchNeighbourTests {
    private static let rounds = 25
    private static let cities = 12

    /// Runs each piece of work on a separate thread, and waits until all have ended.
    private func atOnce(_ work: [@Sendable () throws -> Void]) -> [any Error] {
        let errors = Locked<[UncheckedBox<any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: work.count) { number in
            do {
                try work[number]()
            } catch {
                let box = UncheckedBox(error)
                errors.withLock { $0.append(box) }
            }
        }
        return errors.withLock { $0.map(\.value) }
    }

    @Test(arguments: StoreKind.allCases)
    func `beside saves no increment is lost, contexts follow, and the history leads to the rows (CS-165, 172, 176)`(
        _ kind: StoreKind
    ) throws {
        let stack = kind == .sqlite ? try Stack.recording() : try Stack(kind)
        let ids = try (0..<Self.cities).map { try stack.storeCity("city \($0)", population: 0) }
        let follower = stack.context("follower")
        let loaded = try follower.performAndWait {
            follower.automaticallyMergesChangesFromParent = true
            let all = try follower.all(City.self)
            expect(all.allSatisfy { $0.population == 0 })
            return UncheckedBox(all)
        }
        let batches: @Sendable () throws -> Void = {
            for _ in 0..<Self.rounds {
                let request = NSBatchUpdateRequest(entityName: "City")
                request.propertiesToUpdate = ["population": NSExpression(format: "population + 1")]
                request.resultType = .updatedObjectsCountResultType
                let count = try stack.execute(request).value as? Int
                expectEqual(count, Self.cities)
            }
        }
        let saves: @Sendable () throws -> Void = {
            let context = stack.context("saves")
            for round in 0..<Self.rounds {
                try context.performAndWait {
                    let city = try context.get(ids[round % Self.cities], City.self)
                    var isSaved = false
                    while !isSaved {
                        context.refresh(city, mergeChanges: false)
                        city.population += 1
                        do {
                            try context.save()
                            isSaved = true
                        } catch let error as CocoaError where error.code == .managedObjectMerge {}
                    }
                }
            }
        }
        let comings: @Sendable () throws -> Void = {
            for round in 0..<Self.rounds {
                let city = ids[round % Self.cities]
                try stack.execute(
                    NSBatchInsertRequest(entityName: "Venue", objects: (0..<5).map { ["price": $0, "city": city] })
                )
                try stack.execute(NSBatchDeleteRequest("Venue", "price > 1 AND city == %@", city))
            }
        }
        expect(atOnce([batches, saves, batches, saves, comings]).isEmpty)
        let expected = 2 * Self.rounds * Self.cities + 2 * Self.rounds
        let stored = try stack.all(City.self) { "\($0.population)" }.compactMap(Int.init).reduce(0, +)
        expectEqual(stored, expected)
        try expectEqual(stack.count("Venue"), 2 * Self.rounds)
        // In the context's queue the merges come before this block.
        follower.performAndWait {
            expectEqual(loaded.value.map { Int($0.population) }.reduce(0, +), expected)
            expectEqual(loaded.value.map(\.venues.count).reduce(0, +), 2 * Self.rounds)
        }
        guard kind == .sqlite else { return }
        try expectEqual(stack.verificationProblems(), [])
        let numbers = try stack.transactions().map(\.transactionNumber)
        expectEqual(numbers, (1...Int64(numbers.count)).map { $0 })
        expectEqual(numbers.count, Self.cities + 2 * Self.rounds * 2 + 2 * Self.rounds)
    }
}
