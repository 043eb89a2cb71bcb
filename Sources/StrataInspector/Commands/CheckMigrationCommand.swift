import CoreData

/// Checks that stores of older versions of a model can be migrated to the newest.
enum CheckMigrationCommand: Command {
    static let name = "check-migration"
    static let summary =
        "Checks that a mapping can be inferred from each version of a model to the last one named; says what stands in the way, and exits 1."
    static let options: [Option] = []
    static let operand: String? = "OLD… NEW"
    static let operandCount = 2...Int.max

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
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
        return isReached ? .success : .problemsFound
    }
}
