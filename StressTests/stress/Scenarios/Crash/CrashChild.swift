import CoreData

/// The process that saves until it is killed.
enum CrashChild {
    /// So many saves of a life reach each of the points with names often enough.
    private static let mostSaves = 400

    /// Runs until it is killed.
    ///
    /// - Parameter arguments: The store, the ledger, the seed, how it is to die, and the name of a sabotage.
    /// - Throws: What no process should meet here.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 4, let seed = UInt64(arguments[2]), let death = CrashDeath(arguments[3]) else {
            throw StressError("child crash needs a store, a ledger, a seed and a death")
        }
        death.arm()
        var stream = SeededStream(seed: seed, stream: 0)
        let ledger = try Ledger.Writer(arguments[1])
        let sabotage = arguments.count > 4 ? arguments[4] : nil
        let isEarly = sabotage == "early-acknowledgement"
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        // A small log, so that checkpoints come often, in half of the lives, and in those that are to die in one.
        var pragmas = [
            "wal_autocheckpoint": stream.pick(["8", "1000"]), "synchronous": stream.pick(["NORMAL", "FULL"]),
        ]
        var limit = Int.max
        if case .named(let point, _) = death {
            limit = mostSaves
            if point.hasPrefix("checkpoint") { pragmas["wal_autocheckpoint"] = "8" }
        }
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: URL(fileURLWithPath: arguments[0]),
            options: NextModel.options.merging([
                NSSQLitePragmasOption: pragmas, NSPersistentHistoryTrackingKey: true,
            ]) { $1 }
        )
        let context = coordinator.context()
        try context.performAndWait {
            let load = try CrashLoad(context, sabotage, &stream)
            for _ in 0..<limit {
                let save = Int64(stream.next() >> 20)
                context.transactionAuthor = "\(save)"
                let (steps, request) = try load.prepare(save, &stream)
                ledger.note("i", save, steps.map(\.text))
                if isEarly { ledger.note("a", save) }
                if let request { try load.execute(request) } else { try context.save() }
                if !isEarly { ledger.note("a", save) }
            }
        }
        throw StressError("\(arguments[3]) was not reached in \(limit) saves")
    }
}
