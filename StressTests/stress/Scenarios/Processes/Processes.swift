import CoreData

/// Several processes move money on one file.
///
/// Some are killed and started again.
///
/// Now and then other processes race to migrate an old store, which must happen once. No acknowledged transfer may be
/// lost. The history must contain each transfer once, in order. A follower checks that, which purges what it has
/// read, and is started again itself.
enum Processes: Scenario {
    static let name = "processes"
    static let summary = "several processes move money on one file, some get killed: nothing acknowledged is lost"
    static let stores = [StoreKind.sqlite]
    static let runsOnPostgreSQL = true
    static let work = (figure: "transfers", floor: 50)
    static let processes = Knob("processes", 3, "processes at a time")
    static let knobs = [processes]
    static let sabotages =
        [
            Sabotage("overwrite", "the total is"), Sabotage("old-token", "after number"),
            Sabotage("unmerged", "the follower holds"), Sabotage("missed", "the sleeper holds"),
        ] + Sabotage.ofGuard("no-migration-check", "a process that opens an old store ended with")
        + Sabotage.ofGuard("no-loss-check", "an older program was let into")
        + Sabotage.ofGuard("no-numbering-lock", "cannot be numbered", store: .postgresql)

    static let accounts = 12

    static func run(_ run: Run) throws {
        let stack = try run.open([NSPersistentHistoryTrackingKey: true])
        try Bank.open(stack, accounts)
        var follower = try HistoryFollower(run)
        var sleeper = try HistorySleeper(run)
        var stream = run.stream(0)
        let alwaysMigrates = run.isSabotaged("no-migration-check") || run.isSabotaged("no-loss-check")
        var life = 0
        var races = 0
        var ledgers: [String] = []
        func start() throws -> Child {
            life += 1
            let ledger = run.folder.appendingPathComponent("ledger-\(life)").path
            ledgers.append(ledger)
            let seconds = max(0, Double((run.end - .now).components.seconds))
            return try Child([
                "child", "processes", run.storeURL.path, ledger, "\(stream.next() >> 1)", "\(seconds)",
                run.isSabotaged("overwrite") ? "overwrite" : "error", run.kind.rawValue,
            ])
        }
        var children = try (0..<max(run.knob(processes), 2)).map { _ in try start() }
        let context = stack.context()
        while !run.isOver {
            run.watchdog.beat(0, "looking at a file that others write")
            // Meanwhile this process reads, through a row cache that is not notified of the other processes.
            let total = try Bank.total(context)
            run.count("reads")
            if total != Bank.opening * Int64(accounts) { run.find("the total is \(total) while others write") }
            try follower.follow()
            // A follower that starts again reads everything anew, which would hide a missing merge.
            if stream.chance(0.1), !run.isSabotaged("unmerged") { try follower.restart() }
            if stream.chance(0.1) { try follower.purge() }
            if stream.chance(0.1) { try sleeper.wake(follower.purged) }
            if run.kind == .sqlite, stream.chance(alwaysMigrates ? 1 : 0.04) {
                races += 1
                try MigrationRace.run(run, races, &stream)
            }
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
        if run.kind == .postgresql, FaultPoints.areBuiltIn {
            run.watchdog.beat(0, "numbering at once")
            // Each of the three coordinators has a session that watches the history and gives numbers.
            try NumberingRace.run(run, stack, others: 3)
        }
        run.watchdog.beat(0, "reading the history to its end")
        try follower.follow()
        try sleeper.wake(follower.purged)
        run.watchdog.leave(0)
        try settle(run, stack, ledgers, follower, sleeper)
        try sleeper.close()
        try follower.close()
        try run.close(stack)
        try run.audit()
    }

    /// Checks that each balance is the sum of the acknowledged transfers.
    ///
    /// The last transfer of a killed process may be in doubt; it counts if the history contains it.
    private static func settle(
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ ledgers: [String],
        _ follower: HistoryFollower,
        _ sleeper: HistorySleeper
    ) throws {
        var wanted = Array(repeating: Int64(0), count: accounts)
        /// The transfers that may have happened.
        var possible: Set<Int64> = []
        for path in ledgers {
            let (name, log) = (URL(fileURLWithPath: path).lastPathComponent, Ledger(reading: path))
            run.count("transfers", log.acknowledged.count)
            possible.formUnion(log.acknowledged)
            for number in log.acknowledged {
                add(number, to: &wanted)
                if follower.transfers.contains(number) { continue }
                run.find("the history does not tell of transfer \(number), acknowledged in \(name)")
            }
            // Only the last transfer can be in doubt: earlier ones without an acknowledgement ended in a conflict.
            guard let last = log.lastBegun, !log.acknowledged.contains(last) else { continue }
            run.count("in-doubt")
            possible.insert(last)
            if follower.transfers.contains(last) { add(last, to: &wanted) }
        }
        run.count("followed", follower.transfers.count)
        for number in follower.transfers.subtracting(possible) {
            run.find("the history tells of transfer \(number), which nobody has made, or which was refused")
        }
        let shown = try balances(stack)
        for number in 0..<Int64(accounts) {
            let (value, place) = (shown[number] ?? 0, Int(number))
            if value != wanted[place] + Bank.opening {
                run.find("account \(number) holds \(value), \(wanted[place] + Bank.opening) were acknowledged or told")
            }
            if value != follower.moved[place] + Bank.opening {
                run.find(
                    "account \(number) holds \(value), the history comes to \(follower.moved[place] + Bank.opening)"
                )
            }
        }
        for (name, held) in [("follower", follower.balances()), ("sleeper", sleeper.balances())] where held != shown {
            let first = (0..<Int64(accounts)).first { held[$0] != shown[$0] } ?? -1
            run.find("the \(name) holds \(held[first] ?? 0) of account \(first), the file \(shown[first] ?? 0)")
        }
    }

    private static func add(_ number: Int64, to sums: inout [Int64]) {
        let transfer = ProcessesChild.transfer(number)
        sums[transfer.from] -= transfer.amount
        sums[transfer.to] += transfer.amount
    }

    /// The balances in the file.
    private static func balances(_ stack: NSPersistentStoreCoordinator) throws -> [Int64: Int64] {
        let context = stack.context()
        context.stalenessInterval = 0
        return try context.performAndWait {
            let accounts = try context.fetch(NSFetchRequest<Account>(entityName: "Account"))
            return Dictionary(uniqueKeysWithValues: accounts.map { ($0.number, $0.balance) })
        }
    }
}

/// One of the processes that move money.
enum ProcessesChild {
    /// The transfer that a number stands for.
    static func transfer(_ number: Int64) -> (from: Int, to: Int, amount: Int64) {
        let count = Int64(Processes.accounts)
        let from = number % count
        return (Int(from), Int((from + 1 + number / count % (count - 1)) % count), 1 + number / 1_000 % 9)
    }

    /// Moves money until the time is over.
    ///
    /// A conflict is no error.
    ///
    /// - Parameter arguments: The store, the ledger, the seed, the seconds, the policy, and the kind of the store.
    /// - Throws: Errors other than conflicts.
    static func run(_ arguments: [String]) throws {
        guard arguments.count == 6, let kind = StoreKind(rawValue: arguments[5]), let seed = UInt64(arguments[2]),
            let seconds = Double(arguments[3])
        else {
            throw StressError(
                "child processes needs a store, a ledger, a seed, seconds, a policy and the kind of the store"
            )
        }
        let end = ContinuousClock.now + .seconds(seconds)
        var stream = SeededStream(seed: seed, stream: 0)
        let ledger = try Ledger.Writer(arguments[1])
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try coordinator.addPersistentStore(
            type: kind.type,
            configuration: nil,
            at: kind.place(URL(fileURLWithPath: arguments[0])),
            options: [NSPersistentHistoryTrackingKey: true]
        )
        let context = coordinator.context(arguments[4] == "overwrite" ? .overwrite : .error)
        let ids = try Bank.accountIDs(context)
        while ContinuousClock.now < end {
            let number = Int64(stream.next() >> 16)
            let (from, to, amount) = transfer(number)
            ledger.note("i", number)
            // The history keeps the author together with the changes of the save.
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
