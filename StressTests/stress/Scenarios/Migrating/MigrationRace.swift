import CoreData
import StrataSQLiteStore
import StrataStoreChecks

/// Several processes open an old store at once.
///
/// One must migrate it, and the others must find it migrated, even after a kill.
enum MigrationRace {
    private static let nodes = 200

    /// Runs one race.
    ///
    /// - Parameters:
    ///   - run: Collects the findings.
    ///   - number: The number of the race.
    ///   - stream: Decides which process is killed, and when.
    /// - Throws: If the store cannot be made, or a process cannot be started.
    static func run(_ run: Run, _ number: Int, _ stream: inout SeededStream) throws {
        let folder = run.folder.appendingPathComponent("race-\(number)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let url = folder.appendingPathComponent("store.sqlite")
        try fill(url)
        let arguments = ["child", "race", url.path] + (run.options.sabotage.map { [$0] } ?? [])
        var children = try (0..<4).map { _ in try Child(arguments, output: FileHandle.standardError) }
        if stream.chance(0.5) {
            usleep(UInt32(stream.below(200_000)))
            let victim = children.remove(at: stream.below(children.count))
            victim.kill()
            _ = victim.wait()
            run.count("killed-migrating")
        }
        for child in children {
            let status = child.wait()
            if status != 0 { run.find("race \(number): a process that opens an old store ended with \(status)") }
        }
        run.count("races")
        try check(run, number, url)
        OlderProgram.run(run, "race \(number)", url)
    }

    /// Runs one of the processes: it opens the store, and checks that all rows are there.
    ///
    /// - Parameter arguments: The store, and the name of a sabotage.
    /// - Throws: Errors of opening the store.
    static func child(_ arguments: [String]) throws {
        guard let path = arguments.first else { throw StressError("child race needs a store") }
        if arguments.count > 1 { FaultPoints.switchOff(arguments[1]) }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: NextModel.shared)
        try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: URL(fileURLWithPath: path),
            options: NextModel.options.merging([NSPersistentHistoryTrackingKey: true]) { $1 }
        )
        let context = coordinator.context()
        let count = try context.performAndWait {
            try context.count(for: NSFetchRequest<NSManagedObject>(entityName: "Node"))
        }
        guard count == nodes else { throw StressError("\(count) nodes are there, not \(nodes)") }
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    private static func fill(_ url: URL) throws {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        let store = try coordinator.addPersistentStore(
            type: .sqlite,
            configuration: nil,
            at: url,
            options: [NSPersistentHistoryTrackingKey: true]
        )
        let context = coordinator.context()
        try context.performAndWait {
            for serial in 0..<nodes {
                let node = Node(context: context)
                (node.serial, node.second) = (Int64(serial), Int64(serial * 2))
            }
            try context.save()
        }
        try coordinator.remove(store)
    }

    /// Checks that the store was migrated once, with all values.
    private static func check(_ run: Run, _ number: Int, _ url: URL) throws {
        do {
            let coordinator = NSPersistentStoreCoordinator(managedObjectModel: NextModel.shared)
            let store = try coordinator.addPersistentStore(
                type: .sqlite,
                configuration: nil,
                at: url,
                options: [NSPersistentHistoryTrackingKey: true]
            )
            let context = coordinator.context()
            try context.performAndWait {
                let values = try context.fetch(NSFetchRequest<NSManagedObject>(entityName: "Node")).map {
                    ($0.value(forKey: "latest") as? Int64 ?? -1) - 2 * ($0.value(forKey: "serial") as? Int64 ?? 0)
                }
                if values != Array(repeating: 0, count: nodes) { run.find("race \(number): values are not as before") }
                let request = NSPersistentHistoryChangeRequest.fetchHistory(after: nil as NSPersistentHistoryToken?)
                let result = try context.execute(request) as? NSPersistentHistoryResult
                let count = (result?.result as? [NSPersistentHistoryTransaction])?.count ?? 0
                if count != 2 { run.find("race \(number): the history has \(count) transactions, not 2") }
            }
            try coordinator.remove(store)
            for problem in try StoreVerifier(storeURL: url, model: NextModel.shared).problems() {
                run.find("race \(number): \(problem)")
            }
        } catch { run.find("race \(number): opening the store gave \(describe(error))") }
    }
}
