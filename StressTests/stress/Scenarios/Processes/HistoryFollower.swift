import CoreData

/// Follows the history of a file that other processes write, and adds up the transfers in it.
///
/// Each transaction must come exactly once, in the order of the numbers and without a gap, whatever happens to the
/// follower.
struct HistoryFollower {
    /// The sum of the transfers read so far, by account.
    private(set) var moved = Array(repeating: Int64(0), count: Processes.accounts)
    /// The transfers read so far; they are the authors of their transactions.
    private(set) var transfers: Set<Int64> = []
    private let run: Run
    private var stack: NSPersistentStoreCoordinator
    private var context: NSManagedObjectContext
    private var token: NSPersistentHistoryToken?
    /// The number of the last transaction that was read.
    private var last: Int64 = 0
    /// All accounts; they are held while others change them.
    private var accounts: [Account] = []
    /// The number of the last transaction that the follower has purged.
    private(set) var purged: Int64 = 0
    /// The token to which a sabotage goes back.
    private var oldToken: NSPersistentHistoryToken?

    /// Opens the run's store.
    init(_ run: Run) throws {
        self.run = run
        stack = try run.open([NSPersistentHistoryTrackingKey: true])
        context = stack.context()
        try hold()
    }

    /// Realises all accounts.
    ///
    /// Changes from the history are merged into them.
    private mutating func hold() throws {
        accounts = try context.performAndWait {
            let accounts = try context.fetch(NSFetchRequest<Account>(entityName: "Account"))
            for account in accounts { _ = account.balance }
            return accounts
        }
    }

    /// The balances of the held accounts.
    func balances() -> [Int64: Int64] {
        context.performAndWait { Dictionary(uniqueKeysWithValues: accounts.map { ($0.number, $0.balance) }) }
    }

    /// Reads the transactions since the last time.
    mutating func follow() throws {
        let told = try context.performAndWait {
            let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
            let transactions = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
            return transactions.map { transaction in
                if !run.isSabotaged("unmerged") {
                    context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
                }
                return Told(
                    number: transaction.transactionNumber,
                    token: transaction.token,
                    transfer: transaction.author.flatMap { Int64($0) },
                    accounts: Set((transaction.changes ?? []).map(\.changedObjectID)).count
                )
            }
        }
        for one in told { take(one) }
        run.count("transactions", told.count)
    }

    /// The parts of a transaction that matter here.
    private struct Told {
        let number: Int64
        let token: NSPersistentHistoryToken
        let transfer: Int64?
        let accounts: Int
    }

    private mutating func take(_ one: Told) {
        if one.number != last + 1 { run.find("the history tells of number \(one.number) after number \(last)") }
        last = one.number
        oldToken = token
        token = one.token
        guard let transfer = one.transfer else { return }
        if !transfers.insert(transfer).inserted { run.find("the history tells of transfer \(transfer) again") }
        if one.accounts != 2 { run.find("transfer \(transfer) has changed \(one.accounts) accounts in the history") }
        let (from, to, amount) = ProcessesChild.transfer(transfer)
        moved[from] -= amount
        moved[to] += amount
    }

    /// Closes the store, and begins again with nothing but the token, as another process would.
    mutating func restart() throws {
        if run.isSabotaged("old-token") { token = oldToken }
        if let held = token {
            token = try JSONDecoder().decode(NSPersistentHistoryToken.self, from: JSONEncoder().encode(held))
        }
        try close()
        stack = try run.open([NSPersistentHistoryTrackingKey: true])
        context = stack.context()
        try hold()
        run.count("follower-restarts")
    }

    /// Purges the transactions that were read.
    mutating func purge() throws {
        guard let token, !run.isSabotaged("old-token") else { return }
        let request = NSPersistentHistoryChangeRequest.deleteHistory(before: token)
        try context.performAndWait { _ = try context.execute(request) }
        purged = last - 1
        run.count("purges")
    }

    func close() throws { try run.close(stack) }
}
