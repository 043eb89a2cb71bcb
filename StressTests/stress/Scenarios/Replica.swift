import CoreData

/// Saves on the primary, and reads on a replica that is always behind.
///
/// A coordinator must see its own saves there.
enum Replica: Scenario {
    static let name = "replica"
    static let summary = "saves, and then reads on a replica that is behind; each worker sees what it has saved"
    static let stores: [StoreKind] = []
    static let runsOnPostgreSQL = true
    static let work = (figure: "reads", floor: 100)
    static let databaseWork: (figure: String, floor: Int)? = ("on the replica", 100)
    static let lag = Knob("lag", 10, "milliseconds by which the replica is behind at least")
    static let knobs = [lag]
    static let sabotages = Sabotage.ofGuard("no-replica-wait", "is read after", store: .postgresql)

    static func run(_ run: Run) throws {
        // Without this setting, commits would be sent to the replica only five times a second.
        let primary = try DatabaseServer(run.folder.appendingPathComponent("primary"), ["synchronous_commit=on"])
        defer { primary.stop() }
        let replica = try DatabaseServer(
            following: primary,
            run.folder.appendingPathComponent("replica"),
            ["recovery_min_apply_delay=\(run.knob(lag))ms"]
        )
        defer { replica.stop() }
        try DatabasePlace.using(primary.url) {
            let place = DatabasePlace.using(replica.url) { run.kind.place(run.storeURL) }
            let stack = try run.open(DatabasePlace.options(replica: place))
            try Bank.open(stack, run.options.contexts)
            let ids = try Bank.accountIDs(stack.context())
            // The sessions that check the replica have begun.
            let before = try replica.transactions()
            run.race(run.options.contexts) { worker in try work(worker, stack, ids[worker.number]) }
            try run.close(stack)
            run.count("on the replica", Int(try replica.transactions() - before))
            try run.audit()
        }
    }

    /// Changes an account that no other worker uses, and reads it on the replica.
    private static func work(_ worker: Worker, _ stack: NSPersistentStoreCoordinator, _ id: NSManagedObjectID) throws {
        let context = stack.context()
        let request = NSFetchRequest<Account>(entityName: "Account")
        request.predicate = NSPredicate(format: "SELF == %@", id)
        var saved: Int64 = 0
        while !worker.isOver {
            worker.beat("a save, and a read on the replica")
            for _ in 0...worker.stream.below(3) {
                saved += 1
                try worker.time("save") {
                    try context.performAndWait {
                        guard let account = try context.existingObject(with: id) as? Account else {
                            throw StressError("an account is of another class")
                        }
                        account.balance = saved
                        try context.save()
                    }
                }
                worker.tally.count("saves")
            }
            let reader = stack.context()
            reader.readsFromReplicas = true
            let read = try worker.time("fetch") {
                try reader.performAndWait {
                    try reader.setQueryGenerationFrom(.current)
                    return try reader.fetch(request).first?.balance
                }
            }
            worker.tally.count("reads")
            if read != saved {
                worker.tally.find("\(read.map { "\($0)" } ?? "nothing") is read after \(saved) was saved")
            }
        }
    }
}
