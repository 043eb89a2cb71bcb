import CoreData

/// Follows the history too seldom: transactions that it has not read yet are purged.
///
/// It must notice that, and start again.
///
/// In the end it must hold what the file has. Otherwise it has missed something.
struct HistorySleeper {
    private let run: Run
    private let stack: NSPersistentStoreCoordinator
    private let context: NSManagedObjectContext
    private var accounts: [Account] = []
    private var token: NSPersistentHistoryToken

    /// Opens the run's store, and reads all accounts.
    init(_ run: Run) throws {
        self.run = run
        stack = try run.open([NSPersistentHistoryTrackingKey: true])
        context = stack.context()
        token = NSPersistentHistoryToken(transactionNumbers: [:])
        try startOver()
    }

    /// Takes the token first and then reads.
    ///
    /// A save between the two is read again later, but never missed.
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

    /// Reads new transactions, or starts again if some of them were purged.
    ///
    /// - Parameter purged: The number of the last transaction that was purged.
    /// - Throws: Errors of reading the history, except for an expired token where one is expected.
    mutating func wake(_ purged: Int64) throws {
        let read = token.transactionNumbers.values.max() ?? 0
        // A token is valid as long as all transactions after its own are there.
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

    /// The balances of the held accounts.
    func balances() -> [Int64: Int64] {
        context.performAndWait { Dictionary(uniqueKeysWithValues: accounts.map { ($0.number, $0.balance) }) }
    }

    /// Closes its store.
    func close() throws { try run.close(stack) }
}
