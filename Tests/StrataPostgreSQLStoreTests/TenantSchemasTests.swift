import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

/// Tenants with a schema each, and the connections that their stores share.
@Suite("Tenants in schemas", .enabled(if: Server.isThere))
struct TenantSchemasTests {
    /// A database of tenants, whose schemas and sessions no other test has.
    private final class Place: Sendable {
        let mark = "m" + UUID().uuidString.prefix(8).lowercased()
        let url: URL
        var prefix: String { mark + "_" }

        init() throws {
            let base = try require(TestDatabase.url).absoluteString
            url = try require(URL(string: base + (base.contains("?") ? "&" : "?") + "application_name=" + mark))
        }

        /// The tenants, whose stores have so many connections together.
        ///
        /// Another test with the same number would share them.
        func schemas(_ most: Int = 32) -> TenantSchemas {
            TenantSchemas(url, prefix: prefix, maximumConnections: most)
        }

        /// The sessions of the tenants' stores that exist now.
        func sessions() throws -> Int64 {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
            return try require(Server.connection().query(sql, [.text(mark)]).firstInt64)
        }

        deinit {
            guard let connection = try? Server.connection(),
                let found = try? connection.query(
                    "SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname::text, $1)",
                    [.text(mark)]
                )
            else { return }
            for row in found.rows {
                let name = row.string(0).replacing("\"", with: "\"\"")
                _ = try? connection.command("DROP SCHEMA \"\(name)\" CASCADE")
            }
        }
    }

    private let place: Place
    private let model: NSManagedObjectModel

    init() throws {
        place = try Place()
        let text = NSAttributeDescription()
        (text.name, text.type, text.isOptional) = ("text", .string, true)
        let note = NSEntityDescription()
        (note.name, note.properties) = ("Note", [text])
        model = NSManagedObjectModel()
        model.entities = [note]
    }

    private func add(_ text: String, to tenant: Tenant) throws {
        let context = tenant.container.newBackgroundContext()
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "Note", into: context).setValue(text, forKey: "text")
            try context.save()
        }
    }

    private func texts(_ tenant: Tenant) throws -> [String] {
        let context = tenant.container.newBackgroundContext()
        return try context.performAndWait {
            try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note"))
                .compactMap { $0.value(forKey: "text") as? String }.sorted()
        }
    }

    private func code(_ body: () async throws -> Void) async -> Int? {
        do {
            try await body()
            return nil
        } catch {
            return (error as NSError).code
        }
    }

    @Test func `each tenant has a schema, whatever its name`() async throws {
        let tenants = TenantContainer(managedObjectModel: model, at: place.schemas())
        let names = [
            "acme", "Acme", "a\"b", "a'b", "a+b&c=d", "ä%20 ü", "a?b#c/d", "x; DROP SCHEMA public",
            String(repeating: "y", count: 53),
        ]
        for name in names { try add(name, to: try await tenants.create(name)) }
        // These are no tenants: another prefix, and a schema without a store.
        let other = TenantSchemas(place.url, prefix: place.mark + "x")
        _ = try await TenantContainer(managedObjectModel: model, at: other).create("acme")
        try Server.connection().command("CREATE SCHEMA \"\(place.prefix)empty\"")
        expectEqual(try tenants.names(), names.sorted())
        let others = TenantContainer(managedObjectModel: model, at: place.schemas())
        for name in names { expectEqual(try texts(try await others.tenant(name)), [name]) }
        expectEqual(await code { _ = try await tenants.tenant("empty") }, 260)
        expectEqual(await code { _ = try await tenants.create("acme") }, 516)
        for bad in ["", String(repeating: "y", count: 54), "a\0b"] {
            expectEqual(await code { _ = try await tenants.create(bad) }, 514)
        }

        try await others.close()
        try await tenants.destroy("a\"b")
        expectEqual(await code { _ = try await tenants.tenant("a\"b") }, 260)
        expectEqual(try tenants.names(), names.filter { $0 != "a\"b" }.sorted())
        expectEqual(try texts(try await tenants.tenant("a'b")), ["a'b"])
        expectEqual(try texts(try await tenants.create("a\"b")), [])
        try await tenants.close()
    }

    @Test func `names that differ only in the form of their letters are two tenants of one session`() async throws {
        let names = ["caf\u{E9}", "cafe\u{301}", "\u{301}e"]
        // The stores use few sessions in turn, with statements that these have prepared.
        let tenants = TenantContainer(managedObjectModel: model, at: place.schemas(2))
        for (index, name) in names.enumerated() { try add("\(index)", to: try await tenants.create(name)) }
        for _ in 0..<8 {
            for (index, name) in names.enumerated() {
                let tenant = try await tenants.tenant(name)
                try add("\(index)", to: tenant)
                expectEqual(Set(try texts(tenant)), ["\(index)"])
            }
        }
        for name in names { expectEqual(try texts(try await tenants.tenant(name)).count, 9) }
        expectEqual(Set(try tenants.names().map { Array($0.utf8) }), Set(names.map { Array($0.utf8) }))
        try await tenants.close()
    }

    @Test func `the stores have no more connections together than their number`() async throws {
        let tenants = TenantContainer(managedObjectModel: model, at: place.schemas(3))
        var handles: [Tenant] = []
        for index in 0..<10 { handles.append(try await tenants.create("t\(index)")) }
        let most = Locked<Int64>(0)
        let isOver = Locked(false)
        let (all, place) = (handles, place)
        let observer = onThread {
            while !isOver.withLock({ $0 }) {
                let count = try place.sessions()
                most.withLock { $0 = max($0, count) }
            }
        }
        let threads = (0..<6).map { thread in
            onThread {
                for round in 0..<15 { try add("\(thread) \(round)", to: all[(thread * 3 + round) % 10]) }
            }
        }
        for thread in threads { try thread.join() }
        isOver.withLock { $0 = true }
        try observer.join()
        // The server ends a session shortly after its client, which may already have opened another one.
        expect((1...6).contains(most.withLock { $0 }), "\(most.withLock { $0 })")
        let found = try handles.flatMap { try texts($0) }.sorted()
        expectEqual(found, (0..<6).flatMap { thread in (0..<15).map { "\(thread) \($0)" } }.sorted())
        try await tenants.close()
        try waitUntil { try place.sessions() == 0 }
    }

    @Test func `a store waits for a connection of the others, and then gives up`() async throws {
        let tenants = TenantContainer(managedObjectModel: model, at: place.schemas(2)) { container, name in
            if name == "c" { container.persistentStoreDescriptions[0].timeout = 1 }
        }
        do { for name in ["a", "b", "c"] { _ = try await tenants.create(name) } }
        let handles = try await (tenants.tenant("a"), tenants.tenant("b"), tenants.tenant("c"))
        // Each pinned context holds a connection.
        let pinned = [handles.0, handles.1].map { $0.container.newBackgroundContext() }
        for context in pinned {
            try context.performAndWait {
                try context.setQueryGenerationFrom(.current)
                _ = try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Note"))
            }
        }
        expectEqual(try place.sessions(), 2)
        do {
            _ = try texts(handles.2)
            Issue.record("there was a third connection")
        } catch let error as CocoaError where error.code == .persistentStoreTimeout {
            expect(error.localizedDescription.contains("2"), "\(error.localizedDescription)")
        }
        let reader = onThread { expectEqual(try texts(handles.2), []) }
        try pinned[0].performAndWait { try pinned[0].setQueryGenerationFrom(nil) }
        try reader.join()
        expectEqual(try place.sessions(), 2)
        // The other one still reads its version.
        try add("late", to: handles.1)
        expectEqual(
            try pinned[1].performAndWait {
                try pinned[1].count(for: NSFetchRequest<NSManagedObject>(entityName: "Note"))
            },
            0
        )
        try await tenants.close()
    }

    @Test func `stores with a budget notice what others write, on one connection together`() async throws {
        let options: @Sendable (NSPersistentContainer, String) -> Void = { container, _ in
            container.followsRemoteChanges = true
        }
        let tenants = TenantContainer(managedObjectModel: model, at: place.schemas(4), configure: options)
        let names = (0..<7).map { "t\($0)" }
        var handles: [Tenant] = []
        for name in names { handles.append(try await tenants.create(name)) }
        let contexts = handles.map { handle in
            let context = handle.container.newBackgroundContext()
            context.automaticallyMergesChangesFromParent = true
            // The objects keep the values that they have read, until a merge.
            context.retainsRegisteredObjects = true
            return context
        }
        for (handle, name) in zip(handles, names) { try add(name, to: handle) }
        let objects = try contexts.map { context in
            try context.performAndWait {
                let note = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note")).first)
                expect(note.value(forKey: "text") as? String != nil)
                return note.objectID
            }
        }
        // Another program, with other connections.
        let others = TenantContainer(
            managedObjectModel: model,
            at: TenantSchemas(try require(TestDatabase.url), prefix: place.prefix)
        ) {
            container,
            _ in
            container.persistentStoreDescriptions[0].setOption(true as NSNumber, forKey: NSPersistentHistoryTrackingKey)
        }
        func text(_ index: Int) -> String? {
            contexts[index].performAndWait {
                contexts[index].object(with: objects[index]).value(forKey: "text") as? String
            }
        }
        // One after the other: a change of one store must not be what makes another one look.
        for index in [5, 1, 0, 6, 3] {
            let other = try await others.tenant(names[index])
            let context = other.container.newBackgroundContext()
            try context.performAndWait {
                let note = try require(context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Note")).first)
                note.setValue("changed \(names[index])", forKey: "text")
                try context.save()
            }
            try waitUntil { text(index) == "changed \(names[index])" }
        }
        expectEqual([2, 4].map { text($0) }, ["t2", "t4"])
        // One for all watchers.
        expect(try place.sessions() <= 5)
        // Each store has its own numbers.
        for (index, handle) in handles.enumerated() {
            let context = handle.container.newBackgroundContext()
            let numbers: [Int64] = try context.performAndWait {
                let result = try context.execute(
                    NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
                )
                let history = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction]
                return (history ?? []).map(\.transactionNumber)
            }
            expectEqual(numbers, index == 2 || index == 4 ? [1] : [1, 2])
        }
        try await others.close()
        try await tenants.close()
        try waitUntil { try place.sessions() == 0 }
    }

    @Test func `all schemas are migrated`() async throws {
        let old = TenantContainer(managedObjectModel: model, at: place.schemas())
        for name in ["a", "b", "c"] { try add(name, to: try await old.create(name)) }
        try await old.close()
        let rank = NSAttributeDescription()
        (rank.name, rank.type, rank.defaultValue) = ("rank", .integer64, 7)
        let new = try require(model.copy() as? NSManagedObjectModel)
        new.entities[0].properties.append(rank)
        let tenants = TenantContainer(managedObjectModel: new, at: place.schemas(5))
        let first = try await tenants.migrate()
        expectEqual(first.migrated, ["a", "b", "c"])
        expect(first.failures.isEmpty, "\(first.failures)")
        expectEqual(try await tenants.migrate().unchanged, ["a", "b", "c"])
        for name in ["a", "b", "c"] { expectEqual(try texts(try await tenants.tenant(name)), [name]) }
        try await tenants.close()
    }
}
