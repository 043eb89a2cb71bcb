import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

/// A store whose owner has granted rights to others with the article's statements.
private final class SharedStore {
    private let server: PrivateServer
    let owner: ServerStack

    init() throws {
        server = try PrivateServer()
        owner = try ServerStack(Self.url(server, "strata"), history: true)
        try owner.insert("Rome")
        let session = try server.connection()
        for statement in try Self.statements() { try session.command(statement) }
    }

    /// The statements that the article's section on roles has operators run.
    private static func statements() throws -> [String] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let article = try String(contentsOf: folder.appendingPathComponent("Docs/PostgreSQL.md"), encoding: .utf8)
        let section = try require(article.components(separatedBy: "\n## ").first { $0.hasPrefix("Roles\n") })
        let blocks = section.components(separatedBy: "```sql\n").dropFirst().map {
            $0.components(separatedBy: "```")[0]
        }
        expectEqual(blocks.count, 2)
        return blocks
    }

    private static func url(_ server: PrivateServer, _ role: String) throws -> URL {
        let text = server.url.absoluteString.replacing("user=strata", with: "user=\(role)")
        return try require(URL(string: text.replacing("schema=shop", with: "schema=guide")))
    }

    func open(_ role: String, _ options: [String: Any] = [:]) throws -> ServerStack {
        try ServerStack(Self.url(server, role), history: true, options)
    }

    /// Runs SQL with the owner's rights.
    func command(_ sql: String) throws {
        try server.connection().command("SET search_path TO guide; \(sql)")
    }

    /// Waits until no other session is left.
    func waitForNoSessions() throws {
        let session = try server.connection()
        let sessions = """
            SELECT pid::bigint FROM pg_catalog.pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()
            """
        try waitUntil { try session.query(sessions).rowCount == 0 }
    }

    func problems(_ role: String) throws -> [String] {
        try PostgreSQLStore.problems(at: Self.url(server, role), GuideModel.make())
    }
}

extension ServerStack {
    fileprivate func perform<R>(_ body: (NSManagedObjectContext) throws -> R) throws -> R {
        let context = context()
        return try context.performAndWait { try body(context) }
    }

    /// The authors of the transactions after a token, each with the number of its changes.
    fileprivate func history(after token: NSPersistentHistoryToken?) throws -> [String] {
        try perform { context in
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: token)
            let result = try context.execute(request) as? NSPersistentHistoryResult
            let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
            return transactions.map { "\($0.author ?? "") \($0.changes?.count ?? 0)" }
        }
    }
}

@Suite("Roles that use a PostgreSQL store", .enabled(if: Server.isThere))
struct RoleTests {
    private static var venues: NSFetchRequest<NSManagedObject> { NSFetchRequest(entityName: "Venue") }

    @Test func `a role that was granted what the article says writes all that a store is for`() throws {
        let store = try SharedStore()
        let writer = try store.open("writer")
        let start = store.owner.coordinator.currentPersistentHistoryToken(fromStores: nil)

        // This inserts rows with relationships of all kinds, and more rows than a block of keys has.
        try writer.perform { context in
            context.transactionAuthor = "writer"
            let city = try require(context.all("City").first)
            let tag = context.insert("Tag", ["title": "old"])
            let venue = context.insert("Venue", ["name": "Trevi", "city": city, "tags": [tag] as Set])
            venue.setValue(NSOrderedSet(array: [context.insert("Photo"), context.insert("Photo")]), forKey: "photos")
            venue.setValue(context.insert("Licence", ["number": "7"]), forKey: "licence")
            _ = context.insert("User", ["email": "a@example.org"])
            for number in 0..<1500 { _ = context.insert("Tag", ["title": "\(number)"]) }
            try context.obtainPermanentIDs(for: [venue])
            try context.save()
        }
        // This changes rows, and runs into a conflict of unique values.
        try writer.perform { context in
            let venue = try require(context.fetch(Self.venues).first)
            venue.setValue("Fontana di Trevi", forKey: "name")
            try require(venue.value(forKey: "licence") as? NSManagedObject).setValue("8", forKey: "number")
            try context.save()
            _ = context.insert("User", ["email": "a@example.org"])
            expectEqual(expectThrows(CocoaError.self) { try context.save() }?.code, .managedObjectConstraintMerge)
        }
        // This pins a version, deletes with delete rules, and reads the version again.
        let pinned = writer.context()
        try pinned.performAndWait {
            try pinned.setQueryGenerationFrom(.current)
            expectEqual(try pinned.fetch(Self.venues).count, 1)
        }
        try writer.perform { context in
            context.delete(try require(context.fetch(Self.venues).first))
            try context.save()
            expectEqual(try context.all("Photo").count, 0)
        }
        try expectEqual(pinned.performAndWait { try pinned.fetch(Self.venues).count }, 1)

        try writer.perform { context in
            _ = try context.execute(NSBatchInsertRequest(entityName: "City", objects: [["name": "Oslo"]]))
            let update = NSBatchUpdateRequest(entityName: "City")
            update.predicate = NSPredicate(format: "name == 'Oslo'")
            update.propertiesToUpdate = ["population": 700_000]
            _ = try context.execute(update)
            let tags = NSFetchRequest<NSFetchRequestResult>(entityName: "Tag")
            _ = try context.execute(NSBatchDeleteRequest(fetchRequest: tags))
            expectEqual(try context.all("Tag").count, 0)
        }

        // The next save writes changed metadata, even a save without other changes.
        let written = try require(writer.coordinator.persistentStores.first)
        var metadata = writer.coordinator.metadata(for: written)
        metadata["region"] = "south"
        writer.coordinator.setMetadata(metadata, for: written)
        try writer.perform { try $0.save() }
        metadata["side"] = "left"
        writer.coordinator.setMetadata(metadata, for: written)
        try writer.insert("Bern")
        let reader = try store.open("reader", [NSReadOnlyPersistentStoreOption: true])
        let read = try require(reader.coordinator.persistentStores.first)
        let told = reader.coordinator.metadata(for: read)
        expectEqual([told["region"] as? String, told["side"] as? String], ["south", "left"])

        // The writer numbers the history.
        let other = try store.open("writer")
        try expectEqual(other.history(after: start).first, "writer 1507")
        try expectEqual(other.history(after: start).count, 7)
        try other.perform { context in
            let now = store.owner.coordinator.currentPersistentHistoryToken(fromStores: nil)
            _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: now))
        }
        expectEqual(try store.owner.history(after: nil).count, 1)
        try expectEqual(store.owner.cities(), ["Bern", "Oslo", "Rome"])
        expectEqual(try store.problems("strata"), [])
    }

    @Test func `a role that may only read reads all, sees what is numbered, and writes nothing`() throws {
        let store = try SharedStore()
        let start = store.owner.coordinator.currentPersistentHistoryToken(fromStores: nil)
        try store.owner.insert("Oslo")
        try expectEqual(store.owner.history(after: start), [" 1"])
        for options in [[:], [NSReadOnlyPersistentStoreOption: true]] {
            let reader = try store.open("reader", options)
            try expectEqual(reader.cities(), ["Oslo", "Rome"])
            try expectEqual(reader.history(after: start), [" 1"])
            let pinned = reader.context()
            try pinned.performAndWait { try pinned.setQueryGenerationFrom(.current) }
            try expectEqual(Cities.fetched(pinned), ["Oslo", "Rome"])
            let count = try reader.perform { context in
                let request = NSFetchRequest<NSDictionary>(entityName: "City")
                request.resultType = .dictionaryResultType
                request.propertiesToFetch = ["name"]
                return try context.fetch(request).count
            }
            expectEqual(count, 2)
        }
        // Either the option or the server refuses these.
        let bound = try store.open("reader", [NSReadOnlyPersistentStoreOption: true])
        expectEqual(expectThrows(CocoaError.self) { try bound.insert("Bern") }?.code, .fileWriteNoPermission)
        let free = try store.open("reader")
        let refusals: [(NSManagedObjectContext) throws -> Void] = [
            { context in
                _ = context.insert("City", ["name": "Bern"])
                try context.save()
            },
            { context in
                try require(context.all("City").first).setValue("Roma", forKey: "name")
                try context.save()
            },
            { context in
                context.delete(try require(context.all("City").first))
                try context.save()
            },
            { context in
                _ = try context.execute(NSBatchInsertRequest(entityName: "City", objects: [["name": "Bern"]]))
            },
            { context in
                let cities = NSFetchRequest<NSFetchRequestResult>(entityName: "City")
                _ = try context.execute(NSBatchDeleteRequest(fetchRequest: cities))
            },
        ]
        for refusal in refusals {
            let error = expectThrows(CocoaError.self) { try free.perform(refusal) }
            expectEqual(error?.code, .fileWriteNoPermission)
        }
        try expectEqual(store.owner.cities(), ["Oslo", "Rome"])
    }

    @Test func `a reader with the right to give numbers sees transactions that have no number yet`() throws {
        let store = try SharedStore()
        let start = store.owner.coordinator.currentPersistentHistoryToken(fromStores: nil)
        let transaction = "INSERT INTO strata_transaction (id, time) VALUES (gen_random_uuid(), 0)"
        // This transaction gets no number: all stores are closed, since a watcher would number it, and a closing
        // watcher ends its work first.
        for store in store.owner.coordinator.persistentStores { try self.close(store) }
        try store.waitForNoSessions()
        try store.command(transaction)
        let reader = try store.open("reader", [NSReadOnlyPersistentStoreOption: true])
        try expectEqual(reader.history(after: start), [])
        try store.command("GRANT UPDATE ON strata_transaction, strata_history TO reader")
        try expectEqual(reader.history(after: start), [" 0"])
    }

    private func close(_ store: NSPersistentStore) throws {
        try store.persistentStoreCoordinator?.remove(store)
    }

    @Test func `a role with no rights is refused, with the missing right`() throws {
        let store = try SharedStore()
        try store.command("CREATE ROLE stranger LOGIN")
        let error = expectThrows(CocoaError.self) { try store.open("stranger") }
        expectEqual(error?.code, .fileReadNoPermission)
        expectEqual(error?.localizedDescription.contains("USAGE on the schema"), true)
        let reading = expectThrows(CocoaError.self) {
            try store.open("stranger", [NSReadOnlyPersistentStoreOption: true])
        }
        expectEqual(reading?.code, .fileReadNoPermission)
        // Rights to the schema without rights to the tables give the same error.
        try store.command("GRANT USAGE ON SCHEMA guide TO stranger")
        expectEqual(expectThrows(CocoaError.self) { try store.open("stranger") }?.code, .fileReadNoPermission)
    }
}
