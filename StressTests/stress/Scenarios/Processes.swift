import CoreData

/// Several processes move money on one file; some are killed and started again.
///
/// Nothing that was acknowledged is lost, and the history tells each transfer once, in order, to one who follows it, forgets what
/// it has read and is started again itself.
enum Processes: Scenario {
    static let name = "processes"
    static let summary = "several processes move money on one file, some get killed: nothing acknowledged is lost"
    static let stores = [StoreKind.sqlite]
    static let work = (figure: "transfers", floor: 50)
    static let processes = Knob("processes", 3, "processes at a time")
    static let knobs = [processes]
    static let sabotages = [Sabotage("overwrite", "holds"), Sabotage("old-token", "after number")]

    static let accounts = 12

    static func run(_ run: Run) throws {
        let stack = try run.open([NSPersistentHistoryTrackingKey: true])
        try Bank.open(stack, accounts)
        var follower = try HistoryFollower(run)
        var stream = run.stream(0)
        var life = 0
        var ledgers: [String] = []
        func start() throws -> Child {
            life += 1
            let ledger = run.folder.appendingPathComponent("ledger-\(life)").path
            ledgers.append(ledger)
            let seconds = max(0, Double((run.end - .now).components.seconds))
            return try Child([
                "child", "processes", run.storeURL.path, ledger, "\(stream.next() >> 1)", "\(seconds)",
                run.isSabotaged("overwrite") ? "overwrite" : "error",
            ])
        }
        var children = try (0..<max(run.knob(processes), 2)).map { _ in try start() }
        let context = stack.context()
        while !run.isOver {
            run.watchdog.beat(0, "looking at a file that others write")
            // This process reads meanwhile, through a row cache that nobody tells of the others.
            let total = try Bank.total(context)
            run.count("reads")
            if total != Bank.opening * Int64(accounts) { run.find("the total is \(total) while others write") }
            try follower.follow()
            if stream.chance(0.1) { try follower.restart() }
            if stream.chance(0.1) { try follower.purge() }
            usleep(50_000)
            guard stream.chance(0.05), run.end - .now > .seconds(1) else { continue }
            let victim = stream.below(children.count)
            children[victim].kill()
            _ = children[victim].wait()
            children[victim] = try start()
            run.count("killed")
        }
        for child in children {
            run.watchdog.beat(0, "waiting for processes to end")
            let status = child.wait()
            if status != 0 { run.find("a process ended with \(status)") }
        }
        run.watchdog.leave(0)
        try follower.follow()
        try settle(run, stack, ledgers, &follower)
        try follower.close()
        try run.close(stack)
        try run.audit()
    }

    /// Each balance is what was acknowledged, give or take the one transfer of each killed process that is in doubt.
    private static func settle(
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ ledgers: [String],
        _ follower: inout HistoryFollower
    ) throws {
        var moved = Array(repeating: Int64(0), count: accounts)
        var doubts: [(from: Int, to: Int, amount: Int64)] = []
        let logs = ledgers.map { (path: $0, log: Ledger(reading: $0)) }
        for (_, log) in logs {
            run.count("transfers", log.acknowledged.count)
            for number in log.acknowledged {
                let transfer = ProcessesChild.transfer(number)
                moved[transfer.from] -= transfer.amount
                moved[transfer.to] += transfer.amount
            }
            // Only the last one can be in doubt: those before it ended in a conflict.
            if let last = log.lastBegun, !log.acknowledged.contains(last) {
                doubts.append(ProcessesChild.transfer(last))
            }
        }
        run.count("in-doubt", doubts.count)
        run.count("followed", follower.transfers.count)
        for (path, log) in logs {
            let name = URL(fileURLWithPath: path).lastPathComponent
            for number in log.acknowledged where !follower.transfers.contains(number) {
                run.find("the history does not tell of transfer \(number), acknowledged in \(name)")
            }
        }
        let begun = logs.reduce(into: Set<Int64>()) { $0.formUnion($1.log.begun) }
        for number in follower.transfers where !begun.contains(number) {
            run.find("the history tells of transfer \(number), which nobody has made")
        }
        let context = stack.context()
        context.stalenessInterval = 0
        var shown = Array(repeating: Int64(0), count: accounts)
        try context.performAndWait {
            for account in try context.fetch(NSFetchRequest<Account>(entityName: "Account")) {
                shown[Int(account.number)] = account.balance - Bank.opening
            }
        }
        if follower.moved != shown { run.find("the history comes to \(follower.moved), the accounts to \(shown)") }
        // Some choice among those in doubt explains what is there.
        for choice in 0..<(1 << min(doubts.count, 16)) {
            var wanted = moved
            for (index, doubt) in doubts.prefix(16).enumerated() where choice & (1 << index) != 0 {
                wanted[doubt.from] -= doubt.amount
                wanted[doubt.to] += doubt.amount
            }
            if wanted == shown { return }
        }
        for (number, value) in shown.enumerated() where value != moved[number] {
            run.find("account \(number) holds \(value) more than at first, acknowledged were \(moved[number])")
        }
    }
}

/// One of the processes that move money.
enum ProcessesChild {
    /// A number says which transfer it is.
    static func transfer(_ number: Int64) -> (from: Int, to: Int, amount: Int64) {
        let count = Int64(Processes.accounts)
        let from = number % count
        return (Int(from), Int((from + 1 + number / count % (count - 1)) % count), 1 + number / 1_000 % 9)
    }

    /// Moves money until the time is over.
    ///
    /// - Parameter arguments: The store, the ledger, the seed, the seconds, and the policy.
    /// - Throws: Whatever is no conflict.
    static func run(_ arguments: [String]) throws {
        guard arguments.count == 5, let seed = UInt64(arguments[2]), let seconds = Double(arguments[3]) else {
            throw StressError("child processes needs a store, a ledger, a seed, seconds and a policy")
        }
        let end = ContinuousClock.now + .seconds(seconds)
        var stream = SeededStream(seed: seed, stream: 0)
        let ledger = try Ledger.Writer(arguments[1])
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: URL(fileURLWithPath: arguments[0]),
            options: [NSPersistentHistoryTrackingKey: true]
        )
        let context = coordinator.context(arguments[4] == "overwrite" ? .overwrite : .error)
        let ids = try Bank.accountIDs(context)
        while ContinuousClock.now < end {
            let number = Int64(stream.next() >> 16)
            let (from, to, amount) = transfer(number)
            ledger.note("i", number)
            // The history keeps it with what the save changes.
            context.performAndWait { context.transactionAuthor = "\(number)" }
            do {
                try Bank.move(amount, ids[from], ids[to], context)
                ledger.note("a", number)
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                context.performAndWait { context.reset() }
            }
        }
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }
}
