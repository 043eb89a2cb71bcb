import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import StrataPostgreSQL
import TestSupport
import Testing

@Suite("strata vacuum and history purge on PostgreSQL", .enabled(if: Server.isThere))
struct ToolUpkeepTests {
    @Test func `vacuum analyses the store's tables, and no others`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        try stack.coordinator.perform { context in
            for number in 0..<500 { _ = context.insert("City", ["name": "\(number)"]) }
            try context.save()
            for city in try context.all("City").dropFirst() { context.delete(city) }
            try context.save()
        }
        try TestDatabase.run("CREATE TABLE own (number int); INSERT INTO own VALUES (1)", in: stack.storeURL)
        func rows(_ table: String) throws -> [String] {
            try TestDatabase.texts(
                "SELECT reltuples::bigint::text FROM pg_catalog.pg_class WHERE oid = '\(table)'::pg_catalog.regclass",
                in: stack.storeURL
            )
        }
        try expectEqual(rows("city"), ["-1"])

        let result = Tool.run("vacuum", "--store", TestDatabase.url(for: stack.storeURL).absoluteString)

        expectEqual(result.code, .success, "\(result.complaints)")
        let numbers = result.lines.last?.firstMatch(of: /: (\d+) tables, (\d+) bytes before, (\d+) bytes now\.$/)
        let found = try require(numbers)
        expect(Int(found.1) == 13 && Int(found.2) ?? 0 > 0 && Int(found.3) ?? 0 > 0, "\(result.lines)")
        try expectEqual(rows("city"), ["1"])
        try expectEqual(rows("strata_store"), ["1"])
        try expectEqual(rows("own"), ["-1"])
        expectEqual(Tool.run("verify", "--store", TestDatabase.url(for: stack.storeURL).absoluteString).code, .success)
    }

    @Test func `vacuum refuses a role whose tables the server would leave out`() throws {
        let server = try PrivateServer()
        let owner = try ServerStack(server.url)
        try owner.insert("Rome")
        try server.connection().command(
            "CREATE ROLE writer LOGIN; GRANT USAGE ON SCHEMA shop TO writer; GRANT ALL ON ALL TABLES IN SCHEMA shop TO writer"
        )
        let url = server.url.absoluteString.replacing("user=strata", with: "user=writer")

        let refused = Tool.run("vacuum", "--store", url)

        expectEqual(refused.code, .failure)
        expect(refused.complaints.joined().contains("owns neither the table city nor the database"), "\(refused)")
        let rows =
            "SELECT reltuples::bigint::text FROM pg_catalog.pg_class WHERE oid = 'shop.city'::pg_catalog.regclass"
        try expectEqual(server.text(rows), "-1")
        expectEqual(Tool.run("vacuum", "--store", server.url.absoluteString).code, .success)
        try expectEqual(server.text(rows), "1")
        withExtendedLifetime(owner) {}
    }

    @Test func `history purge removes what all consumers have read, and by age what nobody has`() throws {
        let stack = try Stack(
            .postgreSQL,
            model: GuideModel.make(),
            options: [NSPersistentHistoryTrackingKey: true]
        )
        for name in ["Porto", "Faro", "Braga"] {
            try stack.coordinator.perform { context in
                _ = context.insert("City", ["name": name])
                try context.save()
            }
        }
        let uuid = try require(stack.coordinator.persistentStores.first?.identifier)
        try stack.coordinator.setPersistentHistoryToken(
            NSPersistentHistoryToken(transactionNumbers: [uuid: 2]),
            forConsumer: "index"
        )
        let url = TestDatabase.url(for: stack.storeURL).absoluteString
        let before = try stack.state()

        let purged = Tool.run("history", "purge", "--store", url)
        expectEqual(purged.code, .success, "\(purged.complaints)")
        expectEqual(purged.lines, ["1 transactions are purged, which all consumers have read."])
        expectEqual(Tool.run("history", "list", "--store", url).lines.first?.hasPrefix("2 "), true)
        try expectEqual(stack.state().differences(from: before, ignoring: StoreState.history + ["metadata"]), [])

        // A consumer that was given up keeps nothing any more.
        try TestDatabase.run("UPDATE strata_consumer SET seen = seen - 864000", in: stack.storeURL)
        expectEqual(
            Tool.run("history", "purge", "--store", url, "--forget", "20").lines.first?.hasPrefix("0 "),
            true
        )
        expectEqual(Tool.run("history", "purge", "--store", url, "--forget", "5").code, .success)
        expectEqual(Tool.run("history", "consumers", "--store", url).lines, ["No consumer has registered."])

        try TestDatabase.run("UPDATE strata_transaction SET time = time - 864000 WHERE number = 2", in: stack.storeURL)
        expectEqual(Tool.run("history", "purge", "--store", url, "--before", "20").code, .success)
        expectEqual(Tool.run("history", "list", "--store", url).lines.first?.hasPrefix("2 "), true)
        expectEqual(Tool.run("history", "purge", "--store", url, "--before", "5").code, .success)
        expectEqual(Tool.run("history", "list", "--store", url).lines.first?.hasPrefix("3 "), true)
        expectEqual(Tool.run("verify", "--store", url).code, .success)
    }
}
