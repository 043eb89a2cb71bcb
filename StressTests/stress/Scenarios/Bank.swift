import CoreData
import StrataLocks

/// Contexts move money between accounts.
///
/// Nothing may be lost, and every reader must see the total.
enum Bank: Scenario {
    static let name = "bank"
    static let summary = "moves money between accounts: each balance is the sum of acknowledged transfers"
    static let runsOnPostgreSQL = true
    static let work = (figure: "transfers", floor: 100)
    static let accounts = Knob("accounts", 20, "fewer accounts mean more conflicts")
    static let coordinators = Knob(
        "coordinators",
        0,
        "coordinators on one SQLite file, shared by the contexts; 0 for one or two"
    )
    static let knobs = [accounts, coordinators, Machine.others]
    static let databaseWork: (figure: String, floor: Int)? = (figure: "elsewhere", floor: 1)
    static let sabotages =
        [Sabotage("overwrite", "in all, not"), Sabotage("unpinned", "one by one")]
        + Sabotage.ofGuard("no-version-check", "in all, not")
        + Sabotage.ofGuard("no-version-check", "in all, not", store: .postgresql)
        + Sabotage.ofGuard("no-lock-order", "because of deadlocks", store: .postgresql)
        + Sabotage.ofGuard("no-publication-order", "the row cache has", store: .postgresql)
        + serverSabotages
    /// The guards for saves that the server loses, or whose outcome it does not report.
    private static let serverSabotages =
        Sabotage.ofGuard("no-version-marks", "that the server has lost", store: .postgresql)
        + Sabotage.ofGuard("no-doubt-asking", "what a save in doubt", store: .postgresql)

    static let opening: Int64 = 1_000

    static func run(_ run: Run) throws {
        let size = max(run.knob(accounts), 2)
        let deadlocks = run.kind == .postgresql ? try DatabasePlace.deadlocks() : 0
        let stacks = try run.openSeveral(coordinators)
        try open(stacks[0], size)
        let machines = try Machine.start(run)
        var moved = work(run, stacks, size)
        for machine in machines { add(try JSONDecoder().decode([Int64].self, from: machine.join()), to: &moved) }
        if run.kind == .postgresql {
            if FaultPoints.areBuiltIn {
                try OvertakenSave.run(run, stacks[0])
                try DoubtfulSave.run(run, stacks[0])
            }
            try LostSave.run(run)
        }
        try settle(run, stacks[0], moved)
        for stack in stacks { try run.close(stack) }
        // All transactions lock accounts in the same order, so no two of them wait for each other.
        let ended = run.kind == .postgresql ? try DatabasePlace.deadlocks() - deadlocks : 0
        if ended > 0 { run.find("the server has ended \(ended) transactions because of deadlocks") }
        try run.audit()
    }

    static func takePart(in run: Run) throws -> Data {
        let stacks = try run.openSeveral(coordinators)
        let moved = work(run, stacks, max(run.knob(accounts), 2))
        for stack in stacks { try run.close(stack) }
        return try JSONEncoder().encode(moved)
    }

    /// Lets contexts of this process move money and read the balances until the time is over.
    ///
    /// - Returns: The acknowledged sum of each account.
    private static func work(_ run: Run, _ stacks: [NSPersistentStoreCoordinator], _ size: Int) -> [Int64] {
        let moved = Locked(Array(repeating: Int64(0), count: size))
        let writers = run.options.contexts
        run.race(writers + max(1, writers / 2)) { worker in
            let stack = stacks[worker.number % stacks.count]
            if worker.number < writers {
                let page = try transfer(worker, stack, size)
                moved.withLock { add(page, to: &$0) }
            } else {
                try audit(worker, stack, size)
            }
        }
        return moved.withLock { $0 }
    }

    private static func add(_ page: [Int64], to sums: inout [Int64]) {
        for (index, sum) in page.enumerated() { sums[index] += sum }
    }

    /// Opens the accounts.
    static func open(_ stack: NSPersistentStoreCoordinator, _ size: Int) throws {
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<size {
                let account = Account(context: context)
                account.number = Int64(number)
                account.balance = opening
            }
            try context.save()
        }
    }

    /// The IDs of the accounts, by number.
    static func accountIDs(_ context: NSManagedObjectContext) throws -> [NSManagedObjectID] {
        try context.performAndWait {
            let request = NSFetchRequest<NSManagedObjectID>(entityName: "Account")
            request.resultType = .managedObjectIDResultType
            request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
            return try context.fetch(request)
        }
    }

    // MARK: - Workers

    /// Moves money until the end.
    ///
    /// A conflict is counted, and its transfer is given up.
    ///
    /// - Parameters:
    ///   - worker: The worker.
    ///   - stack: The coordinator.
    ///   - size: The number of accounts.
    /// - Returns: The acknowledged sum of each account.
    /// - Throws: Errors other than conflicts.
    private static func transfer(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ size: Int) throws -> [Int64]
    {
        let context = stack.context(worker.run.isSabotaged("overwrite") ? .overwrite : .error)
        let ids = try accountIDs(context)
        var page = Array(repeating: Int64(0), count: size)
        while !worker.isOver {
            let from = worker.stream.below(size)
            let to = (from + 1 + worker.stream.below(size - 1)) % size
            let amount = Int64(1 + worker.stream.below(10))
            worker.beat("a transfer")
            do {
                try worker.time("save") { try move(amount, ids[from], ids[to], context) }
                page[from] -= amount
                page[to] += amount
                worker.tally.count("transfers")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("conflicts")
                context.performAndWait { context.reset() }
            }
        }
        return page
    }

    /// Moves an amount from one account to the other, and saves.
    static func move(
        _ amount: Int64,
        _ from: NSManagedObjectID,
        _ to: NSManagedObjectID,
        _ context: NSManagedObjectContext
    ) throws {
        try context.performAndWait {
            guard let payer = try context.existingObject(with: from) as? Account,
                let payee = try context.existingObject(with: to) as? Account
            else { throw StressError("an account is of another class") }
            payer.balance -= amount
            payee.balance += amount
            try context.save()
        }
    }

    /// Sums all accounts in one fetch, again and again.
    ///
    /// Each sum must be of one state of the store.
    ///
    /// A context that can be pinned also reads the accounts one by one. All of them must be of the pinned state.
    private static func audit(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ size: Int) throws {
        let context = stack.context()
        let pinned = try worker.pinned(stack.context(), worker.number - worker.run.options.contexts)
        let ids = try accountIDs(context)
        let wanted = opening * Int64(size)
        while !worker.isOver {
            if let pinned, worker.run.options.pinned || worker.stream.chance(0.5) {
                worker.beat("the accounts one by one")
                let (sum, fetched) = try worker.time("pinned") { (try sumOneByOne(ids, pinned), try total(pinned)) }
                worker.tally.count("pinned-reads")
                if fetched != sum { worker.tally.find("a pinned context saw \(sum) one by one, then \(fetched)") }
                if sum != wanted { worker.tally.find("reader \(worker.number) saw \(sum) one by one, not \(wanted)") }
                continue
            }
            worker.beat("the sum of all accounts")
            let sum = try worker.time("fetch") { try total(context) }
            worker.tally.count("reads")
            if sum != wanted { worker.tally.find("reader \(worker.number) saw \(sum) in all, not \(wanted)") }
        }
    }

    /// The sum of all accounts, computed by one fetch.
    static func total(_ context: NSManagedObjectContext) throws -> Int64 {
        let sum = NSExpressionDescription()
        sum.name = "total"
        sum.expression = NSExpression(forFunction: "sum:", arguments: [NSExpression(forKeyPath: "balance")])
        sum.resultType = .integer64
        let request = NSFetchRequest<NSDictionary>(entityName: "Account")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = [sum]
        return try context.performAndWait {
            guard let total = try context.fetch(request).first?["total"] as? Int64 else {
                throw StressError("the sum of the accounts is no number")
            }
            return total
        }
    }

    /// The sum of all accounts, read one by one in a pinned context.
    private static func sumOneByOne(_ ids: [NSManagedObjectID], _ context: NSManagedObjectContext) throws -> Int64 {
        context.performAndWait { context.reset() }
        var sum: Int64 = 0
        // Each read has its own block, and others save between the blocks.
        for id in ids {
            sum += try context.performAndWait {
                guard let account = try context.existingObject(with: id) as? Account else {
                    throw StressError("an account is of another class")
                }
                return account.balance
            }
        }
        return sum
    }

    /// Compares the store with the acknowledged transfers.
    static func settle(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ moved: [Int64]) throws {
        let context = stack.context()
        let request = NSFetchRequest<Account>(entityName: "Account")
        try context.performAndWait {
            let accounts = try context.fetch(request)
            if accounts.count != moved.count { run.find("there are \(accounts.count) accounts, not \(moved.count)") }
            for account in accounts where moved.indices.contains(Int(account.number)) {
                let wanted = opening + moved[Int(account.number)]
                guard account.balance != wanted else { continue }
                run.find("account \(account.number) holds \(account.balance), acknowledged were \(wanted)")
            }
        }
    }
}
