import CoreData

/// A program of an earlier version opens a store with the default options.
///
/// It must be refused, and nothing may be lost.
enum OlderProgram {
    /// The options of a store's description, with a history.
    private static var options: [AnyHashable: Any] {
        [
            NSMigratePersistentStoresAutomaticallyOption: true, NSInferMappingModelAutomaticallyOption: true,
            NSPersistentHistoryTrackingKey: true,
        ]
    }

    /// Opens two stores this way: one that was migrated from the first version, and one that was made with the next
    /// version.
    ///
    /// - Parameters:
    ///   - run: Collects the findings.
    ///   - name: The beginning of each finding.
    ///   - url: A store that was migrated to the next version, and is closed.
    static func run(_ run: Run, _ name: String, _ url: URL) {
        for place in [url, url.deletingLastPathComponent().appendingPathComponent("newer.sqlite")] {
            do { try visit(run, name, place) } catch {
                run.find("\(name): a store with a note gave \(describe(error))")
            }
        }
    }

    private static func visit(_ run: Run, _ name: String, _ url: URL) throws {
        _ = try count(url) { context in
            let node = NSEntityDescription.insertNewObject(forEntityName: "Node", into: context)
            node.setValue("kept", forKey: "note")
            try context.save()
        }
        do {
            let (coordinator, store) = try open(url, StressModel.shared)
            try coordinator.remove(store)
            run.find("\(name): an older program was let into \(url.lastPathComponent), whose notes it does not know")
        } catch let error as CocoaError where error.code == .migration {
            run.count("refused-programs")
        }
        let left = try count(url)
        if left != 1 { run.find("\(name): \(left) notes are left after an older program has come, not 1") }
    }

    private static func open(_ url: URL, _ model: NSManagedObjectModel) throws
        -> (NSPersistentStoreCoordinator, NSPersistentStore)
    {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        let store = try coordinator.addPersistentStore(type: .sqlite, configuration: nil, at: url, options: options)
        return (coordinator, store)
    }

    /// Opens a store with the next version, and counts its notes.
    private static func count(
        _ url: URL,
        after change: (NSManagedObjectContext) throws -> Void = { _ in }
    ) throws -> Int {
        let (coordinator, store) = try open(url, NextModel.shared)
        let context = coordinator.context()
        let count = try context.performAndWait { () throws -> Int in
            try change(context)
            let request = NSFetchRequest<NSManagedObject>(entityName: "Node")
            request.predicate = NSPredicate(format: "note == 'kept'")
            return try context.count(for: request)
        }
        try coordinator.remove(store)
        return count
    }
}
