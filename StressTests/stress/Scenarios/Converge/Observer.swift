import CoreData

/// A context that merges the saves of others.
///
/// It holds everything that it has loaded, and compares it.
final class Observer: @unchecked Sendable {
    // @unchecked Sendable: the mutable state is used on the context's queue only, except what the thread uses that
    // makes the observers.

    /// The way in which an observer gets changes.
    enum Feed: String, CaseIterable {
        /// The context follows by itself.
        case automatic
        /// The context has a child and a grandchild, which all follow, and the grandchild is compared.
        case grandchild
        /// The context merges notifications.
        case notified
        /// The context merges URIs, as it would get them from another process.
        case remote
        /// The context reads the history, from a token on.
        case history
        /// The framework follows the history when it is notified that the file has changed.
        case followed

        /// Whether it shares the writers' coordinator.
        var isInside: Bool { [.automatic, .grandchild, .notified].contains(self) }
    }

    let feed: Feed
    let context: NSManagedObjectContext
    /// The context whose objects are compared.
    private let shown: NSManagedObjectContext
    private let coordinator: NSPersistentStoreCoordinator
    private let run: Run
    private var nodes: [Node] = []
    private var marks: [Mark] = []
    private var told = Announcements()
    private var observation: (any NSObjectProtocol)?
    private var controller: NSFetchedResultsController<Node>?
    private let rows: ToldRows
    private var token: NSPersistentHistoryToken?
    private var follower: RemoteChangeFollower?

    /// The name in findings.
    var name: String { feed.rawValue }

    init(_ feed: Feed, _ coordinator: NSPersistentStoreCoordinator, _ run: Run) {
        (self.feed, self.coordinator, self.run) = (feed, coordinator, run)
        let context = coordinator.context()
        context.name = feed.rawValue
        context.automaticallyMergesChangesFromParent = [.automatic, .grandchild, .followed].contains(feed)
        var shown = context
        for _ in 0..<(feed == .grandchild ? 2 : 0) {
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = shown
            child.automaticallyMergesChangesFromParent = true
            shown = child
        }
        (self.context, self.shown) = (context, shown)
        rows = ToldRows(feed.rawValue, run)
    }

    func start() throws {
        if feed == .history { token = coordinator.currentPersistentHistoryToken(fromStores: nil) }
        if feed == .followed { follower = try coordinator.followRemoteChanges() }
        observation = NotificationCenter.default.addObserver(
            forName: .NSManagedObjectContextObjectsDidChange,
            object: shown,
            queue: nil
        ) { [weak self] in self?.hear($0) }
        try shown.performAndWait {
            let request = NSFetchRequest<Node>(entityName: "Node")
            request.sortDescriptors = ["second", "first", "serial"].map { NSSortDescriptor(key: $0, ascending: true) }
            let controller = NSFetchedResultsController(
                fetchRequest: request,
                managedObjectContext: shown,
                sectionNameKeyPath: "second",
                cacheName: nil
            )
            // A controller without a delegate does not follow changes.
            controller.delegate = rows
            try controller.performFetch()
            self.controller = controller
            try load()
            told.begin(with: nodes)
            rows.begin(with: controller.sections)
        }
    }

    func stop() throws {
        follower?.stop()
        if let observation { NotificationCenter.default.removeObserver(observation) }
        shown.performAndWait {
            controller = nil
            nodes = []
            marks = []
        }
        if !feed.isInside { try run.close(coordinator) }
    }

    /// Loads all objects, and holds them.
    private func load() throws {
        nodes = try shown.fetch(NSFetchRequest<Node>(entityName: "Node"))
        marks = try shown.fetch(NSFetchRequest<Mark>(entityName: "Mark"))
        _ = GraphPicture(nodes, marks)
    }

    /// Takes an announcement, and holds the new nodes.
    private func hear(_ notification: Notification) {
        if run.isSabotaged("keep-quiet"), told.count % 20 == 19 { return told.skip() }
        for _ in 0..<(run.isSabotaged("tell-twice") ? 2 : 1) {
            for trouble in told.take(notification) { run.find("\(name) \(trouble)") }
        }
        nodes += told.news(notification)
    }

    // MARK: - The history

    /// Merges the changes in the history since the last time, if this is the observer's feed.
    func read(_ worker: Worker) throws {
        guard feed == .history else { return }
        let context = context
        try context.performAndWait {
            let result = try context.execute(NSPersistentHistoryChangeRequest.fetchHistory(after: token))
            let transactions = (result as? NSPersistentHistoryResult)?.result as? [NSPersistentHistoryTransaction] ?? []
            for transaction in transactions {
                token = transaction.token
                if run.isSabotaged("skip-transaction"), worker.stream.chance(0.3) { continue }
                context.mergeChanges(fromContextDidSave: transaction.objectIDNotification())
                worker.tally.count("transactions")
            }
        }
    }

    /// Waits until all saves are merged.
    private func catchUp() throws {
        do { try follower?.waitToCatchUp() } catch { run.find("\(name) cannot follow: \(describe(error))") }
        // Merges go down one level at a time, and each is enqueued before the next block.
        var chain = [shown]
        while let parent = chain[0].parent { chain.insert(parent, at: 0) }
        for context in chain { context.performAndWait {} }
    }

    // MARK: - Comparing

    /// Compares the loaded objects, the results of fetches, the controller's objects and the announcements with what
    /// is stored.
    func compare(with stored: GraphPicture) throws {
        try catchUp()
        try shown.performAndWait {
            shown.processPendingChanges()
            let living = nodes.filter { $0.managedObjectContext != nil && !$0.isDeleted }
            let held = GraphPicture(living, marks)
            for (uri, entry) in held.nodes where stored.nodes[uri] != entry {
                let truth = stored.nodes[uri].map { "\($0)" } ?? "nothing"
                run.find("\(name) shows \(entry) for \(uri.lastPathComponent), stored is \(truth)")
            }
            for (uri, members) in held.marks where stored.marks[uri] != members {
                let truth = stored.marks[uri]?.count ?? 0
                run.find("\(name) shows \(members.count) nodes of mark \(uri.lastPathComponent), stored are \(truth)")
            }
            if let difference = try GraphPicture(shown).difference(from: stored) {
                run.find("\(name), fetching, \(difference)")
            }
            try compareController()
            for trouble in told.difference(from: stored) { run.find("\(name) \(trouble)") }
            run.count("announcements", told.count)
            told.count = 0
            try load()
        }
    }

    private func compareController() throws {
        guard let controller else { return }
        let listed = controller.fetchedObjects ?? []
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.sortDescriptors = controller.fetchRequest.sortDescriptors
        let wanted = try shown.fetch(request)
        if Set(listed.map(\.objectID)) != Set(wanted.map(\.objectID)) {
            run.find("\(name): the controller shows \(listed.count) nodes, there are \(wanted.count)")
        }
        func keys(_ nodes: [Node]) -> [[Int64]] { nodes.map { [$0.second, $0.first, $0.serial] } }
        if keys(listed) != keys(wanted) { run.find("\(name): the controller shows another order than a fetch") }
        let sections = (controller.sections ?? []).map { "\($0.name): \($0.numberOfObjects)" }
        let groups = Dictionary(grouping: wanted, by: \.second).sorted { $0.key < $1.key }
        if sections != groups.map({ "\($0.key): \($0.value.count)" }) {
            run.find("\(name): the controller has the sections \(sections), not those of a fetch")
        }
    }
}
