import CoreData
import StrataLocks

/// The process that saves until it is killed.
enum CrashChild {
    /// The most saves in a life.
    ///
    /// They are enough to reach each named point as often as is asked for.
    private static let mostSaves = 400

    /// Runs until it is killed.
    ///
    /// - Parameter arguments: The store, the ledger, the seed, how the process dies, and the name of a sabotage.
    /// - Throws: Errors that no process may meet here.
    static func run(_ arguments: [String]) throws {
        guard arguments.count >= 4, let seed = UInt64(arguments[2]), let death = CrashDeath(arguments[3]) else {
            throw StressError("child crash needs a store, a ledger, a seed and a death")
        }
        death.arm()
        var stream = SeededStream(seed: seed, stream: 0)
        let ledger = try Ledger.Writer(arguments[1])
        let sabotage = arguments.count > 4 ? arguments[4] : nil
        if let sabotage { FaultPoints.switchOff(sabotage) }
        let isEarly = sabotage == "early-acknowledgement"
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        let isDatabase = arguments[0].hasPrefix("postgresql:")
        // A small log makes checkpoints frequent. It is used in half of the lives, and in those that must die in a
        // checkpoint. Commits make the checkpoints, or the store makes them beside saves.
        var pragmas = ["synchronous": stream.pick(["NORMAL", "FULL"])]
        var (limit, pages) = (Int.max, stream.pick([8, 1000]))
        if case .named(let point, _) = death {
            limit = mostSaves
            if point.hasPrefix("checkpoint") { pages = 8 }
        }
        if stream.chance(0.5) {
            pragmas["wal_autocheckpoint"] = "\(pages)"
        } else {
            WorkSize.copyLogs(after: Int32(pages))
        }
        let file = URL(fileURLWithPath: arguments[0])
        let place = isDatabase ? URL(string: arguments[0]) ?? file : file
        let patience = ServerPatience(isNeeded: isDatabase)
        // The server seldom ends a session during a commit, so the commit is cut here as well.
        if isDatabase { FaultPoints.cutCommits(seed) }
        _ = try patience.trying {
            try coordinator.addPersistentStore(
                type: isDatabase ? DatabasePlace.type : .sqlite,
                configuration: nil,
                at: place,
                options: NextModel.options.merging([
                    NSSQLitePragmasOption: pragmas, NSPersistentHistoryTrackingKey: true,
                    NSPersistentStoreTimeoutOption: isDatabase ? 20 : 240,
                ]) { $1 }
            )
        }
        let context = coordinator.context()
        try context.performAndWait {
            let load = try patience.trying { try CrashLoad(context, sabotage, &stream) }
            for _ in 0..<limit {
                let save = Int64(stream.next() >> 20)
                context.transactionAuthor = "\(save)"
                let (steps, request) = try patience.trying {
                    do { return try load.prepare(save, &stream) } catch {
                        context.rollback()
                        throw error
                    }
                }
                ledger.note("i", save, steps.map(\.text))
                if isEarly { ledger.note("a", save) }
                if let request {
                    try load.execute(request, patience)
                } else {
                    try patience.trying { try context.save() }
                }
                if !isEarly { ledger.note("a", save) }
            }
        }
        throw StressError("\(arguments[3]) was not reached in \(limit) saves")
    }
}
