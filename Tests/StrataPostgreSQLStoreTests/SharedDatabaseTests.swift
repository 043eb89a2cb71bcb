import CoreData
import CoreDataPostgreSQL
import Expectations
import Foundation
import StrataLocks
import StrataPostgreSQL
import StrataRows
import TestSupport
import Testing

@testable import StrataPostgreSQLStore

/// Two coordinators on one database, like two processes.
private final class Pair {
    let first: Stack
    let second: NSPersistentStoreCoordinator

    init(options: [AnyHashable: Any]? = nil) throws {
        first = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        second = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try second.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: first.storeURL,
            options: options
        )
    }

    deinit { for store in second.persistentStores { try? second.remove(store) } }

    func secondContext() -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = second
        return context
    }
}

@Suite("One PostgreSQL database and several processes", .enabled(if: Server.isThere))
struct SharedDatabaseTests {
    private func cities(_ context: NSManagedObjectContext) throws -> [String] {
        let request = NSFetchRequest<NSManagedObject>(entityName: "City")
        return try context.fetch(request).compactMap { $0.value(forKey: "name") as? String }.sorted()
    }

    private func insert(_ name: String, _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
            city.setValue(name, forKey: "name")
            try context.save()
        }
    }

    @Test func `what one saves the other fetches`() throws {
        let pair = try Pair()
        try insert("Rome", pair.first.context())
        let other = pair.secondContext()
        try expectEqual(other.performAndWait { try cities(other) }, ["Rome"])
    }

    @Test func `keys of different processes never meet`() throws {
        let pair = try Pair()
        let (one, other) = (pair.first.context(), pair.secondContext())
        for number in 0..<5 {
            try insert("one \(number)", one)
            try insert("other \(number)", other)
        }
        try expectEqual(one.performAndWait { try cities(one).count }, 10)
    }

    @Test func `a save of an object that another process has changed meets a conflict`() throws {
        let pair = try Pair()
        let (one, other) = (pair.first.context(), pair.secondContext())
        try insert("Rome", one)
        func city(_ context: NSManagedObjectContext) throws -> NSManagedObject {
            let city = try require(try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "City")).first)
            _ = city.value(forKey: "name")
            return city
        }
        let error = expectThrows(CocoaError.self) {
            try other.performAndWait {
                let read = try city(other)
                try one.performAndWait {
                    try city(one).setValue("Roma", forKey: "name")
                    try one.save()
                }
                read.setValue("Rom", forKey: "name")
                try other.save()
            }
        }
        expectEqual(error?.code, .managedObjectMerge)
    }

    @Test func `the history lists in order what all processes have saved, and nothing twice`() throws {
        let pair = try Pair(options: [NSPersistentHistoryTrackingKey: true])
        let (one, other) = (pair.first.context(), pair.secondContext())
        let start = pair.first.coordinator.currentPersistentHistoryToken(fromStores: nil)
        for number in 0..<4 { try insert("\(number)", number.isMultiple(of: 2) ? one : other) }
        let told = try one.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: start)
            let result = try one.execute(request) as? NSPersistentHistoryResult
            let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
            return transactions.map { [Int($0.transactionNumber), $0.changes?.count ?? 0] }
        }
        expectEqual(told, [[1, 1], [2, 1], [3, 1], [4, 1]])
    }

    @Test func `once one coordinator keeps a history, those that had opened the store before record as well`() throws {
        let early = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        try insert("before", early.context())
        let late = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try late.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: early.storeURL,
            options: [NSPersistentHistoryTrackingKey: true]
        )
        defer { for store in late.persistentStores { try? late.remove(store) } }
        let start = late.currentPersistentHistoryToken(fromStores: nil)
        let context = early.context()
        try insert("one", context)
        try context.performAndWait {
            let batch = NSBatchInsertRequest(entityName: "City", objects: [["name": "two"], ["name": "three"]])
            _ = try context.execute(batch)
        }
        let reader = NSManagedObjectContext(.privateQueue)
        reader.persistentStoreCoordinator = late
        let told = try reader.performAndWait {
            let request = NSPersistentHistoryChangeRequest.fetchHistory(after: start)
            let result = try reader.execute(request) as? NSPersistentHistoryResult
            let transactions = result?.result as? [NSPersistentHistoryTransaction] ?? []
            return transactions.map { $0.changes?.count ?? 0 }
        }
        expectEqual(told, [1, 2])
    }

    // This test blocks its thread. If it suspended, then it would go on only when other tests leave a thread free.
    @Test func `what others have saved and purged before a watcher has looked is noticed`() throws {
        let options: [AnyHashable: Any] = [
            NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
        ]
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        let context = stack.context()
        try insert("Rome", context)
        // From here on the row is cached.
        try expectEqual(context.performAndWait { try cities(context) }, ["Rome"])
        let told = DispatchSemaphore(value: 0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: stack.coordinator,
            queue: nil
        ) { _ in told.signal() }
        defer { NotificationCenter.default.removeObserver(token) }
        // A process that saves, gives the number and purges at once would do the same.
        let other = try TestDatabase.session(stack.storeURL)
        try other.command(
            "BEGIN; UPDATE city SET name = 'Roma', strata_version = strata_version + 1; UPDATE strata_history SET last = 10; COMMIT"
        )
        let reader = stack.context()
        let id = try require(
            context.performAndWait { try context.fetch(NSFetchRequest<NSManagedObjectID>.ids("City")).first }
        )
        var name: String?
        // The insertion may be reported first.
        while name != "Roma", told.wait(timeout: .now() + 300) == .success {
            name = try reader.performAndWait {
                reader.reset()
                return try reader.existingObject(with: id).value(forKey: "name") as? String
            }
        }
        expectEqual(name, "Roma")
    }

    @Test(arguments: ["strata", String(repeating: "Ä \" ' ", count: 20)])
    func `a save wakes up all listeners, whatever the store is called`(_ identifier: String) throws {
        let options: [AnyHashable: Any] = [
            NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
        ]
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: options)
        try require(stack.coordinator.persistentStores.first).identifier = identifier
        try insert("Rome", stack.context())
        let other = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let second = try other.addPersistentStore(
            type: .postgreSQL,
            configuration: nil,
            at: stack.storeURL,
            options: options
        )
        defer { try? other.remove(second) }
        expectEqual(second.identifier, identifier)
        let watcher = try require((second as? PostgreSQLStore)?.engine as? PostgreSQLEngine).watcher.withLock { $0 }
        try require(watcher).interval.store(3_600_000, ordering: .releasing)
        let told = DispatchSemaphore(value: 0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: other,
            queue: nil
        ) { _ in told.signal() }
        defer { NotificationCenter.default.removeObserver(token) }
        // Before it gets the new interval, the watcher may look once more, which would find one or two of these saves.
        for name in ["Oslo", "Bern", "Riga"] {
            try insert(name, stack.context())
            expect(told.wait(timeout: .now() + 60) == .success)
        }
    }

    @Test func `a save of another process is noticed by its wake-up alone`() throws {
        let options: [AnyHashable: Any] = [
            NSPersistentHistoryTrackingKey: true, NSPersistentStoreRemoteChangeNotificationPostOptionKey: true,
        ]
        let pair = try Pair(options: options)
        let store = try require(pair.first.coordinator.persistentStores.first as? PostgreSQLStore)
        let watcher = try require((store.engine as? PostgreSQLEngine)?.watcher.withLock { $0 })
        // By itself the watcher would look again after an hour.
        watcher.interval.store(3_600_000, ordering: .releasing)
        let told = DispatchSemaphore(value: 0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: pair.first.coordinator,
            queue: nil
        ) { _ in told.signal() }
        defer { NotificationCenter.default.removeObserver(token) }
        let other = pair.secondContext()
        // Before it gets the new interval, the watcher may look once more, which would find one or two of these saves.
        for name in ["Rome", "Oslo", "Bern", "Riga"] {
            try insert(name, other)
            expect(told.wait(timeout: .now() + 300) == .success)
        }
        let context = pair.first.context()
        try expectEqual(context.performAndWait { try cities(context) }, ["Bern", "Oslo", "Riga", "Rome"])
    }

    @Test func `a session that the server ends, or its time limit for the role, has not cancelled`() throws {
        let stack = try Stack(.postgreSQL)
        try insert("Rome", stack.context())
        let place = TestDatabase.url(for: stack.storeURL).absoluteString
        let url = try require(URL(string: place + "&options=-c%20statement_timeout%3D200"))
        let limited = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try limited.addPersistentStore(type: .postgreSQL, configuration: nil, at: url)
        defer { for store in limited.persistentStores { try? limited.remove(store) } }
        let blocker = try Connection.open(ConnectionTarget(TestDatabase.url(for: stack.storeURL)), timeout: 30)
        try blocker.command("BEGIN; LOCK TABLE \(ConnectionTarget(url).quotedSchema).city")
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = limited
        let error = expectThrows(CocoaError.self) { try context.performAndWait { try cities(context) } }
        expectEqual(error?.code, .persistentStoreOperation)
        expectEqual((error?.userInfo[NSUnderlyingErrorKey] as? PostgreSQLError)?.sqlState, "57014")
        let saving = expectThrows(CocoaError.self) { try insert("Oslo", context) }
        expectEqual(saving?.code, .persistentStoreSave)
        try blocker.rollback()
        try context.performAndWait { try context.save() }
        try expectEqual(context.performAndWait { try cities(context) }, ["Oslo", "Rome"])
    }

    @Test func `large values go in several statements, however few rows there are`() throws {
        let stack = try Stack(.postgreSQL)
        let context = stack.context()
        let target = try ConnectionTarget(TestDatabase.url(for: stack.storeURL))
        let other = try TestDatabase.session(stack.storeURL)
        try other.command("CREATE TABLE statements (at bigint)")
        try other.command(
            """
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO \(target.quotedSchema).statements VALUES (1); RETURN NULL; END $$;
            CREATE TRIGGER noted AFTER INSERT ON city FOR EACH STATEMENT EXECUTE FUNCTION note()
            """
        )
        try context.performAndWait {
            for number in 0..<20 {
                let city = NSEntityDescription.insertNewObject(forEntityName: "City", into: context)
                city.setValue(String(repeating: "\(number) ", count: 3 << 20), forKey: "name")
            }
            try context.save()
        }
        // The rows have 160 MB. A statement takes 64 MB, and also the rest of its last row.
        try expectEqual(other.query("SELECT count(*) FROM statements").firstInt64, 3)
    }

    @Test func `many threads that count up lose no count`() async throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: [NSPersistentHistoryTrackingKey: true])
        let context = stack.context()
        try insert("0", context)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let context = stack.context()
                    for _ in 0..<10 {
                        var isSaved = false
                        while !isSaved {
                            isSaved = try await context.perform {
                                context.reset()
                                let request = NSFetchRequest<NSManagedObject>(entityName: "City")
                                let city = try require(try context.fetch(request).first)
                                context.refresh(city, mergeChanges: false)
                                let count = Int(city.value(forKey: "name") as? String ?? "") ?? 0
                                city.setValue("\(count + 1)", forKey: "name")
                                do { try context.save() } catch let error as CocoaError
                                    where error.code == .managedObjectMerge
                                {
                                    return false
                                }
                                return true
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let counted = try context.performAndWait {
            context.reset()
            return try cities(context)
        }
        expectEqual(counted, ["40"])
        try expectEqual(Server.column(stack, "SELECT count(*) FROM strata_transaction"), [41])
    }

    @Test func `a store with another model is refused by its hashes`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        let other = NSPersistentStoreCoordinator(managedObjectModel: EveryKindModel.make())
        let error = expectThrows(CocoaError.self) {
            try other.addPersistentStore(type: .postgreSQL, configuration: nil, at: stack.storeURL, options: nil)
        }
        expectEqual(error?.code, .persistentStoreIncompatibleVersionHash)
    }

    @Test func `texts are kept as they are, whatever encoding the URL asks for`() throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        let place = TestDatabase.url(for: stack.storeURL).absoluteString
        let other = try ServerStack(require(URL(string: place + "&client_encoding=LATIN1")))
        try other.insert("naïve 😀")
        try insert("Zoë 😀", stack.context())
        let names = ["Zoë 😀", "naïve 😀"]
        try expectEqual(other.cities(), names)
        let context = stack.context()
        try expectEqual(context.performAndWait { try cities(context) }, names)
    }

    /// Adds a store, which makes it if it does not exist, and removes it from its coordinator.
    private static func identifierOfStore(at url: URL) throws -> String {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let store = try coordinator.addPersistentStore(type: .postgreSQL, configuration: nil, at: url, options: nil)
        defer { try? coordinator.remove(store) }
        return try require(store.identifier)
    }

    @Test(arguments: 1...4, ["", "&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"])
    func `many coordinators that add a new store at once make it once`(_ round: Int, _ options: String) async throws {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        let file = stack.folder.appendingPathComponent("raced \(round)\(options.count)")
        let url = try require(URL(string: TestDatabase.url(for: file).absoluteString + options))
        let identifiers = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<6 { group.addTask { try Self.identifierOfStore(at: url) } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        expectEqual(identifiers.count, 1)
        TestDatabase.drop(file)
    }

    @Test func `a wait for the turn to make a store sees what was made meanwhile, whatever the isolation`()
        throws
    {
        let stack = try Stack(.postgreSQL, model: GuideModel.make(), options: nil)
        let file = stack.folder.appendingPathComponent("made in turn")
        let options = "&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"
        let url = try require(URL(string: TestDatabase.url(for: file).absoluteString + options))
        let target = try ConnectionTarget(url)
        let (holder, asking) = (try Connection.open(target, timeout: 60), try Connection.open(target, timeout: 60))
        try holder.command("BEGIN")
        try OpenPostgreSQLStore.lockShape(of: target, holder)
        let results = Locked<[Result<String, any Error>]>([])
        let group = DispatchGroup()
        for _ in 0..<2 {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                let result = Result { try Self.identifierOfStore(at: url) }
                results.withLock { $0.append(result) }
            }
        }
        let end = ContinuousClock.now + .seconds(300)
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1::bigint = ANY(pg_blocking_pids(pid))"
        while .now < end, try asking.query(waiting, [.int8(Int64(holder.serverProcess))]).firstInt64 ?? 0 < 2 {
            usleep(1_000)
        }
        try holder.command("ROLLBACK")
        try require(group.wait(timeout: .now() + 300) == .success)
        let identifiers = try results.withLock { try $0.map { try $0.get() } }
        expectEqual(identifiers.count, 2)
        expectEqual(Set(identifiers).count, 1)
        TestDatabase.drop(file)
    }

    @Test func `a text that PostgreSQL cannot keep is refused by name`() throws {
        let stack = try Stack(.postgreSQL)
        let context = stack.context()
        let error = expectThrows(CocoaError.self) { try insert("a\u{0}b", context) }
        expectEqual(error?.code, .persistentStoreSave)
        expectEqual(error?.localizedDescription.contains("\"name\" of City"), true)
    }
}

extension NSFetchRequest where ResultType == NSManagedObjectID {
    /// The IDs of an entity's objects.
    fileprivate static func ids(_ entity: String) -> NSFetchRequest {
        let request = NSFetchRequest(entityName: entity)
        request.resultType = .managedObjectIDResultType
        return request
    }
}
