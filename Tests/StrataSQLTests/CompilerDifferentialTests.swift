import CoreData
import Expectations
import Foundation
import StrataPredicates
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataSQL

@Suite("Random fetches")
struct CompilerDifferentialTests {
    /// How many predicates each seed compares with each model: 6,000 with three seeds.
    ///
    /// None can run for long: there are a few dozen objects, and the collections of a predicate are five deep at most.
    private static let count = 1_000
    private static let seeds = DifferentialSeeds.all

    @Test(arguments: seeds)
    func `SQL, rows in memory and objects give one answer`(_ seed: UInt64) throws {
        try compare(seed, EveryKindModel.make())
    }

    @Test(arguments: seeds)
    func `SQL, rows in memory and objects give one answer, whatever the model`(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed &* 7_919)
        try compare(seed, RandomModel.make(&random))
    }

    private func compare(_ seed: UInt64, _ model: NSManagedObjectModel) throws {
        let stack = try Stack(.memory, model: model)
        let context = stack.context()
        try context.performAndWait {
            var generator = FetchGenerator(seed: seed, model: model)
            let objects = RandomData.populate(context, model, count: 5, &generator.random)
            try context.save()
            generator.objects = objects.map(\.objectID)
            let store = try require(stack.coordinator.openStores.first)
            let planner = FetchPlanner(model: context.model)
            let replica = try SQLReplica(copying: store.rows, context.model)
            try replica.finish()
            var run = DifferentialRun(seed: seed)
            var (compared, refused) = (0, 0)

            while compared < Self.count, refused < Self.count / 20, run.failures < 5 {
                let specification = generator.specification()
                let plan: FetchPlan
                do {
                    plan = try planner.plan(specification).asked(ofStore: store.number)
                } catch let error as CocoaError where error.code == .persistentStoreOperation {
                    // Among what chance makes is what makes no sense: the difference of two dates, for instance.
                    refused += 1
                    continue
                }

                let inMemory = try store.rows.references(for: plan).map(\.key)
                let inSQL: [Int64]
                do {
                    inSQL = try replica.keys(for: plan)
                } catch {
                    run.fail("\(error)", specification, try? replica.text(for: plan))
                    continue
                }

                let isOrdered = plan.sort != nil || plan.limit > 0 || plan.offset > 0
                run.found += inMemory.count
                if isOrdered ? inSQL != inMemory : inSQL.sorted() != inMemory.sorted() {
                    run.fail("SQL \(inSQL), memory \(inMemory)", specification, try? replica.text(for: plan))
                }
                // Once the objects have been asked too, without which no predicate counts.
                let predicate = try require(specification.predicate)
                let all =
                    plan.isWindowed ? try store.rows.references(for: plan.unordered).map(\.key) : inMemory
                let candidates = objects.filter { plan.entityNumbers.contains($0.layout.number) }
                let byObject = candidates.filter { predicate.evaluate(with: $0) }.map(\.key)
                compared += 1
                if byObject.sorted() != all.sorted() {
                    run.fail("objects \(byObject.sorted()), memory \(all.sorted())", specification, nil)
                }
            }

            expectEqual(run.failures, 0, "seed \(seed)")
            expectEqual(compared, Self.count, "seed \(seed): \(refused) were refused")
            // A test whose predicates never or always hold would show nothing.
            expect(run.found > Self.count)
        }
    }
}
