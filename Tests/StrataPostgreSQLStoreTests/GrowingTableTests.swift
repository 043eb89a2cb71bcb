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

@Suite("How rows are found while a table grows", .enabled(if: Server.isThere), .serialized)
struct GrowingTableTests {
    @Test("An import into an empty store looks unique values up by their index")
    func looksUpUniqueValues() throws {
        let item = StoreModels.entity("Item")
        item.properties = [StoreModels.attribute("name", .string)]
        item.uniquenessConstraints = [["name"]]
        // Each save used to read all rows that were there, 316,000 together.
        try expect(rowsRead(item, inserted: Array(repeating: 100, count: 80), changed: 0) == 0)
    }

    @Test("Saves that insert and change rows find these by their index, while the table grows")
    func findsRowsOfGrowingTable() throws {
        let item = StoreModels.entity("Item")
        item.properties = [StoreModels.attribute("name", .string)]
        let inserted = Array(repeating: 10, count: 10) + Array(repeating: 1000, count: 50)
        // Each save used to read all rows that were there, 1,230,450 together.
        try expect(rowsRead(item, inserted: inserted, changed: 10) == 0)
    }

    @Test("Saves find the rows that they lock and change by their index in a table that has a single page")
    func findsRowsOfSmallTable() throws {
        let item = StoreModels.entity("Item")
        item.properties = [StoreModels.attribute("name", .string)]
        try expect(rowsRead(item, inserted: Array(repeating: 2, count: 20), changed: 2) == 0)
    }

    @Test("Fetches find rows by their index in a table that has grown since the server counted its rows")
    func fetchesFromGrownTable() throws {
        let item = StoreModels.entity("Item")
        let name = StoreModels.attribute("name", .string)
        item.properties = [name]
        let element = NSFetchIndexElementDescription(property: name, collationType: .binary)
        item.indexes = [NSFetchIndexDescription(name: "byName", elements: [element])]
        let inserted = Array(repeating: 2, count: 10) + Array(repeating: 1000, count: 30)
        // The plans for the 20 rows that the server has counted used to stay: they read 4,356,000 rows, where new plans read 200.
        try expect(rowsRead(item, inserted: inserted, changed: 0, fetched: 10, countedAfter: 10) < 10_000)
    }

    /// How many rows of the table the server reads in all, from end to end, for some saves, each of which follows some fetches of one row.
    private func rowsRead(
        _ item: NSEntityDescription,
        inserted: [Int],
        changed: Int,
        fetched: Int = 0,
        countedAfter countingSave: Int? = nil
    ) throws -> Int64 {
        let stack = try Stack(.postgreSQL, model: StoreModels.model(item))
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        let context = stack.context()
        try context.performAndWait {
            var known: [NSManagedObject] = []
            for (save, count) in inserted.enumerated() {
                if save == countingSave { try connection.command("ANALYZE item") }
                for number in 0..<fetched {
                    let request = NSFetchRequest<NSManagedObject>(entityName: "Item")
                    request.predicate = NSPredicate(format: "name == %@", "\(save - 1) \(number)")
                    _ = try context.fetch(request)
                }
                for object in known { object.setValue("changed in \(save)", forKey: "name") }
                known = (0..<count).map { number in
                    let object = NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                    object.setValue("\(save) \(number)", forKey: "name")
                    return object
                }
                try context.save()
                known.removeLast(count - changed)
            }
        }
        // The server counts what a session has read when that ends.
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        let end = ContinuousClock.now + .seconds(30)
        while ContinuousClock.now < end {
            let row = try connection.query(
                "SELECT n_tup_ins, seq_tup_read FROM pg_stat_user_tables WHERE relid = 'item'::regclass"
            )[0]
            if row.int64(0) == Int64(inserted.reduce(0, +)) { return row.int64(1) }
            usleep(10_000)
        }
        Issue.record("The server has not counted all rows.")
        return .max
    }
}
