import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataPostgreSQLStore
import TestSupport
import Testing

@Suite("Derived attributes of PostgreSQL stores", .enabled(if: Server.isThere))
struct DerivedTests {
    /// A model of customers and orders.
    ///
    /// A customer counts and sums up its orders, and an order knows the customer's name.
    static func model() -> NSManagedObjectModel {
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

    @Test func `savers that give one owner members at once lose none`() async throws {
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
        try expectEqual(Server.column(stack, "SELECT order_count FROM customer"), [60])
        try expectEqual(Server.column(stack, "SELECT total FROM customer"), [120])
        try expectEqual(PostgreSQLStore.problems(at: stack.storeURL, Self.model()), [])
    }

    @Test func `derived attributes add one round trip to a save, whatever the number of rows`() throws {
        try FaultProxy.withStore(model: Self.model()) { proxy, schema, coordinator in
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait {
                let customers = ["Ada", "Bob"].map { context.insert("Customer", ["name": $0]) }
                var orders = [context.insert("Order", ["price": 0, "customer": customers[0]])]
                // This save draws keys, and identifies the context to the session.
                try context.save()
                func expectThreeTrips(_ what: String, _ change: () -> Void) throws {
                    change()
                    let before = proxy.trips.withLock { $0 }
                    try context.save()
                    expectEqual(proxy.trips.withLock { $0 }, before + 3, "\(what)")
                    // The objects here have the values without another read.
                    for customer in customers {
                        let own = orders.filter { $0.value(forKey: "customer") as? NSManagedObject === customer }
                        expectEqual(customer.value(forKey: "orderCount") as? Int, own.count, "\(what)")
                        let total = own.reduce(0) { $0 + ($1.value(forKey: "price") as? Int ?? 0) }
                        expectEqual(customer.value(forKey: "total") as? Int, total, "\(what)")
                        for order in own {
                            let name = customer.value(forKey: "name") as? String
                            expectEqual(order.value(forKey: "customerName") as? String, name, "\(what)")
                        }
                    }
                }
                for count in [1, 20] {
                    try expectThreeTrips("\(count) new") {
                        for _ in 0..<count {
                            orders.append(context.insert("Order", ["price": 3, "customer": customers[0]]))
                        }
                    }
                }
                try expectThreeTrips("other values") { for order in orders { order.setValue(5, forKey: "price") } }
                try expectThreeTrips("another owner") {
                    for order in orders.prefix(7) { order.setValue(customers[1], forKey: "customer") }
                }
                try expectThreeTrips("another name") { customers[0].setValue("Ada L.", forKey: "name") }
                try expectThreeTrips("fewer") { context.delete(orders.removeLast()) }
                let session = try Server.connection()
                let stored = try session.query(
                    "SELECT order_count, total FROM \"\(schema)\".customer ORDER BY strata_id"
                ).rows.map { [$0.int64(0), $0.int64(1)] }
                expectEqual(stored, [[14, 70], [7, 35]])
            }
        }
    }

    /// Waits until a process waits for a session.
    ///
    /// - Returns: False if none does within ten seconds.
    private func isWaitedFor(_ connection: Connection) async throws -> Bool {
        let watcher = try Server.connection()
        let waiting = """
            SELECT count(*) FROM pg_catalog.pg_stat_activity
            WHERE pg_catalog.pg_blocking_pids(pid) @> ARRAY[\(connection.serverProcess)]
            """
        for _ in 0..<500 {
            if try watcher.query(waiting).firstInt64 != 0 { return true }
            try await Task.sleep(for: .milliseconds(20))
        }
        return false
    }

    private func connection(_ stack: Stack) throws -> Connection {
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        return connection
    }

    /// Saves an order of a customer in a new task.
    private func order(_ customer: NSManagedObjectID, _ stack: Stack) -> Task<String?, any Error> {
        Task.detached {
            let context = stack.context()
            return try await context.perform {
                let order = NSEntityDescription.insertNewObject(forEntityName: "Order", into: context)
                order.setValue(3, forKey: "price")
                order.setValue(context.object(with: customer), forKey: "customer")
                try context.save()
                return order.value(forKey: "customerName") as? String
            }
        }
    }

    @Test func `a saver counts the members of another one that commits before it`() async throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        let id = try customer(stack, "Ada")
        // Another process gives the customer an order, but does not commit yet.
        let other = try connection(stack)
        try other.command(
            """
            BEGIN; INSERT INTO "order" (strata_id, strata_entity, strata_version, price, customer_id)
            SELECT 900, 2, 1, 2, strata_id FROM customer;
            SELECT 1 FROM customer FOR NO KEY UPDATE; UPDATE customer SET order_count = 1, total = 2
            """
        )
        let saved = order(id, stack)
        try await expect(isWaitedFor(other))
        try other.command("COMMIT")
        _ = try await saved.value
        try expectEqual(Server.column(stack, "SELECT order_count FROM customer"), [2])
        try expectEqual(Server.column(stack, "SELECT total FROM customer"), [5])
    }

    @Test func `a saver that copies a value which another one is about to change waits for that`() async throws {
        // The customer counts nothing, so that no other save waits for it.
        let model = Self.model()
        let plain = try require(model.entitiesByName["Customer"])
        plain.properties.removeAll { ["orderCount", "total"].contains($0.name) }
        let stack = try Stack(.postgreSQL, model: model)
        let id = try customer(stack, "old")
        // At this moment a process that changes the name has found no orders.
        let other = try connection(stack)
        try other.command("BEGIN; UPDATE customer SET name = 'new'")
        let saved = order(id, stack)
        try await expect(isWaitedFor(other))
        try other.command("COMMIT")
        try await expectEqual(saved.value, "new")
    }

    @Test func `verify finds what another program has left out of date`() throws {
        let stack = try Stack(.postgreSQL, model: Self.model())
        _ = try customer(stack, "Ada")
        try expectEqual(PostgreSQLStore.problems(at: stack.storeURL, Self.model()), [])
        _ = try Server.column(stack, "UPDATE customer SET order_count = 7 RETURNING 1::bigint")
        try expect(
            PostgreSQLStore.problems(at: stack.storeURL, Self.model()) == [
                "1 rows of customer have derived values that are out of date"
            ]
        )
    }

    /// A model of notes, which count their attachments and one other relationship.
    private static func notes() -> NSManagedObjectModel {
        let (attachment, note) = (StoreModels.entity("Attachment"), StoreModels.entity("Note"))
        let zone = StoreModels.entity("Zone")
        let (notes, attachments) = (StoreModels.toMany("notes", note), StoreModels.toMany("attachments", attachment))
        StoreModels.connect(notes, attachments)
        attachment.properties = [notes]
        note.properties = [
            attachments, StoreModels.derived("size", .integer64, NSExpression(format: "attachments.@count")),
        ]
        zone.properties = [StoreModels.attribute("name", .string)]
        return StoreModels.model(attachment, note, zone)
    }

    /// Whether a process waits for another one that waits for a session.
    private func isWaitedForBehind(_ connection: Connection) throws -> Bool {
        let waiting = """
            SELECT count(*) FROM pg_catalog.pg_stat_activity AS a JOIN pg_catalog.pg_stat_activity AS b
            ON b.pid = ANY(pg_catalog.pg_blocking_pids(a.pid))
            WHERE pg_catalog.pg_blocking_pids(b.pid) @> ARRAY[\(connection.serverProcess)]
            """
        return try Server.connection().query(waiting).firstInt64 != 0
    }

    @Test func `a row that a save is relating another to is deleted after that`() async throws {
        let stack = try Stack(.postgreSQL, model: Self.notes())
        let setUp = stack.context()
        let ids = try setUp.performAndWait {
            let objects = ["Attachment", "Note", "Zone"].map {
                NSEntityDescription.insertNewObject(forEntityName: $0, into: setUp)
            }
            try setUp.save()
            return objects.map(\.objectID)
        }
        let other = try connection(stack)
        try other.command("BEGIN; SELECT 1 FROM zone FOR UPDATE")
        // This save has found the attachment, and waits for the zone.
        let relating = Task.detached {
            let context = stack.context()
            try await context.perform {
                let note = try context.existingObject(with: ids[1])
                note.setValue([context.object(with: ids[0])] as Set, forKey: "attachments")
                try context.existingObject(with: ids[2]).setValue("here", forKey: "name")
                try context.save()
            }
        }
        try await expect(isWaitedFor(other))
        let isDeleted = Shared(false)
        let second = try stack.secondCoordinator(model: Self.notes())
        defer { for store in second.persistentStores { try? second.remove(store) } }
        let deleting = Task.detached {
            defer { isDeleted.update { $0 = true } }
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = second
            try await context.perform {
                for attachment in try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Attachment")) {
                    context.delete(attachment)
                }
                try context.save()
            }
        }
        while try !isDeleted.current && !isWaitedForBehind(other) { await Task.yield() }
        try other.command("COMMIT")
        try await relating.value
        try await deleting.value
        try expectEqual(Server.column(stack, "SELECT size FROM note"), [0])
        try expectEqual(PostgreSQLStore.problems(at: stack.storeURL, Self.notes()), [])
    }
}
