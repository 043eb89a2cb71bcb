import CoreData

/// The process that saves until it is killed.
enum CrashChild {
    /// How many objects a save has.
    static func size(of save: Int64) -> Int { 1 + Int(save % 17) }

    /// Whether it is a batch insertion, of marks, and no save of a context.
    static func isBatch(_ save: Int64) -> Bool { save % 5 == 0 }

    /// Runs until it is killed.
    ///
    /// - Parameter arguments: The store, the ledger, the seed, the file operation to die at or 0, `early` for a sabotage.
    /// - Throws: What no process should meet here.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 4, let seed = UInt64(arguments[2]), let point = Int(arguments[3]) else {
            throw StressError("child crash needs a store, a ledger, a seed and a number")
        }
        if point > 0 { FaultFileSystem.install(.killing(at: point)) }
        var stream = SeededStream(seed: seed, stream: 0)
        let ledger = try Ledger.Writer(arguments[1])
        let isEarly = arguments.count > 4
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        // A small log, so that checkpoints come often, in half of the lives.
        let pragmas = [
            "wal_autocheckpoint": stream.pick(["8", "1000"]), "synchronous": stream.pick(["NORMAL", "FULL"]),
        ]
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: URL(fileURLWithPath: arguments[0]),
            options: [NSSQLitePragmasOption: pragmas, NSPersistentHistoryTrackingKey: true]
        )
        let context = coordinator.context()
        try context.performAndWait {
            let accounts = try context.fetch(NSFetchRequest<Account>(entityName: "Account"))
            let counter = accounts.first ?? Account(context: context)
            while true {
                let save = Int64(stream.next() >> 20)
                context.transactionAuthor = "\(save)"
                let request = isBatch(save) ? batch(save) : nil
                if request == nil { change(context, counter, save, &stream) }
                ledger.note("i", save)
                if isEarly { ledger.note("a", save) }
                if let request { _ = try context.execute(request) } else { try context.save() }
                if !isEarly { ledger.note("a", save) }
            }
        }
    }

    private static func batch(_ save: Int64) -> NSBatchInsertRequest {
        NSBatchInsertRequest(entityName: "Mark", objects: (0..<size(of: save)).map { _ in ["serial": save] })
    }

    private static func change(
        _ context: NSManagedObjectContext,
        _ counter: Account,
        _ save: Int64,
        _ stream: inout SeededStream
    ) {
        for place in 0..<size(of: save) {
            let node = Node(context: context)
            node.serial = save
            node.first = Int64(place)
            node.label = String(repeating: "x", count: stream.below(600))
        }
        counter.balance += 1
    }
}
