import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import TestSupport
import Testing

@Suite("The inspector on PostgreSQL stores", .enabled(if: Server.isThere))
struct ToolTests {
    private func run(_ words: String...) -> Tool.Answer { Tool.run(words) }

    @Test func `a store is inspected, verified and read by its URL`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        let context = stack.context()
        try context.performAndWait {
            NSEntityDescription.insertNewObject(forEntityName: "City", into: context).setValue("Rome", forKey: "name")
            try context.save()
        }
        let url = TestDatabase.url(for: stack.storeURL).absoluteString

        let inspected = run("inspect", "--store", url)
        expectEqual(inspected.code, .success, "\(inspected.complaints)")
        let tables = inspected.lines.first { $0.hasPrefix("Tables ") }
        expectEqual(tables?.split(separator: " ").dropFirst().joined(separator: " "), "one node")
        let city = inspected.lines.first { $0.split(separator: " ").first == "City" }
        expectEqual(city?.split(separator: " ").contains("1"), true)

        let verified = run("verify", "--store", url)
        expectEqual(verified.code, .success, "\(verified.lines) \(verified.complaints)")
        expectEqual(verified.lines.last?.hasSuffix("is sound."), true)

        let fetched = run("fetch", "--store", url, "--entity", "City", "--predicate", "name == 'Rome'")
        expectEqual(fetched.code, .success)
        expect(fetched.lines.contains { $0.contains("Rome") })

        let explained = run("explain", "--store", url, "--entity", "City", "--predicate", "name == 'Rome'")
        expectEqual(explained.code, .success, "\(explained.complaints)")
        let text = explained.lines.joined(separator: "\n")
        expect(text.hasPrefix("SELECT t0.\"strata_id\"") && text.contains("$1") && !text.contains("Rome"), "\(text)")
        expect(text.contains("  Seq Scan on city t0\n") && text.hasSuffix("Scanned: city"), "\(text)")
    }

    @Test func `consumers of a history are behind by the transactions that are there`() throws {
        let options: [AnyHashable: Any] = [NSPersistentHistoryTrackingKey: true]
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        func add(_ name: String) throws {
            let context = stack.context()
            try context.performAndWait {
                context.makeCity(name)
                try context.save()
            }
        }
        try add("Rome")
        let token = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        try stack.coordinator.setPersistentHistoryToken(token, forConsumer: "index")
        for name in ["Oslo", "Bern", "Wien"] { try add(name) }
        let picking = NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)
        picking.fetchRequest = NSPersistentHistoryTransaction.fetchRequest
        picking.fetchRequest?.predicate = NSPredicate(format: "transactionNumber == 3")
        _ = try stack.coordinator.result(picking)
        let consumers = run("history", "consumers", "--store", TestDatabase.url(for: stack.storeURL).absoluteString)
        expectEqual(consumers.code, .success, "\(consumers.complaints)")
        let words = consumers.lines.last?.split(separator: " ").prefix(2).map(String.init)
        expectEqual(words, ["index", "2"], "\(consumers.lines)")
    }

    @Test func `verify names what is wrong, and ends with 1`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        _ = try Server.column(stack, "DROP TABLE venue CASCADE")
        let verified = run("verify", "--store", TestDatabase.url(for: stack.storeURL).absoluteString)
        expectEqual(verified.code, .problemsFound)
        expect(verified.lines.contains("venue is missing"))
    }

    @Test func `what was exported from a file is imported into a database`() throws {
        let file = try Stack(.sqlite, model: GuideModel.make(), options: nil)
        let context = file.context()
        try context.performAndWait {
            for name in ["Rome", "Oslo"] {
                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                city.setValue(name, forKey: "name")
                let venue = NSEntityDescription.insertNewObject(forEntityName: "Venue", into: context)
                venue.setValue("Of \(name)", forKey: "name")
                venue.setValue(city, forKey: "city")
            }
            try context.save()
        }
        try file.coordinator.close()
        let exported = run("export", "--store", file.storeURL.path).lines
        let lines = file.folder.appendingPathComponent("lines")
        try Data(exported.joined(separator: "\n").utf8).write(to: lines)
        let url = TestDatabase.url(for: URL(fileURLWithPath: "/imported-\(UUID().uuidString)")).absoluteString
        func imported(_ words: String...) -> (code: ExitCode, lines: [String], complaints: [String]) {
            var (all, complaints): ([String], [String]) = ([], [])
            let command = ["import", "--store", url, "--from", lines.path] + words
            let code = StrataCommand.run(command, print: { all.append($0) }, complain: { complaints.append($0) })
            return (code, all, complaints)
        }

        let first = imported("--like", file.storeURL.path)
        expectEqual(first.code, .success, "\(first.complaints)")
        expectEqual(first.lines.last?.hasSuffix(" has 4 objects."), true)
        expectEqual(run("verify", "--store", url).code, .success)
        expectEqual(run("export", "--store", url).lines.map(unkeyed).sorted(), exported.map(unkeyed).sorted())
        // A store that exists is not replaced.
        expectEqual(imported("--like", url).code, .usage)
        expectEqual(run("verify", "--store", url).code, .success)

        // An import that fails leaves nothing.
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try coordinator.destroyPersistentStore(at: try require(URL(string: url)), type: .postgreSQL)
        try Data((exported + ["{"]).joined(separator: "\n").utf8).write(to: lines)
        expectEqual(imported("--like", file.storeURL.path).code, .failure)
        expectEqual(run("verify", "--store", url).code, .failure)
    }

    private func unkeyed(_ line: String) -> String { line.replacing(/\/p\d+/, with: "") }
}

@Suite("The statements that make a PostgreSQL store")
struct SchemaStatementTests {
    @Test func `schema prints them for a model`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("M\(UUID().uuidString).xcdatamodel")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let model = """
            <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
            <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
            <entity name="TeamMember" syncable="YES"><attribute name="firstName" optional="YES" attributeType="String"/></entity></model>
            """
        try Data(model.utf8).write(to: folder.appendingPathComponent("contents"))
        var lines: [String] = []
        let code = StrataCommand.run(
            ["schema", "--model", folder.path, "--dialect", "postgresql"],
            print: { lines.append($0) },
            complain: { lines.append($0) }
        )
        expectEqual(code, .success)
        expect(lines.contains { $0.hasPrefix("CREATE TABLE \"team_member\" (") && $0.contains("\"first_name\" text") })
    }
}
