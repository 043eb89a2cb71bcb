import CoreData
import Synchronization

/// Contexts move money between accounts; nothing may be lost, and every reader must see the total.
struct Bank {
    private static let opening: Int64 = 1_000

    let options: StressOptions
    let kind: StressOptions.StoreKind

    /// What the workers have seen, put together when each of them ends.
    private struct Ledger {
        /// What acknowledged transfers have moved, by account.
        var moved: [Int64]
        var transfers = 0
        var conflicts = 0
        var abandoned = 0
        var reads = 0
        var latencies: [Double] = []
        var findings: [String] = []

        mutating func add(_ other: Ledger) {
            for index in moved.indices { moved[index] += other.moved[index] }
            transfers += other.transfers
            conflicts += other.conflicts
            abandoned += other.abandoned
            reads += other.reads
            latencies += other.latencies
            findings += other.findings
        }
    }

    /// Runs for the time that the options say.
    ///
    /// - Returns: What was done and found.
    /// - Throws: What keeps the bank from being opened.
    func run() throws -> Report {
        let folder = URL(fileURLWithPath: options.folder).appendingPathComponent("strata-bank-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: BankModel.make())
        try coordinator.addPersistentStore(
            type: kind == .sqlite ? .sqlite : .inMemory,
            at: folder.appendingPathComponent("bank.sqlite")
        )
        let accounts = try open(coordinator)

        let watchdog = Watchdog(limit: options.stall)
        watchdog.start()
        defer { watchdog.stop() }
        let start = ContinuousClock.now
        let end = start + .seconds(options.seconds)
        let books = Mutex(Ledger(moved: Array(repeating: 0, count: accounts.count)))
        let group = DispatchGroup()
        let readers = max(1, options.contexts / 2)
        for worker in 0..<(options.contexts + readers) {
            let context = makeContext(coordinator)
            // Threads of their own: what is tested is the framework under contention, not a pool's width.
            group.enter()
            Thread.detachNewThread {
                watchdog.beat(worker)
                let page =
                    worker < options.contexts
                    ? transfer(context, accounts, worker, until: end, watchdog)
                    : audit(context, accounts, worker, until: end, watchdog)
                books.withLock { $0.add(page) }
                watchdog.leave(worker)
                group.leave()
            }
        }
        group.wait()
        var ledger = books.withLock { $0 }
        ledger.findings += try settle(ledger, makeContext(coordinator), accounts)
        for store in coordinator.persistentStores { try coordinator.remove(store) }
        let took = ContinuousClock.now - start
        return Report(
            scenario: "bank",
            seed: options.seed,
            store: kind.rawValue,
            contexts: options.contexts,
            seconds: Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18,
            figures: [
                ("transfers", ledger.transfers), ("conflicts", ledger.conflicts), ("abandoned", ledger.abandoned),
                ("reads", ledger.reads),
            ],
            latencies: ledger.latencies,
            findings: ledger.findings,
            isBelowFloor: ledger.transfers < options.floor
        )
    }

    private func makeContext(_ coordinator: NSPersistentStoreCoordinator) -> NSManagedObjectContext {
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.mergePolicy = options.policy == .error ? NSMergePolicy.error : NSMergePolicy.overwrite
        return context
    }

    /// Opens the accounts.
    ///
    /// - Returns: Their IDs, by number.
    private func open(_ coordinator: NSPersistentStoreCoordinator) throws -> [NSManagedObjectID] {
        let context = makeContext(coordinator)
        return try context.performAndWait {
            let accounts = (0..<options.accounts).map { number in
                let account = Account(context: context)
                account.number = Int64(number)
                account.balance = Self.opening
                return account
            }
            try context.save()
            return accounts.map(\.objectID)
        }
    }

    // MARK: - Workers

    /// Moves money until the end.
    private func transfer(
        _ context: NSManagedObjectContext,
        _ accounts: [NSManagedObjectID],
        _ worker: Int,
        until end: ContinuousClock.Instant,
        _ watchdog: Watchdog
    ) -> Ledger {
        var stream = SeededStream(seed: options.seed, stream: UInt64(worker))
        var page = Ledger(moved: Array(repeating: 0, count: accounts.count))
        while ContinuousClock.now < end {
            let from = Int.random(in: accounts.indices, using: &stream)
            let to = (from + Int.random(in: 1..<accounts.count, using: &stream)) % accounts.count
            let amount = Int64.random(in: 1...10, using: &stream)
            var tries = 0
            while true {
                watchdog.beat(worker)
                let start = ContinuousClock.now
                do {
                    try context.performAndWait {
                        guard let payer = try context.existingObject(with: accounts[from]) as? Account,
                            let payee = try context.existingObject(with: accounts[to]) as? Account
                        else { throw StressError("account \(from) or \(to) is of another class") }
                        payer.balance -= amount
                        payee.balance += amount
                        try context.save()
                    }
                    let took = ContinuousClock.now - start
                    page.latencies.append(Double(took.components.attoseconds) / 1e18 + Double(took.components.seconds))
                    page.moved[from] -= amount
                    page.moved[to] += amount
                    page.transfers += 1
                    break
                } catch let error as CocoaError where error.code == .managedObjectMerge {
                    page.conflicts += 1
                    context.performAndWait { context.reset() }
                    tries += 1
                    guard tries <= options.retries, ContinuousClock.now < end else {
                        page.abandoned += 1
                        break
                    }
                } catch {
                    page.findings.append("writer \(worker): \(error.localizedDescription)")
                    return page
                }
            }
        }
        return page
    }

    /// Sums all accounts in one fetch, again and again: each must see one state of the store.
    private func audit(
        _ context: NSManagedObjectContext,
        _ accounts: [NSManagedObjectID],
        _ worker: Int,
        until end: ContinuousClock.Instant,
        _ watchdog: Watchdog
    ) -> Ledger {
        var page = Ledger(moved: Array(repeating: 0, count: accounts.count))
        let wanted = Self.opening * Int64(accounts.count)
        while ContinuousClock.now < end {
            watchdog.beat(worker)
            do {
                let sum = try context.performAndWait { try total(in: context) }
                page.reads += 1
                if sum != wanted { page.findings.append("reader \(worker) saw \(sum) in all, not \(wanted)") }
            } catch {
                page.findings.append("reader \(worker): \(error.localizedDescription)")
                return page
            }
        }
        return page
    }

    private func total(in context: NSManagedObjectContext) throws -> Int64 {
        let sum = NSExpressionDescription()
        sum.name = "total"
        sum.expression = NSExpression(forFunction: "sum:", arguments: [NSExpression(forKeyPath: "balance")])
        sum.resultType = .integer64
        let request = NSFetchRequest<NSDictionary>(entityName: "Account")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = [sum]
        guard let total = try context.fetch(request).first?["total"] as? Int64 else {
            throw StressError("the sum of the accounts is no number")
        }
        return total
    }

    /// Compares the store with what was acknowledged.
    private func settle(
        _ ledger: Ledger,
        _ context: NSManagedObjectContext,
        _ accounts: [NSManagedObjectID]
    ) throws -> [String] {
        try context.performAndWait {
            var findings: [String] = []
            for (number, id) in accounts.enumerated() {
                guard let account = try context.existingObject(with: id) as? Account else { continue }
                let wanted = Self.opening + ledger.moved[number]
                if account.balance != wanted {
                    findings.append("account \(number) holds \(account.balance), acknowledged were \(wanted)")
                }
            }
            return findings
        }
    }
}
