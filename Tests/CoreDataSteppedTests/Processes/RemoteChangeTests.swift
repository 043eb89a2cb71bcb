import CoreData
import Expectations
import Foundation
import StrataLocks
import Synchronization
import TestSupport
import Testing

@testable import CoreDataContainer
@testable import CoreDataEssentials
@testable import CoreDataMigration
@testable import CoreDataModelFiles
@testable import CoreDataOperations
@testable import StrataArchives
@testable import StrataSQLite

/// Counts the remote changes that a coordinator posts.
private final class RemoteChangeRecorder: @unchecked Sendable {
    // @unchecked Sendable: `token` is set in the initialiser and read in the deinitialiser.
    private let posted = Locked<[UncheckedBox<Notification>]>([])
    private let threads = Locked<Set<UInt>>([])
    private let arrival = DispatchSemaphore(value: 0)
    private var token: (any NSObjectProtocol)?

    init(_ coordinator: NSPersistentStoreCoordinator) {
        token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: coordinator,
            queue: nil
        ) { [weak self] notification in
            let box = UncheckedBox(notification)
            self?.posted.withLock { $0.append(box) }
            self?.threads.withLock { _ = $0.insert(UInt(pthread_self())) }
            self?.arrival.signal()
        }
    }

    deinit {
        if let token { NotificationCenter.default.removeObserver(token) }
    }

    /// Whether one was posted on the current thread.
    var wasCalledHere: Bool { threads.withLock { $0.contains(UInt(pthread_self())) } }

    var count: Int { posted.withLock { $0.count } }

    /// Waits for the next notification.
    func next() throws -> Notification {
        guard arrival.wait(timeout: .now() + 30) == .success else { throw POSIXError(.ETIMEDOUT) }
        return try require(posted.withLock { $0.last?.value })
    }

    /// Waits until `condition` holds when a notification arrives.
    func wait(until condition: () throws -> Bool) throws {
        while try !condition() { _ = try next() }
    }
}

@Suite("Remote changes")
struct RemoteChangeTests {
    /// A server reports changes through the history.
    private static var option: [AnyHashable: Any] {
        StoreKind.isPostgreSQL ? Stack.following : [NSPersistentStoreRemoteChangeNotificationPostOptionKey: true]
    }

    private func stack() throws -> Stack { try Stack(.database, model: GuideModel.make(), options: Self.option) }

    private static func insertCity(_ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            context.makeCity("Bonn")
            try context.save()
        }
    }

    private static func cityCount(_ coordinator: NSPersistentStoreCoordinator) throws -> Int {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        return try context.performAndWait { try context.count(for: NSFetchRequest<City>(entityName: "City")) }
    }

    @Test func `what a handler of a notification writes is reported by another one`() throws {
        let options = Self.option.merging([NSPersistentHistoryTrackingKey: true]) { $1 }
        for _ in 0..<20 {
            let stack = try Stack(.database, model: GuideModel.make(), options: options)
            let coordinator = stack.coordinator
            let hasWritten = Locked(false)
            let tokens = Locked<[UncheckedBox<NSPersistentHistoryToken?>]>([])
            let arrival = DispatchSemaphore(value: 0)
            let observer = NotificationCenter.default.addObserver(
                forName: .NSPersistentStoreRemoteChange,
                object: coordinator,
                queue: nil
            ) { notification in
                let token = notification.userInfo?[NSPersistentHistoryTokenKey] as? NSPersistentHistoryToken
                let isFirst = hasWritten.withLock { has in
                    defer { has = true }
                    return !has
                }
                if isFirst {
                    do { try Self.insertCity(stack.context()) } catch {
                        Issue.record("the handler cannot save: \(error)")
                    }
                    // The store learns of the write while this notification is still being posted.
                    usleep(20_000)
                }
                tokens.withLock { $0.append(UncheckedBox(token)) }
                arrival.signal()
            }
            defer { NotificationCenter.default.removeObserver(observer) }
            try Self.insertCity(stack.context())
            try require(arrival.wait(timeout: .now() + 30) == .success)
            let last = try require(coordinator.currentPersistentHistoryToken(fromStores: nil))
            while tokens.withLock({ $0.last?.value }) != last {
                try require(arrival.wait(timeout: .now() + 30) == .success, "the last write is not reported")
            }
            try expectEqual(Self.cityCount(coordinator), 2)
        }
    }

    @Test func `a save is posted with the store's UUID and URL, off the thread that saves (CS-196, 197)`() throws {
        let stack = try stack()
        let recorder = RemoteChangeRecorder(stack.coordinator)

        try Self.insertCity(stack.context())

        let posted = try recorder.next()
        let store = try require(stack.coordinator.persistentStores.first)
        expect(posted.object as? NSPersistentStoreCoordinator === stack.coordinator)
        expectEqual(posted.userInfo?[NSStoreUUIDKey] as? String, store.identifier)
        expectEqual(posted.userInfo?[NSPersistentStoreURLKey] as? URL, store.url)
        // `performAndWait` has saved on this thread.
        expect(!recorder.wasCalledHere)
    }

    @Test func `a write of another process is posted when it can be read (CS-196, 197)`() async throws {
        let folder = try SharedFolder()
        let store = folder.store
        let coordinator = try store.coordinator(options: Self.option)
        let recorder = RemoteChangeRecorder(coordinator)

        await #expect(processExitsWith: .success) { [store = store as SharedStore] in
            let context = try store.context()
            try await context.perform {
                context.makeCity("Ulm")
                try context.save()
            }
        }

        try recorder.wait { try Self.cityCount(coordinator) == 1 }
    }

    @Test func `a write of another coordinator of this process is posted`() throws {
        let stack = try stack()
        let recorder = RemoteChangeRecorder(stack.coordinator)
        let other = NSManagedObjectContext(.privateQueue)
        other.persistentStoreCoordinator = try stack.secondCoordinator()

        try Self.insertCity(other)

        try recorder.wait { try Self.cityCount(stack.coordinator) == 1 }
    }

    @Test func `a save is not posted again while nothing else is written`() throws {
        let stack = try stack()
        let recorder = RemoteChangeRecorder(stack.coordinator)
        try Self.insertCity(stack.context())
        _ = try recorder.next()
        // All quick looks after a write happen within half a second. Then there is one look in each second.
        Thread.sleep(forTimeInterval: 0.6)
        let count = recorder.count
        Thread.sleep(forTimeInterval: 1.5)
        expectEqual(recorder.count, count)

        try Self.insertCity(stack.context())
        try recorder.wait { recorder.count > count }
    }

    @Test func `nothing is posted without the option`() throws {
        let stack = try Stack(.database)
        let follower = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try follower.addPersistentStore(type: stack.kind.type, at: stack.storeURL, options: Self.option)
        let silent = RemoteChangeRecorder(stack.coordinator)
        let recorder = RemoteChangeRecorder(follower)

        try Self.insertCity(stack.context())

        _ = try recorder.next()
        expectEqual(silent.count, 0)
    }

    @Test func `a database in memory reports its own commits`() throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        let null = URL(fileURLWithPath: "/dev/null")
        try coordinator.addPersistentStore(type: .sqlite, at: null, options: Self.option)
        let recorder = RemoteChangeRecorder(coordinator)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator

        try Self.insertCity(context)

        try expectEqual(recorder.next().userInfo?[NSPersistentStoreURLKey] as? URL, null)
    }

    @Test func `an observer that takes long holds up no writer, and is notified once of what came meanwhile`() throws {
        let stack = try stack()
        let context = stack.context()
        let isInside = DispatchSemaphore(value: 0)
        let mayLeave = DispatchSemaphore(value: 0)
        let calls = Locked(0)
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: stack.coordinator,
            queue: nil
        ) { _ in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            isInside.signal()
            if isFirst { mayLeave.wait() }
        }
        defer { NotificationCenter.default.removeObserver(token) }

        try Self.insertCity(context)
        try require(isInside.wait(timeout: .now() + 30) == .success)
        for _ in 0..<20 { try Self.insertCity(context) }
        expectEqual(calls.withLock { $0 }, 1)
        mayLeave.signal()

        try require(isInside.wait(timeout: .now() + 30) == .success)
        expect(calls.withLock { $0 } < 20)
    }

    @Test func `a store may be removed inside of its own notification, and is silent then`() throws {
        let stack = try stack()
        let done = DispatchSemaphore(value: 0)
        let calls = Locked(0)
        let coordinator = stack.coordinator
        let token = NotificationCenter.default.addObserver(
            forName: .NSPersistentStoreRemoteChange,
            object: coordinator,
            queue: nil
        ) { _ in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            if isFirst, let store = coordinator.persistentStores.first { try? coordinator.remove(store) }
            done.signal()
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try Self.insertCity(stack.context())
        try require(done.wait(timeout: .now() + 30) == .success)
        expect(coordinator.persistentStores.isEmpty)

        if stack.kind == .sqlite {
            let files = try FileManager.default.contentsOfDirectory(atPath: stack.folder.path)
            expectEqual(files, ["store.sqlite"])
        }
        let follower = NSPersistentStoreCoordinator(managedObjectModel: GuideModel.make())
        try follower.addPersistentStore(type: stack.kind.type, at: stack.storeURL, options: Self.option)
        let recorder = RemoteChangeRecorder(follower)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = follower
        try Self.insertCity(context)
        _ = try recorder.next()
        expectEqual(calls.withLock { $0 }, 1)
    }
}

@Suite("Watching for commits")
struct CommitWatcherTests {
    private let folder: SharedFolder
    private let pool: ConnectionPool

    init() throws {
        folder = try SharedFolder(.sqlite)
        pool = try ConnectionPool(.file(folder.store.url.path))
        try pool.write { try $0.execute("CREATE TABLE number (n)") }
    }

    private final class Calls: Sendable {
        let count = Atomic(0)
        let arrival = DispatchSemaphore(value: 0)

        func note() {
            count.add(1, ordering: .sequentiallyConsistent)
            arrival.signal()
        }

        func comes(within seconds: Double = 30) -> Bool { arrival.wait(timeout: .now() + seconds) == .success }
    }

    @Test(arguments: [true, false])
    func `commits of a foreign connection are noticed, with events of the system and without`(usesEvents: Bool) throws {
        var pace = CommitWatcher.Pace()
        pace.usesEvents = usesEvents
        // With this pause only the events can report the changes.
        if usesEvents { pace.idle = 1000 }
        let calls = Calls()
        let watcher = try CommitWatcher(pool, pace: pace) { calls.note() }
        let foreign = try Connection(path: folder.store.url.path, access: .readWrite)

        for number in 0..<5 {
            try foreign.execute("INSERT INTO number VALUES (\(number))")
            expect(calls.comes())
        }
        watcher.stop()
        try foreign.execute("INSERT INTO number VALUES (9)")
        expect(!calls.comes(within: 0.1))
    }

    @Test(arguments: [true, false], [true, false])
    func `a commit is reported once, however often the watcher looks afterwards`(
        _ usesEvents: Bool,
        _ isForeign: Bool
    ) throws {
        var pace = CommitWatcher.Pace()
        pace.usesEvents = usesEvents
        pace.polling = 0.01
        pace.idle = 0.01
        let calls = Calls()
        let watcher = try CommitWatcher(pool, pace: pace) { calls.note() }
        let foreign = try Connection(path: folder.store.url.path, access: .readWrite)
        for number in 1...3 {
            if isForeign {
                try foreign.execute("INSERT INTO number VALUES (\(number))")
            } else {
                try pool.write { try $0.run(SQL("INSERT INTO number VALUES (\(number))")) }
            }
            expect(calls.comes())
            expect(!calls.comes(within: 0.1))
            expectEqual(calls.count.load(ordering: .sequentiallyConsistent), number)
        }
        watcher.stop()
    }

    @Test func `commits to a database in memory are reported once`() throws {
        let pool = try ConnectionPool(.memory)
        let calls = Calls()
        let watcher = try CommitWatcher(pool) { calls.note() }
        for number in ["n", "m"] {
            try pool.write { try $0.execute("CREATE TABLE \(number) (x)") }
            expect(calls.comes())
            expect(!calls.comes(within: 0.1))
        }
        watcher.stop()
        try pool.write { try $0.execute("CREATE TABLE last (x)") }
        expect(!calls.comes(within: 0.1))
    }

    @Test func `what is not committed is not reported, though the log is written`() throws {
        let calls = Calls()
        let watcher = try CommitWatcher(pool) { calls.note() }
        let foreign = try Connection(path: folder.store.url.path, access: .readWrite)
        let before = folder.store.size("-wal")
        try foreign.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE")
        for _ in 0..<50 { try foreign.run("INSERT INTO number VALUES (zeroblob(4000))") }
        expect(folder.store.size("-wal") > before)
        try foreign.execute("ROLLBACK")
        expect(!calls.comes(within: 0.3))

        try foreign.execute("INSERT INTO number VALUES (1)")
        expect(calls.comes())
        watcher.stop()
    }

    @Test func `many commits in a row are reported a few times, including the last`() throws {
        var pace = CommitWatcher.Pace()
        pace.coalescing = 0.05
        let calls = Calls()
        let seen = Locked<Int64>(0)
        let pool = pool
        let watcher = try CommitWatcher(pool, pace: pace) {
            let count = try? pool.read { try $0.firstInt64("SELECT count(*) FROM number") }
            seen.withLock { $0 = count ?? -1 }
            calls.note()
        }
        for number in 0..<300 { try pool.write { try $0.run(SQL("INSERT INTO number VALUES (\(number))")) } }
        while seen.withLock({ $0 }) < 300 { try require(calls.comes()) }

        expect(calls.count.load(ordering: .sequentiallyConsistent) < 150)
        watcher.stop()
    }

    @Test func `after a report the watcher looks again when the next report may be made, and not before`() throws {
        var pace = CommitWatcher.Pace()
        pace.coalescing = 1
        pace.idle = 1000
        let calls = Calls()
        let watcher = try CommitWatcher(pool, pace: pace) { calls.note() }
        let foreign = try Connection(path: folder.store.url.path, access: .readWrite)
        // Quick checks that follow an event are planned when the report is made.
        pool.noteCommit()
        try foreign.execute("INSERT INTO number VALUES (1)")
        expect(calls.comes())
        let start = ContinuousClock.now
        let looks = watcher.lookCount.load(ordering: .sequentiallyConsistent)
        try foreign.execute("INSERT INTO number VALUES (2)")
        usleep(300_000)
        let later = watcher.lookCount.load(ordering: .sequentiallyConsistent)
        if ContinuousClock.now - start < .seconds(0.9) { expectEqual(later, looks) }
        expect(calls.comes())
        expectEqual(calls.count.load(ordering: .sequentiallyConsistent), 2)
        watcher.stop()
    }

    @Test func `closing the pool after the watcher leaves no log`() throws {
        let watcher = try CommitWatcher(pool) {}
        try pool.write { try $0.run("INSERT INTO number VALUES (1)") }
        watcher.stop()
        try pool.close()
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: folder.store.folder), ["store.sqlite"])
    }
}
