import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataInspector
import StrataLocks
import StrataPostgreSQL
import TestSupport
import Testing

@Suite("strata backup and restore on PostgreSQL", .enabled(if: Server.isThere))
struct ToolBackupTests {
    private static let texts = [
        "plain", "", "\\.", "\\N", "tab\tnew\nline\rend", "back\\slash", "\u{2028}é👩‍👩‍👧", "{\"rows\":1}", "\u{1}\u{7F}",
    ]

    /// Saves objects with values of every kind, changes some, and deletes others, so that the history has all kinds of
    /// changes.
    private func fill(_ coordinator: NSPersistentStoreCoordinator) throws {
        try coordinator.perform { context in
            context.transactionAuthor = "author\t1"
            let city = context.insert("City", ["name": "Rome", "population": Int64.max])
            var venues: [NSManagedObject] = []
            for (number, text) in Self.texts.enumerated() {
                let venue = context.insert(number % 2 == 0 ? "Bar" : "Venue", ["name": text, "city": city])
                venue.setValue(Int16(number), forKey: "price")
                venue.setValue(0.1 + Double(number) / 3, forKey: "distance")
                venue.setValue(Date(timeIntervalSinceReferenceDate: 700_000_000.123456789), forKey: "createdAt")
                venue.setValue(
                    NSDecimalNumber(string: "12345678901234567890123456789012345.678"),
                    forKey: "rating"
                )
                venue.setValue(UUID(), forKey: "code")
                venue.setValue(URL(string: "https://example.org/\(number)"), forKey: "site")
                venue.setValue(Data((0...255).map { UInt8($0) }), forKey: "map")
                venue.setValue(["a": number] as NSDictionary, forKey: "colour")
                venue.setValue(Float(0.3), forKey: "score")
                let photos = [2, 0, 1].map { context.insert("Photo", ["title": "\(number) \($0)"]) }
                venue.setValue(NSOrderedSet(array: photos), forKey: "photos")
                venue.setValue(Set([context.insert("Tag", ["title": text])]), forKey: "tags")
                venues.append(venue)
            }
            let user = context.insert("User", ["email": "a@example.org"])
            user.setValue(NSOrderedSet(array: [venues[3], venues[0], venues[4]]), forKey: "favourites")
            user.setValue(context.insert("User", ["email": "b@example.org"]), forKey: "boss")
            try context.save()
            venues[1].setValue("changed", forKey: "name")
            try context.save()
            context.delete(venues[2])
            try context.save()
        }
        // A key that was given and is not used any more.
        try coordinator.perform { context in
            let tag = context.insert("Tag", ["title": "gone"])
            try context.save()
            context.delete(tag)
            try context.save()
        }
    }

    @Test(arguments: [false, true])
    func `a backup that is restored into an empty schema is an equal store`(_ hasKeys: Bool) throws {
        let options: [AnyHashable: Any] = [
            NSPersistentHistoryTrackingKey: true, NSPostgreSQLForeignKeysOption: hasKeys,
        ]
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        try fill(stack.coordinator)
        let token = try require(stack.coordinator.currentPersistentHistoryToken(fromStores: nil))
        try stack.coordinator.setPersistentHistoryToken(token, forConsumer: "index")
        let store = try require(stack.coordinator.persistentStores.first)
        var metadata = stack.coordinator.metadata(for: store)
        metadata["region"] = "south"
        stack.coordinator.setMetadata(metadata, for: store)
        try stack.coordinator.perform { try $0.save() }
        let place = try ToolPlace()
        let copy = place.folder.appendingPathComponent("copy").path
        let (before, keys) = try (stack.state(), keysAndVersions(stack.storeURL))
        let url = TestDatabase.url(for: stack.storeURL).absoluteString

        let saved = Tool.run("backup", "--store", url, "--to", copy)
        expectEqual(saved.code, .success, "\(saved.complaints)")
        expect(saved.lines.last?.contains("with 44 objects and 5 transactions of the history.") == true, "\(saved)")
        let made = Tool.run("restore", "--store", place.url, "--from", copy)
        expectEqual(made.code, .success, "\(made.complaints)")
        expect(made.lines.last?.contains("is restored, with 44 objects and 5 transactions") == true, "\(made)")

        let verified = Tool.run("verify", "--store", place.url)
        expectEqual(verified.code, .success, "\(verified)")
        let restored = try place.open(GuideModel.make(), [NSPersistentHistoryTrackingKey: true])
        defer { try? restored.close() }
        // The UUID and the keys are the same as well.
        try expectEqual(restored.state().differences(from: before), [])
        try expectEqual(keysAndVersions(place.file), keys)
        try expectEqual(restored.persistentHistoryConsumers().map(\.name), ["index"])
        try expectEqual(foreignKeyCount(place.file) > 0, hasKeys)

        // Tokens from before hold, and no key is given twice.
        try restored.perform { context in
            _ = context.insert("Tag", ["title": "new"])
            try context.save()
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            expectEqual((result?.result as? [NSPersistentHistoryTransaction])?.count, 1)
        }
        let tags = try TestDatabase.texts("SELECT max(strata_id)::text FROM tag", in: place.file)
        expect(keys.allSatisfy { $0 != "tag \(tags.first ?? "")" })
        // Neither a store nor a file is replaced.
        expectEqual(Tool.run("restore", "--store", place.url, "--from", copy).code, .usage)
        expectEqual(Tool.run("backup", "--store", url, "--to", copy).code, .failure)
        expectEqual(try FileManager.default.contentsOfDirectory(atPath: place.folder.path), ["copy"])
    }

    private func keysAndVersions(_ file: URL) throws -> [String] {
        try ["city", "venue", "tag", "photo", "licence", "user"].flatMap { table in
            try TestDatabase.texts(
                "SELECT '\(table) ' || strata_id || ' ' || strata_version FROM \"\(table)\" ORDER BY strata_id",
                in: file
            )
        }
    }

    private func foreignKeyCount(_ file: URL) throws -> Int {
        try TestDatabase.texts(
            """
            SELECT conname::text FROM pg_catalog.pg_constraint
            WHERE contype = 'f' AND connamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())
            """,
            in: file
        ).count
    }

    @Test func `a backup beside programs that save shows one moment between saves`() throws {
        let stack = try Stack(
            .postgreSQL,
            model: GuideModel.make(),
            options: [NSPersistentHistoryTrackingKey: true]
        )
        /// Saves a city, a tag and a user together.
        @Sendable func add() throws {
            try stack.coordinator.perform { context in
                let name = UUID().uuidString
                _ = context.insert("City", ["name": name])
                _ = context.insert("Tag", ["title": name])
                _ = context.insert("User", ["email": name])
                try context.save()
            }
        }
        // The tables are read for some time.
        try stack.coordinator.perform { context in
            for _ in 0..<3_000 {
                let name = UUID().uuidString
                _ = context.insert("City", ["name": name])
                _ = context.insert("Tag", ["title": name])
                _ = context.insert("User", ["email": name])
            }
            try context.save()
        }
        let ends = Locked(false)
        let saves = Locked(0)
        let writers = (0..<2).map { _ in
            Errand {
                while !ends.withLock({ $0 }) {
                    try add()
                    saves.withLock { $0 += 1 }
                }
            }
        }
        try waitUntil { saves.withLock { $0 } > 5 }
        let place = try ToolPlace()
        let url = TestDatabase.url(for: stack.storeURL).absoluteString
        for number in 0..<3 {
            let start = saves.withLock { $0 }
            let copy = place.folder.appendingPathComponent("copy \(number)").path
            let saved = Tool.run("backup", "--store", url, "--to", copy)
            expectEqual(saved.code, .success, "\(saved.complaints)")
            // The writers did not wait for it.
            try waitUntil { saves.withLock { $0 } > start }
            let target = try ToolPlace()
            let made = Tool.run("restore", "--store", target.url, "--from", copy)
            expectEqual(made.code, .success, "\(made.complaints)")
            expectEqual(Tool.run("verify", "--store", target.url).lines.last?.hasSuffix("is sound."), true)
            let counts = try ["city", "tag", "\"user\""].map {
                try TestDatabase.texts("SELECT count(*)::text FROM \($0)", in: target.file).first
            }
            expectEqual(Set(counts).count, 1, "\(counts)")
            let transactions = try TestDatabase.texts("SELECT count(*)::text FROM strata_transaction", in: target.file)
            let count = try require(counts.first.flatMap { $0.flatMap { Int($0) } })
            expectEqual(transactions, ["\(count - 3_000 + 1)"])
            expect(count > 3_000)
        }
        ends.withLock { $0 = true }
        for writer in writers { try writer.wait() }
    }

    @Test func `a backup that is damaged or cut off is refused, and leaves nothing`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        try fill(stack.coordinator)
        let (place, target) = (try ToolPlace(), try ToolPlace())
        let whole = place.folder.appendingPathComponent("whole")
        let url = TestDatabase.url(for: stack.storeURL).absoluteString
        expectEqual(Tool.run("backup", "--store", url, "--to", whole.path).code, .success)
        let text = try String(contentsOf: whole, encoding: .utf8)
        var damaged = [
            "", "no backup\n", String(text.prefix(40)), String(text.dropLast(3)),
            text.replacing("strata backup 1", with: "strata backup 2"),
            text.replacing("{\"columns\":[\"strata_id\"", with: "{\"columns\":[\"strata_id\\\"; DROP TABLE x; --\""),
            text.replacing("\"table\":\"city\"", with: "\"table\":\"pg_catalog\""),
            // A row that could be read, and another form.
            text.replacing("Rome", with: "Rune"), text.replacing("\"form\":", with: "\"form\":1"),
        ]
        // The file has all rows, so only its owner may read it.
        let attributes = try FileManager.default.attributesOfItem(atPath: whole.path)
        expectEqual(attributes[.posixPermissions] as? Int, 0o600)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // A row, the end of a table, a whole table, and the last line are missing.
        let row = try require(lines.firstIndex { $0.contains("Rome") })
        for range in [row..<row + 1, row + 1..<row + 2, row - 1..<row + 2, lines.count - 2..<lines.count] {
            var rest = Array(lines)
            rest.removeSubrange(range)
            damaged.append(rest.joined(separator: "\n"))
        }
        for (number, text) in damaged.enumerated() {
            let file = place.folder.appendingPathComponent("damaged \(number)")
            try Data(text.utf8).write(to: file)
            let answer = Tool.run("restore", "--store", target.url, "--from", file.path)
            expectEqual(answer.code, .failure, "\(number) \(answer)")
            // If the end of a table is missing, then the server finds a row that is none.
            let text = answer.complaints.joined()
            expect(text.contains("no complete backup") || text.contains("cannot be restored"), "\(number) \(answer)")
            expectEqual(Tool.run("verify", "--store", target.url).code, .failure, "\(number)")
        }
        expectEqual(Tool.run("restore", "--store", target.url, "--from", whole.path).code, .success)
        expectEqual(Tool.run("verify", "--store", target.url).code, .success)
    }

    @Test func `a store without a copy of its model asks for one, and so does its backup`() throws {
        let folder = try ScratchFolder()
        let model = folder.file("model.xml")
        let entity =
            "<entity name=\"Item\"><attribute name=\"name\" optional=\"YES\" attributeType=\"String\"/></entity>"
        try Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?><model>\(entity)</model>".utf8).write(to: model)
        let (place, target) = (try ToolPlace(), try ToolPlace())
        let coordinator = try place.open(NSManagedObjectModel(reading: model))
        try coordinator.perform { context in
            _ = context.insert("Item", ["name": "a"])
            try context.save()
        }
        try TestDatabase.run("UPDATE strata_store SET model = NULL", in: place.file)
        let copy = place.folder.appendingPathComponent("copy").path

        expect(
            Tool.run("backup", "--store", place.url, "--to", copy).complaints.joined().contains(
                "Name one with --model."
            )
        )
        let backup = Tool.run("backup", "--store", place.url, "--to", copy, "--model", model.path)
        expectEqual(backup.code, .success, "\(backup)")
        expect(
            Tool.run("restore", "--store", target.url, "--from", copy).complaints.joined()
                .contains("Name one with --model.")
        )
        let made = Tool.run("restore", "--store", target.url, "--from", copy, "--model", model.path)
        expectEqual(made.code, .success, "\(made)")
        expectEqual(Tool.run("verify", "--store", target.url, "--model", model.path).code, .success)
        expectEqual(Tool.run("restore", "--store", folder.file("x.sqlite").path, "--from", copy).code, .usage)
    }

    @Test func `no command prints a password`() throws {
        let folder = try ScratchFolder()
        let model = folder.file("model.xml")
        try Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?><model><entity name=\"Item\"/></model>".utf8).write(
            to: model
        )
        let port = "postgresql://guide:hush@127.0.0.1:1/shop?password=hush"
        let commands = [
            ["inspect"], ["verify"], ["fetch", "--entity", "Item"], ["explain", "--entity", "Item"], ["export"],
            ["history", "purge"], ["history", "list"], ["vacuum"], ["backup", "--to", folder.file("copy").path],
            ["migrate", "--to", model.path], ["schema", "--rls", "name"], ["restore", "--from", model.path],
            ["import", "--model", model.path, "--from", model.path], ["jobs", "list"],
        ]
        for command in commands {
            let answer = Tool.run(command + ["--store", port])
            expect([.failure, .usage].contains(answer.code), "\(command)")
            let text = (answer.lines + answer.complaints).joined(separator: "\n")
            expect(!text.contains("hush") && !text.isEmpty, "\(command): \(text)")
        }
    }
}
