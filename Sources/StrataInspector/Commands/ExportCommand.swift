import CoreData
import StrataLocks

/// Prints a whole store as lines of JSON.
enum ExportCommand: Command {
    static let name = "export"
    static let summary =
        "Prints all objects of a store, one JSON object a line, in a form that import reads back without a loss."
    static let options: [Option] = [
        .store, .model,
        Option(
            "--entity",
            "NAME",
            help: "only this entity, without its sub-entities; relationships may lead to what is not there then"
        ),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let store = try Store(arguments, access: .readingArchives)
        store.coordinator.limits.rowCacheBytes = ExchangeFormat.rowCacheBytes
        let wanted = arguments["--entity"]
        if let wanted { _ = try FetchCommand.entity(named: wanted, in: store.model) }
        let failure = try store.context.performAndWait { () -> (any Error)? in
            // The export shows one moment of the store, even if other programs write meanwhile.
            try store.context.setQueryGenerationFrom(.current)
            let failures = ReadingFailures(store.coordinator)
            for entity in store.model.entities.sorted(by: { ($0.name ?? "") < ($1.name ?? "") })
            where !entity.isAbstract && (wanted == nil || entity.name == wanted) && store.holds(entity) {
                try export(entity, from: store.context, to: print)
            }
            return failures.first
        }
        if let failure { throw failure }
        return .success
    }

    /// Prints the objects of an entity, in the order of their keys.
    static func export(
        _ entity: NSEntityDescription,
        from context: NSManagedObjectContext,
        stretch: Int = WorkSize.exportedStretch,
        to print: (String) -> Void
    ) throws {
        let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
        request.includesSubentities = false
        request.fetchBatchSize = WorkSize.exportedObjects
        request.relationshipKeyPathsForPrefetching = ExchangeFormat.listed(of: entity).map(\.name)
        request.fetchLimit = stretch
        while true {
            let found = try context.batchedResults(for: request)
            for object in found { print(ExchangeFormat.json(of: object).text) }
            guard found.count == stretch else { return }
            request.fetchOffset += stretch
        }
    }
}

/// Keeps the first error of a read in a place that cannot throw.
private final class ReadingFailures: Sendable {
    private let state = Locked<(any Error)?>(nil)

    init(_ coordinator: NSPersistentStoreCoordinator) {
        coordinator.unreportableErrorHandler = { [weak self] error, _ in
            self?.state.withLock { $0 = $0 ?? error }
        }
    }

    var first: (any Error)? { state.withLock { $0 } }
}

extension Store {
    /// Whether the store has a place for an entity's objects.
    fileprivate func holds(_ entity: NSEntityDescription) -> Bool {
        (metadata[NSStoreModelVersionHashesKey] as? [String: Data])?[entity.name ?? ""] != nil
    }
}
