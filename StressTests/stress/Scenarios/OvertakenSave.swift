import CoreData
import StrataLocks

/// The row cache is notified of two saves of one row in the wrong order.
///
/// The one that was committed last must win.
///
/// A save can overtake another only in an engine that commits saves side by side.
enum OvertakenSave {
    static func run(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        run.watchdog.beat(-1, "a save that is overtaken")
        defer { run.watchdog.leave(-1) }
        let (slow, quick) = (stack.context(), stack.context())
        quick.stalenessInterval = 0
        let id = try Bank.accountIDs(slow)[0]
        // The save is committed, but the row cache is not notified yet.
        let held = FaultPoints.hold(at: "save.committed")
        defer { FaultPoints.clear() }
        let done = DispatchSemaphore(value: 0)
        let failure = Locked<(any Error)?>(nil)
        Thread.detachNewThread {
            do { try add(1, to: id, slow) } catch { failure.withLock { $0 = error } }
            done.signal()
        }
        guard held.waitForArrival(run.options.stall) else { throw StressError("a save does not come to its commit") }
        // With this amount the sum of all accounts stays the same.
        try add(-1, to: id, quick)
        held.release()
        guard done.wait(timeout: .now() + run.options.stall) == .success else {
            throw StressError("a save that was overtaken does not end")
        }
        if let error = failure.withLock({ $0 }) { throw error }
        let cached = try balance(id, stack.context())
        let stored = try quick.performAndWait {
            quick.reset()
            return try balance(id, quick)
        }
        if cached != stored {
            run.find(
                "the row cache has \(cached) for an account, and the store \(stored): it heard of an earlier save last"
            )
        }
        run.count("overtaken")
    }

    private static func add(_ amount: Int64, to id: NSManagedObjectID, _ context: NSManagedObjectContext) throws {
        try context.performAndWait {
            guard let account = try context.existingObject(with: id) as? Account else {
                throw StressError("an account is of another class")
            }
            context.refresh(account, mergeChanges: false)
            account.balance += amount
            try context.save()
        }
    }

    private static func balance(_ id: NSManagedObjectID, _ context: NSManagedObjectContext) throws -> Int64 {
        try context.performAndWait {
            guard let account = try context.existingObject(with: id) as? Account else {
                throw StressError("an account is of another class")
            }
            return account.balance
        }
    }
}
