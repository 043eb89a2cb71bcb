import CoreData
import Dispatch
import Expectations
import TestSupport
import Testing

@testable import CoreDataEngineStores
@testable import StrataSQLiteStore

@Suite("Row locks")
struct RowLockTests {
    /// A store of numbered accounts, and two coordinators that have it open; in memory both are one.
    struct Bank {
        static let model: NSManagedObjectModel = {
            let account = GuideModel.entity("Account", NSManagedObject.self)
            account.properties = [
                GuideModel.attribute("name", .string), GuideModel.attribute("value", .integer64, default: 0),
            ]
            account.uniquenessConstraints = [["name"]]
            let model = NSManagedObjectModel()
            model.entities = [account]
            return model
        }()

        let stack: Stack
        let second: NSPersistentStoreCoordinator

        init(_ kind: StoreKind, accounts: Int = 3, options: [AnyHashable: Any]? = nil) throws {
            stack = try Stack(kind, model: Self.model, options: options)
            second = kind == .memory ? stack.coordinator : try stack.secondCoordinator(model: Self.model)
            let context = stack.context()
            try context.performAndWait {
                for number in 0..<accounts {
                    let account = NSEntityDescription.insertNewObject(forEntityName: "Account", into: context)
                    account.setValue("a\(number)", forKey: "name")
                }
                try context.save()
            }
        }

        /// A context on the second coordinator.
        func other(_ name: String? = nil) -> NSManagedObjectContext {
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = second
            context.name = name
            context.userInfo["stack"] = stack
            return context
        }

        /// The values of all accounts as the store has them.
        func values() throws -> [Int] {
            let context = stack.context()
            return try context.performAndWait {
                try context.fetch(RowLockTests.accounts()).map { $0.value(forKey: "value") as? Int ?? -1 }
            }
        }

        /// Adds to the value of an account, with another context, and without a lock.
        func add(_ sum: Int, to name: String) throws {
            let context = other()
            try context.performAndWait {
                let account = try require(context.fetch(RowLockTests.accounts("name == '\(name)'")).first)
                RowLockTests.add(sum, to: account)
                try context.save()
            }
        }

        /// Runs a block on another thread that locks accounts and keeps the locks until it is released.
        func hold(
            _ lock: RowLock = RowLock(.update),
            _ format: String? = "name == 'a0'",
            for limit: Duration = .seconds(300)
        ) throws -> Holder {
            let holder = Holder()
            let context = other("holder")
            holder.thread = onThread {
                try context.performAndWait(locking: limit) {
                    _ = try context.fetch(RowLockTests.accounts(format, lock))
                    holder.hasLocked.signal()
                    holder.mayEnd.wait()
                }
            }
            try require(holder.hasLocked.wait(timeout: .now() + 30) == .success)
            return holder
        }
    }

    final class Holder: @unchecked Sendable {
        // @unchecked Sendable: the test sets the thread before it does anything else.
        let hasLocked = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        var thread: JoinableThread?

        func end() throws {
            mayEnd.signal()
            try thread?.join()
        }
    }

    static func accounts(_ format: String? = nil, _ lock: RowLock? = nil) -> NSFetchRequest<NSManagedObject> {
        let request = NSFetchRequest<NSManagedObject>(entityName: "Account")
        request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
        if let format { request.predicate = NSPredicate(format: format) }
        request.rowLock = lock
        return request
    }

    static func add(_ sum: Int, to account: NSManagedObject) {
        account.setValue((account.value(forKey: "value") as? Int ?? 0) + sum, forKey: "value")
    }

    private static func name(_ account: NSManagedObject) -> String { account.value(forKey: "name") as? String ?? "nil" }

    // MARK: - What a lock gives

    @Test(arguments: StoreKind.allCases)
    func `writers that add to a locked counter lose no update, and find no conflict`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let threads = (0..<4).map { number in
            let context = number % 2 == 0 ? bank.stack.context() : bank.other()
            return onThread {
                for _ in 0..<10 {
                    try context.performAndWait(locking: .seconds(300)) {
                        let account = try require(
                            context.fetch(Self.accounts("name == 'a1'", RowLock(.update))).first
                        )
                        Self.add(1, to: account)
                        try context.save()
                    }
                }
            }
        }
        for thread in threads { try thread.join() }
        try expectEqual(bank.values(), [0, 40, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch with a lock shows the newest values in objects that were read before`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        let known = try context.performAndWait {
            let account = try require(context.fetch(Self.accounts()).first)
            expectEqual(account.value(forKey: "value") as? Int, 0)
            return UncheckedSendable(account)
        }
        try bank.add(7, to: "a0")
        try context.performAndWait(locking: .seconds(300)) {
            let locked = try context.fetch(Self.accounts(nil, RowLock(.update)))
            expectEqual(locked.map(Self.name), ["a0", "a1", "a2"])
            expect(locked[0] === known.value)
            expectEqual(known.value.value(forKey: "value") as? Int, 7)
            Self.add(1, to: locked[0])
            try context.save()
        }
        try expectEqual(bank.values(), [8, 0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `a save by another context waits for the block, and then finds the conflict`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let (context, other) = (bank.stack.context(), bank.other())
        try other.performAndWait {
            let account = try require(other.fetch(Self.accounts()).first)
            Self.add(100, to: account)
        }
        let hasSaved = Shared(false)
        let thread = try context.performAndWait(locking: .seconds(300)) {
            let account = try require(context.fetch(Self.accounts("name == 'a0'", RowLock(.update))).first)
            let thread = onThread {
                defer { hasSaved.update { $0 = true } }
                let error = other.performAndWait { expectThrows(CocoaError.self) { try other.save() } }
                expectEqual(error?.code, .managedObjectMerge)
            }
            usleep(100_000)
            expect(!hasSaved.current)
            Self.add(1, to: account)
            try context.save()
            return thread
        }
        try thread.join()
        try expectEqual(bank.values(), [1, 0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `an object that was changed before it was locked keeps its change, and the save finds the conflict`(
        _ kind: StoreKind
    ) throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        try context.performAndWait {
            let account = try require(context.fetch(Self.accounts()).first)
            Self.add(1, to: account)
            try bank.add(10, to: "a0")
            try context.performAndWait(locking: .seconds(300)) {
                let locked = try context.fetch(Self.accounts("name == 'a0'", RowLock(.update)))
                expect(locked.first === account)
                expectEqual(account.value(forKey: "value") as? Int, 1)
                var error = expectThrows(CocoaError.self) { try context.save() }
                expectEqual(error?.code, .managedObjectMerge)
                // The locks are still there, and the context can save again.
                context.rollback()
                let fresh = try require(context.fetch(Self.accounts("name == 'a0'", RowLock(.update))).first)
                Self.add(1, to: fresh)
                try context.save()
                error = expectThrows(CocoaError.self) {
                    try context.fetch(Self.accounts(nil, RowLock(.update)))
                }
                expectEqual(error?.code, .persistentStoreOperation)
            }
        }
        try expectEqual(bank.values(), [11, 0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `inserted, changed and deleted objects are saved by the block's transaction`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        try context.performAndWait(locking: .seconds(300)) {
            let locked = try context.fetch(Self.accounts(nil, RowLock(.update)))
            context.delete(locked[1])
            Self.add(5, to: locked[2])
            let new = NSEntityDescription.insertNewObject(forEntityName: "Account", into: context)
            new.setValue("a9", forKey: "name")
            try context.save()
            expect(!new.objectID.isTemporaryID && !context.hasChanges)
            // The block goes on without locks.
            Self.add(1, to: new)
            try context.save()
        }
        try expectEqual(bank.values(), [0, 5, 1])
        try expectEqual(bank.stack.problems(of: Bank.model), [])
    }

    @Test(arguments: StoreKind.databases)
    func `the save of a block is one transaction of the history, and contexts that follow merge it`(
        _ kind: StoreKind
    ) throws {
        let bank = try Bank(kind, options: [NSPersistentHistoryTrackingKey: true])
        let (context, following) = (bank.stack.context("teller"), bank.stack.context())
        following.automaticallyMergesChangesFromParent = true
        let seen = try following.performAndWait {
            let accounts = try following.fetch(Self.accounts())
            expectEqual(accounts.map { $0.value(forKey: "value") as? Int }, [0, 0, 0])
            return UncheckedSendable(accounts)
        }
        try context.performAndWait(locking: .seconds(300)) {
            context.transactionAuthor = "block"
            for account in try context.fetch(Self.accounts("name != 'a1'", RowLock(.update))) {
                Self.add(1, to: account)
            }
            try context.save()
        }
        following.performAndWait {
            expectEqual(seen.value.map { $0.value(forKey: "value") as? Int }, [1, 0, 1])
        }
        let last = try require(bank.stack.transactions().last)
        expectEqual(last.author, "block")
        expectEqual(last.changes?.count, 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `a save that fails keeps the locks, and the block may save again`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        try context.performAndWait(locking: .seconds(300)) {
            let account = try require(context.fetch(Self.accounts("name == 'a0'", RowLock(.update))).first)
            account.setValue("a1", forKey: "name")
            account.setValue(3, forKey: "value")
            var error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectConstraintMerge)
            let other = bank.other()
            let thread = onThread {
                try other.performAndWait(locking: .seconds(300)) {
                    let error = expectThrows(CocoaError.self) {
                        try other.fetch(Self.accounts("name == 'a0'", RowLock(.update, lockedRows: .fail)))
                    }
                    expectEqual(error?.code, .managedObjectContextLocking)
                }
            }
            try thread.join()
            account.setValue("a7", forKey: "name")
            try context.save()
            error = nil
        }
        try expectEqual(bank.values(), [0, 0, 3])
    }

    // MARK: - Rows that others have locked

    @Test(arguments: StoreKind.allCases)
    func `a fetch that skips locked rows returns the others`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let holder = try bank.hold()
        let context = bank.stack.context()
        let skipping = RowLock(.update, lockedRows: .skip)
        try context.performAndWait(locking: .seconds(300)) {
            let found = try context.fetch(Self.accounts(nil, skipping)).map(Self.name)
            // A block locks the whole store, unless single rows can be locked.
            expectEqual(found, kind == .postgreSQL ? ["a1", "a2"] : [])
        }
        try holder.end()
        try context.performAndWait(locking: .seconds(300)) {
            try expectEqual(context.fetch(Self.accounts(nil, skipping)).count, 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch that fails names the rows that others have locked, and the block goes on`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let holder = try bank.hold()
        let context = bank.stack.context()
        let failing = RowLock(.update, lockedRows: .fail)
        try context.performAndWait(locking: .seconds(300)) {
            let error = try require(
                expectThrows(CocoaError.self) { try context.fetch(Self.accounts("name == 'a0'", failing)) }
            )
            expectEqual(error.code, .managedObjectContextLocking)
            expect(error.localizedDescription.contains("Account/p"), "\(error.localizedDescription)")
            let ids = error.userInfo[NSRowLockObjectIDsErrorKey] as? [NSManagedObjectID]
            try expectEqual(ids, [require(context.fetch(Self.accounts()).first).objectID])
            if kind == .postgreSQL {
                try expectEqual(context.fetch(Self.accounts("name != 'a0'", failing)).count, 2)
            }
            try holder.end()
            try expectEqual(context.fetch(Self.accounts(nil, failing)).count, 3)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a fetch waits for locked rows, and not longer than the block has time`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let holder = try bank.hold()
        let context = bank.stack.context()
        let start = ContinuousClock.now
        let error = try require(
            expectThrows(CocoaError.self) {
                try context.performAndWait(locking: .seconds(1)) {
                    _ = try context.fetch(Self.accounts(nil, RowLock(.update)))
                }
            }
        )
        expectEqual(error.code, .persistentStoreTimeout)
        expect(error.localizedDescription.contains("Account"), "\(error.localizedDescription)")
        expect(.now - start < .seconds(15))
        let hasLocked = Shared(false)
        let thread = onThread {
            try context.performAndWait(locking: .seconds(300)) {
                try expectEqual(context.fetch(Self.accounts(nil, RowLock(.update))).count, 3)
                hasLocked.update { $0 = true }
            }
        }
        usleep(100_000)
        expect(!hasLocked.current)
        try holder.end()
        try thread.join()
    }

    @Test(arguments: StoreKind.allCases)
    func `a task that is cancelled does not wait for locked rows`(_ kind: StoreKind) async throws {
        let bank = try Bank(kind)
        let holder = try bank.hold()
        let context = bank.stack.context()
        let task = Task {
            try await context.perform(locking: .seconds(300)) {
                try context.fetch(Self.accounts(nil, RowLock(.update))).count
            }
        }
        try await Task.sleep(for: .milliseconds(200))
        task.cancel()
        await expectThrows(CancellationError.self) { try await task.value }
        try holder.end()
        let count = try await context.perform(locking: .seconds(300)) {
            try context.fetch(Self.accounts(nil, RowLock(.update))).count
        }
        expectEqual(count, 3)
    }

    // MARK: - Ends without a save

    @Test(arguments: StoreKind.allCases)
    func `a block that ends without a save releases its locks, and the changes stay unsaved`(_ kind: StoreKind) throws {
        struct Stop: Error {}
        let bank = try Bank(kind)
        let context = bank.stack.context()
        for throwsError in [true, false] {
            let thrown = context.performAndWait { () -> Bool in
                do {
                    try context.performAndWait(locking: .seconds(300)) {
                        let account = try require(context.fetch(Self.accounts(nil, RowLock(.update))).first)
                        Self.add(1, to: account)
                        if throwsError { throw Stop() }
                    }
                    return false
                } catch { return error is Stop }
            }
            expectEqual(thrown, throwsError)
            context.performAndWait { expect(context.hasChanges) }
            try bank.add(10, to: "a1")
        }
        try context.performAndWait { try context.save() }
        try expectEqual(bank.values(), [2, 20, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `a block that has saved without locks does not report the end of its time`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        let end = ContinuousClock.now + .milliseconds(300)
        try context.performAndWait {
            let account = try require(context.fetch(Self.accounts("name == 'a0'")).first)
            // If the block reported a roll-back, then its caller would add again.
            try context.performAndWait(locking: .milliseconds(250)) {
                Self.add(1, to: account)
                try context.save()
                while ContinuousClock.now < end { sched_yield() }
            }
            expect(!context.hasChanges)
        }
        try expectEqual(bank.values(), [1, 0, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `a thread whose block has lost its locks can save at once`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        var saved = 0
        for round in 0..<60 {
            // The block ends at the moment of its deadline, or a little before or after it.
            let end = ContinuousClock.now + .microseconds(2000 + 10 * (round % 30))
            try? context.performAndWait(locking: .milliseconds(2)) {
                _ = try context.fetch(Self.accounts("name == 'a0'", RowLock(.update)))
                while ContinuousClock.now < end { sched_yield() }
            }
            try bank.add(1, to: "a0")
            saved += 1
        }
        try expectEqual(bank.values(), [saved, 0, 0])
    }

    @Test func `a thread whose block has ended waits until its locks are gone`() throws {
        let bank = try Bank(.sqlite)
        let context = bank.stack.context()
        let pool = try require(bank.stack.coordinator.persistentStores.first as? SQLiteStore).openFile().pool
        let begun = DispatchSemaphore(value: 0)
        let saved = DispatchSemaphore(value: 0)
        pool.setTrace { event in
            guard event.sql == "ROLLBACK" else { return }
            begun.signal()
            // A save that does not wait for the end of the roll-back would be over by then.
            _ = saved.wait(timeout: .now() + 0.2)
        }
        try? context.performAndWait(locking: .milliseconds(2)) {
            _ = try context.fetch(Self.accounts("name == 'a0'", RowLock(.update)))
            begun.wait()
        }
        // The same coordinator, whose turn to write the block has had.
        let other = bank.stack.context()
        defer {
            saved.signal()
            pool.setTrace(nil)
        }
        try other.performAndWait {
            let account = try require(other.fetch(Self.accounts("name == 'a1'")).first)
            Self.add(1, to: account)
            try other.save()
        }
        try expectEqual(bank.values(), [0, 1, 0])
    }

    @Test(arguments: StoreKind.allCases)
    func `a block that takes too long loses its locks at once, and its next fetch and save throw`(_ kind: StoreKind)
        throws
    {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        let error = try require(
            expectThrows(CocoaError.self) {
                try context.performAndWait(locking: .seconds(1)) {
                    let account = try require(context.fetch(Self.accounts("name == 'a0'", RowLock(.update))).first)
                    Self.add(1, to: account)
                    // Another thread saves while the block still runs.
                    try onThread { try bank.add(10, to: "a0") }.join()
                    let calls: [() throws -> Void] = [
                        { try context.save() },
                        { _ = try context.fetch(Self.accounts()) },
                        { _ = try context.count(for: Self.accounts()) },
                        { _ = try context.fetch(Self.accounts(nil, RowLock(.update))) },
                    ]
                    for call in calls {
                        let error = try require(expectThrows(CocoaError.self) { try call() })
                        expectEqual(error.code, .persistentStoreTimeout)
                        expect(
                            error.localizedDescription.contains("1 row of Account (Account/p"),
                            "\(error.localizedDescription)"
                        )
                        let ids = error.userInfo[NSRowLockObjectIDsErrorKey] as? [NSManagedObjectID]
                        expectEqual(ids, [account.objectID])
                    }
                }
            }
        )
        expectEqual(error.code, .persistentStoreTimeout)
        // The change is kept, and the save finds out that it is based on an older row.
        context.performAndWait {
            expect(context.hasChanges)
            let error = expectThrows(CocoaError.self) { try context.save() }
            expectEqual(error?.code, .managedObjectMerge)
        }
        try expectEqual(bank.values(), [10, 0, 0])
    }

    /// All blocks of a process share one timer.
    @Test(arguments: StoreKind.allCases)
    func `blocks end at their own times, whichever of them began or ended first`(_ kind: StoreKind) throws {
        let (long, short) = (try Bank(kind), try Bank(kind))
        let outer = long.stack.context()
        /// A block of the other bank, which loses its lock before it ends.
        func loseLock(_ limit: Duration) throws {
            let inner = short.stack.context()
            let error = expectThrows(CocoaError.self) {
                try inner.performAndWait(locking: limit) {
                    _ = try inner.fetch(Self.accounts("name == 'a0'", RowLock(.update)))
                    // This waits for the lock.
                    try onThread { try short.add(1, to: "a0") }.join()
                }
            }
            expectEqual(error?.code, .persistentStoreTimeout)
        }
        try outer.performAndWait(locking: .seconds(200)) {
            let account = try require(outer.fetch(Self.accounts("name == 'a0'", RowLock(.update))).first)
            // The time of a later block is over before that of the first one, twice.
            try loseLock(.milliseconds(200))
            try loseLock(.milliseconds(200))
            // A block that has ended leaves the times of others as they are.
            let inner = short.stack.context()
            try inner.performAndWait(locking: .milliseconds(300)) {
                let other = try require(inner.fetch(Self.accounts("name == 'a1'", RowLock(.update))).first)
                Self.add(5, to: other)
                try inner.save()
            }
            try loseLock(.milliseconds(600))
            Self.add(7, to: account)
            try outer.save()
        }
        try expectEqual(long.values(), [7, 0, 0])
        try expectEqual(short.values(), [3, 5, 0])
    }

    // MARK: - Refused

    @Test(arguments: StoreKind.allCases)
    func `a lock is refused outside of a block, and for anything but objects`(_ kind: StoreKind) async throws {
        let bank = try Bank(kind)
        let context = bank.stack.context()
        let locking = Self.accounts(nil, RowLock(.update))
        try context.performAndWait {
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = context
            func expectRefused(_ words: String, _ call: () throws -> Void) {
                let error = expectThrows(CocoaError.self) { try call() }
                expectEqual(error?.code, .persistentStoreOperation)
                expectEqual(error?.localizedDescription.contains(words), true, "\(error?.localizedDescription ?? "")")
            }
            expectRefused("rowLock") { _ = try context.fetch(locking) }
            expectRefused("parent") { try child.performAndWait(locking: .seconds(1)) {} }
            expectRefused("more than zero") { try context.performAndWait(locking: .zero) {} }
            try context.performAndWait(locking: .seconds(300)) {
                expectRefused("already runs") { try context.performAndWait(locking: .seconds(1)) {} }
                let ids = NSFetchRequest<NSManagedObjectID>(entityName: "Account")
                ids.resultType = .managedObjectIDResultType
                ids.rowLock = RowLock(.share)
                expectRefused("rowLock") { _ = try context.fetch(ids) }
                let rows = NSFetchRequest<NSDictionary>(entityName: "Account")
                rows.resultType = .dictionaryResultType
                rows.rowLock = RowLock(.share)
                expectRefused("rowLock") { _ = try context.fetch(rows) }
                expectRefused("rowLock") { _ = try context.count(for: locking) }
                expectRefused("rowLock") { try child.performAndWait { _ = try child.fetch(locking) } }
                try expectEqual(context.fetch(locking).count, 3)
                expectRefused("batch") {
                    _ = try context.execute(NSBatchDeleteRequest(fetchRequest: NSFetchRequest(entityName: "Account")))
                }
                let new = NSEntityDescription.insertNewObject(forEntityName: "Account", into: context)
                expectRefused("obtainPermanentIDs") { try context.obtainPermanentIDs(for: [new]) }
                context.delete(new)
            }
            guard kind != .memory else { return }
            try context.setQueryGenerationFrom(.current)
            try context.performAndWait(locking: .seconds(300)) {
                expectRefused("pinned") { _ = try context.fetch(locking) }
            }
        }
        let error = await expectThrows(CocoaError.self) { try await context.fetch(locking, progress: nil) { $0.count } }
        expectEqual(error?.code, .persistentStoreOperation)
    }

    @Test func `custom stores and databases in memory refuse locks`() throws {
        let folder = try ScratchFolder()
        for (type, url, code) in [
            (
                NSPersistentStore.StoreType.binary, folder.file("a.binary"),
                CocoaError.Code.persistentStoreUnsupportedRequestType
            ),
            (.sqlite, URL(fileURLWithPath: "/dev/null"), .persistentStoreOperation),
        ] {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: Bank.model)
            try coordinator.addPersistentStore(type: type, at: url)
            let context = NSManagedObjectContext(.privateQueue)
            context.persistentStoreCoordinator = coordinator
            try context.performAndWait(locking: .seconds(5)) {
                let error = expectThrows(CocoaError.self) { try context.fetch(Self.accounts(nil, RowLock(.update))) }
                expectEqual(error?.code, code)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a write that another context makes inside the block does not wait for ever`(_ kind: StoreKind) throws {
        let bank = try Bank(kind)
        let (context, other) = (bank.stack.context(), bank.stack.context())
        func change(_ account: NSManagedObject) throws {
            other.performAndWait {
                do {
                    Self.add(10, to: try require(other.fetch(Self.accounts("name == 'a0'")).first))
                    try other.save()
                } catch {
                    // The turn to write would never come, and the thread has it already.
                    expect(kind != .postgreSQL)
                    other.rollback()
                }
            }
            Self.add(1, to: account)
            try context.save()
        }
        let start = ContinuousClock.now
        try context.performAndWait {
            do {
                try context.performAndWait(locking: .milliseconds(500)) {
                    try change(require(context.fetch(Self.accounts("name == 'a0'", RowLock(.update))).first))
                }
            } catch let error as CocoaError {
                // A server does not know that both are one program, so the save waits until the time of the block is over.
                expectEqual(error.code, .persistentStoreTimeout)
                expect(kind == .postgreSQL)
            }
        }
        expect(.now - start < .seconds(15))
        try expectEqual(bank.values(), [kind == .postgreSQL ? 10 : 1, 0, 0])
    }
}
