import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives

@Suite("The form of the tables", .enabled(if: Server.isThere))
struct StoreFormatTests {
    private static var options: [AnyHashable: Any] { [NSPersistentHistoryTrackingKey: true] }

    private static let model: NSManagedObjectModel = {
        let item = StoreModels.entity("Item")
        let name = StoreModels.attribute("name", .string)
        name.preservesValueInHistoryOnDeletion = true
        item.properties = [name, StoreModels.attribute("size", .integer64)]
        return StoreModels.model(item)
    }()

    @discardableResult
    private func insert(_ count: Int, into context: NSManagedObjectContext) -> [NSManagedObject] {
        (0..<count).map { number in
            let object = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
            object.setValue("name \(number)", forKey: "name")
            return object
        }
    }

    /// The history as a text: the kind, the key and the changed properties of each change, a line for each transaction.
    private func history(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
            let result = try require(context.execute(request) as? NSPersistentHistoryResult)
            return try require(result.result as? [NSPersistentHistoryTransaction]).map { transaction in
                (transaction.changes ?? []).map { change in
                    let names = (change.updatedProperties ?? []).map(\.name).sorted().joined(separator: "+")
                    let kept = change.tombstone?["name"] as? String ?? ""
                    return
                        "\(change.changeID & 0xFFFF_FFFF) \(change.changeType.rawValue) \(change.changedObjectID.uriRepresentation().lastPathComponent) \(names)\(kept)"
                }.joined(separator: ", ")
            }
        }
    }

    @Test("Changes that are alike are one row of the history, with an array of keys")
    func runs() throws {
        let stack = try Stack(.postgreSQL, model: Self.model, options: Self.options)
        let context = stack.context()
        try context.performAndWait {
            let objects = insert(450, into: context)
            try context.save()
            for (number, object) in objects.prefix(10).enumerated() {
                if number.isMultiple(of: 2) {
                    object.setValue(number, forKey: "size")
                } else {
                    object.setValue("changed", forKey: "name")
                }
            }
            for object in objects.suffix(2) { context.delete(object) }
            try context.save()
        }
        // 450 insertions, 200 keys at most each; two kinds of updates; two deletions, each of which keeps a value.
        expect(
            try Server.column(
                stack,
                "SELECT pg_catalog.cardinality(keys)::bigint FROM strata_change ORDER BY seq, place"
            )
                == [200, 200, 50, 1, 1, 5, 5]
        )
        let lines = try history(context)
        expect(lines.count == 2)
        let first = try require(lines.first).components(separatedBy: ", ")
        expect(first.count == 450)
        expect(first.last == "450 0 p450 ")
        let second = try require(lines.last).components(separatedBy: ", ")
        expect(second.count == 12)
        expect(Set(second.prefix(2)) == ["1 2 p449 name 448", "2 2 p450 name 449"])
        expect(second[2...].filter { $0.hasSuffix(" size") }.count == 5)
        expect(second.map { $0.prefix { $0 != " " } } == (1...12).map { "\($0)" })
    }

    @Test("A store of the first form is brought up to date when it is opened, with its history")
    func upgrade() throws {
        let stack = try Stack(.postgreSQL, model: Self.model, options: Self.options)
        let context = stack.context()
        try context.performAndWait {
            let objects = insert(3, into: context)
            try context.save()
            context.delete(objects[1])
            try context.save()
        }
        let before = try history(context)
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        try connection.command(
            """
            CREATE TABLE old AS SELECT seq, place + n - 1 AS place, kind, entity, keys[n] AS key, mask, tombstone
            FROM strata_change, LATERAL pg_catalog.generate_subscripts(keys, 1) AS n;
            DELETE FROM strata_change; ALTER TABLE strata_change RENAME COLUMN keys TO key;
            ALTER TABLE strata_change ALTER COLUMN key TYPE bigint USING key[1];
            INSERT INTO strata_change SELECT seq, place, kind, entity, key, mask, tombstone FROM old; DROP TABLE old;
            UPDATE strata_store SET format = 1
            """
        )
        func open(_ options: [AnyHashable: Any]) throws -> NSManagedObjectContext {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Self.model)
            try coordinator.addPersistentStore(
                type: StoreKind.postgreSQL.type,
                configuration: nil,
                at: stack.storeURL,
                options: options
            )
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            return context
        }
        do {
            _ = try open([NSReadOnlyPersistentStoreOption: true])
            Issue.record("A store of an earlier form was opened although it may not be written.")
        } catch let error as CocoaError {
            expect(error.code == .persistentStoreOpen)
            expect(error.localizedDescription.contains("earlier version"))
        }
        let again = try open(Self.options)
        expect(try history(again) == before)
        try again.performAndWait {
            insert(2, into: again)
            try again.save()
        }
        expect(try history(again).count == 3)
        expect(try connection.query("SELECT format FROM strata_store").rows.map { $0.int64(0) } == [2])
        for store in again.persistentStoreCoordinator?.persistentStores ?? [] {
            try again.persistentStoreCoordinator?.remove(store)
        }
    }
}
