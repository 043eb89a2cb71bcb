import CoreData

/// Draws the steps of a life's saves, and carries them out.
///
/// They change objects that the life itself has inserted, and some that former lives have left.
final class CrashLoad {
    /// The number of former saves with nodes, and of those with marks, that a life knows at most.
    private static let most = 40
    private let context: NSManagedObjectContext
    private let sabotage: String?
    private var counter: Account
    /// The saves whose nodes are there.
    private var groups: [Int64]
    private var marks: [Int64]

    /// Prepares the load of one life.
    ///
    /// - Parameters:
    ///   - context: The context to work in. Everything here runs on its queue.
    ///   - sabotage: The steps to leave out, though the ledger has them.
    ///   - stream: Decides which of the former saves are known.
    /// - Throws: Errors of fetching.
    init(_ context: NSManagedObjectContext, _ sabotage: String?, _ stream: inout SeededStream) throws {
        (self.context, self.sabotage) = (context, sabotage)
        counter = try Self.counter(context)
        // The numbers of saves are random, so this order takes some saves of each life.
        let order = [NSSortDescriptor(key: "serial", ascending: stream.chance(0.5))]
        let nodes = NSFetchRequest<Node>(entityName: "Node")
        nodes.predicate = NSPredicate(format: "first == 0")
        let others = NSFetchRequest<Mark>(entityName: "Mark")
        (nodes.sortDescriptors, nodes.fetchLimit) = (order, Self.most)
        (others.sortDescriptors, others.fetchLimit) = (order, Self.most)
        groups = try context.fetch(nodes).map(\.serial)
        marks = Set(try context.fetch(others).map(\.serial)).sorted()
    }

    private static func counter(_ context: NSManagedObjectContext) throws -> Account {
        try context.fetch(NSFetchRequest<Account>(entityName: "Account")).first ?? Account(context: context)
    }

    // MARK: - Drawing

    /// Draws a save, and changes the context unless it is a batch.
    ///
    /// - Parameters:
    ///   - save: The number of the save.
    ///   - stream: The source of the draw.
    /// - Returns: The steps of the save, and the request that carries them out; `nil` if the context must be saved.
    /// - Throws: Errors of fetching.
    func prepare(
        _ save: Int64,
        _ stream: inout SeededStream
    ) throws -> (steps: [CrashStep], request: NSPersistentStoreRequest?) {
        if CrashStep.isBatch(save) {
            let step = drawBatch(save, &stream)
            return ([step], Self.request(step, save))
        }
        let steps = draw(save, &stream)
        for step in steps { try apply(step, save, &stream) }
        groups.append(save)
        if steps.contains(where: { $0.kind == .mark }) { marks.append(save) }
        return (steps, nil)
    }

    private func draw(_ save: Int64, _ stream: inout SeededStream) -> [CrashStep] {
        var steps = [CrashStep(.insert, save)]
        func add(_ kind: CrashStep.Kind, _ targets: [Int64], _ probability: Double) {
            guard stream.chance(probability), !targets.isEmpty else { return }
            steps.append(CrashStep(kind, stream.pick(targets)))
        }
        // If there are many, then more are deleted, so that a check of the file stays quick.
        add(.delete, groups, groups.count > Self.most ? 0.9 : 0.3)
        if let step = steps.last, step.kind == .delete { groups.removeAll { $0 == step.target } }
        add(.deleteMarks, marks, marks.count > Self.most ? 0.9 : 0.2)
        if let step = steps.last, step.kind == .deleteMarks { marks.removeAll { $0 == step.target } }
        add(.update, groups, 0.4)
        add(.adopt, groups, 0.3)
        add(.follow, groups, 0.3)
        add(.mark, groups, 0.3)
        add(.move, marks, 0.25)
        add(.picture, marks.filter { !CrashStep.isBatch($0) }, 0.2)
        return steps
    }

    private func drawBatch(_ save: Int64, _ stream: inout SeededStream) -> CrashStep {
        let choice = stream.below(6)
        if choice == 0, !groups.isEmpty { return CrashStep(.update, stream.pick(groups)) }
        if choice == 1, !groups.isEmpty { return CrashStep(.delete, groups.remove(at: stream.below(groups.count))) }
        if choice == 2, !marks.isEmpty { return CrashStep(.deleteMarks, marks.remove(at: stream.below(marks.count))) }
        marks.append(save)
        return CrashStep(.insertMarks, save)
    }

    // MARK: - Doing

    private static func request(_ step: CrashStep, _ save: Int64) -> NSPersistentStoreRequest {
        let predicate = NSPredicate(format: "serial == %@", step.target)
        switch step.kind {
        case .update:
            let request = NSBatchUpdateRequest(entityName: "Node")
            request.predicate = predicate
            request.propertiesToUpdate = ["second": save]
            return request
        case .delete, .deleteMarks:
            let victims = NSFetchRequest<NSFetchRequestResult>(entityName: step.kind == .delete ? "Node" : "Mark")
            victims.predicate = predicate
            return NSBatchDeleteRequest(fetchRequest: victims)
        default:
            let rows = (0..<CrashStep.size(of: save)).map { _ in ["serial": save] }
            return NSBatchInsertRequest(entityName: "Mark", objects: rows)
        }
    }

    /// Executes a batch, and resets the context, as the batch may have changed its objects.
    func execute(_ request: NSPersistentStoreRequest, _ patience: ServerPatience) throws {
        _ = try patience.trying { try context.execute(request) }
        context.reset()
        counter = try patience.trying { try Self.counter(context) }
    }

    private func nodes(of save: Int64) throws -> [Node] {
        let request = NSFetchRequest<Node>(entityName: "Node")
        request.predicate = NSPredicate(format: "serial == %@", save)
        request.sortDescriptors = [NSSortDescriptor(key: "first", ascending: true)]
        return try context.fetch(request)
    }

    private func marks(of save: Int64) throws -> [Mark] {
        let request = NSFetchRequest<Mark>(entityName: "Mark")
        request.predicate = NSPredicate(format: "serial == %@", save)
        return try context.fetch(request)
    }

    private func apply(_ step: CrashStep, _ save: Int64, _ stream: inout SeededStream) throws {
        switch step.kind {
        case .insert:
            for place in 0..<CrashStep.size(of: save) {
                let node = Node(context: context)
                (node.serial, node.first) = (save, Int64(place))
                node.label = String(repeating: "x", count: stream.below(600))
            }
            counter.balance += 1
        case .delete where sabotage == "forgotten-deletion": break
        case .update where sabotage == "forgotten-value": break
        case .adopt where sabotage == "forgotten-parent": break
        case .delete: for node in try nodes(of: step.target) { context.delete(node) }
        case .deleteMarks: for mark in try marks(of: step.target) { context.delete(mark) }
        case .update: for node in try nodes(of: step.target) { node.second = save }
        case .adopt:
            // This goes through the inverse, which must lead to the same rows.
            try nodes(of: save).first?.children.formUnion(try nodes(of: step.target))
        case .follow:
            let parent = try nodes(of: step.target).first
            for node in try nodes(of: save) { node.parent = parent }
        case .mark:
            let mark = Mark(context: context)
            (mark.serial, mark.nodes) = (save, Set(try nodes(of: step.target)))
        case .move:
            let owners = Set(try nodes(of: save))
            for mark in try marks(of: step.target) { mark.nodes = owners }
        case .picture: for mark in try marks(of: step.target) { mark.image = CrashStep.image(save) }
        case .insertMarks: break
        }
    }
}
