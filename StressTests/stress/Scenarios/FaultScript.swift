import CoreData

/// Opens a store, saves, reads and closes under a plan of faults; then, without faults, goes on and looks at what is there.
///
/// Every call has to succeed or to give a documented error, what it does must be wholly done or not at all, and what was
/// acknowledged has to be there in the end.
final class FaultScript {
    private static let saves = 12

    /// How many operations on files there were, until the faults were lifted.
    private(set) var operations = 0
    /// How many of these failed.
    private(set) var faults = 0
    /// How many calls gave an error.
    private(set) var failures = 0
    private let run: Run
    private let name: String
    private let documented: Set<CocoaError.Code>
    private let url: URL
    /// The number of saves that are known to be there.
    private var acknowledged = 0

    init(_ run: Run, _ name: String, _ documented: Set<CocoaError.Code>) {
        (self.run, self.name, self.documented) = (run, name, documented)
        url = run.folder.appendingPathComponent(UUID().uuidString + ".sqlite")
    }

    /// Plays it.
    ///
    /// - Parameter plan: The faults.
    /// - Throws: What nobody has asked for.
    func play(_ plan: FaultFileSystem.Plan) throws {
        defer {
            FaultFileSystem.arm(FaultFileSystem.Plan())
            for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) }
        }
        FaultFileSystem.arm(plan)
        let stack: NSPersistentStoreCoordinator
        do {
            stack = try open()
        } catch {
            judge(error, "opening")
            lift()
            return try run.close(try open())
        }
        // The script is played on one thread, which is the one that is told of errors.
        nonisolated(unsafe) let script = self
        stack.unreportableErrorHandler = { script.judge($0, $1) }
        let context = stack.context()
        context.performAndWait {
            work(context)
            read(context)
        }
        // Half of the scripts close a store whose disk has failed, and leave what is unsaved.
        let closesUnderFaults = plan.point % 2 == 1
        if closesUnderFaults {
            do { try run.close(stack) } catch { judge(error, "closing") }
            lift()
        } else {
            lift()
            context.performAndWait {
                do {
                    try context.save()
                    acknowledged = Self.saves
                } catch { find("saving without faults gave \(describe(error))") }
            }
        }
        if !stack.persistentStores.isEmpty { try run.close(stack) }
        try look()
    }

    private func lift() {
        (operations, faults) = FaultFileSystem.counts
        FaultFileSystem.arm(FaultFileSystem.Plan())
    }

    private func open() throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        let pragmas = ["wal_autocheckpoint": "6", "synchronous": "FULL"]
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: url,
            options: [NSSQLitePragmasOption: pragmas]
        )
        return coordinator
    }

    private func find(_ text: String) { run.find("\(name): \(text)") }

    private func judge(_ error: any Error, _ doing: String) {
        failures += 1
        if let code = (error as? CocoaError)?.code, documented.contains(code) {
            return run.count("error-\(code.rawValue)")
        }
        find("\(doing) gave \(describe(error))")
    }

    // MARK: - Under faults

    /// Saves again and again; what failed is saved with what comes next.
    private func work(_ context: NSManagedObjectContext) {
        var groups: [[Node]] = []
        for save in 0..<Self.saves {
            let mark = Mark(context: context)
            mark.serial = Int64(save)
            let group = (0..<4).map { place in
                let node = Node(context: context)
                node.serial = Int64(save)
                node.first = Int64(place)
                node.label = String(repeating: "y", count: save * 90)
                node.parent = groups.last?.first
                node.marks = [mark]
                return node
            }
            groups.append(group)
            // Each save takes back a part of the one before the last.
            if save >= 2 {
                context.delete(groups[save - 2][3])
                groups[save - 2][1].second = 1
            }
            do {
                try context.save()
                acknowledged = save + 1
            } catch {
                judge(error, "saving")
                if !context.hasChanges { find("a failed save has taken the changes") }
            }
            do {
                let count = try context.count(for: NSFetchRequest<Node>(entityName: "Node"))
                let wanted = Self.size(after: save + 1)
                if count != wanted { find("a context counts \(count) nodes, its own changes included, not \(wanted)") }
            } catch { judge(error, "counting") }
        }
    }

    /// Lets go of what is unchanged, and reads it again.
    private func read(_ context: NSManagedObjectContext) {
        context.refreshAllObjects()
        do {
            for node in try context.fetch(NSFetchRequest<Node>(entityName: "Node")) {
                let before = failures
                let (serial, label, marks) = (node.serial, node.label ?? "", node.marks.count)
                // What cannot be read has been reported.
                guard failures == before else { continue }
                if label.count != serial * 90 { find("a label of save \(serial) has \(label.count) characters") }
                if marks != 1 { find("a node of save \(serial) has \(marks) marks") }
            }
        } catch { judge(error, "fetching") }
    }

    /// How many nodes there are after so many saves.
    private static func size(after saves: Int) -> Int { 4 * saves - max(saves - 2, 0) }

    // MARK: - Afterwards

    private func look() throws {
        let stack: NSPersistentStoreCoordinator
        do { stack = try open() } catch { return find("opening again gave \(describe(error))") }
        let context = stack.context()
        context.performAndWait {
            do {
                let all = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                compare(Dictionary(grouping: all) { Int($0.serial) })
            } catch { find("fetching afterwards gave \(describe(error))") }
        }
        try run.close(stack)
        for suffix in ["-wal", "-shm"] where FileManager.default.fileExists(atPath: url.path + suffix) {
            find("\(suffix) is left behind by a store that was closed")
        }
        do {
            for problem in try StoreVerifier(storeURL: url, model: StressModel.shared).problems() { find(problem) }
        } catch { find("checking the file gave \(describe(error))") }
    }

    /// Demands that the first so many saves are there, all that were acknowledged among them, and nothing of any other.
    private func compare(_ groups: [Int: [Node]]) {
        let saves = (groups.keys.max() ?? -1) + 1
        if saves < acknowledged { return find("\(saves) saves are there, acknowledged were \(acknowledged)") }
        for save in 0..<saves {
            let group = groups[save] ?? []
            let isCut = save + 2 < saves
            let places: [Int64] = isCut ? [0, 1, 2] : [0, 1, 2, 3]
            if group.map(\.first).sorted() != places { find("save \(save) is \(group.map(\.first).sorted())") }
            for node in group {
                if node.second != (isCut && node.first == 1 ? 1 : 0) { find("a change of save \(save) is torn") }
                if node.marks.first?.serial != Int64(save) { find("the mark of a node of save \(save) is missing") }
                let parent = save > 0 ? Int64(save - 1) : nil
                if node.parent?.serial != parent { find("the parent of a node of save \(save) is wrong") }
            }
        }
    }
}
