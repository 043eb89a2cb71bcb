import CoreData

/// Follows the history too seldom: what it has not read yet gets purged, and it has to find out and start again.
///
/// What it holds in the end is what the file has, or it has missed something.
struct HistorySleeper {
    private let run: Run
    private let stack: NSPersistentStoreCoordinator
    private let context: NSManagedObjectContext
    private var accounts: [Account] = []
    private var token: NSPersistentHistoryToken

    /// Opens the run's store, and reads all of it.
    init(_ run: Run) throws {
        self.run = run
        stack = try run.open([NSPersistentHistoryTrackingKey: true])
        context = stack.context()
        token = NSPersistentHistoryToken(transactionNumbers: [:])
        try startOver()
    }

    /// Takes the place first and then reads: what is saved between the two is told again, never missed.
    private mutating func startOver() throws {
        guard let now = stack.currentPersistentHistoryToken(fromStores: nil) else {
            throw StressError("a store with a history has no token")
        }
        token = now
        accounts = try context.performAndWait {
            context.reset()
            let accounts = try context.fetch(NSFetchRequest<Account>(entityName: "Account"))
            for account in accounts { _ = account.balance }
            return accounts
        }
    }

    /// Reads what has come, or starts again if part of it has been purged.
    ///
    /// - Parameter purged: The number of the last transaction that somebody has purged.
    /// - Throws: What reading the history throws, but for an expired token that should be.
    mutating func wake(_ purged: Int64) throws {
        let read = token.transactionNumbers.values.max() ?? 0
        // A token is good as long as all transactions after the one that it names are there.
        let isExpired = purged > read
        do {
            let told = try context.performAndWait {
                let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
                let told = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
                for transaction in told { context.mergeChanges(fromContextDidSave: transaction.objectIDNotification()) }
                return told.map { (number: $0.transactionNumber, token: $0.token) }
            }
            if isExpired { run.find("a sleeper at number \(read) is not told that \(purged) is purged") }
            if let first = told.first, first.number != read + 1 {
                run.find("a sleeper at number \(read) is told of number \(first.number) next")
            }
            token = told.last?.token ?? token
            run.count("sleeps")
        } catch let error as CocoaError where error.code.rawValue == NSPersistentHistoryTokenExpiredError {
            if !isExpired { run.find("a sleeper at number \(read) has expired, though only \(purged) is purged") }
            let oldest = error.userInfo[NSPersistentHistoryOldestTransactionNumberKey] as? Int64
            if oldest != purged + 1 {
                run.find("the oldest transaction is said to be \(oldest ?? -1), though \(purged) is purged")
            }
            run.count("expired")
            if run.isSabotaged("missed") {
                token = stack.currentPersistentHistoryToken(fromStores: nil) ?? token
            } else {
                try startOver()
            }
        }
    }

    /// The balances that it holds, by account.
    func balances() -> [Int64: Int64] {
        context.performAndWait { Dictionary(uniqueKeysWithValues: accounts.map { ($0.number, $0.balance) }) }
    }

    /// Closes its store.
    func close() throws { try run.close(stack) }
}
