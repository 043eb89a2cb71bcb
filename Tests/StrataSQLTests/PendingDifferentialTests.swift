import CoreData
import Expectations
import Foundation
import StrataPredicates
import StrataRows
import TestSupport
import Testing

@testable import CoreDataBinaryStore
@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives

@Suite("Random fetches from contexts")
struct PendingDifferentialTests {
    private static let seeds = DifferentialSeeds.all

    /// The number of fetches between two changes.
    private static let fetches = 40

    /// The number of fetches for each seed and model that a database gets.
    private static let asked = 400

    @Test(arguments: seeds, StoreKind.databases)
    func `a database answers as the objects do`(_ seed: UInt64, _ kind: StoreKind) throws {
        try ask(seed, kind, EveryKindModel.make())
    }

    @Test(arguments: seeds, StoreKind.databases)
    func `a database answers as the objects do, whatever the model`(_ seed: UInt64, _ kind: StoreKind) throws {
        var random = SeededRandom(seed: seed &* 15_485_863)
        try ask(seed, kind, RandomModel.make(&random))
    }

    // Only PostgreSQL keeps folded texts, for which it compiles each fetch in another way.
    @Test(arguments: seeds, StoreKind.databases.filter { $0 == .postgreSQL })
    func `a database answers as the objects do, where all texts are kept folded`(_ seed: UInt64, _ kind: StoreKind)
        throws
    {
        let model = EveryKindModel.make()
        for entity in model.entities {
            for attribute in entity.attributesByName.values where attribute.type == .string {
                attribute.userInfo = ["postgresql.folded": "c, d, cd"]
            }
        }
        try ask(seed &* 31, kind, model)
    }

    /// Compares a store's results, for each way of asking, with an evaluation on all objects.
    private func ask(_ seed: UInt64, _ kind: StoreKind, _ model: NSManagedObjectModel) throws {
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            var generator = FetchGenerator(seed: seed, model: model)
            let objects = RandomData.populate(context, model, count: 5, &generator.random)
            try context.save()
            // Stored values count: if two owners share a member of a relationship without an inverse, then the last
            // owner keeps it.
            context.refreshAllObjects()
            generator.objects = objects.map(\.objectID)
            let open = try require(stack.coordinator.openStores.first)
            let store = open.rows
            let planner = FetchPlanner(model: context.model)
            var run = DifferentialRun(seed: seed)
            var refused = 0

            for _ in 0..<Self.asked where run.failures < 5 {
                let specification = generator.specification()
                let plan: FetchPlan
                do {
                    plan = try planner.plan(specification).asked(ofStore: open.number)
                } catch let error as CocoaError where error.code == .persistentStoreOperation {
                    // Some random requests are invalid, such as one with the difference of two dates.
                    refused += 1
                    continue
                }
                do {
                    let candidates = objects.filter { plan.entityNumbers.contains($0.layout.number) }
                    let matching = try plan.matching(candidates.sorted { $0.key < $1.key }, ObjectReader())
                    let all = try plan.sorted(matching, ObjectReader()).map(\.key)
                    let expected = plan.window(all)
                    run.found += expected.count

                    let keys = try store.references(for: plan).map(\.key)
                    let rows = try store.rows(for: plan).map(\.key)
                    let cursor = try store.cursor(for: plan)
                    var streamed: [Int64] = []
                    while case let batch = try cursor.next(2), !batch.isEmpty { streamed += batch.map(\.key) }

                    let isOrdered = plan.sort != nil || plan.limit > 0 || plan.offset > 0
                    if isOrdered ? keys != expected : keys.sorted() != expected.sorted() {
                        run.fail("SQL \(keys), objects \(expected)", specification, nil)
                    }
                    if isOrdered ? rows != keys : rows.sorted() != keys.sorted() {
                        run.fail("rows \(rows), references \(keys)", specification, nil)
                    }
                    if isOrdered ? streamed != keys : streamed.sorted() != keys.sorted() {
                        run.fail("a cursor \(streamed), references \(keys)", specification, nil)
                    }
                    let count = try store.count(for: plan)
                    if count != expected.count {
                        run.fail("count \(count), \(expected.count) found", specification, nil)
                    }
                } catch {
                    run.fail("\(error)", specification, nil)
                }
            }
            expectEqual(run.failures, 0, "seed \(seed)")
            expect(refused < Self.asked / 20, "seed \(seed): \(refused) were refused")
            // The test would prove nothing if its predicates held never or always.
            expect(run.found > Self.asked / 2, "seed \(seed): \(run.found) found")
        }
    }

    @Test(arguments: seeds, StoreKind.allCases)
    func `pending changes count as they do once they are saved`(_ seed: UInt64, _ kind: StoreKind) throws {
        try compare(seed, kind, EveryKindModel.make())
    }

    @Test(arguments: seeds, StoreKind.allCases)
    func `pending changes count as they do once they are saved, whatever the model`(
        _ seed: UInt64,
        _ kind: StoreKind
    ) throws {
        var random = SeededRandom(seed: seed &* 104_729)
        try compare(seed, kind, RandomModel.make(&random))
    }

    private func compare(_ seed: UInt64, _ kind: StoreKind, _ model: NSManagedObjectModel) throws {
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        try context.performAndWait {
            var generator = FetchGenerator(seed: seed, model: model)
            var objects = RandomData.populate(context, model, count: 4, &generator.random)
            try context.save()
            var run = DifferentialRun(seed: seed)
            var found = 0

            for round in 0..<6 where run.failures < 5 {
                Self.change(&objects, context, model, round, &generator.random)
                generator.objects = objects.filter { !$0.objectID.isTemporaryID }.map(\.objectID)
                let specifications = (0..<Self.fetches).map { _ in generator.orderedSpecification() }
                // Some of the unchanged objects become faults, which must make no difference.
                if round.isMultiple(of: 2) { context.refreshAllObjects() }

                let before = try specifications.map { try Self.answer($0, context) }
                try context.save()
                let after = try specifications.map { try Self.answer($0, context) }

                for (index, specification) in specifications.enumerated() where before[index] != after[index] {
                    run.fail("pending \(before[index]), saved \(after[index])", specification, nil)
                }
                found += after.reduce(0) { $0 + $1.serials.count }
            }
            expectEqual(run.failures, 0, "seed \(seed)")
            expect(found > 0)
        }
    }

    private struct BatchesDiffer: Error {
        let serials: [Int64]
        let batched: [Int64]
    }

    private struct Answer: Equatable {
        let serials: [Int64]
        let count: Int
    }

    private static func answer(_ specification: FetchSpecification, _ context: NSManagedObjectContext) throws -> Answer
    {
        let request = NSFetchRequest<NSManagedObject>(entityName: specification.entity?.name ?? "")
        request.predicate = specification.predicate
        request.sortDescriptors = specification.sortDescriptors
        request.includesSubentities = specification.includesSubentities
        request.fetchLimit = specification.fetchLimit
        request.fetchOffset = specification.fetchOffset
        let serials = try context.fetch(request).map { ($0.value(forKey: "serial") as? NSNumber)?.int64Value ?? -1 }
        // The results are the same, however they are read.
        request.fetchBatchSize = 3
        let batched = try context.batchedResults(for: request).map {
            ($0.value(forKey: "serial") as? NSNumber)?.int64Value ?? -1
        }
        let inBatches = try context.fetch(request).map { ($0.value(forKey: "serial") as? NSNumber)?.int64Value ?? -1 }
        guard batched == serials, inBatches == serials else { throw BatchesDiffer(serials: serials, batched: batched) }
        return Answer(serials: serials, count: try context.count(for: request))
    }

    /// Inserts, changes and deletes some objects.
    private static func change(
        _ objects: inout [NSManagedObject],
        _ context: NSManagedObjectContext,
        _ model: NSManagedObjectModel,
        _ round: Int,
        _ random: inout SeededRandom
    ) {
        let entities = model.entities.filter { !$0.isAbstract }.sorted { ($0.name ?? "") < ($1.name ?? "") }
        for number in 0..<4 {
            let object = NSManagedObject(entity: random.pick(entities), insertInto: context)
            object.setValue(1_000 * (round + 1) + number, forKey: "serial")
            objects.append(object)
            RandomData.randomize(object, among: objects, &random)
        }
        for _ in 0..<6 {
            let object = random.pick(objects)
            let properties = object.entity.properties.filter { $0.name != "serial" }.sorted { $0.name < $1.name }
            for _ in 0..<3 { RandomData.set(random.pick(properties), of: object, among: objects, &random) }
        }
        for _ in 0..<2 { context.delete(objects.remove(at: random.below(objects.count))) }
        context.processPendingChanges()
    }
}

extension FetchGenerator {
    mutating func specification() -> FetchSpecification {
        var specification = FetchSpecification()
        let entity = entity()
        specification.entity = entity
        specification.predicate = predicate(about: entity, depth: 3)
        specification.sortDescriptors = sortDescriptors(for: entity)
        specification.includesSubentities = random.chance(80)
        if random.chance(30) { specification.fetchLimit = random.below(6) }
        if random.chance(20) { specification.fetchOffset = random.below(4) }
        return specification
    }

    /// A fetch whose order leaves no two objects equal, and does not depend on keys.
    mutating func orderedSpecification() -> FetchSpecification {
        var specification = specification()
        specification.sortDescriptors = specification.sortDescriptors?.filter { descriptor in
            // Objects themselves sort by their keys, and the keys of new objects change.
            specification.entity?.hasAttribute(atEndOf: descriptor.key ?? "") ?? false
        }
        specification.sortDescriptors?.append(NSSortDescriptor(key: "serial", ascending: true))
        return specification
    }
}

extension NSEntityDescription {
    /// Whether a key path leads to an attribute.
    fileprivate func hasAttribute(atEndOf path: String) -> Bool {
        let keys = path.split(separator: ".").map(String.init)
        guard let first = keys.first else { return false }
        if attributesByName[first] != nil { return true }
        return relationshipsByName[first]?.destinationEntity?
            .hasAttribute(atEndOf: keys.dropFirst().joined(separator: ".")) ?? false
    }
}
