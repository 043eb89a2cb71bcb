import CoreData

/// Steps that each save or batch once, so that what is there tells how far the script has come.
struct PowerLossScript: CustomStringConvertible {
    /// Whether each step is durable when it is acknowledged.
    let isFull: Bool
    let synchronous: String
    let checkpointPages: Int
    let hasHistory: Bool
    let seed: UInt64

    var description: String {
        "script \(seed) (\(synchronous), checkpoints at \(checkpointPages) pages\(hasHistory ? ", history" : ""))"
    }

    private func open(_ url: URL) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        var options: [AnyHashable: Any] = [
            NSSQLitePragmasOption: ["wal_autocheckpoint": "\(checkpointPages)", "synchronous": synchronous]
        ]
        if hasHistory { options[NSPersistentHistoryTrackingKey] = NSNumber(value: true) }
        try coordinator.addPersistentStore(type: .sqlite, configuration: nil, at: url, options: options)
        return coordinator
    }

    private func close(_ coordinator: NSPersistentStoreCoordinator) throws {
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    private func size(of step: Int64) -> Int { 1 + Int(step * 5 % 13) }

    /// Runs the script, closing and opening the store now and then.
    func play(in folder: URL, _ steps: Int, _ log: DiskLog) throws {
        let url = folder.appendingPathComponent("store.sqlite")
        var stream = SeededStream(seed: seed, stream: 0)
        var stack = try open(url)
        var context = stack.context()
        for step in 1...Int64(max(steps, 1)) {
            if stream.chance(0.1) {
                try close(stack)
                stack = try open(url)
                context = stack.context()
            }
            let isBatch = stream.chance(0.3)
            let text = String(repeating: "z", count: stream.below(900))
            let current = context
            try current.performAndWait {
                if isBatch { try batch(step, text, current) } else { try save(step, text, current) }
            }
            log.add(.mark(step))
        }
        try close(stack)
    }

    /// Inserts the step's rows, and counts the step on one that is there already.
    private func save(_ step: Int64, _ text: String, _ context: NSManagedObjectContext) throws {
        for place in 0..<size(of: step) {
            let node = Node(context: context)
            (node.serial, node.first, node.label) = (step, Int64(place), text)
        }
        let counter =
            try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first ?? Account(context: context)
        counter.balance += 1
        if step % 3 == 0 {
            // Now and then there are two, as the next one replaces one of them.
            let mark = try context.fetch(NSFetchRequest<Mark>(entityName: "Mark")).first
            let changed = step % 2 == 0 ? mark ?? Mark(context: context) : Mark(context: context)
            (changed.serial, changed.image) = (step, Self.image(step))
            if step % 4 == 0, let mark { context.delete(mark) }
        }
        try context.save()
    }

    /// Data that tells the step it is of, and is kept in a file.
    private static func image(_ step: Int64) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: step), count: 140_000)
    }

    /// Inserts the step's rows as a batch.
    private func batch(_ step: Int64, _ text: String, _ context: NSManagedObjectContext) throws {
        let rows: [[String: Any]] = (0..<size(of: step)).map {
            ["serial": step, "first": Int64($0), "label": text]
        }
        try context.execute(NSBatchInsertRequest(entityName: "Node", objects: rows))
    }

    /// How many steps are there, after checking that none is torn and none is missing before the last.
    func steps(in url: URL) throws -> Int64 {
        let stack = try open(url)
        defer { try? close(stack) }
        let context = stack.context()
        return try context.performAndWait {
            let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
            let groups = Dictionary(grouping: nodes, by: \.serial).mapValues { $0.map(\.first).sorted() }
            for mark in try context.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
            where mark.image != Self.image(mark.serial) {
                throw StressError("the external data of step \(mark.serial) is \(mark.image?.count ?? -1) bytes")
            }
            let last = groups.keys.max() ?? 0
            for step in 0..<last where groups[step + 1] == nil { throw StressError("step \(step + 1) is missing") }
            for (step, members) in groups where members != (0..<size(of: step)).map(Int64.init) {
                throw StressError("step \(step) is torn: \(members.count) of \(size(of: step)) rows")
            }
            return last
        }
    }
}
