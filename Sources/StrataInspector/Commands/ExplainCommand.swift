import CoreData

/// Prints how a store answers a fetch.
enum ExplainCommand: Command {
    static let name = "explain"
    static let summary =
        "Prints the SQL of a fetch, the database's plan for it, the indexes that it uses, and the tables that it scans."
    static let options: [Option] = [
        .store, .model,
        Option("--entity", "NAME", required: true, help: "the entity"),
        Option("--predicate", "TEXT", help: "which objects, in the predicate language"),
        Option("--sort", "KEY,-KEY", help: "the order, by keys or key paths; descending with a minus before"),
        Option("--limit", "N", help: "how many at most"),
        Option("--count", help: "count the objects instead of fetching them"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let predicate = try arguments["--predicate"].map { try NSPredicate(validating: $0) }
        let limit = try arguments.number("--limit")
        let sortKeys = try arguments["--sort"].map(SortKey.list) ?? []
        let store = try Store(arguments)
        let entity = try FetchCommand.entity(named: try arguments.required("--entity"), in: store.model)
        for key in sortKeys { try key.check(against: entity) }
        try store.context.performAndWait {
            let request = NSFetchRequest<NSManagedObject>(entityName: entity.name ?? "")
            request.predicate = predicate
            request.sortDescriptors = sortKeys.map { NSSortDescriptor(key: $0.path, ascending: $0.isAscending) }
            request.fetchLimit = limit ?? 0
            if arguments.has("--count") { request.resultType = .countResultType }
            print(try store.context.explain(request).description)
        }
        return .success
    }
}
