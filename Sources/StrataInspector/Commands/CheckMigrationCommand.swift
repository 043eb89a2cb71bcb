import CoreData

/// Checks that stores of older versions of a model can be migrated to the newest.
enum CheckMigrationCommand: Command {
    static let name = "check-migration"
    static let summary =
        "Checks that a mapping can be inferred from each version of a model to the last one named, and with --server that no program waits for long for the migration of a store. Prints what stands in the way, and exits 1."
    static let options: [Option] = [
        Option("--server", "URL", help: "a PostgreSQL store of a version before; prints who would wait for which step")
    ]
    static let operand: String? = "OLD… NEW"
    static let operandCount = 1...Int.max

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        guard arguments.operands.count > 1 || arguments["--server"] != nil else {
            throw UsageError("OLD… NEW needs two models at least, unless --server names a store")
        }
        let models = try arguments.operands.map { try Store.model(at: $0) }
        guard let last = models.last, let newest = arguments.operands.last else { return .usage }
        var isReached = true
        for (path, model) in zip(arguments.operands, models).dropLast() {
            let plan = NSMigrationPlan(from: model, to: last)
            guard !plan.isPossible else {
                print("\(path) → \(newest): can be inferred")
                plan.remarks.forEach { print("  note: \($0)") }
                continue
            }
            isReached = false
            print("\(path) → \(newest): cannot be inferred")
            plan.obstacles.forEach { print("  \($0)") }
        }
        if let server = arguments["--server"] { isReached = try isUnnoticed(at: server, last, print) && isReached }
        return isReached ? .success : .problemsFound
    }

    /// Prints the plan of a store's migration.
    ///
    /// - Returns: Whether it is possible, loses nothing, and has no step for which others wait long.
    private static func isUnnoticed(
        at name: String,
        _ model: NSManagedObjectModel,
        _ print: (String) -> Void
    ) throws -> Bool {
        let place = try StorePlace(name)
        // Other stores do not list their steps, so that no hazard would be found.
        guard !place.isFile else { throw UsageError("--server needs the URL of a PostgreSQL store") }
        let plan = try NSMigrationPlan(forStoreAt: place.url, type: place.type, from: nil, to: model)
        print(plan.description)
        let hazards = plan.steps.filter(\.isHazard).count
        print(
            hazards == 0
                ? "\(place.name): nobody waits for long"
                : "\(place.name): others wait for \(hazards) step\(hazards == 1 ? "" : "s") on large tables"
        )
        return plan.isPossible && plan.losses.isEmpty && hazards == 0
    }
}
