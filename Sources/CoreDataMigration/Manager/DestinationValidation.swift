import CoreDataEssentials
import StrataPredicates
import StrataRows

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
            try forEachObject(of: entity) { try Self.check(&errors, $0.validateForInsert()) }
            // The objects are saved, so the method above does not look at the numbers of their members.
            for slot in entity.layout.limitedToMany where !slot.isTransient {
                try forEachObject(of: entity, where: Self.breach(of: slot)) {
                    try Self.check(&errors, $0.validateMembers(of: slot))
                }
            }
        }
        try ValidationErrors.throwIfAny(errors)
    }

    private func forEachObject(
        of entity: NSEntityDescription,
        where predicate: NSPredicate? = nil,
        _ body: (NSManagedObject) throws -> Void
    ) throws {
        let request = stack.request(entity.name ?? "")
        request.predicate = predicate
        let size = EntityStep.batchSize(for: entity)
        request.fetchBatchSize = size
        var count = 0
        try stack.forEachWindow(of: request) { objects in
            for object in objects {
                try manager.throwIfCancelled()
                try body(object)
                count += 1
                if count % size == 0 { stack.letGo() }
            }
        }
        stack.letGo()
    }

    private static func check(_ errors: inout [any Error], _ validation: @autoclosure () throws -> Void) throws {
        do {
            try validation()
        } catch {
            errors.append(error)
            if errors.count >= mostErrors { try ValidationErrors.throwIfAny(errors) }
        }
    }

    /// Finds the objects with too few or too many members in one query, instead of one for each object.
    private static func breach(of slot: ToManySlot) -> NSPredicate {
        let relationship = slot.relationship
        // An optional relationship may be empty.
        let least = relationship.property.isOptional ? 0 : -1
        let tooFew = NSPredicate(
            format: "%K.@count > %d AND %K.@count < %d",
            slot.name,
            least,
            slot.name,
            relationship.minCount
        )
        guard relationship.maxCount > 1 else { return tooFew }
        let tooMany = NSPredicate(format: "%K.@count > %d", slot.name, relationship.maxCount)
        return NSCompoundPredicate(orPredicateWithSubpredicates: [tooFew, tooMany])
    }
}
