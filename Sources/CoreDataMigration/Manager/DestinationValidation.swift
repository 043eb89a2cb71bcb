import CoreDataEssentials
import StrataPredicates

/// Validates all objects of a migrated store, batch by batch.
struct DestinationValidation {
    private let stack: MigrationStack
    private let manager: NSMigrationManager

    /// The maximum number of errors that are collected: more would have no new information, and take memory.
    private static let mostErrors = 1000

    init(_ stack: MigrationStack, _ manager: NSMigrationManager) {
        self.stack = stack
        self.manager = manager
    }

    /// - Throws: The error, or `validationMultipleErrors` (1560) with up to 1000 of them.
    func run() throws {
        var errors: [any Error] = []
        for entity in stack.model.frozen.entities where !entity.isAbstract {
            let request = stack.request(entity.name ?? "")
            let size = EntityStep.batchSize(for: entity)
            request.fetchBatchSize = size
            var count = 0
            try stack.forEachWindow(of: request) { objects in
                for object in objects {
                    try manager.throwIfCancelled()
                    do {
                        try object.validateForInsert()
                    } catch {
                        errors.append(error)
                        if errors.count >= Self.mostErrors { try ValidationErrors.throwIfAny(errors) }
                    }
                    count += 1
                    if count % size == 0 { stack.letGo() }
                }
            }
            stack.letGo()
        }
        try ValidationErrors.throwIfAny(errors)
    }
}
