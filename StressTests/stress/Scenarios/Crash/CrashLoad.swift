import CoreData

/// Draws what the saves of a life do, and does it: to what the life has inserted, and to some of what former lives have
/// left.
final class CrashLoad {
    /// So many saves of former lives, of nodes and of marks, are known to a life.
    private static let most = 40
    private let context: NSManagedObjectContext
    private let sabotage: String?
    private var counter: Account
    /// The saves whose nodes, and whose marks, are there.
    private var groups: [Int64]
    private var marks: [Int64]

    /// - Parameters:
    ///   - context: The context to work in, on whose queue all of this is.
    ///   - sabotage: What to leave out, though the ledger has it.
    ///   - stream: Decides which of the former saves are known.
    /// - Throws: What fetching throws.
    init(_ context: NSManagedObjectContext, _ sabotage: String?, _ stream: inout SeededStream) throws {
        (self.context, self.sabotage) = (context, sabotage)
        counter = try Self.counter(context)
        // The numbers of saves are random, so that this takes some of each life.
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
    ///   - save: Its number.
    ///   - stream: Where it is drawn from.
    /// - Returns: What it does, and the request that does it; `nil` if the context is to be saved.
    /// - Throws: What fetching throws.
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
        // More go when there are many, so that looking at the file stays quick.
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

    /// Executes a batch, and lets go of all that it may have changed.
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
            // Through the inverse, which has to lead to the same rows.
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
