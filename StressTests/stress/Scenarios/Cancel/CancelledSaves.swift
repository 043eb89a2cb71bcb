import CoreData

/// Saves in tasks that are cancelled.
///
/// Each must be done wholly or not at all, and the context must agree.
///
/// Each worker has two accounts. No other worker changes them, and both always get the same balance.
struct CancelledSaves {
    private let worker: Worker
    private let stack: NSPersistentStoreCoordinator
    private let context: NSManagedObjectContext
    /// A context into which some saves are merged.
    private let other: NSManagedObjectContext
    private let pair: [NSManagedObjectID]

    init(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ pair: [NSManagedObjectID]) {
        (self.worker, self.stack, self.pair) = (worker, stack, pair)
        (context, other) = (stack.context(), stack.context())
    }

    /// Stores the accounts.
    ///
    /// Each worker gets two of them.
    ///
    /// - Parameters:
    ///   - stack: The coordinator.
    ///   - count: The number of workers.
    /// - Returns: The IDs of each worker's two accounts.
    /// - Throws: Errors of the save.
    static func forge(_ stack: NSPersistentStoreCoordinator, _ count: Int) throws -> [[NSManagedObjectID]] {
        let context = stack.context()
        return try context.performAndWait {
            let accounts = (0..<count * 2).map { number in
                let account = Account(context: context)
                account.number = Int64(number)
                return account
            }
            try context.save()
            return (0..<count).map { [accounts[$0 * 2].objectID, accounts[$0 * 2 + 1].objectID] }
        }
    }

    /// Changes both accounts in a task, saves, and then reads the stored balances.
    ///
    /// - Returns: How the task has ended.
    /// - Throws: Errors of reading the accounts.
    func run() throws -> Completions {
        let before = try stored()
        let (context, other, pair) = (context, other, pair)
        let form = worker.stream.below(3)
        let isHalf = worker.run.isSabotaged("half-save")
        let change: @Sendable () throws -> Void = {
            for id in isHalf ? Array(pair.prefix(1)) : pair {
                guard let account = try context.existingObject(with: id) as? Account else {
                    throw StressError("an account is of another class")
                }
                account.balance += 1
            }
        }
        let (box, isCancelled) = AwaitedWork.run(worker, "an awaited save", cancels: worker.stream.chance(0.7)) {
            switch form {
            case 0:
                try await context.perform {
                    try change()
                    try context.save()
                }
            case 1:
                try await context.perform { try change() }
                // A user's own code would check here.
                try Task.checkCancellation()
                try await context.perform { try context.save() }
            default:
                try await context.perform { try change() }
                try await context.save(mergingInto: [other])
            }
            return 1
        }
        worker.tally.count("awaited-saves")
        let after = try stored()
        if after[0] != after[1] { worker.tally.find("an awaited save is stored by half: \(after)") }
        let isSaved = after[0] == before[0] + 1
        if !isSaved, after[0] != before[0] { worker.tally.find("an awaited save made \(after) of \(before)") }
        if box.count == 1, !isSaved { worker.tally.find("an awaited save has ended and is not stored") }
        if box.count == nil, !isCancelled, box.error == nil { worker.tally.find("a save says that it was cancelled") }
        if !isSaved { worker.tally.count("saves-not-done") }
        check(context, after, isSaved, "the context of an awaited save")
        if form == 2, box.count == 1 { check(other, after, true, "a context that an awaited save was merged into") }
        return box
    }

    /// Checks that a context shows the stored balances, or unsaved changes of both accounts, which a rollback
    /// removes.
    private func check(_ context: NSManagedObjectContext, _ stored: [Int64], _ isSaved: Bool, _ who: String) {
        context.performAndWait {
            let shown = balances(context)
            if context.hasChanges {
                if isSaved { worker.tally.find("\(who) still has changes") }
                if shown != stored.map({ $0 + 1 }) { worker.tally.find("\(who) shows \(shown) unsaved upon \(stored)") }
                context.rollback()
            }
            let left = balances(context)
            if left != stored { worker.tally.find("\(who) shows \(left), stored is \(stored)") }
        }
    }

    private func balances(_ context: NSManagedObjectContext) -> [Int64] {
        pair.map { ((try? context.existingObject(with: $0)) as? Account)?.balance ?? -1 }
    }

    /// The balances in the store, read past all contexts and row caches.
    private func stored() throws -> [Int64] {
        let fresh = stack.context()
        let request = NSFetchRequest<NSDictionary>(entityName: "Account")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["balance"]
        request.predicate = NSPredicate(format: "SELF IN %@", pair)
        request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
        let rows = try fresh.performAndWait { try fresh.fetch(request) }
        guard rows.count == 2 else { throw StressError("\(rows.count) of two accounts are stored") }
        return rows.compactMap { $0["balance"] as? Int64 }
    }
}
