import CoreData
import StrataLocks
import Synchronization

/// Units of work append unique numbers to lists and read lists.
///
/// The reads show which transaction came before which. The history must be one that the promised isolation allows.
enum Append: Scenario {
    static let name = "append"
    static let summary = "appends to lists and reads them; the history must have no forbidden cycle"
    static let runsOnPostgreSQL = true
    static let work = (figure: "transactions", floor: 200)
    static let keys = Knob("keys", 12, "how many lists are in use at a time")
    static let length = Knob("length", 6, "operations of a transaction, at most")
    static let coordinators = Bank.coordinators
    static let knobs = [keys, length, coordinators, Machine.others]
    static let databaseWork = Bank.databaseWork
    static let sabotages =
        [
            Sabotage("overwrite", "lost"), Sabotage("unchecked", "write skew"),
            Sabotage("leak-aborted", "aborted read"), Sabotage("unpinned", "read skew within a version"),
        ] + Sabotage.ofGuard("no-reliance-lock", "write skew among checked", store: .postgresql)

    /// There are so many lists because they go out of use one after the other, so that none grows without end.
    private static let lists = 1_000

    static func run(_ run: Run) throws {
        if let path = run.options.replay {
            return judge(try History(jsonLines: Data(contentsOf: URL(fileURLWithPath: path))), run)
        }
        let stacks = try run.openSeveral(coordinators)
        try forge(stacks[0])
        let machines = try Machine.start(run)
        var history = work(run, stacks)
        for machine in machines { history.transactions += try History(jsonLines: machine.join()).transactions }
        history.final = try finalLists(stacks[0])
        if let path = run.options.history {
            try Data(history.jsonLines.utf8).write(to: URL(fileURLWithPath: path))
        }
        judge(history, run)
        for stack in stacks { try run.close(stack) }
        try run.audit()
    }

    static func takePart(in run: Run) throws -> Data {
        let stacks = try run.openSeveral(coordinators)
        let history = work(run, stacks)
        for stack in stacks { try run.close(stack) }
        return Data(history.jsonLines.utf8)
    }

    /// Lets contexts of this process append and read until the time is over.
    private static func work(_ run: Run, _ stacks: [NSPersistentStoreCoordinator]) -> History {
        let window = Atomic(0)
        let whole = Locked(History())
        run.race(run.options.contexts) { worker in
            let stack = stacks[worker.number % stacks.count]
            let history = try work(worker, stack, registerIDs(stack), window)
            whole.withLock { $0.transactions += history.transactions }
        }
        return whole.withLock { $0 }
    }

    private static func judge(_ history: History, _ run: Run) {
        let checker = CycleChecker(history)
        for finding in checker.findings { run.find(finding) }
        for (name, number) in checker.figures { run.count(name, number) }
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator) throws {
        let context = stack.context()
        try context.performAndWait {
            for number in 0..<lists { Register(context: context).number = Int64(number) }
            try context.save()
        }
    }

    /// The IDs of the lists, by number.
    private static func registerIDs(_ stack: NSPersistentStoreCoordinator) throws -> [NSManagedObjectID] {
        let context = stack.context()
        let request = NSFetchRequest<NSManagedObjectID>(entityName: "Register")
        request.resultType = .managedObjectIDResultType
        request.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
        return try context.performAndWait { try context.fetch(request) }
    }

    private static func finalLists(_ stack: NSPersistentStoreCoordinator) throws -> [Int: [Int]] {
        let context = stack.context()
        context.stalenessInterval = 0
        return try context.performAndWait {
            let all = try context.fetch(NSFetchRequest<Register>(entityName: "Register"))
            return Dictionary(uniqueKeysWithValues: all.map { (Int($0.number), numbers($0.elements)) })
        }
    }

    private static func numbers(_ text: String?) -> [Int] {
        (text ?? "").split(separator: " ").compactMap { Int($0) }
    }

    // MARK: - Workers

    private static func work(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ids: [NSManagedObjectID],
        _ window: borrowing Atomic<Int>
    ) throws -> History {
        var history = History()
        let policy: NSMergePolicy = worker.run.isSabotaged("overwrite") ? .overwrite : .error
        let unpinned = stack.context(policy)
        let pinned = try worker.pinned(stack.context(policy), worker.number)
        let size = max(worker.run.knob(keys), 1)
        // No other worker of any process uses the same numbers.
        let workers = worker.run.options.contexts
        var element = worker.run.machine * workers + worker.number
        let processes = Machine.count(worker.run)
        while !worker.isOver {
            worker.beat("a transaction")
            // The processes do about as much as each other, so that they work on the same lists.
            let start = window.add(processes, ordering: .relaxed).newValue / 200
            // Half of the transactions have the store check what they have only read, which makes them serialisable.
            var transaction = History.Transaction(
                isChecked: worker.stream.chance(0.5),
                isPinned: (worker.run.options.pinned || worker.stream.chance(0.5)) && pinned != nil
            )
            let context = transaction.isPinned ? pinned ?? unpinned : unpinned
            if transaction.isPinned { worker.tally.count("pinned") }
            let count = 1 + worker.stream.below(worker.run.knob(length))
            do {
                try worker.time("save") {
                    try context.performAndWait {
                        context.reset()
                        // A context keeps no unchanged object that has no other reference.
                        var held: [Register] = []
                        defer { withExtendedLifetime(held) {} }
                        for _ in 0..<count {
                            // Others commit between two reads, which a pinned version must not show.
                            if transaction.isPinned, !held.isEmpty, worker.stream.chance(0.3) {
                                usleep(useconds_t(worker.stream.below(1500)))
                            }
                            let key = (start + worker.stream.skewed(size)) % lists
                            guard let register = try context.existingObject(with: ids[key]) as? Register else { return }
                            held.append(register)
                            if worker.stream.chance(0.5) {
                                element += workers * processes
                                register.elements = (register.elements.map { $0 + " " } ?? "") + "\(element)"
                                transaction.operations.append(.append(key, element))
                            } else {
                                transaction.operations.append(.read(key, numbers(register.elements)))
                            }
                            if transaction.isChecked, !worker.run.isSabotaged("unchecked") {
                                context.detectConflicts(for: register)
                            }
                        }
                        if !transaction.isReadOnly, worker.stream.chance(0.05) {
                            if worker.run.isSabotaged("leak-aborted") { try context.save() }
                            context.rollback()
                            transaction.outcome = .failed
                            return
                        }
                        try context.save()
                    }
                }
                worker.tally.count("transactions")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                transaction.outcome = .failed
                worker.tally.count("conflicts")
            }
            history.transactions.append(transaction)
        }
        return history
    }
}
