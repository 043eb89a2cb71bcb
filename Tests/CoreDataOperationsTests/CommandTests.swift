import CoreData
import Expectations
import TestSupport
import Testing

@testable import StrataInspector

/// How `strata` works with stores in operation.
@Suite("strata in operation")
struct CommandTests {
    private func run(_ words: String...) -> (code: ExitCode, lines: [String], complaints: [String]) {
        var (lines, complaints): ([String], [String]) = ([], [])
        let code = StrataCommand.run(words, print: { lines.append($0) }, complain: { complaints.append($0) })
        return (
            code, lines.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) },
            complaints
        )
    }

    /// Stores made here keep a copy of their model.
    private func close(_ stack: Stack) throws { try stack.coordinator.close() }

    @Test func `explain prints the statement, the plan and what is scanned, and no value`() throws {
        let stack = try Stack(.sqlite)
        try stack.addCities(["Faro"])
        try close(stack)
        let result = run("explain", "--store", stack.storeURL.path, "--entity", "City", "--predicate", "name == 'Faro'")
        expect(result.code == .success && result.complaints.isEmpty)
        expect(result.lines.first?.hasPrefix("SELECT") == true && result.lines.contains("Scanned: ZCITY"))
        expect(!result.lines.contains { $0.contains("Faro") })
        expectEqual(run("explain", "--store", stack.storeURL.path, "--entity", "Town").code, .usage)
    }

    @Test func `vacuum gives back the space of what was deleted`() throws {
        let stack = try Stack(.sqlite)
        let ids = try stack.addCities((1...2000).map { "City \($0) " + String(repeating: "x", count: 200) })
        let context = stack.context()
        try context.performAndWait { () throws in
            for id in ids.dropFirst() { context.delete(try context.existingObject(with: id)) }
            try context.save()
        }
        try close(stack)
        func size() throws -> Int {
            let attributes = try FileManager.default.attributesOfItem(atPath: stack.storeURL.path)
            return (attributes[.size] as? NSNumber)?.intValue ?? 0
        }
        let before = try size()
        let result = run("vacuum", "--store", stack.storeURL.path)
        expect(result.code == .success && result.complaints.isEmpty)
        try expect(size() < before / 2)
        expectEqual(run("verify", "--store", stack.storeURL.path).code, .success)
    }

    @Test func `history lists transactions, lists consumers, and purges what all have read`() throws {
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: [NSPersistentHistoryTrackingKey: true])
        for name in ["Porto", "Faro", "Braga"] { try stack.addCities([name]) }
        let uuid = try require(stack.coordinator.persistentStores.first?.identifier)
        try stack.coordinator.setPersistentHistoryToken(
            NSPersistentHistoryToken(transactionNumbers: [uuid: 2]),
            forConsumer: "index"
        )
        try close(stack)
        let path = stack.storeURL.path
        let list = run("history", "list", "--store", path, "--after", "1", "--limit", "1")
        expect(list.code == .success && list.lines.first?.hasPrefix("2 ") == true)
        expect(list.lines.contains("  City: 1 inserted") && list.lines.last?.hasPrefix("… and 1 more") == true)
        let consumers = run("history", "consumers", "--store", path)
        expect(consumers.lines.count == 2 && consumers.lines[1].hasPrefix("index"))
        let purge = run("history", "purge", "--store", path)
        expect(purge.code == .success && purge.lines.first?.hasPrefix("1 transactions") == true)
        expectEqual(run("history", "list", "--store", path).lines.first?.hasPrefix("2 "), true)
        expectEqual(run("history", "burn", "--store", path).code, .usage)
        expectEqual(run("verify", "--store", path).code, .success)
    }

    // MARK: - Export and import

    /// A store with an object of every kind of value and relationship.
    private func filled() throws -> Stack {
        let model = GuideModel.make()
        model.entitiesByName["City"]?.relationshipsByName["venues"]?.isOptional = true
        let stack = try Stack(.sqlite, model: model)
        let context = stack.context()
        try context.performAndWait { () throws in
            let city = City(context: context)
            city.name = "Faro \"quoted\"\n\u{2028}"
            let tags = (1...3).map { number in
                let tag = Tag(context: context)
                tag.title = "tag \(number)"
                return tag
            }
            for number in 1...5 {
                let venue = number % 2 == 0 ? Bar(context: context) : Venue(context: context)
                venue.setValue("Venue \(number)", forKey: "name")
                venue.setValue(city, forKey: "city")
                venue.setValue(0.1 + Double(number), forKey: "distance")
                venue.setValue(Date(timeIntervalSinceReferenceDate: 700_000_000.123456), forKey: "createdAt")
                venue.setValue(NSDecimalNumber(string: "12345678901234567890.12345"), forKey: "rating")
                venue.setValue(UUID(), forKey: "code")
                venue.setValue(URL(string: "https://example.org/\(number)"), forKey: "site")
                venue.setValue(Data([0, 1, 255]), forKey: "map")
                venue.setValue(NSSet(array: Array(tags.prefix(number % 4))), forKey: "tags")
                let photos = (1...3).reversed().map { place in
                    let photo = Photo(context: context)
                    photo.title = "photo \(place)"
                    return photo
                }
                venue.setValue(NSOrderedSet(array: photos), forKey: "photos")
            }
            let user = User(context: context)
            user.setValue("a@example.org", forKey: "email")
            try context.save()
        }
        return stack
    }

    @Test func `what is exported and imported again is the same, keys apart`() throws {
        let stack = try filled()
        // The deletion leaves a gap, so the import gives other keys.
        let context = stack.context()
        try context.performAndWait { () throws in
            let first = try require(
                try context.fetch(NSFetchRequest<Venue>(entityName: "Venue")).first { $0.name == "Venue 1" }
            )
            context.delete(first)
            try context.save()
        }
        try close(stack)
        let exported = run("export", "--store", stack.storeURL.path)
        expect(exported.code == .success && exported.complaints.isEmpty)
        let lines = stack.folder.appendingPathComponent("lines")
        try Data(exported.lines.joined(separator: "\n").utf8).write(to: lines)
        let copy = stack.folder.appendingPathComponent("copy.sqlite")
        let text = try require(run("export", "--store", stack.storeURL.path).lines.first)
        expect(text.hasPrefix("{\"@id\": \""))
        let like = stack.storeURL.path
        let imported = run("import", "--store", copy.path, "--like", like, "--from", lines.path)
        expect(imported.code == .success && imported.complaints.isEmpty)
        expectEqual(imported.lines, ["\(copy.path) has \(exported.lines.count) objects."])
        let again = run("export", "--store", copy.path)
        expectEqual(normalised(again.lines), normalised(exported.lines))
        expect(again.lines != exported.lines, "the keys have changed, as one was free")
        expectEqual(run("verify", "--store", copy.path).code, .success)
    }

    @Test(arguments: [1, 2, 5, 6, 100])
    func `an export that is read in stretches has each object once, in the order of keys`(stretch: Int) throws {
        let stack = try Stack(.sqlite)
        try stack.addCities((1...6).map { "City \($0)" })
        let context = stack.context()
        let entity = try require(stack.coordinator.managedObjectModel.entitiesByName["City"])
        var lines: [String] = []
        try context.performAndWait {
            try ExportCommand.export(entity, from: context, stretch: stretch) { lines.append($0) }
        }
        let keys = lines.compactMap { $0.firstMatch(of: /City\/p(\d+)/).flatMap { Int($0.1) } }
        expect(lines.count == 6 && keys == keys.sorted() && Set(keys).count == 6)
    }

    @Test func `the keys of an import take no more memory than a small cache`() throws {
        let keys = try ImportedKeys()
        for key in 1...Int64(300_000) where try !keys.add(key, key * 7, of: key % 2 == 0 ? "Venue" : "City") {
            Issue.record("\(key) was there already")
        }
        // SQLite's default cache has 2,000 KiB, and it is full: the table needs some 15 bytes a row.
        expect((1_000_000..<3_000_000).contains(keys.bytesInMemory), "\(keys.bytesInMemory)")
        try expect(keys.key(300_000, of: "Venue") == 2_100_000 && keys.key(300_000, of: "City") == nil)
        try expect(!keys.add(4, 1, of: "Venue") && keys.key(4, of: "Venue") == 28)
    }

    /// Lines without keys: an object is named by its values.
    private func normalised(_ lines: [String]) -> [String] {
        lines.map { $0.replacing(/\/p\d+/, with: "") }.sorted()
    }

    @Test(arguments: [
        (["{"], "no JSON"),
        (["{\"@id\": \"City/p1\"}"], "@entity"),
        (["{\"@id\": \"Town/p1\", \"@entity\": \"Town\"}"], "no entity Town"),
        (["{\"@id\": \"City/p1\", \"@entity\": \"City\", \"name\": 7}"], "another type"),
        (["{\"@id\": \"City/p1\", \"@entity\": \"City\", \"nam\": \"A\"}"], "no property nam"),
        (["{\"@id\": \"Venue/p1\", \"@entity\": \"Venue\", \"createdAt\": \"nan\"}"], "createdAt is not a number"),
        (["{\"@id\": \"Venue/p1\", \"@entity\": \"Venue\", \"city\": \"City/p9\"}"], "City/p9"),
        (["{\"@id\": \"City/p1\", \"@entity\": \"City\", \"venues\": 7}"], "venues has no IDs"),
        (
            [
                "{\"@id\": \"City/p1\", \"@entity\": \"City\"}", "{\"@id\": \"City/p2\", \"@entity\": \"City\"}",
                "{\"@id\": \"Venue/p1\", \"@entity\": \"Venue\", \"city\": [\"City/p1\", \"City/p2\"]}",
            ], "city leads to one object only"
        ),
        (
            [
                "{\"@id\": \"City/p1\", \"@entity\": \"City\", \"name\": \"A\"}",
                "{\"@id\": \"City/p1\", \"@entity\": \"City\", \"name\": \"B\"}",
            ], "two lines"
        ),
    ])
    func `lines that make no sense are named, and leave no store behind`(lines: [String], problem: String) throws {
        let stack = try Stack(.sqlite)
        try close(stack)
        let file = stack.folder.appendingPathComponent("lines")
        try Data(lines.joined(separator: "\n").utf8).write(to: file)
        let copy = stack.folder.appendingPathComponent("copy.sqlite")
        let like = stack.storeURL.path
        let result = run("import", "--store", copy.path, "--like", like, "--from", file.path)
        expect(result.code == .failure && result.complaints.first?.contains(problem) == true, "\(result.complaints)")
        expect(!FileManager.default.fileExists(atPath: copy.path))
    }

    @Test(arguments: ["draft", "loud"])
    func `a value of a property that is not stored, or that the store computes, is refused`(_ name: String) throws {
        let draft = StoreModels.attribute("draft", .string)
        draft.isTransient = true
        let note = StoreModels.entity(
            "Note",
            [
                StoreModels.attribute("text", .string), draft,
                StoreModels.derived("loud", .string, NSExpression(format: "uppercase:(text)")),
            ]
        )
        let stack = try Stack(.sqlite, model: StoreModels.model(note))
        try close(stack)
        let file = stack.folder.appendingPathComponent("lines")
        try Data("{\"@id\": \"Note/p1\", \"@entity\": \"Note\", \"\(name)\": \"x\"}".utf8).write(to: file)
        let copy = stack.folder.appendingPathComponent("copy.sqlite")
        let result = run("import", "--store", copy.path, "--like", stack.storeURL.path, "--from", file.path)
        expect(result.code == .failure && result.complaints.first?.contains("stored for \(name)") == true)
        expect(!FileManager.default.fileExists(atPath: copy.path))
    }
}
