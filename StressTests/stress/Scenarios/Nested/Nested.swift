import CoreData
import StrataLocks

/// Children in a tree of contexts come, edit, save or die, while the levels above them save as well.
///
/// Before that, random programs run call by call, each in its own tree.
enum Nested: Scenario {
    static let name = "nested"
    static let summary = "trees of contexts: what was saved upwards arrives, what was dropped leaves no trace"
    static let runsOnPostgreSQL = true
    static let work = (figure: "child-saves", floor: 100)
    static let width = Knob("width", 3, "contexts below the root")
    static let counters = Knob("counters", 4, "objects that the children of one context all change")
    static let strangers = Knob("strangers", 2, "trees of their own that change the same objects, without any policy")
    static let depth = Knob("depth", 3, "levels below those, at most")
    static let length = Knob("tree-calls", 50, "calls of a program")
    static let knobs = [width, counters, strangers, depth, length]
    static let sabotages = [
        Sabotage("last-wins", "counter"), Sabotage("unsaved", "is missing"),
        Sabotage("leak", "before the levels above have saved"), Sabotage("eager-save", "the store has"),
    ]

    /// The work of the children that was acknowledged.
    struct Ledger {
        var inserted: [Int64: NSManagedObjectID] = [:]
        var discarded: Set<Int64> = []
        /// The acknowledged additions to each counter, by its serial number.
        var counted: [Int64: Int64] = [:]
    }

    static let firstSerial: Int64 = 1_000

    static func run(_ run: Run) throws {
        let stack = try run.open()
        // A third of the time goes to programs that run call by call, or all of it if the command line names a
        // program.
        let steps = SteppedPrograms(run, length: run.knob(length)) { stream in
            try TreeProgram(stack, &stream, isEager: run.isSabotaged("eager-save"))
        }
        try steps.run(0, until: run.start + (run.end - run.start) / 3)
        run.watchdog.leave(0)
        if run.options.program == nil { try runFreely(run, stack) }
        try run.close(stack)
        try run.audit()
    }

    /// Lets many threads work at once in a lasting tree.
    private static func runFreely(_ run: Run, _ stack: NSPersistentStoreCoordinator) throws {
        try stack.deleteNodes()
        let middleCount = max(run.knob(width), 1)
        let each = max(run.knob(counters), 1)
        // The last counters are those that the trees outside this one change.
        let shared = try forge(stack, middleCount * each + each)
        let root = stack.context()
        let middles = (0..<middleCount).map { _ in child(of: root) }
        let tree = Tree(stack: stack, root: root, middles: middles, shared: shared, each: each)
        let ledger = Locked(Ledger())
        let children = run.options.contexts
        // Besides the children, one worker saves the levels above, one reads the store, and others work in other
        // trees.
        run.race(children + 2 + max(run.knob(strangers), 0)) { worker in
            switch worker.number {
            case 0..<children: try churn(worker, tree, ledger)
            case children: try saveUp(worker, tree)
            case (children + 2)...: try compete(worker, stack, shared, each, ledger)
            default: try look(worker, stack, ledger)
            }
        }
        for context in middles + [root] { try context.performAndWait { try context.save() } }
        settle(run, stack, ledger.withLock { $0 }, [root] + middles)
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator, _ count: Int) throws -> [NSManagedObjectID] {
        let context = stack.context()
        return try context.performAndWait {
            let nodes = (0..<count).map { serial in
                let node = Node(context: context)
                node.serial = Int64(serial)
                return node
            }
            try context.save()
            return nodes.map(\.objectID)
        }
    }

    static func child(of parent: NSManagedObjectContext) -> NSManagedObjectContext {
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = parent
        child.parentConflictPolicy = .error
        return child
    }

    // MARK: - Workers besides the children

    /// Counts through a child without a policy, in a separate tree.
    ///
    /// The child adds to values that it may have read long ago.
    private static func compete(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ shared: [NSManagedObjectID],
        _ each: Int,
        _ ledger: borrowing Locked<Ledger>
    ) throws {
        while !worker.isOver {
            let root = stack.context()
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = root
            child.performAndWait { child.retainsRegisteredObjects = true }
            do {
                while !worker.isOver {
                    worker.beat("counting in a tree of its own")
                    let counter = shared.count - 1 - worker.stream.below(each)
                    try child.performAndWait {
                        (try child.existingObject(with: shared[counter]) as? Node)?.first += 1
                        try child.save()
                    }
                    try root.performAndWait { try root.save() }
                    ledger.withLock { $0.counted[Int64(counter), default: 0] += 1 }
                    worker.tally.count("strangers-saves")
                    // Sometimes the root keeps its objects, and sometimes it has to find them again.
                    if worker.stream.chance(0.3) { root.performAndWait { root.reset() } }
                }
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("strangers-conflicts")
            }
        }
    }

    private static func saveUp(_ worker: Worker, _ tree: Tree) throws {
        while !worker.isOver {
            worker.beat("saving the levels above")
            let context = worker.stream.chance(0.3) ? tree.root : worker.stream.pick(tree.middles)
            try tree.gate.withLock {
                try worker.time("parent-save") { try context.performAndWait { try context.save() } }
            }
            worker.tally.count("parent-saves")
        }
    }

    /// Checks that nothing of a child that died is ever in the store.
    private static func look(
        _ worker: Worker,
        _ stack: NSPersistentStoreCoordinator,
        _ ledger: borrowing Locked<Ledger>
    ) throws {
        let context = stack.context()
        let request = NSFetchRequest<NSDictionary>(entityName: "Node")
        request.resultType = .dictionaryResultType
        request.propertiesToFetch = ["serial"]
        while !worker.isOver {
            worker.beat("looking at the store")
            let rows = try context.performAndWait { try context.fetch(request) }
            let serials = rows.compactMap { $0["serial"] as? Int64 }
            let discarded = ledger.withLock { $0.discarded }
            for serial in serials where discarded.contains(serial) {
                worker.tally.find("\(serial), which was dropped, is in the store")
            }
            worker.tally.count("looks")
            usleep(20_000)
        }
    }

    // MARK: - The end

    private static func settle(
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ ledger: Ledger,
        _ tree: [NSManagedObjectContext]
    ) {
        let context = stack.context()
        context.performAndWait {
            guard let all = try? context.fetch(NSFetchRequest<Node>(entityName: "Node")) else {
                return run.find("the nodes cannot be fetched")
            }
            let stored = Dictionary(grouping: all, by: \.serial)
            for (serial, nodes) in stored where nodes.count > 1 { run.find("\(serial) is there \(nodes.count) times") }
            for serial in ledger.discarded where stored[serial] != nil {
                run.find("\(serial) was dropped and is there")
            }
            for (serial, id) in ledger.inserted {
                guard let node = stored[serial]?.first else {
                    run.find("\(serial), saved by a child, is missing")
                    continue
                }
                if id.latest.isTemporaryID { run.find("the ID of \(serial) is still temporary") }
                if node.objectID != id.latest { run.find("\(serial) has two IDs, \(id.latest) and \(node.objectID)") }
            }
            for (serial, count) in ledger.counted {
                let shown = stored[serial]?.first?.first ?? -1
                if shown != count { run.find("counter \(serial) shows \(shown), acknowledged were \(count)") }
            }
            let members = all.filter { $0.serial < firstSerial }.reduce(0) { $0 + $1.children.count }
            if members != ledger.inserted.count {
                run.find("the counters have \(members) children, acknowledged were \(ledger.inserted.count)")
            }
        }
        for context in tree {
            context.performAndWait {
                for (serial, id) in ledger.inserted.prefix(500) where !run.isSabotaged("unsaved") {
                    let node = try? context.existingObject(with: id) as? Node
                    if node?.serial != serial { run.find("the ID of \(serial) does not find it in the tree") }
                }
            }
        }
    }
}
