import CoreData
import CoreDataPostgreSQL
import Foundation
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

@Suite("Derived attributes of PostgreSQL stores", .enabled(if: Server.isThere))
struct DerivedTests {
    /// Orders of customers: a customer counts and sums up orders, and an order knows the customer's name.
    private static func model() -> NSManagedObjectModel {
        let (customer, order) = (StoreModels.entity("Customer"), StoreModels.entity("Order"))
        let (orders, customerOf) = (StoreModels.toMany("orders", order), StoreModels.toOne("customer", customer))
        StoreModels.connect(orders, customerOf)
        customer.properties = [
            StoreModels.attribute("name", .string), orders,
            StoreModels.derived("orderCount", .integer64, NSExpression(format: "orders.@count")),
            StoreModels.derived("total", .integer64, NSExpression(format: "orders.@sum.price")),
        ]
        order.properties = [
            StoreModels.attribute("price", .integer64), customerOf,
            StoreModels.derived("customerName", .string, NSExpression(forKeyPath: "customer.name")),
        ]
        return StoreModels.model(customer, order)
    }

    private func customer(_ stack: Stack, _ name: String) throws -> NSManagedObjectID {
        let context = stack.context()
        return try context.performAndWait {
            let customer = NSEntityDescription.insertNewObject(forEntityName: "Customer", into: context)
            customer.setValue(name, forKey: "name")
            try context.save()
            return customer.objectID
        }
    }

    @Test func `of savers that give one owner members at once, each counts those of the others`() async throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        let id = try customer(stack, "Ada")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<15 {
                        let context = stack.context()
                        try await context.perform {
                            let order = NSEntityDescription.insertNewObject(forEntityName: "Order", into: context)
                            order.setValue(2, forKey: "price")
                            order.setValue(context.object(with: id), forKey: "customer")
                            try context.save()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try Server.column(stack, "SELECT order_count FROM customer") == [60])
        #expect(try Server.column(stack, "SELECT total FROM customer") == [120])
        #expect(try PostgreSQLStore.problems(at: stack.storeURL, Self.model()) == [])
    }

    @Test func `a saver that copies a value which another one is about to change waits for that`() async throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        let id = try customer(stack, "old")
        // Somebody has changed the name, and not committed yet; a process of ours would look for orders now, and find none.
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let other = try Connection.open(target, timeout: 30)
        try other.command("SET search_path TO \(target.quotedSchema)")
        try other.command("BEGIN; UPDATE customer SET name = 'new'")
        async let saved: String? = Task.detached {
            let context = stack.context()
            return try await context.perform {
                let order = NSEntityDescription.insertNewObject(forEntityName: "Order", into: context)
                order.setValue(context.object(with: id), forKey: "customer")
                try context.save()
                return order.value(forKey: "customerName") as? String
            }
        }.value
        let watcher = try Server.connection()
        let waiting = """
            SELECT count(*) FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
            WHERE NOT l.granted AND pg_catalog.pg_blocking_pids(a.pid) @> ARRAY[\(other.serverProcess)]
            """
        while try watcher.query(waiting).firstInt64 == 0 { try await Task.sleep(for: .milliseconds(20)) }
        try other.command("COMMIT")
        #expect(try await saved == "new")
    }

    @Test func `verify finds what another program has left out of date`() throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        _ = try customer(stack, "Ada")
        #expect(try PostgreSQLStore.problems(at: stack.storeURL, Self.model()) == [])
        _ = try Server.column(stack, "UPDATE customer SET order_count = 7 RETURNING 1::bigint")
        #expect(
            try PostgreSQLStore.problems(at: stack.storeURL, Self.model()) == [
                "1 rows of customer have derived values that are out of date"
            ]
        )
    }
}
