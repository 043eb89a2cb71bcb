import CoreData
import Expectations
import StrataSQLite
import StrataStoreChecks
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataSQL
@testable import StrataSQLiteStore

@Suite("Where a store's history begins")
struct HistoryBaselineTests {
    private func baseline(_ coordinator: NSPersistentStoreCoordinator) throws -> [String: Int]? {
        let metadata = coordinator.metadata(for: try require(coordinator.persistentStores.first))
        return HistoryBaseline(StoreMetadata(dictionary: metadata, uuid: ""))?.lastKeys
    }

    /// A store with two cities, whose history begins after them.
    private func begunLater() throws -> Stack {
        let stack = try Stack(.sqlite, model: HistoryModels.guide())
        for name in ["Porto", "Bonn"] { _ = try stack.saveCity(name) }
        try expectEqual(baseline(stack.coordinator), nil)
        try stack.coordinator.remove(stack.store)
        try stack.coordinator.addPersistentStore(type: .sqlite, at: stack.storeURL, options: Stack.tracking)
        return stack
    }

    @Test
    func `a new store's history begins with nothing, and that is kept for good`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        try expectEqual(baseline(stack.coordinator)?["City"], 0)
        try expectEqual(baseline(stack.coordinator)?["Venue"], 0)
        try stack.saveCity()
        try stack.coordinator.remove(stack.store)
        try stack.coordinator.addPersistentStore(type: .sqlite, at: stack.storeURL, options: Stack.tracking)
        try expectEqual(baseline(stack.coordinator)?["City"], 0)
    }

    @Test
    func `rows from before are taken as they are, and later ones have to be in the history`() throws {
        let stack = try begunLater()
        try expectEqual(baseline(stack.coordinator)?["City"], 2)
        try expectEqual(stack.verificationProblems(), [])
        try stack.saveCity("Ulm")
        try expectEqual(stack.verificationProblems(), [])
        try stack.sql("DELETE FROM ACHANGE")
        let problems = try stack.verificationProblems()
        expect(problems.contains { $0.contains("row 3 without an insertion") }, "\(problems)")
    }

    @Test
    func `keys that were given before a row was there do not count as rows`() throws {
        let stack = try Stack(.sqlite, model: HistoryModels.guide())
        let context = stack.context()
        try context.performAndWait {
            let cities = (0..<3).map { _ in City(context: context) }
            try context.obtainPermanentIDs(for: cities)
        }
        try stack.coordinator.remove(stack.store)
        try stack.coordinator.addPersistentStore(type: .sqlite, at: stack.storeURL, options: Stack.tracking)
        try expectEqual(baseline(stack.coordinator)?["City"], 3)
        try stack.saveCity()
        // Apple's framework may save an object whose key it has reserved before. The time of the insertion is then
        // unknown.
        try stack.sql("INSERT INTO ZCITY (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT 2, Z_ENT, 1, 'x' FROM ZCITY")
        try expectEqual(stack.verificationProblems(), [])
    }

    @Test
    func `a file that does not keep it is checked from the first insertion on`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        try stack.saveCity()
        try stack.saveCity()
        let connection = try Connection(path: stack.storeURL.path, access: .readWrite)
        var metadata = try require(try StoreMetadata(on: connection, catalog: SQLCatalog(connection), url: nil))
        metadata.values[StoreMetadata.historyBaselineKey] = nil
        try metadata.write(connection)
        try stack.sql("DELETE FROM ACHANGE WHERE ZENTITYPK = 1")
        try expectEqual(stack.verificationProblems(), [])
        try stack.sql("INSERT INTO ZCITY (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT 3, Z_ENT, 1, 'x' FROM ZCITY WHERE Z_PK = 1")
        let problems = try stack.verificationProblems()
        expect(problems.contains { $0.contains("row 3 without an insertion") }, "\(problems)")
    }

    @Test
    func `an application can neither remove it nor give it to another store`() throws {
        let stack = try begunLater()
        let metadata = stack.coordinator.metadata(for: stack.store)
        stack.coordinator.setMetadata(["mine": 1], for: stack.store)
        try stack.saveCity()
        try stack.coordinator.remove(stack.store)
        try NSPersistentStoreCoordinator.setMetadata(["mine": 2], type: .sqlite, at: stack.storeURL)
        try stack.coordinator.addPersistentStore(type: .sqlite, at: stack.storeURL, options: Stack.tracking)
        try expectEqual(baseline(stack.coordinator)?["City"], 2)
        expectEqual(stack.coordinator.metadata(for: stack.store)["mine"] as? Int, 2)

        let other = try Stack(.sqlite, model: HistoryModels.guide())
        other.coordinator.setMetadata(metadata, for: other.store)
        try expectEqual(baseline(other.coordinator), nil)
        try other.coordinator.remove(other.store)
        try NSPersistentStoreCoordinator.setMetadata(metadata, type: .sqlite, at: other.storeURL)
        try other.coordinator.addPersistentStore(type: .sqlite, at: other.storeURL)
        try expectEqual(baseline(other.coordinator), nil)
    }

    @Test(arguments: [true, false])
    func `a migrated store has its own beginning, or none`(_ tracks: Bool) throws {
        let stack = try begunLater()
        let id = try stack.saveCity("Ulm")
        // The copy has this object's version, but no update in its history.
        try stack.change(id, City.self) { city, _ in city.name = "Rome" }
        let url = stack.folder.appendingPathComponent("new.sqlite")
        try stack.coordinator.migratePersistentStore(
            stack.store,
            to: url,
            options: tracks ? Stack.tracking : nil,
            type: .sqlite
        )
        try expectEqual(baseline(stack.coordinator)?["City"], tracks ? 3 : nil)
        let verifier = try StoreVerifier(storeURL: url, model: HistoryModels.guide())
        try expectEqual(verifier.problems(), [])
    }

    @Test
    func `rows that a batch inserts and changes at once, and rows that come back, are no lost updates`() throws {
        let stack = try Stack.recording(HistoryModels.guide(), .sqlite)
        let rows: [[String: Any]] = [["email": "a", "age": 1], ["email": "a", "age": 2], ["email": "b"]]
        try stack.execute(NSBatchInsertRequest(entityName: "User", objects: rows), .overwrite)
        try expectEqual(stack.column("SELECT Z_OPT FROM ZUSER ORDER BY Z_PK"), ["1", "1"])
        try expectEqual(stack.verificationProblems(), [])
        let context = stack.context()
        context.mergePolicy = NSMergePolicy.overwrite
        let id = try stack.saveCity("gone")
        try context.performAndWait {
            let city = try require(try context.existingObject(with: id) as? City)
            city.name = "back"
            try stack.change(id, City.self) { city, other in other.delete(city) }
            try context.save()
        }
        try expectEqual(stack.column("SELECT ZNAME FROM ZCITY"), ["back"])
        try expectEqual(stack.verificationProblems(), [])
    }
}
