import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import StrataPostgreSQL
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

@Suite("The statements for row-level security")
struct RowSecurityStatementTests {
    private func lines(_ entities: String, _ attribute: String, url: String? = nil) throws -> Tool.Answer {
        let folder = try ScratchFolder()
        let model = folder.file("model.xml")
        try Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?><model>\(entities)</model>".utf8).write(to: model)
        return Tool.run("schema", "--model", model.path, "--rls", attribute)
    }

    @Test func `names are quoted, and the type of the attribute decides the condition`() throws {
        func entry(_ kind: String, _ name: String) -> String {
            "<userInfo><entry key=\"postgresql.\(kind)\" value=\"\(name)\"/></userInfo>"
        }
        func entity(_ type: String) -> String {
            """
            <entity name="Order"><attribute name="tenant" optional="YES" attributeType="\(type)">\(entry("column", "te&quot;nant"))\
            </attribute>\(entry("table", "or&quot;der"))</entity>
            """
        }
        for (type, cast) in [("String", ""), ("UUID", "::uuid"), ("Integer 64", "::bigint")] {
            let answer = try lines(entity(type), "tenant")
            expectEqual(answer.code, .success, "\(answer)")
            let condition = "(\"te\"\"nant\" = pg_catalog.current_setting('strata.tenant')\(cast))"
            expect(answer.lines.contains("ALTER TABLE \"or\"\"der\" ENABLE ROW LEVEL SECURITY;"), "\(answer.lines)")
            expect(
                answer.lines.contains(
                    "CREATE POLICY strata_tenant ON \"or\"\"der\" USING \(condition) WITH CHECK \(condition);"
                ),
                "\(answer.lines)"
            )
        }
        expectEqual(try lines(entity("Date"), "tenant").code, .failure)
        expectEqual(try lines(entity("String"), "city").code, .failure)
    }

    @Test func `an entity without the attribute has no policy, and shares no table with entities that have one`() throws
    {
        let order =
            "<entity name=\"Order\"><attribute name=\"tenant\" optional=\"YES\" attributeType=\"String\"/></entity>"
        let answer = try lines(order + "<entity name=\"City\"/>", "tenant")
        expect(answer.lines.contains("-- Without a tenant, so all sessions see all rows: city"), "\(answer.lines)")
        let below =
            "<entity name=\"Base\"/>" + order.replacing("name=\"Order\"", with: "name=\"Order\" parentEntity=\"Base\"")
        let refused = try lines(below, "tenant")
        expectEqual(refused.code, .failure)
        expect(refused.complaints.joined().contains("Base has no attribute tenant"), "\(refused)")
        expectEqual(Tool.run("schema", "--rls", "tenant").code, .usage)
    }
}

@Suite("Row-level security of a PostgreSQL store", .enabled(if: Server.isThere))
struct RowSecurityTests {
    /// Orders of tenants with tags, and cities of all tenants.
    private static func model() -> NSManagedObjectModel {
        func entity(_ name: String, _ properties: [NSPropertyDescription]) -> NSEntityDescription {
            let entity = NSEntityDescription()
            entity.name = name
            entity.properties = properties
            return entity
        }
        func tenant() -> NSAttributeDescription { GuideModel.attribute("tenant", .string) }
        let order = entity("Order", [tenant(), GuideModel.attribute("number", .integer32)])
        let tag = entity("Tag", [tenant(), GuideModel.attribute("title", .string)])
        let city = entity("City", [GuideModel.attribute("name", .string)])
        GuideModel.relate(order, "tags", .many(.nullifyDeleteRule), tag, "orders", .many(.nullifyDeleteRule))
        GuideModel.relate(order, "city", .one(.nullifyDeleteRule), city, "orders", .many(.nullifyDeleteRule))
        let model = NSManagedObjectModel()
        model.entities = [order, tag, city]
        return model
    }

    private func open(_ url: String) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model())
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        try coordinator.addPersistentStore(type: .postgreSQL, at: require(URL(string: url)), options: options)
        return coordinator
    }

    private func orders(_ coordinator: NSPersistentStoreCoordinator) throws -> [String] {
        try coordinator.perform { context in
            try context.all("Order").map { order in
                let tags = (order.value(forKey: "tags") as? Set<NSManagedObject> ?? [])
                    .compactMap { $0.value(forKey: "title") as? String }.sorted()
                return "\(order.value(forKey: "tenant") ?? "") \(order.value(forKey: "number") ?? 0) \(tags)"
            }.sorted()
        }
    }

    @Test func `a session sees and writes the rows of its tenant only`() throws {
        let server = try PrivateServer()
        let owner = try open(server.url.absoluteString)
        func add(_ coordinator: NSPersistentStoreCoordinator, _ tenant: String, _ numbers: Range<Int>) throws {
            try coordinator.perform { context in
                for number in numbers {
                    let tag = context.insert("Tag", ["title": "\(tenant) \(number)", "tenant": tenant])
                    let order = context.insert("Order", ["number": number, "tenant": tenant])
                    order.setValue(Set([tag]), forKey: "tags")
                }
                try context.save()
            }
        }
        try add(owner, "acme", 0..<2)
        try add(owner, "bolt", 5..<6)
        try owner.perform { context in
            _ = context.insert("City", ["name": "Rome"])
            try context.save()
        }
        let printed = Tool.run("schema", "--store", server.url.absoluteString, "--rls", "tenant")
        expectEqual(printed.code, .success, "\(printed.complaints)")
        // Nothing was run.
        let active = "SELECT count(*)::text FROM pg_catalog.pg_class WHERE relrowsecurity"
        try expectEqual(server.text(active), "0")
        try server.connection().command(
            """
            CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA shop TO app; GRANT ALL ON ALL TABLES IN SCHEMA shop TO app;
            GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA shop TO app
            """
        )
        try server.connection().command(printed.lines.joined(separator: "\n"))
        try expectEqual(server.text(active), "3")
        func url(_ tenant: String) -> String {
            server.url.absoluteString.replacing("user=strata", with: "user=app")
                + "&options=-c%20strata.tenant%3D\(tenant)"
        }
        let (acme, bolt) = (try open(url("acme")), try open(url("bolt")))

        try expectEqual(orders(acme), ["acme 0 [\"acme 0\"]", "acme 1 [\"acme 1\"]"])
        try expectEqual(orders(bolt), ["bolt 5 [\"bolt 5\"]"])
        // Few and many new rows are written in different ways.
        try add(bolt, "bolt", 6..<8)
        try add(acme, "acme", 100..<1_200)
        try expectEqual(orders(bolt).count, 3)
        try expectEqual(orders(acme).count, 1_102)
        let refused = expectThrows(CocoaError.self) { try add(acme, "bolt", 9..<10) }
        expectEqual(refused?.code, .fileWriteNoPermission)
        // A deletion takes the pairs of the object with it, which the policies show only while both ends are there.
        let tables = """
            SELECT max(quote_ident(relname)) FROM pg_catalog.pg_class
            WHERE relname ~ 'order.*tag|tag.*order' AND relkind = 'r'
            """
        let pairs = try require(server.text(tables))
        let count = "SELECT count(*)::text FROM shop.\(pairs)"
        try expectEqual(server.text(count), "1105")
        try acme.perform { context in
            try context.delete(require(context.all("Order").first { $0.value(forKey: "number") as? Int == 0 }))
            try context.save()
        }
        try expectEqual(server.text(count), "1104")
        // Rows of others are neither changed nor deleted.
        try acme.perform { context in
            let request = NSFetchRequest<NSFetchRequestResult>(entityName: "Order")
            _ = try context.execute(NSBatchDeleteRequest(fetchRequest: request))
        }
        try expectEqual(orders(acme), [])
        try expectEqual(server.text(count), "3")
        try expectEqual(orders(bolt).count, 3)
        try expectEqual(orders(owner).count, 3)
        try expectEqual(acme.perform { try $0.all("City").count }, 1)

        // A session without a tenant gets an error, and so does a backup that would leave out rows.
        let none = server.url.absoluteString.replacing("user=strata", with: "user=app")
        let unnamed = Tool.run("fetch", "--store", none, "--entity", "Order")
        expectEqual(unnamed.code, .failure)
        expect(unnamed.complaints.joined().contains("strata.tenant"), "\(unnamed)")
        let folder = try ScratchFolder()
        let partial = Tool.run("backup", "--store", url("acme"), "--to", folder.file("copy").path)
        expectEqual(partial.code, .failure)
        expect(partial.complaints.joined().contains("row-level security"), "\(partial)")
        let whole = Tool.run("backup", "--store", server.url.absoluteString, "--to", folder.file("copy").path)
        expectEqual(whole.code, .success, "\(whole)")
        for coordinator in [owner, acme, bolt] { try coordinator.close() }
    }
}
