import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataRows
import StrataSQL
import Synchronization
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataPostgreSQLStore

@Suite("Aggregates of PostgreSQL stores", .enabled(if: Server.isThere))
struct AggregateTests {
    /// Orders with items.
    private static func model() -> NSManagedObjectModel {
        let (order, item) = (StoreModels.entity("Order"), StoreModels.entity("Item"))
        let (items, orderOf) = (StoreModels.toMany("items", item), StoreModels.toOne("order", order))
        StoreModels.connect(items, orderOf)
        order.properties = [StoreModels.attribute("name", .string), items]
        item.properties = [
            StoreModels.attribute("count", .integer64), StoreModels.attribute("small", .integer16),
            StoreModels.attribute("weight", .double), StoreModels.attribute("price", .decimal),
            StoreModels.attribute("kind", .string), StoreModels.attribute("due", .date),
            StoreModels.attribute("isGift", .boolean), orderOf,
        ]
        return StoreModels.model(order, item)
    }

    /// A store with an order of each list of counts, whose weights are their halves.
    private func stack(_ orders: [[Int64]]) throws -> Stack {
        let stack = try Stack(.postgreSQL, model: Self.model())
        let context = stack.context()
        try context.performAndWait {
            for (number, counts) in orders.enumerated() {
                let order = NSEntityDescription.insertNewObject(forEntityName: "Order", into: context)
                order.setValue("\(number)", forKey: "name")
                for count in counts {
                    let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                    item.setValue(count, forKey: "count")
                    item.setValue(count % 100, forKey: "small")
                    item.setValue(Double(count) / 2, forKey: "weight")
                    item.setValue(count % 2 == 0 ? "even" : "odd", forKey: "kind")
                    item.setValue(order, forKey: "order")
                }
            }
            try context.save()
        }
        return stack
    }

    private func names(_ context: NSManagedObjectContext, _ predicate: NSPredicate) throws -> [String] {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Order")
        request.predicate = predicate
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        let found = try context.fetch(request).compactMap { $0.value(forKey: "name") as? String }
        try expectEqual(context.count(for: request), found.count)
        return found
    }

    /// Whether the database answers all of a predicate about orders.
    private func isSaid(_ predicate: NSPredicate, _ stack: Stack) throws -> Bool {
        var specification = FetchSpecification()
        specification.entity = stack.coordinator.managedObjectModel.entitiesByName["Order"]
        specification.predicate = predicate
        let plan = try FetchPlanner(model: stack.context().model).plan(specification)
        let resolved = try require(plan.predicate)
        var layouts = [EntityLayout?](repeating: nil, count: resolved.variableCount)
        layouts[0] = plan.layout
        let mapping = try SQLMapping(plan.layout.schema, dialect: .postgresql)
        return SQLReach(mapping).saysAll(resolved.condition, layouts)
    }

    @Test(arguments: [
        ("items.@sum.count == 6", ["0"]), ("items.@sum.small > 6", ["1"]), ("items.@avg.weight == 1.0", ["0"]),
        ("items.@min.count == 4", ["1"]), ("items.@max.kind == 'odd'", ["0", "1"]),
        ("items.@max.due == nil", ["0", "1", "2"]),
        ("items.@sum.isGift == 0", ["0", "1", "2"]), ("items.@avg.count == 0", ["2"]),
        ("SUBQUERY(items, $i, $i.count > 2 AND $i.kind == 'odd').@count > 0", ["0", "1"]),
        ("SUBQUERY(items, $i, $i.count > 3).@sum.count > 3", ["1"]),
    ])
    func `of relationships are computed by the server`(format: String, expected: [String]) throws {
        let stack = try stack([[1, 2, 3], [4, 5], []])
        let context = stack.context()
        let predicate = NSPredicate(format: format)
        let found = try context.performAndWait { try names(context, predicate) }
        expectEqual(found, expected)
        try expect(isSaid(predicate, stack))
    }

    @Test func `that are too large for the server are those of the process, in a pinned version too`() throws {
        let stack = try stack([[.max, .max, -5], [.max, .min, .max, 3], [1]])
        let context = stack.context()
        try context.performAndWait {
            let large = NSPredicate(format: "items.@sum.count > %@", NSNumber(value: Int64.max))
            try expect(isSaid(large, stack))
            try expectEqual(names(context, large), ["0", "1"])
            try context.setQueryGenerationFrom(.current)
            try expectEqual(names(context, large), ["0", "1"])
            try expectEqual(names(context, NSPredicate(format: "items.@sum.count == 1")), ["2"])
            for number in 0..<2 {
                let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                item.setValue(1e308, forKey: "weight")
                item.setValue("\(number)", forKey: "kind")
            }
            try context.save()
            let request = NSFetchRequest<NSDictionary>(entityName: "Item")
            request.resultType = .dictionaryResultType
            request.propertiesToFetch = [column("total", "sum:", "weight")]
            let total = try context.fetch(request).first?["total"] as? Double
            expectEqual(total, .infinity)
        }
    }

    @Test func `rows that came before a sum was too large are not counted twice`() throws {
        let schema = "counted_" + String(UInt64.random(in: 0 ... .max), radix: 36)
        // The server goes through the table by its key, and adds up while rows come.
        let options = "options=-c%20enable_seqscan%3Doff%20-c%20enable_sort%3Doff"
        let server = try require(TestDatabase.url).absoluteString
        let url = try require(URL(string: "\(server)&schema=\(schema)&\(options)"))
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
        try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url)
        defer {
            for store in coordinator.persistentStores { try? coordinator.remove(store) }
            _ = try? Server.connection().command("DROP SCHEMA \"\(schema)\" CASCADE")
        }
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            for number in 0..<600 {
                let order = NSEntityDescription.insertNewObject(forEntityName: "Order", into: context)
                for _ in 0..<2 {
                    let item = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                    item.setValue(number == 599 ? Int64.max : 1, forKey: "count")
                    item.setValue(order, forKey: "order")
                }
            }
            try context.save()
        }
        var specification = FetchSpecification()
        specification.entity = coordinator.managedObjectModel.entitiesByName["Order"]
        specification.predicate = NSPredicate(format: "items.@sum.count > 0")
        let store = try require(coordinator.openStores.first)
        var plan = try FetchPlanner(model: context.model).plan(specification).asked(ofStore: store.number)
        let most = Atomic(0)
        let last = Atomic(0)
        plan.control = FetchControl(estimate: 600) { read, _ in
            most.max(read, ordering: .relaxed)
            last.store(read, ordering: .relaxed)
        }
        try expectEqual(store.rows.rows(for: plan).count, 600)
        expectEqual(most.load(ordering: .relaxed), 600)
        expectEqual(last.load(ordering: .relaxed), 600)
    }

    private func column(_ name: String, _ function: String, _ key: String) -> NSExpressionDescription {
        let column = NSExpressionDescription()
        column.name = name
        column.expression = NSExpression(forFunction: function, arguments: [NSExpression(forKeyPath: key)])
        return column
    }

    @Test func `of groups are computed by the server`() throws {
        let stack = try stack([[1, 2, 3], [4, 5], []])
        let context = stack.context()
        try context.performAndWait {
            var specification = FetchSpecification()
            specification.entity = stack.coordinator.managedObjectModel.entitiesByName["Item"]
            specification.resultType = .dictionaryResultType
            specification.propertiesToGroupBy = ["order.name", "kind"]
            specification.propertiesToFetch = [
                "order.name", "kind", column("sum", "sum:", "count"), column("mean", "average:", "weight"),
                column("least", "min:", "count"), column("number", "count:", "count"),
            ]
            specification.havingPredicate = NSPredicate(format: "$sum < 6")
            specification.sortDescriptors = [NSSortDescriptor(key: "sum", ascending: false)]
            let store = try require(stack.coordinator.openStores.first)
            let plan = try FetchPlanner(model: context.model).dictionaryPlan(specification).asked(ofStore: store.number)
            let mapping = try SQLMapping(plan.rows.layout.schema, dialect: .postgresql)
            expect(SQLReach(mapping).says(plan))
            let results = try store.rows.values(for: plan)
            let told = (0..<results.count).map { row in results[row].map { "\($0.comparable)" }.joined(separator: " ") }
            let inProcess = try store.rows.rows(for: plan.rows)
            let reader = StoreRowReader(store.rows, inProcess, storeNumber: store.number)
            let expected = try DictionaryEvaluation(plan, reader).results(from: inProcess)
            expectEqual(results.count, 4)
            expect(
                told
                    == (0..<expected.count).map { row in expected[row].map { "\($0.comparable)" }.joined(separator: " ")
                    }
            )
            try expectEqual(store.rows.count(for: plan), 4)
        }
    }
}
