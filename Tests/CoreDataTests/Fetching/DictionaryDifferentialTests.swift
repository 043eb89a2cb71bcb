import CoreData
import Expectations
import StrataPredicates
import StrataRows
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataFetchedResults
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import StrataArchives
@testable import StrataSQL
@testable import StrataSQLiteStore

/// A store with random contents, whose objects are described by their serial numbers.
private struct RandomStore {
    let stack: Stack
    let context: NSManagedObjectContext
    let store: OpenStore
    /// The serial numbers by hierarchy and key.
    let serials: [Int: [Int64: Int64]]

    init(_ kind: StoreKind, _ model: NSManagedObjectModel, seed: UInt64) throws {
        let stack = try Stack(kind, model: model)
        let context = stack.context()
        self.stack = stack
        self.context = context
        store = try require(stack.coordinator.openStores.first)
        serials = try context.performAndWait {
            var random = SeededRandom(seed: seed)
            let objects = RandomData.populate(context, model, count: 6, &random)
            try context.save()
            var serials: [Int: [Int64: Int64]] = [:]
            for object in objects {
                serials[object.layout.rootNumber, default: [:]][object.key] =
                    (object.value(forKey: "serial") as? NSNumber)?.int64Value
            }
            return serials
        }
    }

    /// A result with serial numbers in the place of objects.
    func told(_ results: FetchedValues) -> [[PredicateValue]] {
        (0..<results.count).map { row in
            results[row].map { value in
                guard case .object(let reference, let root, _) = value else { return value.comparable }
                return serials[root]?[reference.key].map { .int($0) } ?? .string("object \(reference.key)")
            }
        }
    }
}

@Suite("Random fetches of dictionaries")
struct DictionaryDifferentialTests {
    private static let count = 400

    @Test(arguments: DifferentialSeeds.all, StoreKind.databases)
    func `SQL, memory and the evaluation for other stores give one answer`(_ seed: UInt64, _ kind: StoreKind) throws {
        // Both stores use one model, so that objects and entities in predicates fit both.
        let model = EveryKindModel.make()
        let file = try RandomStore(kind, model, seed: seed)
        let memory = try RandomStore(.memory, model, seed: seed)
        // Predicates with objects and orders by keys thus mean the same in both stores.
        expectEqual(file.serials, memory.serials)
        let planner = FetchPlanner(model: file.context.model)
        var generator = DictionaryGenerator(FetchGenerator(seed: seed, model: model))
        var run = DifferentialRun(seed: seed)

        for _ in 0..<Self.count where run.failures < 5 {
            let specification = generator.specification()
            do {
                let plan = try planner.dictionaryPlan(specification)
                let inSQL = try file.store.rows.values(for: plan.asked(ofStore: file.store.number))
                let inMemory = try memory.store.rows.values(for: plan.asked(ofStore: memory.store.number))
                let rows = try file.store.rows.rows(for: plan.rows.asked(ofStore: file.store.number))
                let reader = StoreRowReader(file.store.rows, rows, storeNumber: file.store.number)
                let byRows = try DictionaryEvaluation(plan.asked(ofStore: file.store.number), reader).results(
                    from: rows
                )

                let isOrdered = plan.grouping != nil || plan.rows.sort != nil || plan.limit > 0 || plan.offset > 0
                let answers = [memory.told(inMemory), file.told(byRows)]
                for answer in answers where !Self.agree(file.told(inSQL), answer, isOrdered: isOrdered) {
                    run.fail("SQL \(file.told(inSQL)), not \(answer)", specification, Self.sql(plan, file))
                }
                let counts = [
                    try file.store.rows.count(for: plan.asked(ofStore: file.store.number)),
                    try memory.store.rows.count(for: plan.asked(ofStore: memory.store.number)),
                ]
                if counts != [inSQL.count, inSQL.count] {
                    run.fail("counts \(counts) of \(inSQL.count)", specification, Self.sql(plan, file))
                }
                run.found += inSQL.count
            } catch let error as CocoaError where error.code == .persistentStoreOperation {
                // Some random requests are invalid, such as one with an order by an archive.
                continue
            } catch {
                run.fail("\(error)", specification, nil)
            }
        }
        expectEqual(run.failures, 0, "seed \(seed)")
        // The test would prove nothing if its fetches found nothing or were invalid.
        expect(run.found > Self.count)
    }

    private static func agree(_ left: [[PredicateValue]], _ right: [[PredicateValue]], isOrdered: Bool) -> Bool {
        guard left.count == right.count else { return false }
        guard isOrdered else {
            return agree(left.sorted(by: precedes), right.sorted(by: precedes), isOrdered: true)
        }
        return zip(left, right).allSatisfy { rows in zip(rows.0, rows.1).allSatisfy { agree($0.0, $0.1) } }
    }

    /// Sums of floating-point numbers may differ in their last digits.
    private static func agree(_ left: PredicateValue, _ right: PredicateValue) -> Bool {
        if left == right { return true }
        guard let first = left.doubleValue, let second = right.doubleValue else { return false }
        return abs(first - second) <= 1e-12 * max(abs(first), abs(second))
    }

    private static func precedes(_ left: [PredicateValue], _ right: [PredicateValue]) -> Bool {
        for (first, second) in zip(left, right) {
            let order = SortComparison.natural.compare(first, second)
            if order != .orderedSame { return order == .orderedAscending }
        }
        return false
    }

    private static func sql(_ plan: DictionaryPlan, _ file: RandomStore) -> (text: String, bindings: [SQLBinding])? {
        guard let store = file.store.store as? SQLiteStore, let mapping = try? store.openFile().mapping,
            let entity = mapping.entity(plan.rows.layout),
            let query = try? QueryCompiler.compile(
                plan,
                for: entity,
                in: mapping,
                entityCondition: nil,
                isOrdered: true
            )
        else { return nil }
        return (query.text, query.bindings)
    }
}
