import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataPostgreSQL
import StrataSQL
import TestSupport
import Testing

@testable import CoreData
@testable import StrataPostgreSQLStore

@Suite("The plan of locks", .enabled(if: Server.isThere))
struct LockPlanTests {
    @Test("A save finds the rows that it locks by the index, in a table that the server knows nothing of")
    func findsRowsByIndex() throws {
        let item = StoreModels.entity("Item")
        item.properties = [StoreModels.attribute("name", .string)]
        let stack = try Stack(.postgreSQL, model: StoreModels.model(item))
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<1000 {
                NSEntityDescription.insertNewObject(forEntityName: "Item", into: context)
                    .setValue("\(number)", forKey: "name")
            }
            try context.save()
        }
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let connection = try Connection.open(target, timeout: 30)
        try connection.command("SET search_path TO \(target.quotedSchema)")
        try connection.command("SET plan_cache_mode = force_generic_plan")
        let naming = Dialect.postgresql.naming
        func plan(_ statement: String, _ name: String) throws -> String {
            try connection.command("PREPARE \(name) (bigint[]) AS \(statement)")
            let lines = try connection.command("EXPLAIN EXECUTE \(name) ('{1,2,3}')")
            return lines.rows.map { $0.string(0) }.joined(separator: "\n")
        }
        let table = SQLName("item")
        let locking = try plan(
            SaveTransaction.locking("\(naming.key)", of: table, naming, "FOR NO KEY UPDATE"),
            "locking"
        )
        expect(locking.contains("Index") && !locking.contains("Seq Scan"), "\(locking)")
    }
}
