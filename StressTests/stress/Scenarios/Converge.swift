import CoreData
import Synchronization

/// Writers change a graph, observers merge what they save; whenever all is quiet, every observer shows what is stored.
enum Converge: Scenario {
    static let name = "converge"
    static let summary = "observers merge what writers save, late and reordered, and end up with what is stored"
    static let work = (figure: "agreements", floor: 8)
    static let nodes = Knob("nodes", 60, "the nodes of the graph, about")
    static let knobs = [nodes]
    static let sabotages = [Sabotage("drop-merge", "shows")]

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let size = max(run.knob(nodes), 4)
        try forge(stack, size)
        // What observers stand on besides: a coordinator that hears of saves from outside only.
        let remote = run.kind == .sqlite ? try run.open() : nil
        var observers = [
            Observer("automatic", stack.context(), run), Observer("notified", stack.context(), run),
            Observer("grandchild of automatic", stack.context(), run),
        ]
        if let remote { observers.append(Observer("remote", remote.context(), run)) }
        let mail = Mail(observers, run)
        for observer in observers { try observer.start() }
        let writers = (0..<run.options.contexts).map { _ in stack.context() }
        var round = 0
        while !run.isOver {
            let end = min(ContinuousClock.now + .milliseconds(100), run.end)
            run.race(writers.count + 1, from: round * 100) { worker in
                let number = worker.number % 100
                if number == writers.count {
                    while ContinuousClock.now < end { mail.deliver(worker, all: false) }
                } else {
                    try write(worker, writers[number], number, size, mail, until: end)
                }
            }
            let last = Worker(run, round * 100 + 99)
            mail.deliver(last, all: true)
            last.leave()
            try agree(run, stack, observers)
            run.count("agreements")
            round += 1
        }
        for observer in observers { observer.stop() }
        for coordinator in [stack, remote].compactMap(\.self) { try run.close(coordinator) }
        try run.audit()
    }

    private static func forge(_ stack: NSPersistentStoreCoordinator, _ count: Int) throws {
        let context = stack.context()
        try context.performAndWait {
            for serial in 0..<count {
                let node = Node(context: context)
                node.serial = Int64(serial)
                if serial % 6 == 0 { Mark(context: context).serial = Int64(serial) }
            }
            try context.save()
        }
    }

    // MARK: - Writing

    /// Changes a few objects and saves, again and again.
    private static func write(
        _ worker: Worker,
        _ context: NSManagedObjectContext,
        _ number: Int,
        _ size: Int,
        _ mail: Mail,
        until end: ContinuousClock.Instant
    ) throws {
        while ContinuousClock.now < end {
            worker.beat("a writer's save")
            do {
                try worker.time("save") {
                    try context.performAndWait {
                        let all = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                        let marks = try context.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
                        for _ in 0...worker.stream.below(3) { change(context, all, marks, size, &worker.stream) }
                        try mail.collecting(number, context) { try context.save() }
                    }
                }
                worker.tally.count("saves")
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                worker.tally.count("conflicts")
                context.performAndWait { context.reset() }
            }
        }
    }

    private static func change(
        _ context: NSManagedObjectContext,
        _ all: [Node],
        _ marks: [Mark],
        _ size: Int,
        _ stream: inout SeededStream
    ) {
        let node = all.isEmpty ? nil : stream.pick(all)
        guard let node, !node.isDeleted else { return }
        switch stream.below(10) {
        case 0...2: node.first += 1
        case 3: node.label = "label \(stream.below(1_000))"
        case 4, 5: node.parent = stream.chance(0.2) ? nil : stream.pick(all.filter { !$0.isDeleted })
        case 6: if !marks.isEmpty { node.marks.insert(stream.pick(marks)) }
        case 7: if let mark = node.marks.randomElement(using: &stream) { node.marks.remove(mark) }
        case 8 where all.count > size / 2: context.delete(node)
        default:
            guard all.count < size * 2 else { return }
            let new = Node(context: context)
            new.serial = Int64(stream.below(1_000_000))
            new.parent = node
        }
    }

    // MARK: - Agreeing

    private static func agree(_ run: Run, _ stack: NSPersistentStoreCoordinator, _ observers: [Observer]) throws {
        run.watchdog.beat(-1, "comparing observers with the store")
        defer { run.watchdog.leave(-1) }
        let context = stack.context()
        context.stalenessInterval = 0
        let stored = try context.performAndWait { try GraphPicture(context) }
        for observer in observers { try observer.compare(with: stored) }
    }
}

/// What a context shows of the graph, by the URIs of the objects.
struct GraphPicture: Equatable {
    struct Entry: Equatable {
        var values: [Int64]
        var label: String?
        var parent: URL?
        var children: Set<URL>
        var marks: Set<URL>
    }

    private(set) var nodes: [URL: Entry] = [:]
    private(set) var marks: [URL: Set<URL>] = [:]

    /// What fetches give.
    init(_ context: NSManagedObjectContext) throws {
        self.init(
            try context.fetch(NSFetchRequest<Node>(entityName: "Node")),
            try context.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
        )
    }

    /// What these objects show.
    init(_ nodes: [Node], _ marks: [Mark]) {
        func uris(_ objects: Set<some NSManagedObject>) -> Set<URL> {
            Set(objects.map { $0.objectID.uriRepresentation() })
        }
        for node in nodes {
            self.nodes[node.objectID.uriRepresentation()] = Entry(
                values: [node.serial, node.first, node.second],
                label: node.label,
                parent: node.parent?.objectID.uriRepresentation(),
                children: uris(node.children),
                marks: uris(node.marks)
            )
        }
        for mark in marks { self.marks[mark.objectID.uriRepresentation()] = uris(mark.nodes) }
    }

    /// How this differs from what it should be, in a sentence; `nil` if it does not.
    func difference(from wanted: GraphPicture) -> String? {
        guard self != wanted else { return nil }
        for (uri, entry) in wanted.nodes where nodes[uri] != entry {
            return "shows \(nodes[uri].map { "\($0)" } ?? "nothing") for \(uri.lastPathComponent), stored is \(entry)"
        }
        for uri in nodes.keys where wanted.nodes[uri] == nil { return "shows \(uri.lastPathComponent), which has gone" }
        for (uri, members) in wanted.marks where marks[uri] != members {
            return
                "shows \(marks[uri]?.count ?? -1) nodes of mark \(uri.lastPathComponent), stored are \(members.count)"
        }
        return "shows other marks than are stored"
    }
}
