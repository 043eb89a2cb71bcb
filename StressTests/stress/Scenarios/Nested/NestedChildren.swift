import CoreData
import StrataLocks

extension Nested {
    /// The lasting tree, and the objects that its children change.
    struct Tree: Sendable {
        let stack: NSPersistentStoreCoordinator
        let root: NSManagedObjectContext
        /// The contexts below which children come and go.
        let middles: [NSManagedObjectContext]
        /// The counters: `each` of them for each context of the middle, and as many for other trees.
        let shared: [NSManagedObjectID]
        let each: Int
        /// Held to save the root or the middle, and by a child that needs the levels above not to be saved meanwhile.
        let gate = NSLock()
    }

    /// Makes children one after the other, which edit and then save or die.
    static func churn(_ worker: Worker, _ tree: Tree, _ ledger: borrowing Locked<Ledger>) throws {
        var serial = firstSerial + Int64(worker.number)
        while !worker.isOver {
            worker.beat("a child's life")
            let place = worker.stream.below(tree.middles.count)
            let chain = chain(worker, below: tree.middles[place])
            guard let leaf = chain.first else { continue }
            serial += 100
            // Each counter belongs to one context of the middle, so that two of these never disagree about it.
            let counter = place * tree.each + worker.stream.below(tree.each)
            do {
                let made: NSManagedObjectID = try leaf.performAndWait {
                    let node = Node(context: leaf)
                    node.serial = serial
                    guard let counted = try leaf.existingObject(with: tree.shared[counter]) as? Node else {
                        throw StressError("a counter is of another class")
                    }
                    counted.first += 1
                    node.parent = counted
                    return node.objectID
                }
                if worker.stream.chance(0.2) {
                    let dropped = serial
                    ledger.withLock { _ = $0.discarded.insert(dropped) }
                    worker.tally.count("discarded")
                    continue
                }
                if !worker.run.isSabotaged("unsaved") || worker.stream.chance(0.98) {
                    if worker.stream.chance(0.1) {
                        try saveUnseen(serial, chain, place, tree, worker)
                    } else {
                        try worker.time("save") { for level in chain { try level.performAndWait { try level.save() } } }
                    }
                }
                let (saved, key) = (serial, Int64(counter))
                ledger.withLock {
                    $0.inserted[saved] = made
                    $0.counted[key, default: 0] += 1
                }
                worker.tally.count("child-saves")
                let found = try count(saved, in: tree.middles[place], worker)
                if found != 1, !worker.run.isSabotaged("unsaved") {
                    worker.tally.find("\(saved), saved by a child, is \(found) times in its parent")
                }
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                let dropped = serial
                ledger.withLock { _ = $0.discarded.insert(dropped) }
                worker.tally.count("conflicts")
            }
        }
    }

    /// New contexts, each a child of the next one, with the lowest first.
    ///
    /// Most often there is only one.
    private static func chain(_ worker: Worker, below parent: NSManagedObjectContext) -> [NSManagedObjectContext] {
        let most = max(worker.run.knob(depth), 1)
        let length = worker.stream.chance(0.7) ? 1 : 1 + worker.stream.below(most)
        var chain: [NSManagedObjectContext] = []
        for _ in 0..<length {
            let child = child(of: chain.first ?? parent)
            if worker.run.isSabotaged("last-wins") { child.parentConflictPolicy = nil }
            chain.insert(child, at: 0)
        }
        return chain
    }

    /// Saves a chain upwards, level by level, while no level above is saved.
    ///
    /// The changes of a level must be in the level above it, and nowhere else: not in siblings, and not in the store.
    private static func saveUnseen(
        _ serial: Int64,
        _ chain: [NSManagedObjectContext],
        _ place: Int,
        _ tree: Tree,
        _ worker: Worker
    ) throws {
        let others = tree.middles.indices.filter { $0 != place }.map { tree.middles[$0] }
        let above = chain + [tree.middles[place]]
        try tree.gate.withLock {
            for (level, context) in chain.enumerated() {
                try context.performAndWait { try context.save() }
                if worker.run.isSabotaged("leak") {
                    for upper in [tree.middles[place], tree.root] { try upper.performAndWait { try upper.save() } }
                }
                let unseen =
                    above.dropFirst(level + 2) + [tree.root, tree.stack.context(), child(of: tree.root)] + others
                for other in unseen where try count(serial, in: other, worker) != 0 {
                    worker.tally.find("\(serial) is seen elsewhere before the levels above have saved")
                }
                let found = try count(serial, in: above[level + 1], worker)
                if found != 1 { worker.tally.find("\(serial), saved at level \(level), is \(found) times above it") }
            }
        }
        worker.tally.count("unseen-saves")
    }

    /// The number of nodes with a serial number, as a context sees them.
    private static func count(_ serial: Int64, in context: NSManagedObjectContext, _ worker: Worker) throws -> Int {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "serial == %@", serial)
        return try worker.time("fetch") { try context.performAndWait { try context.count(for: request) } }
    }
}
