import CoreData
import StrataLocks

/// A script whose steps each make one save or batch, so that the stored rows show how far it has come.
struct PowerLossScript: CustomStringConvertible {
    /// Whether each step is durable when it is acknowledged.
    let isFull: Bool
    let synchronous: String
    let checkpointPages: Int
    /// Whether the store copies its log beside saves, and not after them.
    let copiesBeside: Bool
    let hasHistory: Bool
    let seed: UInt64
    /// A sabotage: saves with odd numbers insert their rows, but do not make their changes.
    var forgetsChanges = false
    /// Whether the store is migrated now and then.
    var migrates = true

    var description: String {
        let place = copiesBeside ? "beside" : "in"
        return "script \(seed) (\(synchronous), checkpoints \(place) saves at \(checkpointPages) pages"
            + "\(hasHistory ? ", history" : ""))"
    }

    /// The number of migrations that the script has made.
    let migrations = Counter()

    /// A number that the script counts up; one thread uses it.
    final class Counter {
        var value = 0
    }

    private func open(_ url: URL, isNext: Bool = false) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(
            managedObjectModel: isNext ? NextModel.shared : StressModel.shared
        )
        var pragmas = ["synchronous": synchronous]
        if !copiesBeside { pragmas["wal_autocheckpoint"] = "\(checkpointPages)" }
        WorkSize.copyLogs(after: copiesBeside ? Int32(checkpointPages) : 0)
        var options: [AnyHashable: Any] = [NSSQLitePragmasOption: pragmas]
        options.merge(NextModel.options) { $1 }
        if hasHistory { options[NSPersistentHistoryTrackingKey] = NSNumber(value: true) }
        try coordinator.addPersistentStore(type: .sqlite, configuration: nil, at: url, options: options)
        return coordinator
    }

    private func close(_ coordinator: NSPersistentStoreCoordinator) throws {
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    private func size(of step: Int64) -> Int { 1 + Int(step * 5 % 13) }

    /// A step, drawn before anything is done, so that it is also known when the store is checked.
    private struct Move {
        let opensAgain: Bool
        let migrates: Bool
        let isBatch: Bool
        let text: String
    }

    private func moves(_ steps: Int) -> [Move] {
        var stream = SeededStream(seed: seed, stream: 0)
        return (0..<max(steps, 1)).map { _ in
            let (opensAgain, isBatch, migrates) = (stream.chance(0.15), stream.chance(0.3), stream.chance(0.4))
            return Move(
                opensAgain: opensAgain,
                migrates: migrates,
                isBatch: isBatch,
                text: String(repeating: "z", count: stream.below(900))
            )
        }
    }

    /// Runs the script, closing and opening the store now and then.
    func play(in folder: URL, _ steps: Int, _ log: DiskLog) throws {
        let url = folder.appendingPathComponent("store.sqlite")
        var stack = try open(url)
        var context = stack.context()
        for (step, move) in zip(Int64(1)..., moves(steps)) {
            if move.opensAgain {
                try close(stack)
                if migrates, move.migrates {
                    // The store goes to the next version and back.
                    try close(try open(url, isNext: true))
                    migrations.value += 2
                }
                stack = try open(url)
                context = stack.context()
            }
            let current = context
            try current.performAndWait {
                if move.isBatch { try batch(step, move.text, current) } else { try save(step, move.text, current) }
            }
            log.add(.mark(step))
        }
        try close(stack)
    }

    /// Inserts the rows of a step, and counts the step on a row that may be there already.
    private func save(_ step: Int64, _ text: String, _ context: NSManagedObjectContext) throws {
        for place in 0..<size(of: step) {
            let node = Node(context: context)
            (node.serial, node.first, node.label) = (step, Int64(place), text)
        }
        guard !forgetsChanges || step % 2 == 0 else { return try context.save() }
        let counter =
            try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first ?? Account(context: context)
        counter.balance += step
        if step % 3 == 0 {
            // Now and then there are two marks, as the next step replaces one of them.
            let request = NSFetchRequest<Mark>(entityName: "Mark")
            request.sortDescriptors = [NSSortDescriptor(key: "serial", ascending: true)]
            let mark = try context.fetch(request).first
            let changed = step % 2 == 0 ? mark ?? Mark(context: context) : Mark(context: context)
            (changed.serial, changed.image) = (step, Self.image(step))
            if step % 4 == 0, let mark { context.delete(mark) }
        }
        try context.save()
    }

    /// Data that identifies its step, and is large enough to be kept in a file.
    private static func image(_ step: Int64) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: step), count: 140_000)
    }

    /// Inserts the rows of a step as a batch.
    private func batch(_ step: Int64, _ text: String, _ context: NSManagedObjectContext) throws {
        let rows: [[String: Any]] = (0..<size(of: step)).map {
            ["serial": step, "first": Int64($0), "label": text]
        }
        try context.execute(NSBatchInsertRequest(entityName: "Node", objects: rows))
    }

    /// The changes of the first steps together: the sum on the counter, and the marks that must be there.
    private func changes(after last: Int64) -> (sum: Int64, marks: [Int64]) {
        var (sum, marks) = (Int64(0), [Int64]())
        for (step, move) in zip(Int64(1)..., moves(Int(last)).prefix(Int(last))) where !move.isBatch {
            sum += step
            guard step % 3 == 0 else { continue }
            let first = marks.min()
            if step % 2 == 0 { marks.removeAll { $0 == first } }
            // A mark that is changed and deleted in the same step is gone.
            if step % 4 != 0 || first == nil { marks.append(step) }
        }
        return (sum, marks.sorted())
    }

    /// The number of steps that are there.
    ///
    /// It throws if one is torn, or if one before the last is missing.
    func steps(in url: URL) throws -> Int64 {
        let stack = try open(url)
        defer { try? close(stack) }
        let context = stack.context()
        return try context.performAndWait {
            let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
            let groups = Dictionary(grouping: nodes, by: \.serial).mapValues { $0.map(\.first).sorted() }
            let marks = try context.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
            for mark in marks where mark.image != Self.image(mark.serial) {
                throw StressError("the external data of step \(mark.serial) is \(mark.image?.count ?? -1) bytes")
            }
            let last = groups.keys.max() ?? 0
            for step in 0..<last where groups[step + 1] == nil { throw StressError("step \(step + 1) is missing") }
            for (step, members) in groups where members != (0..<size(of: step)).map(Int64.init) {
                throw StressError("step \(step) is torn: \(members.count) of \(size(of: step)) rows")
            }
            // The changes and deletions of a step are as much part of it as its insertions.
            let wanted = changes(after: last)
            let sum = try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first?.balance ?? 0
            if sum != wanted.sum {
                throw StressError("the changes of \(last) steps are torn: their sum is \(sum), not \(wanted.sum)")
            }
            let serials = marks.map(\.serial).sorted()
            if serials != wanted.marks {
                throw StressError("the marks of \(last) steps are \(serials), not \(wanted.marks)")
            }
            return last
        }
    }
}
