import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Migrates a store under a plan of faults, and checks the store.
///
/// The migration must succeed, or give a documented error and leave the store as it was. Without faults, it must
/// succeed when it is tried again. No value may be lost.
final class FaultMigration {
    private static let entities: Set<String> = ["Account", "Node", "Mark"]
    private static let next = NextModel.make(of: entities)
    private static let pragmas = ["wal_autocheckpoint": "16", "synchronous": "FULL"]

    private let run: Run
    private let name: String
    private let documented: Set<CocoaError.Code>
    private let plan: FaultFileSystem.Plan
    private let url: URL
    /// The number of operations of each kind that plans can count, and the number of those that failed.
    private(set) var lengths: [Int: Int] = [:]
    private(set) var faults = 0
    private(set) var failures = 0

    init(_ run: Run, _ name: String, _ documented: Set<CocoaError.Code>, _ plan: FaultFileSystem.Plan) {
        (self.run, self.name, self.plan) = (run, "migrating, " + name, plan)
        self.documented = documented.union([.migration, .fileWriteNoPermission])
        url = run.folder.appendingPathComponent(UUID().uuidString + ".sqlite")
    }

    /// Plays the migration.
    ///
    /// - Throws: Errors that no fault has caused.
    func play() throws {
        defer {
            FaultFileSystem.arm(FaultFileSystem.Plan())
            for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) }
            let support = ".\(url.deletingPathExtension().lastPathComponent)_SUPPORT"
            try? FileManager.default.removeItem(at: run.folder.appendingPathComponent(support))
        }
        FaultFileSystem.arm(FaultFileSystem.Plan())
        let wanted = try fill()
        FaultFileSystem.arm(plan)
        var isMigrated = migrate(isAgain: false)
        if !isMigrated, !plan.isSticky { isMigrated = migrate(isAgain: true) }
        faults = FaultFileSystem.counts.failures
        for (_, operations) in IOFault.figures { lengths[operations.rawValue] = FaultFileSystem.count(of: operations) }
        FaultFileSystem.arm(FaultFileSystem.Plan())
        try look(wanted, isMigrated)
    }

    /// Opens the store with the next version.
    private func migrate(isAgain: Bool) -> Bool {
        do {
            try run.close(try open(Self.next))
            return true
        } catch {
            failures += 1
            if isAgain { find("migrating fails again, though the fault came once: \(describe(error))") }
            if plan.operations == .pieces { find("a short read fails a migration: \(describe(error))") }
            if let code = (error as? CocoaError)?.code, documented.contains(code) {
                run.count("error-\(code.rawValue)")
            } else {
                find("migrating gave \(describe(error))")
            }
            return false
        }
    }

    private func open(_ model: NSManagedObjectModel) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let options: [AnyHashable: Any] = [
            NSSQLitePragmasOption: Self.pragmas, NSPersistentHistoryTrackingKey: true,
        ]
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: url,
            options: NextModel.options.merging(options) { $1 }
        )
        return coordinator
    }

    // MARK: - The content

    private func fill() throws -> [String] {
        let stack = try open(FaultScript.model)
        let context = stack.context()
        try context.performAndWait {
            var marks: [Mark] = []
            for serial in 0..<3 {
                let mark = Mark(context: context)
                (mark.serial, mark.image) = (
                    Int64(serial), Data(repeating: UInt8(serial), count: 140_000 * (serial % 2))
                )
                marks.append(mark)
            }
            var parent: Node?
            for serial in 0..<40 {
                let node = Node(context: context)
                (node.serial, node.second, node.label) = (
                    Int64(serial), Int64(serial * 3), String(repeating: "y", count: 80)
                )
                (node.parent, node.marks) = (parent, Set(marks.prefix(serial % 4)))
                if serial % 5 == 0 { parent = node }
            }
            for balance in 0..<3 { Account(context: context).balance = Int64(balance) }
            try context.save()
        }
        let rows = try rows(context)
        try run.close(stack)
        return rows
    }

    /// The whole content of the store, in words.
    private func rows(_ context: NSManagedObjectContext) throws -> [String] {
        try context.performAndWait {
            let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node")).map { node in
                "node \(node.serial) \(node.second) \(node.label?.count ?? -1) \(node.parent?.serial ?? -1) \(node.marks.map(\.serial).sorted())"
            }
            let marks = try context.fetch(NSFetchRequest<Mark>(entityName: "Mark")).map { mark in
                "mark \(mark.serial) \(mark.image?.count ?? -1) \(mark.image?.first ?? 0)"
            }
            let accounts = try context.fetch(NSFetchRequest<Account>(entityName: "Account")).map {
                "account \($0.balance)"
            }
            return (nodes + marks + accounts).sorted()
        }
    }

    /// Checks the version of the store, and all values on the way back to the first version.
    private func look(_ wanted: [String], _ isMigrated: Bool) throws {
        do {
            let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: url)
            let isNext = Self.next.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
            let isFirst = FaultScript.model.isConfiguration(withName: nil, compatibleWithStoreMetadata: metadata)
            // If the commit has failed, then the whole migration may still be in the log.
            if isMigrated ? !isNext : !isNext && !isFirst { find("the store has another version than was told") }
            let stack = try open(FaultScript.model)
            let found = try rows(stack.context())
            if found != wanted { find("the rows are \(found.filter { !wanted.contains($0) }), not as before") }
            try run.close(stack)
            for problem in try StoreVerifier(storeURL: url, model: FaultScript.model).problems()
            where faults == 0 || !problem.hasSuffix("belongs to no row") {
                find(problem)
            }
        } catch { find("opening afterwards gave \(describe(error))") }
    }

    private func find(_ text: String) { run.find("\(name): \(text)") }
}
