import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import TestSupport
import Testing

@testable import CoreData

// Much that goes on at a time has the server drop plans by chance, so these tests show most when they run alone.
@Suite("Tables that grow", .enabled(if: Server.isThere), .serialized)
struct GrowingTableTests {
    @Test("An import into an empty store looks unique values up by their index")
    func looksUpUniqueValues() throws {
        let item = StoreModels.entity("Item")
        item.properties = [StoreModels.attribute("name", .string)]
        item.uniquenessConstraints = [["name"]]
        // Each save used to read all rows that were there, 316,000 together.
        try expect(rowsRead(item, inserted: Array(repeating: 100, count: 80), changed: 0) < 30_000)
    }

    @Test("Saves that insert and change rows find these by their index, once the table has grown")
    func plansAnew() throws {
        let item = StoreModels.entity("Item")
        item.properties = [StoreModels.attribute("name", .string)]
        let inserted = Array(repeating: 10, count: 10) + Array(repeating: 1000, count: 50)
        // Each save used to read all rows that were there, 1,230,450 together.
        try expect(rowsRead(item, inserted: inserted, changed: 10) < 100_000)
    }

    /// How many rows of the table the server reads in all, from end to end, for some saves.
    private func rowsRead(_ item: NSEntityDescription, inserted: [Int], changed: Int) throws -> Int64 {
        let stack = try Stack(.postgreSQL, model: StoreModels.model(item))
        let context = stack.context()
        try context.performAndWait {
            var known: [NSManagedObject] = []
            for (save, count) in inserted.enumerated() {
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
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        // The server counts what a session has read when that ends.
        for store in stack.coordinator.persistentStores { try stack.coordinator.remove(store) }
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
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
