import CoreDataEssentials
import StrataPredicates

extension NSMigrationManager {
    /// The functions of every manager, by the selectors in Apple's mapping models.
    final func standardFunction(named name: String) -> NSEntityMigrationPolicy.Function? {
        switch name {
        case "destinationInstancesForEntityMappingNamed:sourceInstances:":
            return { [unowned self] arguments in
                destinationInstances(
                    forEntityMappingName: try Self.text(in: arguments, at: 0, of: name),
                    sourceInstances: try Self.objects(in: arguments, at: 1, of: name)
                )
            }
        case "destinationInstancesForSourceRelationshipNamed:sourceInstances:":
            // The relationship is not needed: the objects' destinations are found through all mappings that have
            // migrated them.
            return { [unowned self] arguments in
                let sources = try Self.objects(in: arguments, at: 1, of: name)
                return run?.destinations(sources) ?? []
            }
        case "sourceInstancesForEntityMappingNamed:destinationInstances:":
            return { [unowned self] arguments in
                sourceInstances(
                    forEntityMappingName: try Self.text(in: arguments, at: 0, of: name),
                    destinationInstances: try Self.objects(in: arguments, at: 1, of: name)
                )
            }
        case "fetchRequestForSourceEntityNamed:predicateString:":
            return { [unowned self] arguments in
                let request = NSFetchRequest<NSFetchRequestResult>(
                    entityName: try Self.text(in: arguments, at: 0, of: name)
                )
                // The store may hold only a part of the model.
                request.affectedStores = run?.source.coordinator.persistentStores
                request.includesSubentities = false
                let text = try Self.text(in: arguments, at: 1, of: name)
                if !text.isEmpty { request.predicate = try Self.predicate(text, name) }
                return request
            }
        case "sourceContext", "destinationContext", "sourceModel", "destinationModel", "mappingModel",
            "currentEntityMapping", "userInfo":
            return { [unowned self] _ in value(forKey: name) }
        default: return nil
        }
    }

    private static func predicate(_ text: String, _ name: String) throws -> NSPredicate {
        do { return try NSPredicate(validating: text) } catch {
            throw PredicateEvaluationError("argument 2 of \(name) is no predicate")
        }
    }

    private static func text(in arguments: [Any?], at index: Int, of name: String) throws -> String {
        guard index < arguments.count, let text = arguments[index] as? String else {
            throw PredicateEvaluationError("argument \(index + 1) of \(name) is no text")
        }
        return text
    }

    /// The objects of an argument: one, or the members of a collection; none for nil.
    private static func objects(in arguments: [Any?], at index: Int, of name: String) throws -> [NSManagedObject] {
        guard index < arguments.count, let value = arguments[index] else { return [] }
        if let objects = MigrationRun.objects(in: value) { return objects }
        throw PredicateEvaluationError(
            "argument \(index + 1) of \(name) has no managed objects, but \(type(of: value))"
        )
    }
}
