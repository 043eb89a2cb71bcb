import CoreData
import Expectations
import TestSupport
import Testing

@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite

@Suite("Deadlines of writes")
struct WriteDeadlineTests {
    @Test func `the time that a writer lets others go first counts`() throws {
        let folder = try ScratchFolder()
        let path = folder.file("numbers.sqlite").path
        let pool = try ConnectionPool(.file(path))
        try pool.write { try $0.execute("CREATE TABLE number (n INTEGER)") }
        // A sign that another open file has locked stands for the sign of a process that does not go on.
        let stopped = WaitSign(database: path)
        stopped.putUp()
        expect(stopped.isUp)

        let lease = try pool.writer(timeout: 10)
        let connection = lease.connection
        expect(connection.busyWait.timeout <= 10 - WaitSign.longestDeference)
        lease.rollBack()

        let foreign = try Connection(path: path, access: .readWrite)
        try foreign.run("BEGIN IMMEDIATE")
        let error = expectThrows(SQLiteError.self) { try pool.write(timeout: 0.2) { _ in } }
        expect(connection.busyWait.timeout <= 0.2 - WaitSign.longestDeference)
        expect(error?.code == .busy && error?.wait?.seconds ?? 0 >= 0.2)
        try foreign.run("ROLLBACK")
    }

    @Test func `a writer that has no time left lets no other go first`() throws {
        let folder = try ScratchFolder()
        let path = folder.file("numbers.sqlite").path
        let (stopped, mine) = (WaitSign(database: path), WaitSign(database: path))
        stopped.putUp()
        expect(mine.deferToOthers(atMost: 0, nil) == 0 && mine.deferToOthers(atMost: -1, nil) == 0)
        expect(mine.deferToOthers(atMost: 0.001, nil) >= 0.001)
        stopped.takeDown()
        expectEqual(mine.deferToOthers(atMost: 1, nil), 0)
    }

    @Test func `a batch that waits in vain says which context has waited`() throws {
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: [NSPersistentStoreTimeoutOption: 0.01])
        _ = try stack.storeCity()
        let foreign = try Connection(path: stack.storeURL.path, access: .readWrite)
        try foreign.run("BEGIN IMMEDIATE")
        let context = stack.context("import")
        let update = NSBatchUpdateRequest(entityName: "City")
        update.propertiesToUpdate = ["population": 2]
        let deletion = NSBatchDeleteRequest(fetchRequest: NSFetchRequest<City>(entityName: "City"))
        let insert = NSBatchInsertRequest(entityName: "City", objects: [["name": "Ulm"]])
        context.performAndWait {
            for request in [update, deletion, insert] {
                let error = expectThrows(CocoaError.self) { try context.execute(request) }
                expectEqual(error?.code, .persistentStoreTimeout)
                let text = error?.localizedDescription ?? ""
                expect(text.contains("context \"import\" of process \(getpid()) waited "), "\(text)")
            }
        }
        try foreign.run("ROLLBACK")
    }

    @Test func `a wait in vain to obtain IDs or to purge a history is named too`() throws {
        let options: [AnyHashable: Any] = [NSPersistentStoreTimeoutOption: 0.01, NSPersistentHistoryTrackingKey: true]
        let stack = try Stack(.sqlite, model: GuideModel.make(), options: options)
        _ = try stack.storeCity()
        let foreign = try Connection(path: stack.storeURL.path, access: .readWrite)
        try foreign.run("BEGIN IMMEDIATE")
        let context = stack.context("import")
        context.performAndWait {
            let city = City(context: context)
            let attempts: [() throws -> Void] = [
                { try context.obtainPermanentIDs(for: [city]) },
                { _ = try context.execute(NSPersistentHistoryChangeRequest.deleteHistory(before: Date.distantFuture)) },
            ]
            for attempt in attempts {
                let error = expectThrows(CocoaError.self) { try attempt() }
                expectEqual(error?.code, .persistentStoreTimeout)
                let text = error?.localizedDescription ?? ""
                expect(text.contains("context \"import\" of process \(getpid()) waited "), "\(text)")
            }
        }
        // Outside of all contexts the error names only the process.
        let error = expectThrows(CocoaError.self) { try stack.coordinator.purgePersistentHistory() }
        let text = error?.localizedDescription ?? ""
        expect(text.contains(": process \(getpid()) waited "), "\(text)")
        try foreign.run("ROLLBACK")
    }
}
