import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import TestSupport
import Testing

@Suite("The inspector on PostgreSQL stores", .enabled(if: Server.isThere))
struct ToolTests {
    private func run(_ words: String...) -> (code: ExitCode, lines: [String], complaints: [String]) {
        var lines: [String] = []
        var complaints: [String] = []
        let code = StrataCommand.run(words, print: { lines.append($0) }, complain: { complaints.append($0) })
        return (code, lines, complaints)
    }

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

    @Test func `verify names what is wrong, and ends with 1`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        _ = try Server.column(stack, "DROP TABLE venue CASCADE")
        let verified = run("verify", "--store", TestDatabase.url(for: stack.storeURL).absoluteString)
        expectEqual(verified.code, .problemsFound)
        expect(verified.lines.contains("venue is missing"))
    }

    @Test func `what changes files is refused for a URL`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        let url = TestDatabase.url(for: stack.storeURL).absoluteString
        expectEqual(run("vacuum", "--store", url).code, .usage)
    }
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
