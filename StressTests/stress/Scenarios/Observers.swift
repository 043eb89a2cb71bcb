import CoreData
import Synchronization

/// A context that merges what others save, with everything it has loaded held and looked at.
final class Observer: @unchecked Sendable {
    // @unchecked Sendable: what is mutable is used on the context's queue only, but for `tokens`, which the thread that
    // makes observers has.

    let name: String
    let context: NSManagedObjectContext
    private let run: Run
    private var nodes: [Node] = []
    private var marks: [Mark] = []
    private var tokens: [any NSObjectProtocol] = []
    private var controller: NSFetchedResultsController<Node>?
    private let delegate = QuietDelegate()
    /// Below it, a child that follows it.
    private var child: NSManagedObjectContext?

    init(_ name: String, _ context: NSManagedObjectContext, _ run: Run) {
        (self.name, self.context, self.run) = (name, context, run)
        context.name = name
        context.automaticallyMergesChangesFromParent = name.contains("automatic")
        guard name.hasPrefix("grandchild") else { return }
        let middle = NSManagedObjectContext(.privateQueue)
        middle.parent = context
        middle.automaticallyMergesChangesFromParent = true
        let child = NSManagedObjectContext(.privateQueue)
        child.parent = middle
        child.automaticallyMergesChangesFromParent = true
        self.child = child
    }

    /// Where the objects are looked at.
    private var shown: NSManagedObjectContext { child ?? context }

    func start() throws {
        let changed = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextObjectsDidChange,
            object: shown,
            queue: nil
        ) { [weak self] in self?.check($0) }
        tokens.append(changed)
        try shown.performAndWait {
            let request = NSFetchRequest<Node>(entityName: "Node")
            request.sortDescriptors = [
                NSSortDescriptor(key: "first", ascending: true), NSSortDescriptor(key: "serial", ascending: true),
            ]
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: shown,
                sectionNameKeyPath: nil,
                cacheName: nil
            )
            // Without a delegate a controller does not follow changes.
            controller.delegate = delegate
            try controller.performFetch()
            self.controller = controller
            try load()
        }
    }

    func stop() {
        for token in tokens { NotificationCenter.default.removeObserver(token) }
        shown.performAndWait {
            controller = nil
            nodes = []
            marks = []
        }
    }

    /// Loads and holds all that there is.
    private func load() throws {
        nodes = try shown.fetch(NSFetchRequest<Node>(entityName: "Node"))
        marks = try shown.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
        _ = GraphPicture(nodes, marks)
    }

    /// No object may be in two sets of one notification.
    private func check(_ notification: Notification) {
        let sets = [NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey].map {
            notification.userInfo?[$0] as? Set<NSManagedObject> ?? []
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] where !sets[one].isDisjoint(with: sets[other]) {
            run.find("\(name): one notification tells the same object twice")
        }
    }

    /// Compares all that was loaded, what fetches give and what the controller has with what is stored.
    func compare(with stored: GraphPicture) throws {
        // Merges go down a level at a time, and each is enqueued before the next block.
        var chain = [shown]
        while let parent = chain[0].parent { chain.insert(parent, at: 0) }
        for context in chain { context.performAndWait {} }
        try shown.performAndWait {
            shown.processPendingChanges()
            let living = nodes.filter { $0.managedObjectContext != nil && !$0.isDeleted }
            let held = GraphPicture(living, marks)
            for (uri, entry) in held.nodes where stored.nodes[uri] != entry {
                let truth = stored.nodes[uri].map { "\($0)" } ?? "nothing"
                run.find("\(name) shows \(entry) for \(uri.lastPathComponent), stored is \(truth)")
            }
            if let difference = try GraphPicture(shown).difference(from: stored) {
                run.find("\(name), fetching, \(difference)")
            }
            let listed = (controller?.fetchedObjects ?? []).map(\.objectID)
            let request = NSFetchRequest<Node>(entityName: "Node")
            request.sortDescriptors = controller?.fetchRequest.sortDescriptors
            let wanted = try shown.fetch(request)
            if Set(listed) != Set(wanted.map(\.objectID)) {
                run.find("\(name): the controller shows \(listed.count) nodes, there are \(wanted.count)")
            }
            let keys = (controller?.fetchedObjects ?? []).map { [$0.first, $0.serial] }
            if keys != wanted.map({ [$0.first, $0.serial] }) {
                run.find("\(name): the controller shows another order than a fetch")
            }
            try load()
        }
    }
}

/// Carries what writers save to the observers that do not follow by themselves, late, and in any order but that of one
/// writer.
final class Mail: Sendable {
    /// A notification under way.
    private struct Letter: @unchecked Sendable {
        // @unchecked Sendable: read only, and merging is what passes between threads by design.
        let writer: Int
        let notification: Notification
    }

    private let observers: [Observer]
    private let waiting: Mutex<[[Letter]]>
    private let run: Run

    init(_ observers: [Observer], _ run: Run) {
        self.observers = observers.filter { !$0.context.automaticallyMergesChangesFromParent }
        self.run = run
        waiting = Mutex(self.observers.map { _ in [] })
    }

    /// Runs a save, and takes what it announces.
    func collecting(_ writer: Int, _ context: NSManagedObjectContext, _ save: () throws -> Void) throws {
        let name = NSManagedObjectContext.didSaveObjectsNotification
        let token = NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) { notification in
            let letter = Letter(writer: writer, notification: notification)
            self.waiting.withLock { boxes in for index in boxes.indices { boxes[index].append(letter) } }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        try save()
    }

    /// Delivers one letter to each observer, or all that are waiting.
    func deliver(_ worker: Worker, all: Bool) {
        for (index, observer) in observers.enumerated() {
            repeat {
                worker.beat("delivering a save")
                guard let letter = take(index, &worker.stream) else { break }
                worker.tally.count("merges")
                if run.isSabotaged("drop-merge"), worker.stream.chance(0.3) { continue }
                deliver(letter, to: observer)
            } while all
        }
        if !all { usleep(500) }
    }

    private func take(_ box: Int, _ stream: inout SeededStream) -> Letter? {
        let choice = stream.next()
        return waiting.withLock { boxes in
            guard !boxes[box].isEmpty else { return nil }
            let writer = boxes[box][Int(choice % UInt64(boxes[box].count))].writer
            guard let first = boxes[box].firstIndex(where: { $0.writer == writer }) else { return nil }
            return boxes[box].remove(at: first)
        }
    }

    private func deliver(_ letter: Letter, to observer: Observer) {
        guard observer.name == "remote" else {
            return observer.context.performAndWait {
                observer.context.mergeChanges(fromContextDidSave: letter.notification)
            }
        }
        // As another process would tell it: URIs.
        var sets: [AnyHashable: Any] = [:]
        for key in [NSInsertedObjectsKey, NSUpdatedObjectsKey, NSDeletedObjectsKey] {
            guard let objects = letter.notification.userInfo?[key] as? Set<NSManagedObject> else { continue }
            sets[key] = objects.map { $0.objectID.uriRepresentation() }
        }
        NSManagedObjectContext.mergeChanges(fromRemoteContextSave: sets, into: [observer.context])
        observer.context.performAndWait {}
    }
}

/// Hears of changes, and leaves it at that.
private final class QuietDelegate: NSObject, NSFetchedResultsControllerDelegate {}
